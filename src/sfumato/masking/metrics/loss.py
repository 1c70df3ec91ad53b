"""Loss metric (LM): the share of the domain that each released value covers, averaged geometrically over columns."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.masking.metric import CellLosses, ClassTotals, ColumnFacts, LossMetric


class Loss(LossMetric):
    """Share of the column's domain that a released value covers, from 0 (unchanged) to 1 (suppressed).

    A value that covers ``m`` of the ``d`` leaves of the hierarchy costs ``m/d``, a suppressed row 1.
    Per column the sum s over n rows is scaled to (s - n/d) / (n - n/d); the score is exp(mean(log(1 + x))) - 1 over the
    columns, a geometric mean that is 0 only if nothing was generalized.
    """

    reference: ClassVar[str] = "Iyengar (2002), doi:10.1145/775047.775089"

    def loss(
        self, facts: ColumnFacts, leaves: Ints, rows: Ints, level: int | None, widths: Floats | None = None
    ) -> Floats:
        # scaled here, so that a sum of losses over rows is the column's loss
        return np.asarray((leaves - 1) / max(facts.leaves - 1, 1) / facts.rows, dtype=np.float64)

    def columns(self, cells: Floats, losses: CellLosses) -> Floats:
        return losses.weights * np.log1p(cells)

    def total(self, columns: Floats, losses: CellLosses, shape: ClassTotals) -> Floats:
        return np.asarray(np.expm1(columns / losses.weights.sum()))
