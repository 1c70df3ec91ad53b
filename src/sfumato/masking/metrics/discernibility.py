"""Discernibility metric: the number of rows that each row is indistinguishable from."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.masking.metric import CellLosses, ClassTerm, ClassTotals, ColumnFacts, LossMetric


class Discernibility(LossMetric):
    """Each row costs the size of its equivalence class; a suppressed row costs the size of the table.

    The sum of squared class sizes, plus suppressed rows times all rows. Column weights have no effect.
    """

    class_term: ClassVar[ClassTerm] = ClassTerm.SQUARES
    reference: ClassVar[str] = "Bayardo and Agrawal (2005), doi:10.1109/ICDE.2005.42"

    def loss(
        self, facts: ColumnFacts, leaves: Ints, rows: Ints, level: int | None, widths: Floats | None = None
    ) -> Floats:
        return np.zeros(len(leaves))

    def total(self, columns: Floats, losses: CellLosses, shape: ClassTotals) -> Floats:
        return columns + (shape.term + shape.suppressed * shape.rows)

    def above(self, columns: Floats, losses: CellLosses, finer: ClassTotals, *, least: int, stay: bool) -> Floats:
        # the class of a row never shrinks in a coarser table and has at least the minimum allowed size
        return columns + (finer.term + finer.suppressed * least)

    def below(self, columns: Floats, losses: CellLosses, coarser: ClassTotals, *, least: int) -> Floats:
        kept = coarser.rows - coarser.suppressed
        return columns + (coarser.suppressed * coarser.rows + kept * least)
