"""Height: the sum of levels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.errors import NotApplicable
from sfumato.masking.metric import CellLosses, ClassTotals, ColumnFacts, LossMetric


class Height(LossMetric):
    """Sum of the generalization levels over columns, the metric of the first k-anonymity algorithms.

    Suppression costs nothing: only the suppression limit holds it back. ARX defines the metric in the same way.
    """

    by_level: ClassVar[bool] = True
    reference: ClassVar[str] = "Samarati (2001), doi:10.1109/69.971193"

    def loss(
        self, facts: ColumnFacts, leaves: Ints, rows: Ints, level: int | None, widths: Floats | None = None
    ) -> Floats:
        if level is None:
            raise NotApplicable("height is not defined for values without a level.", fix="Use `loss` or `ncp`.")
        return np.full(len(leaves), level / facts.rows)

    def total(self, columns: Floats, losses: CellLosses, shape: ClassTotals) -> Floats:
        return np.asarray(columns)
