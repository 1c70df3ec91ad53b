"""The sensitive value of a person, read off the rows that fit: homogeneity and background knowledge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from tacit.attack.attack import Discloses, Guesses, Linking, View
from tacit.attack.matching import match
from tacit.errors import NotApplicable
from tacit.progress import SILENT, Progress
from tacit.rng import Rng

__all__ = ["AttributeLinkage"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class AttributeLinkage(Linking):
    """Somebody who knows a person's quasi-identifiers reads the sensitive value off the released rows that fit.

    The person need not be found: when all rows that fit share one value, it is known (the homogeneity attack on
    k-anonymity). The guess is the value with most weight among the rows that fit; a row counts the less, the more
    combinations of known values it may stand for; ties go to the value more frequent in the whole release.

    The baseline is the release's most frequent value; the control arm repeats the attack on people who are not in the
    release. What both share is knowledge about everybody (smoking and cancer), not about the person.
    """

    discloses: ClassVar[Discloses] = Discloses.ATTRIBUTE
    examples: ClassVar = ({}, {"secret": "diagnosis"})
    reference: ClassVar[str] = (
        "Machanavajjhala, A. et al. (2007). l-diversity: privacy beyond k-anonymity. ACM TKDD 1(1). "
        "doi:10.1145/1217299.1217302"
    )

    secret: str | None = None
    """The column sought; may be left out when exactly one released column is declared sensitive."""
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """For numbers: how far off a guess may be and still count, as a share of the true value."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assert view.secret is not None
        secret = view.release.table.column(view.secret)
        index = pl.DataFrame({"v": secret.drop_nulls().unique().sort()}).with_row_index("code")
        if index.height == 0:
            raise NotApplicable(f"The released column `{view.secret}` is empty.")
        codes = (
            secret.alias("v")
            .to_frame()
            .join(index, on="v", how="left", maintain_order="left")["code"]
            .cast(pl.Int64)
            .fill_null(-1)
            .to_numpy()
        )
        prior = np.bincount(codes[codes >= 0], minlength=index.height) / max(1, int((codes >= 0).sum()))
        matched = match(view)
        votes_by_class = _Histograms.of(codes[matched.order], matched.starts)
        best = np.full(view.targets.height, -1, dtype=np.int64)
        confidence = np.zeros(view.targets.height)
        with progress.task("attribute linkage", matched.persons) as tick:
            for targets, candidates in matched.candidates():
                tick(1)
                values, weights = votes_by_class.gather(candidates.classes, candidates.weight)
                if len(values) == 0:
                    continue
                distinct, place = np.unique(values, return_inverse=True)
                votes = np.bincount(place, weights=weights)
                # The share of the whole release, far below any single vote, breaks ties and nothing else.
                top = int(np.argmax(votes + 1e-9 * votes.sum() * prior[distinct]))
                best[targets] = distinct[top]
                confidence[targets] = votes[top] / votes.sum()
        made = best >= 0
        value = index["v"].gather(np.maximum(best, 0)).alias(view.secret)
        return Guesses(value=value, made=made, confidence=confidence)


@dataclass(frozen=True, kw_only=True)
class _Histograms:
    """Per class, its distinct sensitive values and how often each occurs."""

    starts: Ints
    values: Ints
    counts: Ints

    @classmethod
    def of(cls, codes: Ints, starts: Ints) -> _Histograms:
        """From the value of each row, sorted by class; -1 is no value."""
        classes = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        held = codes >= 0
        width = int(codes.max(initial=0)) + 1
        keys, counts = np.unique(classes[held] * width + codes[held], return_counts=True)
        edges = np.searchsorted(keys // width, np.arange(len(starts))).astype(np.int64)
        return cls(starts=edges, values=keys % width, counts=counts)

    def gather(self, classes: Ints, weight: Floats) -> tuple[Ints, Floats]:
        """All values of these classes with their weighted counts."""
        lengths = self.starts[classes + 1] - self.starts[classes]
        first = np.repeat(self.starts[classes] - (np.cumsum(lengths) - lengths), lengths)
        place = np.arange(int(lengths.sum())) + first
        return self.values[place], self.counts[place] * np.repeat(weight, lengths)
