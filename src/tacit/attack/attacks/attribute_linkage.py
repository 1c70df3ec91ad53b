"""The sensitive value of a person, read off the rows that fit: homogeneity and background knowledge."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from tacit.attack.attack import Discloses, Guesses, Linking, View
from tacit.attack.votes import Votes
from tacit.progress import SILENT, Progress, portions
from tacit.rng import Rng

__all__ = ["AttributeLinkage"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class AttributeLinkage(Linking):
    """Somebody who knows a person's quasi-identifiers reads the sensitive value off the released rows that fit.

    The person need not be found: when all rows that fit share one value, it is known (the homogeneity attack on
    k-anonymity). The guess is the value with most weight among the rows that fit; a row counts the less, the more
    combinations of known values it may stand for; ties go to the value more frequent in the whole release. Where a
    guess of a number may be off (``tolerance``), it is the value that is near enough to most.

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
        votes = Votes.of(view, in_release=True)
        # Who fits no row still gets a guess, the most frequent value: saying nothing is no better for the intruder.
        reach = _reach(votes.index, self.tolerance)
        everything = np.arange(len(votes.index))
        common = int(np.argmax(_near(votes.prior, everything, reach)))
        best = np.full(view.targets.height, common, dtype=np.int64)
        confidence = np.full(view.targets.height, votes.prior[common])
        done = 0
        steps = portions(progress, "attribute linkage", votes.matched.persons)
        for part, (targets, values, count) in zip(steps, votes.cast(), strict=False):
            done = part.stop
            if len(values) == 0:
                continue
            # The share of the whole release, far below any single vote, breaks ties and nothing else.
            near = _near(count, values, reach)
            top = int(np.argmax(near + 1e-9 * count.sum() * votes.prior[values]))
            best[targets] = values[top]
            confidence[targets] = near[top] / count.sum()
        return Guesses(
            value=votes.index.gather(best).alias(view.secret),
            made=np.ones(len(best), dtype=np.bool_),
            confidence=confidence,
            tried=votes.matched.reached(done),
        )


def _reach(index: pl.Series, tolerance: float) -> tuple[Ints, Ints] | None:
    """For each of the sorted values, the first and the last place of those that it is near enough to be right for."""
    if tolerance == 0 or not index.dtype.is_numeric():
        return None
    level = index.cast(pl.Float64).to_numpy()
    ends = level / (1 + tolerance), level / (1 - tolerance)
    first = np.searchsorted(level, np.minimum(*ends), "left")
    last = np.searchsorted(level, np.maximum(*ends), "right")
    return first.astype(np.int64), last.astype(np.int64)


def _near(count: Floats, values: Ints, reach: tuple[Ints, Ints] | None) -> Floats:
    """The votes for each value (places, rising) and, where a guess may be off, for those within its reach."""
    if reach is None:
        return count
    total = np.concatenate([[0.0], np.cumsum(count)])
    first, last = (np.searchsorted(values, ends[values], "left") for ends in reach)
    near: Floats = total[last] - total[first]
    return near
