"""Counts of coded rows that are read only through a receipt: noisy marginals and noisy selections.

The rows are secret. The two ways to learn from them are :meth:`PrivateCounts.measure`, which adds normal noise rounded
to a grid, and :meth:`PrivateCounts.select`, the exponential mechanism. Both are charged to the receipt by the squared
parameter of Gaussian differential privacy, which composes adaptively: later choices may depend on earlier results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Literal

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Array, Floats
from sfumato.dp.analytic_gaussian import pure_within
from sfumato.dp.mechanisms.exponential import Exponential
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.dp.receipt import Receipt, require
from sfumato.dp.sampler import exponential_race
from sfumato.dp.spending import Draw
from sfumato.secret import MeasuredNumbers, SecretValue
from sfumato.synthesis.residuals import Columns

Codes = Sequence[Array] | npt.NDArray[np.int32]
"""The cell of every row, one array per column. Small domains have small types: ten million rows fit into memory."""
_FINE = 1 << 40
COUNT_GRID = Fraction(1, 256)
"""Step of noisy counts."""


@dataclass(frozen=True, kw_only=True)
class NoisyMarginal:
    """A noisy marginal. It is public."""

    columns: Columns
    noisy: Floats
    variance: float
    """Variance of the noise of a cell; the mean over cells if they differ."""
    most: float | None = None
    """The largest variance of a cell, if they differ."""


def count_cells(codes: Codes, columns: Columns, shape: Sequence[int]) -> npt.NDArray[np.int64]:
    """The marginal of coded rows over some columns."""
    sizes = [shape[column] for column in columns]
    cell = codes[columns[0]]
    for column in columns[1:]:
        cell = cell.astype(np.int32, copy=False) * np.int32(shape[column]) + codes[column]
    return np.bincount(cell, minlength=prod(sizes)).reshape(sizes)


def smallest(codes: Array) -> Array:
    """Codes in the smallest type that holds them."""
    return codes.astype(np.min_scalar_type(int(codes.max(initial=0))))


class PrivateCounts:
    """Coded rows of people, at most ``max_contribution`` of each. Neighbours differ in all rows of one person."""

    def __init__(self, codes: Codes, shape: Sequence[int], *, max_contribution: int, receipt: Receipt) -> None:
        self.shape = tuple(shape)
        self._codes = SecretValue(codes)
        self.max_contribution, self._receipt = max_contribution, receipt
        self._of: Literal["rows", "units"] = "units" if max_contribution == 1 else "rows"
        self._known: dict[Columns, npt.NDArray[np.int64]] = {}

    def merged(self, maps: Sequence[npt.NDArray[np.int32]]) -> PrivateCounts:
        """The same rows with the cells of every column merged by a public map."""
        codes = self._codes.open(self._receipt)
        merged = [smallest(groups)[cells] for groups, cells in zip(maps, codes, strict=True)]
        shape = [int(groups.max()) + 1 for groups in maps]
        return PrivateCounts(merged, shape, max_contribution=self.max_contribution, receipt=self._receipt)

    def measure(self, columns: Columns, squared: Fraction) -> NoisyMarginal:
        """The marginal with normal noise that costs at most ``squared``.

        All rows of a person may lie in one cell, so the squared L2 sensitivity is the square of ``max_contribution``.
        """
        distance = self.max_contribution**2
        noise = RoundedGaussian(variance=Fraction(-(-distance * _FINE // squared), _FINE), grid=COUNT_GRID)
        measured = MeasuredNumbers(kind="cells", of=self._of)
        counts = SecretValue(self._count(columns).ravel() * COUNT_GRID.denominator, measured=measured)
        noisy = noise.release_at(counts, receipt=self._receipt, distance=distance)
        shape = [self.shape[column] for column in columns]
        return NoisyMarginal(columns=columns, noisy=np.asarray(noisy).reshape(shape), variance=noise.mean_square)

    def select(
        self,
        candidates: Sequence[Columns],
        estimates: Sequence[Floats],
        *,
        penalties: Sequence[float],
        weights: Sequence[int],
        squared: Fraction,
    ) -> int:
        """Select the candidate whose marginal an estimate fits worst: its number in ``candidates``.

        The score is weight · (L1 distance between true and estimated counts - penalty). Estimates are rounded to whole
        numbers, so scores are integers and a person changes the score by at most weight · max_contribution, up or down.
        The score is not monotone. With rate r the choice has a bounded range of 2·r·sensitivity, whose Gaussian
        parameter is that of randomized response with half of it (:func:`sfumato.dp.curve.range_curve`).
        """
        sensitivity = max(weights) * self.max_contribution
        rate = pure_within(squared) / sensitivity
        choice = Exponential(rate=rate)
        measured = MeasuredNumbers(kind="scores", of=self._of, numbers={"weight": max(weights)})
        draw = Draw(mechanism=choice, loss=choice.loss(sensitivity), measured=measured)
        permit = require(self._receipt, draw.loss, draw)
        scores = SecretValue(
            np.array(
                [
                    weight
                    * (int(np.abs(self._count(columns) - np.rint(guess).astype(np.int64)).sum()) - round(penalty))
                    for columns, guess, penalty, weight in zip(candidates, estimates, penalties, weights, strict=True)
                ],
                dtype=np.int64,
            )
        ).open(permit)
        return exponential_race(scores.max() - scores, rate)

    def _count(self, columns: Columns) -> npt.NDArray[np.int64]:
        if columns not in self._known:
            self._known[columns] = count_cells(self._codes.open(self._receipt), columns, self.shape)
        return self._known[columns]

    def __repr__(self) -> str:
        return f"<PrivateCounts of {len(self.shape)} columns>"
