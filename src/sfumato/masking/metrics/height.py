"""Height: the sum of levels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.errors import NotApplicable
from sfumato.masking.metric import CellLosses, ClassTotals, ColumnFacts, Floats, Ints, LossMetric


class Height(LossMetric):
    """How many levels were climbed, summed over columns, as a mean over rows; a suppressed row stands at every root.

    With nothing suppressed this is the sum of the levels, the measure of the first k-anonymity algorithms.
    """

    reference: ClassVar[str] = "Samarati (2001), doi:10.1109/69.971193"

    def loss(
        self, facts: ColumnFacts, leaves: Ints, rows: Ints, level: int | None, widths: Floats | None = None
    ) -> Floats:
        if level is None:
            raise NotApplicable("height has no meaning for values without a level.", fix="Use `loss` or `ncp`.")
        return np.full(len(leaves), level / facts.rows)

    def total(self, columns: Floats, losses: CellLosses, shape: ClassTotals) -> Floats:
        return np.asarray(columns)
