"""Minimal modifications that explain two published models, and the verdict of integral privacy on them.

Reference: Torra, V., Navarro-Arribas, G. (2016). Integral privacy. In: Cryptology and Network Security (CANS 2016),
LNCS 10052. doi:10.1007/978-3-319-48965-0_44
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, islice

import numpy as np

from sfumato.errors import BadParameter
from sfumato.integral.encoding import Codes
from sfumato.integral.learner import Learner
from sfumato.integral.modification import NOWHERE, ChangeKind, Modification, Step
from sfumato.integral.records import Records
from sfumato.progress import SILENT, Progress
from sfumato.release.verdict import State, Verdict

MODEL = "k-anonymous-integral-privacy"
_BATCH = 1024


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanations:
    """The minimal modifications that lead from the old model to the new one. Confidential."""

    records: Records
    minimal: tuple[Modification, ...]
    available: Codes
    """People per cell of whom the adversary does not know that they stayed."""
    complete: bool
    """Whether every modification that the adversary considers was tried."""
    refits: int
    unchanged: bool
    """Whether the two models are the same."""
    considered: str
    """Which modifications the adversary considers, in words."""
    ways: int = field(init=False)
    """Number of minimal modifications, counted by people."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ways", sum(one.ways(self.available) for one in self.minimal))

    @property
    def people(self) -> int:
        """Number of people whom at least one minimal modification could be about."""
        touched = {cell for one in self.minimal for cell in one.taken()}
        return int(sum(self.available[cell] for cell in touched))

    def in_all(self) -> list[int]:
        """Cells of which every minimal modification changes all people: these people are in the intersection."""
        if not self.minimal:
            return []
        first, *others = self.minimal
        whole = {cell for cell, count in first.taken().items() if count == self.available[cell]}
        for one in others:
            taken = one.taken()
            whole = {cell for cell in whole if taken.get(cell) == self.available[cell]}
        return sorted(whole)

    def inserted_in_all(self) -> list[int]:
        """Cells into which every minimal modification puts a record."""
        common: set[int] | None = None
        for one in self.minimal:
            common = set(one.given()) if common is None else common & set(one.given())
        return sorted(common or ())

    @property
    def people_in_all(self) -> int:
        """Number of people who are in every minimal modification: their change is disclosed."""
        return int(sum(self.available[cell] for cell in self.in_all()))

    def shared(self) -> dict[str, list[int]]:
        """Attribute disclosure: columns in which every minimal modification changes a record with the same code.

        Columns in which all records have that code are left out: there is nothing to learn.
        """
        found: dict[str, list[int]] = {}
        present = self.records.cells[self.records.counts > 0]
        for index, column in enumerate(self.records.encoding.columns):
            common: set[int] | None = None
            for one in self.minimal:
                touched = {int(self.records.cells[cell, index]) for cell in (*one.taken(), *one.given())}
                common = touched if common is None else common & touched
                if not common:
                    break
            if common and len(np.unique(present[:, index])) > 1:
                found[column.name] = sorted(common)
        return found

    def verdict(self, k: int) -> Verdict:
        """k-anonymous integral privacy: at least k minimal modifications, and nothing common to all of them."""
        if isinstance(k, bool) or k < 2:
            raise BadParameter("k must be a whole number, 2 or larger.", k=k)
        common, added = self.people_in_all, len(self.inserted_in_all())
        if self.ways >= k and not common and not added:
            state, reason = State.HOLDS, f"{self.ways:,} minimal modifications, and nobody is in all of them."
        elif not self.complete:
            state = State.NOT_CHECKED
            reason = f"{self.ways:,} minimal modifications after {self.refits:,} refits; the search was not finished."
        elif not self.minimal:
            state, reason = (
                State.FAILS,
                f"No modification that the adversary considers ({self.considered}) explains it.",
            )
        elif common or added:
            state = State.FAILS
            reason = (
                f"{common:,} of {self.people:,} people are in every one of the {self.ways:,} minimal modifications."
                if common
                else f"Every one of the {self.ways:,} minimal modifications inserts the same record."
            )
        else:
            state, reason = State.FAILS, f"Only {self.ways:,} minimal modifications; {k} are required."
        return Verdict(model=MODEL, state=state, worst=self.ways, wanted=k, failing=common, reason=reason)


