"""Kolmogorov-Smirnov distance of the number columns."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._values import number_columns, numbers
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Ks(Measure):
    """Largest gap between the cumulative distributions of each number column before and after, averaged.

    0: the same distribution; 1: no overlap. Exact on all values, no bins. Columns that lost all their values count 1.
    """

    about: ClassVar[About] = About.UTILITY
    reference: ClassVar[str] = "Massey: The Kolmogorov-Smirnov test for goodness of fit (1951), doi:10.2307/2280095"

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        found = {}
        for name in number_columns(pair, dates=True):
            before, after = numbers(pair, name)
            found[name] = _largest_gap(np.sort(before[~np.isnan(before)]), np.sort(after[~np.isnan(after)]))
        return MeasureResult(measure=self.part_name(), value=float(np.mean(list(found.values()))), columns=found)


def _largest_gap(before: Floats, after: Floats) -> float:
    if not len(before) or not len(after):
        return 1.0
    points = np.concatenate([before, after])
    left = np.searchsorted(before, points, side="right") / len(before)
    right = np.searchsorted(after, points, side="right") / len(after)
    return float(np.abs(left - right).max())
