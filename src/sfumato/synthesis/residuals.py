"""Generalized least squares reconstruction of marginals from noisy ones, in closed form by residual subspaces.

A marginal over columns r is the sum of one residual for every subset of r: the total, the main effect of each column,
the interaction of each pair, and so on. Residuals of different subsets are orthogonal, so the best linear unbiased
estimate of each one is the average of its noisy copies, weighted by their inverse variances. No system of equations is
solved. Reconstructed marginals are consistent: two of them agree on their common columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod, sqrt

import numpy as np

from sfumato.arrays import Floats

__all__ = ["Columns", "Floats", "Residuals", "project_to_simplex", "project_to_sums"]

Columns = tuple[int, ...]
"""Column numbers in ascending order."""


class Residuals:
    """Pooled residuals of noisy marginals with independent noise of equal variance in all cells of one marginal.

    References: Xiao, He, Zhang, Kifer: An optimal and scalable matrix mechanism for noisy marginals (2023),
    doi:10.48550/arXiv.2305.08175; Mullins et al.: Efficient and private marginal reconstruction with local
    non-negativity (2024), doi:10.48550/arXiv.2410.01091.

    >>> pool = Residuals((2, 2))
    >>> pool.add((0,), np.array([40.0, 60.0]), variance=1.0)
    >>> pool.add((0, 1), np.array([[10.0, 32.0], [20.0, 42.0]]), variance=1.0)
    >>> round(pool.total, 2), pool.marginal((0,)).round(2).tolist()
    (101.33, [40.67, 60.67])
    """

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)
        self._sums: dict[Columns, Floats] = {}
        self._precision: dict[Columns, float] = {}
        self._noise: dict[Columns, float] = {}

    def add(self, columns: Columns, noisy: Floats, *, variance: float, most: float | None = None) -> None:
        """Add a noisy marginal: one array axis per column, noise of that variance in every cell.

        If the cells have noise of different variances, ``variance`` is their mean and ``most`` the largest one.
        """
        for part in _subsets(columns):
            away = tuple(axis for axis, column in enumerate(columns) if column not in part)
            effect = np.asarray(noisy.sum(axis=away) if away else noisy, dtype=np.float64)
            for axis in range(effect.ndim):
                effect = effect - effect.mean(axis=axis, keepdims=True)
            summed = prod(self.shape[columns[axis]] for axis in away)
            weight = 1 / (variance * summed)
            self._sums[part] = self._sums.get(part, np.zeros(effect.shape)) + effect * weight
            self._precision[part] = self._precision.get(part, 0.0) + weight
            self._noise[part] = self._noise.get(part, 0.0) + weight**2 * (most or variance) * summed

    @property
    def total(self) -> float:
        """The estimated number of rows."""
        return float(self._sums[()] / self._precision[()])

    def measured(self, columns: Columns) -> bool:
        """Whether the interaction of exactly these columns was measured."""
        return columns in self._precision

    def marginal(self, columns: Columns) -> Floats:
        """The estimated marginal; interactions that were not measured are taken as zero."""
        shape = [self.shape[column] for column in columns]
        estimate = np.zeros(shape)
        for part in _subsets(columns):
            if part in self._precision:
                effect = self._sums[part] / self._precision[part] / self._spread_over(columns, part)
                estimate += effect.reshape([self.shape[c] if c in part else 1 for c in columns])
        return estimate

    def variance(self, columns: Columns) -> float:
        """The variance of every cell of an estimated marginal whose interactions were all measured, at most.

        Exact if all cells of each noisy marginal have the same variance.
        """
        return sum(
            prod(1 - 1 / self.shape[column] for column in part)
            * self._noise[part]
            / self._precision[part] ** 2
            / self._spread_over(columns, part) ** 2
            for part in _subsets(columns)
        )

    def deviation(self, columns: Columns) -> float:
        """The standard deviation of the noise of a cell of an interaction that was measured."""
        return sqrt(self._noise[columns]) / self._precision[columns]

    def _spread_over(self, columns: Columns, part: Columns) -> float:
        return float(prod(self.shape[column] for column in columns if column not in part))


def _subsets(columns: Columns) -> Iterator[Columns]:
    for size in range(len(columns) + 1):
        yield from combinations(columns, size)


def shrink_singular_values(table: Floats, *, deviation: float) -> Floats:
    """A table of signal and independent normal noise, with its singular values shrunk by the known noise.

    Singular values that noise alone reaches become zero, larger ones lose what noise adds to them: the shrinker with
    the smallest squared error as tables grow (Gavish, Donoho 2017, doi:10.1109/TIT.2017.2653801).

    >>> noise = np.random.default_rng(1).normal(size=(30, 20))
    >>> float(np.abs(shrink_singular_values(noise, deviation=1.1)).max())
    0.0
    """
    left, values, right = np.linalg.svd(table, full_matrices=False)
    ratio = min(table.shape) / max(table.shape)
    scale = max(deviation * sqrt(max(table.shape)), 1e-9 * float(values[0]), 1e-300)
    squares = np.maximum(values / scale, 1 + sqrt(ratio)) ** 2
    shrunk = scale * np.sqrt(np.maximum((squares - ratio - 1) ** 2 - 4 * ratio, 0) / squares)
    shrunk = np.where(values > scale * (1 + sqrt(ratio)), shrunk, 0.0)
    denoised: Floats = (left * shrunk) @ right
    return denoised


def project_to_simplex(values: Floats, total: float) -> Floats:
    """The closest array (least squares) of non-negative numbers with that sum.

    >>> project_to_simplex(np.array([5.0, 2.0, -3.0]), 6.0).tolist()
    [4.5, 1.5, 0.0]
    """
    ordered = np.sort(values, axis=None)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    shift = excess[np.flatnonzero(ordered > excess)[-1]]
    projected: Floats = np.maximum(values - shift, 0.0)
    return projected


def project_to_sums(values: Floats, rows: Floats, columns: Floats, *, steps: int = 50) -> Floats:
    """The closest non-negative table with these row and column sums, by Dykstra's alternating projections.

    >>> noisy = np.array([[6.0, -2.0], [1.0, 3.0]])
    >>> project_to_sums(noisy, np.array([4.0, 4.0]), np.array([5.0, 3.0])).round(2).tolist()
    [[4.0, 0.0], [1.0, 3.0]]
    """
    table, kept = values, np.zeros(values.shape)
    high, wide = values.shape
    for _ in range(steps):
        off_rows, off_columns = rows - table.sum(axis=1), columns - table.sum(axis=0)
        table = table + off_rows[:, None] / wide + off_columns / high - off_rows.sum() / (high * wide)
        shifted = table + kept
        table = np.maximum(shifted, 0.0)
        kept = shifted - table
    return table
