"""Average equivalence class size (AECS)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.masking.metric import CellLosses, ClassTotals, ColumnFacts, LossMetric


class Aecs(LossMetric):
    """Average equivalence class size: rows over classes, where all suppressed rows count as one class.

    Column weights have no effect.
    """

    reference: ClassVar[str] = "LeFevre et al. (2006), doi:10.1109/ICDE.2006.101"

    def loss(
        self, facts: ColumnFacts, leaves: Ints, rows: Ints, level: int | None, widths: Floats | None = None
    ) -> Floats:
        return np.zeros(len(leaves))

    def total(self, columns: Floats, losses: CellLosses, shape: ClassTotals) -> Floats:
        return columns + shape.rows / max(shape.classes + (shape.suppressed > 0), 1)

    def above(self, columns: Floats, losses: CellLosses, finer: ClassTotals, *, least: int, stay: bool) -> Floats:
        # a coarser class contains a kept class, or at least `least` rows that were suppressed
        return columns + finer.rows / max(finer.classes + finer.suppressed // max(least, 1) + 1, 1)

    def below(self, columns: Floats, losses: CellLosses, coarser: ClassTotals, *, least: int) -> Floats:
        kept = coarser.rows - coarser.suppressed
        return columns + coarser.rows / max(kept // max(least, 1) + 1, 1)
