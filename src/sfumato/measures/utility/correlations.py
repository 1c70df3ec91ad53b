"""Correlations before and after."""

from __future__ import annotations

from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from sfumato.arrays import Floats
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._values import number_columns, number_matrix
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Correlations(Measure):
    """Mean absolute difference between the correlations of number columns before and after.

    0: all correlations as they were; at most 2. A column that became constant has correlation 0. The detail gives
    both values of every pair, for a picture of before against after.
    """

    about: ClassVar[About] = About.UTILITY
    main: ClassVar[str | None] = "method"
    examples = ({}, {"method": "spearman"})
    reference: ClassVar[str] = (
        "Domingo-Ferrer, Torra: Disclosure control methods and information loss (2001), in Confidentiality"
    )

    method: Literal["pearson", "spearman"] = "pearson"
    """Correlation of the values or of their ranks."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        names = number_columns(pair, at_least=2)
        before, after = (self._matrix(values) for values in number_matrix(pair, names))
        found, seen = {}, {}
        for i, j in combinations(range(len(names)), 2):
            label = f"{names[i]} × {names[j]}"
            found[label] = float(abs(before[i, j] - after[i, j]))
            seen[label] = {"before": float(before[i, j]), "after": float(after[i, j])}
        value = float(np.mean(list(found.values())))
        return MeasureResult(measure=self.part_name(), value=value, columns=found, detail={"pairs": seen})

    def _matrix(self, values: Floats) -> Floats:
        if self.method == "spearman":
            from scipy.stats import rankdata

            values = rankdata(values, axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            matrix: Floats = np.nan_to_num(np.atleast_2d(np.corrcoef(values, rowvar=False)))
        return matrix
