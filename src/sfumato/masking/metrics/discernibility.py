"""Discernibility: how many rows each row cannot be told from."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.masking.metric import CellLosses, ClassTerm, ClassTotals, ColumnFacts, Floats, Ints, LossMetric


class Discernibility(LossMetric):
    """Each row pays the number of rows it looks like; a suppressed row pays the size of the table.

    The sum of squared class sizes, plus suppressed rows times all rows. Columns and their weights play no part.
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
        # a row never has fewer rows like it in a coarser table, and never fewer than the smallest class allowed
        return columns + (finer.term + finer.suppressed * least)

    def below(self, columns: Floats, losses: CellLosses, coarser: ClassTotals, *, least: int) -> Floats:
        kept = coarser.rows - coarser.suppressed
        return columns + (coarser.suppressed * coarser.rows + kept * least)
