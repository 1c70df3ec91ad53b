"""Kullback-Leibler divergence between the original and the generalized distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.masking.equivalence_classes import EquivalenceClasses
from sfumato.masking.metric import CellLosses, ClassTerm, ClassTotals, ColumnFacts, LossMetric


class Kl(LossMetric):
    """Kullback-Leibler divergence, in bits per row, of the original from the release with each class spread uniformly.

    It compares the joint distribution of the quasi-identifiers in the original with the one reconstructed from the
    release. Suppressed rows are one class that covers all values. Column weights have no effect.
    """

    class_term: ClassVar[ClassTerm] = ClassTerm.XLOGX
    reference: ClassVar[str] = "Kifer and Gehrke (2006), doi:10.1145/1142473.1142499"

    def loss(
        self, facts: ColumnFacts, leaves: Ints, rows: Ints, level: int | None, widths: Floats | None = None
    ) -> Floats:
        return np.asarray(np.log2(leaves) / facts.rows, dtype=np.float64)

    def constant(self, table: EquivalenceClasses) -> float:
        sizes = table.sizes[table.sizes > 0]
        return float(sizes @ np.log2(sizes))

    def columns(self, cells: Floats, losses: CellLosses) -> Floats:
        return cells

    def total(self, columns: Floats, losses: CellLosses, shape: ClassTotals) -> Floats:
        gone = shape.suppressed * np.log2(shape.suppressed) if shape.suppressed else 0.0
        return np.maximum(columns + (losses.constant - shape.term - gone) / shape.rows, 0.0)

    def above(self, columns: Floats, losses: CellLosses, finer: ClassTotals, *, least: int, stay: bool) -> Floats:
        # merging suppressed rows can lower the score, so no bound is known
        return np.zeros_like(columns)

    def below(self, columns: Floats, losses: CellLosses, coarser: ClassTotals, *, least: int) -> Floats:
        return np.zeros_like(columns)
