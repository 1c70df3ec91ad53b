"""Normalized certainty penalty (NCP): the mean share of a column's range that a released value covers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.masking.metric import CellLosses, ClassTotals, ColumnFacts, LossMetric


class Ncp(LossMetric):
    """Normalized certainty penalty: share of the column's range that a released value covers, averaged over cells.

    0 means exact and 1 suppressed. A numeric range costs its width over the range of the column. A group of categories
    costs its share of the hierarchy's leaves, and a single leaf costs nothing.
    """

    by_width: ClassVar[bool] = True
    reference: ClassVar[str] = "Xu et al. (2006), doi:10.1145/1150402.1150504"

    def loss(
        self, facts: ColumnFacts, leaves: Ints, rows: Ints, level: int | None, widths: Floats | None = None
    ) -> Floats:
        share = np.where(leaves > 1, leaves / facts.leaves, 0.0) if widths is None else widths
        return np.asarray(share / facts.rows, dtype=np.float64)

    def star(self, facts: ColumnFacts) -> float:
        return 1 / facts.rows

    def total(self, columns: Floats, losses: CellLosses, shape: ClassTotals) -> Floats:
        return np.asarray(columns / losses.weights.sum())
