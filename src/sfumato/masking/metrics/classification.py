"""Classification metric (CM): rows outside the majority label of their class."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.masking.metric import CellLosses, ClassTerm, ClassTotals, ColumnFacts, LossMetric


class Classification(LossMetric):
    """Share of rows that are suppressed or do not have the most frequent target value of their equivalence class.

    Low if the quasi-identifiers still predict the target after generalization. Column weights have no effect.
    """

    main: ClassVar[str | None] = "column"
    examples = ({"column": "condition"},)
    class_term: ClassVar[ClassTerm] = ClassTerm.MINORITY
    reference: ClassVar[str] = "Iyengar (2002), doi:10.1145/775047.775089"

    column: str
    """The target column of the prediction. It need not be sensitive."""

    @property
    def target(self) -> str:
        return self.column

    def loss(
        self, facts: ColumnFacts, leaves: Ints, rows: Ints, level: int | None, widths: Floats | None = None
    ) -> Floats:
        return np.zeros(len(leaves))

    def total(self, columns: Floats, losses: CellLosses, shape: ClassTotals) -> Floats:
        return columns + (shape.term + shape.suppressed) / shape.rows

    def above(self, columns: Floats, losses: CellLosses, finer: ClassTotals, *, least: int, stay: bool) -> Floats:
        return columns + finer.term / finer.rows

    def below(self, columns: Floats, losses: CellLosses, coarser: ClassTotals, *, least: int) -> Floats:
        return columns + coarser.suppressed / coarser.rows
