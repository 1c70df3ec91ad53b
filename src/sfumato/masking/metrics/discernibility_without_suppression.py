"""Discernibility metric without a penalty for suppression."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.masking.metric import CellLosses, ClassTerm, ClassTotals, ColumnFacts, LossMetric


class DiscernibilityWithoutSuppression(LossMetric):
    """The sum of squared class sizes, where suppressed rows cost the size of the class they were in.

    With a suppression limit, the score depends on the levels alone.
    """

    class_term: ClassVar[ClassTerm] = ClassTerm.ALL_SQUARES
    reference: ClassVar[str] = "Bayardo and Agrawal (2005), doi:10.1109/ICDE.2005.42"

    def loss(
        self, facts: ColumnFacts, leaves: Ints, rows: Ints, level: int | None, widths: Floats | None = None
    ) -> Floats:
        return np.zeros(len(leaves))

    def total(self, columns: Floats, losses: CellLosses, shape: ClassTotals) -> Floats:
        return columns + shape.term

    def above(self, columns: Floats, losses: CellLosses, finer: ClassTotals, *, least: int, stay: bool) -> Floats:
        return columns + finer.term

    def below(self, columns: Floats, losses: CellLosses, coarser: ClassTotals, *, least: int) -> Floats:
        return columns
