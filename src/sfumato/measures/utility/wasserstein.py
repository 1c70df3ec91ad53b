"""Wasserstein distance of the number columns."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._values import number_columns, numbers
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Wasserstein(Measure):
    """How far values had to move, on average, to turn each column into the released one, in standard deviations.

    0: the same distribution. 0.1: on average a tenth of the original's standard deviation. Averaged over the number
    and date columns. Columns that lost all their values are left out and named in the detail.
    """

    about: ClassVar[About] = About.UTILITY
    reference: ClassVar[str] = (
        "Ramdas, Garcia Trillos, Cuturi: On Wasserstein two-sample testing (2017), doi:10.3390/e19020047"
    )

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        from scipy.stats import wasserstein_distance

        found, lost = {}, []
        for name in number_columns(pair, dates=True):
            before, after = (values[~np.isnan(values)] for values in numbers(pair, name))
            if not len(before) or not len(after):
                lost.append(name)
                continue
            found[name] = float(wasserstein_distance(before, after) / before.std())
        value = float(np.mean(list(found.values()))) if found else None
        reason = "" if found else "No column of numbers kept a value."
        detail = {"lost": lost} if lost else {}
        return MeasureResult(measure=self.part_name(), value=value, columns=found, detail=detail, reason=reason)
