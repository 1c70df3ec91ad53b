"""Mutual information of every two columns before and after."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._dependence import change_of_dependence
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class MutualInformation(Measure):
    """Mean absolute difference of the normalized mutual information over all pairs of columns.

    Mutual information divided by the smaller entropy: 0 independent, 1 one column determines the other; any kind of
    dependence counts, not only a straight one. 0 means that all dependencies are as strong as they were.
    """

    about: ClassVar[About] = About.UTILITY
    main: ClassVar[str | None] = "cells"
    reference: ClassVar[str] = "Cover, Thomas: Elements of Information Theory (2006), doi:10.1002/047174882X"

    cells: Annotated[int, Field(ge=2, le=200)] = 10
    """The most cells per column; more cells see finer dependence and need more rows."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        return change_of_dependence(self.part_name(), pair, self.cells, normalized_information, rng.generator)


def _entropy(shares: Floats) -> float:
    used = shares[shares > 0]
    return float(-(used * np.log(used)).sum())


def normalized_information(table: Floats) -> float:
    """Mutual information of a table of shares over the smaller of the two entropies; 0 when a column is constant."""
    rows, columns = _entropy(table.sum(axis=1)), _entropy(table.sum(axis=0))
    least = min(rows, columns)
    return min(1.0, max(0.0, (rows + columns - _entropy(table)) / least)) if least > 1e-12 else 0.0
