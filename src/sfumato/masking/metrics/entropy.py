"""Non-uniform entropy: the bits needed to tell the original values from the shown ones."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.masking.metric import CellLosses, ClassTotals, ColumnFacts, Floats, Ints, LossMetric


class Entropy(LossMetric):
    """How many bits are lost about the original values, given how often each value occurs.

    A cell that shows a group pays log2 of (rows under the group / rows with the original value): what it would take to
    name the value among those the group stands for. A suppressed row shows only that it is in the table.
    """

    reference: ClassVar[str] = "Gionis and Tassa (2009), doi:10.1109/TKDE.2008.129"

    def loss(
        self, facts: ColumnFacts, leaves: Ints, rows: Ints, level: int | None, widths: Floats | None = None
    ) -> Floats:
        known = facts.frequency[facts.frequency > 0]
        own = float(known @ np.log2(known)) / facts.rows
        return np.asarray(np.log2(np.maximum(rows, 1)) - own, dtype=np.float64)

    def total(self, columns: Floats, losses: CellLosses, shape: ClassTotals) -> Floats:
        return np.asarray(columns)
