"""Recurrent models: models with at least k generators whose intersection is empty.

Reference: Senavirathne, N., Torra, V. (2019). Integrally private model selection for decision trees. Computers &
Security 83, 167-181. doi:10.1016/j.cose.2019.01.006
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import prod

import numpy as np
import numpy.typing as npt

from sfumato.errors import BadParameter
from sfumato.integral.encoding import Codes
from sfumato.integral.learner import Learner
from sfumato.integral.records import Records
from sfumato.progress import SILENT, Progress
from sfumato.release.verdict import State, Verdict
from sfumato.rng import Rng

MODEL = "integral-privacy"
_BATCH = 1024
_MOST_DATA_SETS = 2_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class RecurrentModel:
    """A model and the data sets that generate it."""

    model: bytes
    score: float
    generators: int
    """Number of different data sets among those tried that give this model. Exchanging records within a cell gives
    further ones, which are not counted."""
    in_all: Codes
    """Cells all of whose people are in every generator. The intersection is empty if there are none."""
    people_in_all: int
    witnesses: npt.NDArray[np.int64]
    """The first k generators, as counts of the cells."""

    def private(self, k: int) -> bool:
        return self.generators >= k and not self.people_in_all


@dataclass(frozen=True, kw_only=True, eq=False)
class RecurrentModels:
    """All models found, the most accurate of the private ones first."""

    k: int
    models: tuple[RecurrentModel, ...]
    data_sets: int
    exhaustive: bool

    @property
    def private(self) -> tuple[RecurrentModel, ...]:
        return tuple(one for one in self.models if one.private(self.k))

    def best(self) -> RecurrentModel | None:
        """The most accurate integrally private model; None if none was found."""
        return next(iter(self.private), None)

    def verdict(self, model: bytes) -> Verdict:
        """Whether a model has at least k generators with an empty intersection."""
        one = next((found for found in self.models if found.model == model), None)
        count, common = (0, 0) if one is None else (one.generators, one.people_in_all)
        if one is not None and one.private(self.k):
            state, reason = State.HOLDS, f"{count:,} generators, and nobody is in all of them."
        elif self.exhaustive:
            state = State.FAILS
            reason = f"{count:,} generators, with {common:,} people in all of them; all data sets were tried."
        else:
            state = State.NOT_CHECKED
            reason = f"{count:,} generators among {self.data_sets:,} data sets; others were not tried."
        return Verdict(model=MODEL, state=state, worst=count, wanted=self.k, failing=common, reason=reason)


def sampled_generators(
    learner: Learner,
    records: Records,
    *,
    k: int,
    samples: int,
    share: float,
    known: Sequence[int] = (),
    rng: Rng,
    progress: Progress = SILENT,
) -> RecurrentModels:
    """Models of random subsamples. A model that was found k times has k generators; one that was not may have them.

    ``known``: rows of people whom the adversary knows to be in the data. They are in every data set that is tried, and
    do not count as members of the intersection.
    """
    fixed = records.counts_of(known)
    rest = records.counts - fixed
    wanted = round(share * len(records)) - int(fixed.sum())
    if not 0 < share < 1 or not 0 < wanted <= int(rest.sum()) or samples < 1:
        raise BadParameter("The share must leave out some records and keep some besides the known ones.", share=share)
    generator = rng.child("generators").generator

    def draws() -> Iterator[Codes]:
        for _ in range(samples):
            yield fixed + generator.multivariate_hypergeometric(rest, wanted)

    return _collect(learner, records, draws(), k=k, fixed=fixed, total=samples, exhaustive=False, progress=progress)


def all_generators(
    learner: Learner, records: Records, *, k: int, known: Sequence[int] = (), progress: Progress = SILENT
) -> RecurrentModels:
    """Models of all non-empty subsets of the records: exact, for small data."""
    fixed = records.counts_of(known)
    number = prod(int(most - least) + 1 for least, most in zip(fixed, records.counts, strict=True))
    if number > _MOST_DATA_SETS:
        raise BadParameter(
            f"There are more than {_MOST_DATA_SETS:,} data sets.", fix="Draw a sample of them instead.", limit=number
        )
    ranges = [range(int(least), int(most) + 1) for least, most in zip(fixed, records.counts, strict=True)]
    subsets = (np.array(counts) for counts in product(*ranges) if any(counts))
    return _collect(learner, records, subsets, k=k, fixed=fixed, total=number, exhaustive=True, progress=progress)


def _collect(
    learner: Learner,
    records: Records,
    subsets: Iterator[Codes],
    *,
    k: int,
    fixed: Codes,
    total: int,
    exhaustive: bool,
    progress: Progress,
) -> RecurrentModels:
    if isinstance(k, bool) or k < 2:
        raise BadParameter("k must be a whole number, 2 or larger.", k=k)
    generators: dict[bytes, set[bytes]] = {}
    common: dict[bytes, npt.NDArray[np.bool_]] = {}
    witnesses: dict[bytes, list[Codes]] = {}
    whole = (records.counts > 0) & (records.counts > fixed)
    tried = 0
    with progress.task("refitting", total) as tick:
        while batch := list(islice(subsets, _BATCH)):
            counts = np.stack(batch)
            for model, row in zip(learner.fit_many(records, counts), counts, strict=True):
                seen = generators.setdefault(model, set())
                if (key := row.tobytes()) in seen:
                    continue
                seen.add(key)
                common[model] = common.get(model, whole) & (row == records.counts)
                if len(kept := witnesses.setdefault(model, [])) < k:
                    kept.append(row)
            tried += len(batch)
            tick(len(batch))
    models = [
        RecurrentModel(
            model=model,
            score=learner.score(model, records),
            generators=len(seen),
            in_all=np.flatnonzero(common[model]),
            people_in_all=int((records.counts - fixed)[common[model]].sum()),
            witnesses=np.stack(witnesses[model]),
        )
        for model, seen in generators.items()
    ]
    models.sort(key=lambda one: (not one.private(k), -one.score, -one.generators, one.model))
    return RecurrentModels(k=k, models=tuple(models), data_sets=tried, exhaustive=exhaustive)
