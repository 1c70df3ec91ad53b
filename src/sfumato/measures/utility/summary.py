"""Means and their confidence intervals before and after."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.dataset import Kind
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._spread import comparable
from sfumato.measures.utility._values import coded, number_columns, numbers
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Summary(Measure):
    """Overlap of the confidence intervals of means and shares before and after, averaged.

    An analyst who estimates a mean reports an interval; 1 means that the release gives the same one, 0 that the two
    just touch, below 0 that they are apart. Numbers: their mean; categories: the share of each of the
    most frequent values. The detail gives mean and standard deviation before and after.
    """

    about: ClassVar[About] = About.UTILITY
    better: ClassVar[Literal["low", "high"]] = "high"
    reference: ClassVar[str] = (
        "Karr, Kohnen, Oganian, Reiter, Sanil: A framework for evaluating the utility of data altered to protect "
        "confidentiality (2006), doi:10.1198/000313006X124640"
    )

    level: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    """Confidence level of the intervals."""
    values: Annotated[int, Field(ge=1, le=50)] = 5
    """How many of the most frequent values of a category column are compared."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        found: dict[str, float] = {}
        detail: dict[str, object] = {}
        try:
            ordered = number_columns(pair)
        except NotApplicable:
            ordered = ()
        for name in ordered:
            before, after = (values[~np.isnan(values)] for values in numbers(pair, name))
            if len(before) < 2 or len(after) < 2:
                found[name] = -1.0
                continue
            found[name] = self._overlap(before, after)
            detail[name] = {
                "mean": [float(before.mean()), float(after.mean())],
                "standard_deviation": [float(before.std(ddof=1)), float(after.std(ddof=1))],
            }
        for name in comparable(pair):
            if pair.original.kind(name) not in (Kind.CATEGORY, Kind.BOOLEAN):
                continue
            both = coded(pair, name, 100, rng.child(name).generator)
            top = np.argsort(-np.bincount(both.before, minlength=both.size), kind="stable")[: self.values]
            shares = [self._overlap(both.before == code, both.after == code) for code in top]
            found[name] = float(np.mean(shares))
        if not found:
            raise NotApplicable("The tables share no column whose mean or shares could be compared.")
        return MeasureResult(
            measure=self.part_name(), value=float(np.mean(list(found.values()))), columns=found, detail=detail
        )

    def _overlap(self, before: Floats | object, after: Floats | object) -> float:
        from scipy.special import ndtri

        z = float(ndtri(0.5 + self.level / 2))
        (low, high), (low2, high2) = (_interval(np.asarray(v, dtype=np.float64), z) for v in (before, after))
        shared = min(high, high2) - max(low, low2)
        widths = [high - low, high2 - low2]
        if min(widths) <= 0:
            return 1.0 if shared >= 0 else -1.0
        return max(-1.0, float(np.mean([shared / width for width in widths])))


def _interval(values: Floats, z: float) -> tuple[float, float]:
    half = z * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)