def explain(
    learner: Learner,
    records: Records,
    new: bytes,
    *,
    size: int,
    kinds: Iterable[ChangeKind | str] = (ChangeKind.DELETION,),
    known: Sequence[int] = (),
    max_refits: int = 1_000_000,
    enough: int | None = None,
    progress: Progress = SILENT,
) -> Explanations:
    """Minimal modifications of at most ``size`` records after which the learner returns the model ``new``.

    The adversary knows the algorithm, both models, that at least one record changed and at most how many, and the
    records of everybody (the strongest case). Modifications are tried cell by cell, not person by person: records in
    the same cell are exchangeable. The result is exact, unless ``max_refits`` ended the search (``complete``).

    Parameters
    ----------
    size
        The largest number of changed records that the adversary considers.
    kinds
        Deletions, insertions, amendments, or several of them. Inserted and amended records fall into cells of
        ``records``, including its universe.
    known
        Rows (from 0) of people of whom the adversary knows that they are in both data sets (the set S).
    enough
        Stop as soon as the verdict holds for this k.
    """
    chosen = {ChangeKind(kind) for kind in kinds}
    if size < 1 or not chosen:
        raise BadParameter("Name at least one kind of change and a size of at least 1.", size=size)
    available = records.counts - records.counts_of(known)
    steps = _steps(available, len(records.cells), chosen)
    base = records.counts
    minimal: list[Modification] = []
    found: set[Modification] = set()
    refits, complete = 0, True
    words = " and ".join(sorted(f"{kind}s" for kind in chosen))
    settings = {
        "records": records,
        "available": available,
        "unchanged": learner.fit(records, base) == new,
        "considered": f"{words} of at most {size} record{'s' if size > 1 else ''}",
    }

    def result() -> Explanations:
        return Explanations(minimal=tuple(minimal), complete=complete, refits=refits, **settings)  # type: ignore[arg-type]

    with progress.task("refitting", None) as tick:
        for length in range(1, size + 1):
            candidates = _candidates(steps, length, available, found)
            while batch := list(islice(candidates, min(_BATCH, max_refits - refits))):
                counts = np.repeat(base[None, :], len(batch), axis=0)
                for row, one in enumerate(batch):
                    for cell, number in one.taken().items():
                        counts[row, cell] -= number
                    for cell, number in one.given().items():
                        counts[row, cell] += number
                models = learner.fit_many(records, counts)
                minimal += (hits := [one for one, model in zip(batch, models, strict=True) if model == new])
                found.update(hits)
                refits += len(batch)
                tick(len(batch))
                if enough is not None and hits and result().verdict(enough).holds:
                    complete = False
                    return result()
            if refits >= max_refits and (length < size or next(candidates, None) is not None):
                complete = False
                break
    return result()


def _steps(available: Codes, n_cells: int, kinds: set[ChangeKind]) -> list[Step]:
    present = [int(cell) for cell in np.flatnonzero(available > 0)]
    steps: list[Step] = []
    if ChangeKind.DELETION in kinds:
        steps += [(cell, NOWHERE) for cell in present]
    if ChangeKind.INSERTION in kinds:
        steps += [(NOWHERE, cell) for cell in range(n_cells)]
    if ChangeKind.AMENDMENT in kinds:
        steps += [(source, target) for source in present for target in range(n_cells) if source != target]
    return steps


def _candidates(steps: list[Step], length: int, available: Codes, found: set[Modification]) -> Iterator[Modification]:
    """Modifications of ``length`` records no part of which is an explanation already: only these can be minimal."""
    for chosen in combinations_with_replacement(steps, length):
        one = Modification.of(list(chosen))
        if one.applies(available) and (length == 1 or not found or found.isdisjoint(one.submodifications())):
            yield one


def explain_groups(learner: Learner, records: Records, new: bytes, *, known: Sequence[int] = ()) -> Explanations:
    """Minimal deletions of whole groups that explain the new model.

    A group is everybody with one code of a column, or with a range of neighbouring bins: the adversary knows that a
    group was removed, but not which. Groups with a person who is known to have stayed are impossible.
    """
    blocked = records.counts_of(known) > 0
    groups: dict[bytes, Codes] = {}
    for index, column in enumerate(records.encoding.columns):
        codes = records.cells[:, index]
        for low in range(column.size):
            for high in range(low, column.size if column.ordered else low + 1):
                inside = (codes >= low) & (codes <= high) & (records.counts > 0)
                if inside.any() and not (inside & blocked).any():
                    groups.setdefault(inside.tobytes(), np.flatnonzero(inside))
    counts = np.repeat(records.counts[None, :], len(groups), axis=0)
    for row, cells in enumerate(groups.values()):
        counts[row, cells] = 0
    models = learner.fit_many(records, counts) if groups else []
    hits = [set(cells.tolist()) for cells, model in zip(groups.values(), models, strict=True) if model == new]
    smallest = [group for group in hits if not any(other < group for other in hits)]
    return Explanations(
        records=records,
        minimal=tuple(
            Modification(steps=tuple(((cell, NOWHERE), int(records.counts[cell])) for cell in sorted(group)))
            for group in smallest
        ),
        available=records.counts,
        complete=True,
        refits=len(groups),
        unchanged=learner.fit(records, records.counts) == new,
        considered="deletions of one group",
    )
