"""Non-uniform entropy: bits needed to recover the original values from the released ones."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.masking.metric import CellLosses, ClassTotals, ColumnFacts, LossMetric


class Entropy(LossMetric):
    """Bits of information lost about the original values, given their frequencies.

    A generalized cell costs log2(rows in the group / rows with the original value). A suppressed cell costs as much as
    the root, because it may have been any value of the column. ARX counts a suppressed row as generalized first, then
    as one of the suppressed rows, whose values are taken as known: scores are lower where rows are suppressed (Adult,
    k = 5, 5 %: 264,342 instead of 267,401) and equal where none are.
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
