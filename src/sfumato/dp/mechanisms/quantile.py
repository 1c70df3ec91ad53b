"""Quantile by the exponential mechanism over a public grid."""

from __future__ import annotations

from fractions import Fraction
from math import log
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from pydantic import model_validator

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import (
    Chance,
    ContributionBounds,
    Exact,
    Mechanism,
    Positive,
    as_integers,
    sensitivity_of,
    tail,
)
from sfumato.dp.os_random import below_big
from sfumato.dp.rational_bounds import ln_up
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import exponential_race
from sfumato.errors import BadParameter
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue

__all__ = ["Quantile"]

Ints = npt.NDArray[Any]


class Quantile(Mechanism):
    """Select the grid value below which a share ``rank`` of the rows lies: median, quartiles, minimum or maximum.

    The input is a histogram over the public grid low, low + grid, ..., high: the number of rows (clipped to the bounds)
    at each grid value; or, for fine grids, the indices of the values that occur (ascending) and their counts. The
    utility of a grid value is -abs((1 - rank)·below - rank·above), where rows equal to it count on the side that helps;
    one row moves it by at most max(rank, 1 - rank). ``sensitivity`` is the number of rows of one unit. Runs of empty
    grid values have the same utility and are sampled as one interval. ``error`` bounds the distance in *rank*: how many
    rows too low or too high the answer lies.
    """

    examples = (
        {"rank": "1/2", "rate": 1, "low": 0, "high": 9, "grid": 1},
        {"rank": 0.9, "rate": "1/2", "low": 0, "high": 9, "grid": 1},
    )
    reference = "Smith (2011), doi:10.1145/1993636.1993743"
    proof = "McSherry, Talwar 2007, Theorem 6, with utility sensitivity max(rank, 1 - rank)"
    specimen: ClassVar[Any] = np.array([0, 2, 1, 0, 0, 3, 1, 0, 0, 1])

    rank: Chance
    """Share of rows below the answer; 0.5 is the median."""
    rate: Positive
    """Decrease of the log-probability per row of rank error; the loss is 2·rate·max(rank, 1 - rank) per row."""
    low: Exact
    """Smallest value of the public range."""
    high: Exact
    """Largest value of the public range."""
    grid: Positive
    """Distance between two candidate answers."""

    @model_validator(mode="after")
    def _whole_steps(self) -> Self:
        if self.low > self.high or ((self.high - self.low) / self.grid).denominator != 1:
            raise ValueError("high - low must be a whole number of grid steps")
        return self

    @classmethod
    def for_epsilon(
        cls, epsilon: Number, *, rank: Number, low: Number, high: Number, grid: Number, sensitivity: Number = 1
    ) -> Self:
        """The largest rate whose loss at ``sensitivity`` is ``epsilon``."""
        share = rational(rank)
        rate = rational(epsilon) / (2 * max(share, 1 - share) * sensitivity_of(sensitivity))
        return cls(rank=share, rate=rate, low=rational(low), high=rational(high), grid=rational(grid))

    @property
    def cells(self) -> int:
        """Number of grid values."""
        return int((self.high - self.low) / self.grid) + 1

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        return pure(2 * self.rate * max(self.rank, 1 - self.rank) * sensitivity_of(sensitivity))

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        # All rows of a unit lie below a candidate, or all above it. Its weight then moves by one factor and, at worst,
        # the sum of all weights by another, in the opposite direction.
        def distance(below: Fraction, above: Fraction) -> Fraction:
            return abs((1 - self.rank) * below - self.rank * above)

        moved = max(distance(bounds.change, Fraction(0)), distance(Fraction(0), bounds.change))
        weight = self.rate * moved
        return pure(bounds.groups * (weight + weight))

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        """ln(cells / beta) / rate, in rows of rank."""
        return (log(self.cells) + float(ln_up(1 / tail(confidence, outputs)))) / float(self.rate)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Fraction:
        """One grid value, sampled exactly."""
        opened = self._open(value, receipt, self.loss(sensitivity))
        if isinstance(opened, tuple):
            return self.draw_sparse(as_integers(opened[0]), as_integers(opened[1]))
        return self.draw(as_integers(opened))

    def draw(self, counts: Ints) -> Fraction:
        """Sample without a receipt, for mechanisms built on this one that charge their own."""
        if counts.shape != (self.cells,) or counts.min() < 0:
            raise BadParameter(f"a quantile takes one count for each of its {self.cells} grid values.")
        places = np.flatnonzero(counts > 0)
        return self.draw_sparse(places, counts[places])

    def draw_sparse(self, places: Ints, counts: Ints) -> Fraction:
        """Sample from the grid values that occur, in ascending order, and their counts."""
        if len(places) != len(counts) or (
            len(places) and (places[0] < 0 or places[-1] >= self.cells or np.diff(places).min(initial=1) < 1)
        ):
            raise BadParameter("a quantile takes distinct grid values in ascending order, each with its count.")
        # Each occupied grid value is a run of its own; the empty values between two occupied ones form one run.
        edges = np.concatenate([[0], np.column_stack([places, places + 1]).ravel(), [self.cells]]).astype(np.int64)
        starts, sizes = edges[:-1], np.diff(edges)
        here = np.zeros(len(starts), dtype=np.int64)
        here[1::2] = counts
        up = np.cumsum(here)
        kept = sizes > 0
        starts, sizes, here, up = starts[kept], sizes[kept], here[kept], up[kept]
        total = int(up[-1])
        a, b = self.rank.numerator, self.rank.denominator
        if total * b >= 1 << 62:
            raise BadParameter("the rank has too many digits.", fix="Use a rank such as 0.25 or 1/3.")
        # b times (below·(1 - rank) - above·rank), with the rows at the value itself on either side
        least = (up - here) * (b - a) - (total - up + here) * a
        most = up * (b - a) - (total - up) * a
        distance = np.where((least <= 0) & (most >= 0), 0, np.minimum(np.abs(least), np.abs(most)))
        chosen = exponential_race(distance, self.rate / b, sizes)
        cell = int(starts[chosen]) + below_big(int(sizes[chosen]))
        return self.low + cell * self.grid
