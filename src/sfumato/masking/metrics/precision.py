"""Precision: generalization level over hierarchy height."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.errors import NotApplicable
from sfumato.masking.metric import CellLosses, ClassTotals, ColumnFacts, LossMetric


class Precision(LossMetric):
    """Level over height of the hierarchy, averaged over cells; a suppressed row counts as 1.

    Only the number of levels counts, not how many values each level merges.
    """

    reference: ClassVar[str] = "Sweeney (2002), doi:10.1142/S021848850200165X"

    def loss(
        self, facts: ColumnFacts, leaves: Ints, rows: Ints, level: int | None, widths: Floats | None = None
    ) -> Floats:
        if level is None:
            raise NotApplicable("precision is not defined for values without a level.", fix="Use `loss` or `ncp`.")
        return np.full(len(leaves), level / max(facts.height, 1) / facts.rows)

    def star(self, facts: ColumnFacts) -> float:
        return 1 / facts.rows

    def total(self, columns: Floats, losses: CellLosses, shape: ClassTotals) -> Floats:
        return np.asarray(columns / losses.weights.sum())
