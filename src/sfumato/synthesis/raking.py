"""Raking: rows drawn from a junction tree, weighted until they have the marginals that the tree cannot hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats
from sfumato.synthesis.junction_tree import Codes, JunctionTree
from sfumato.synthesis.residuals import Columns

_FITTED = 100_000
"""Rows on which the factors of a raking are fitted."""
_STEP = 4.0
"""Largest factor of one step: cells that few drawn rows have are not trusted at once."""


@dataclass(frozen=True, kw_only=True)
class RakedTree:
    """A distribution over coded columns: a junction tree times one factor for every cell of every target.

    Factors follow from iterative proportional fitting on drawn rows (Deming, Stephan 1940,
    doi:10.1214/aoms/1177731829), so the distribution has the targets as marginals and is as close to the tree as that
    allows (Csiszar 1975, doi:10.1214/aop/1176996454).
    """

    tree: JunctionTree
    targets: Mapping[Columns, Floats]
    """Shares of all marginals, if the tree does not hold all of them; otherwise none."""

    def sample(
        self, rows: int, random: np.random.Generator, *, given: Mapping[int, Codes] | None = None, sweeps: int = 12
    ) -> Codes:
        """Draw rows evenly. Rows whose columns are partly ``given`` follow the tree alone."""
        drawn = self.tree.sample(rows, random, given=given)
        if given or not self.targets:
            return drawn
        weights = self._weights(drawn, sweeps)
        order = np.lexsort(drawn[::-1])
        ends = np.cumsum(weights[order])
        chosen = order[np.searchsorted(ends / ends[-1], (np.arange(rows) + random.random()) / rows, side="right")]
        return drawn[:, random.permutation(chosen)]

    def _weights(self, drawn: Codes, sweeps: int) -> Floats:
        """A weight for every row; factors are fitted on the first ones."""
        fitted = drawn[:, :_FITTED]
        weights, count = np.ones(drawn.shape[1]), fitted.shape[1]
        cells = {columns: self._cells(fitted, columns) for columns in self.targets}
        factors = {columns: np.ones(target.size) for columns, target in self.targets.items()}
        for _ in range(sweeps):
            for columns, target in self.targets.items():
                held = np.bincount(cells[columns], weights=weights[:count], minlength=target.size)
                step = np.clip(target.ravel() * count / np.maximum(held, 1e-9), 1 / _STEP, _STEP)
                weights[:count] *= step[cells[columns]]
                factors[columns] *= step
        for columns, factor in factors.items():
            weights[count:] *= factor[self._cells(drawn[:, count:], columns)]
        return weights

    def _cells(self, drawn: Codes, columns: Columns) -> npt.NDArray[np.int64]:
        shape = [self.tree.shape[column] for column in columns]
        cells: npt.NDArray[np.int64] = np.zeros(drawn.shape[1], dtype=np.int64)
        for column, size in zip(columns, shape, strict=True):
            cells = cells * size + drawn[column]
        return cells
