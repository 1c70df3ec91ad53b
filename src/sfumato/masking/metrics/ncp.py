"""Normalized certainty penalty: the mean share of a column's range that a shown value leaves open."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.masking.metric import CellLosses, ClassTotals, ColumnFacts, Floats, Ints, LossMetric


class Ncp(LossMetric):
    """How much of its column a shown value leaves open, averaged over cells: 0 exact, 1 suppressed.

    A range of numbers pays its width over the width of the column. A group of categories pays the share of the
    hierarchy's leaves under it, and nothing when it is a single leaf.
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
