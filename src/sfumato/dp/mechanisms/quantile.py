"""Quantiles by the exponential mechanism over public cut points."""

from __future__ import annotations

from fractions import Fraction
from math import log
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from pydantic import model_validator

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import Chance, Exact, Mechanism, Positive, as_integers, sensitivity_of, tail
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
    """The value below which a share ``rank`` of the rows lies: median, quartiles, and near the ends min and max.

    The input is a histogram over the public grid low, low + grid, ..., high: how many rows (clipped to the bounds) take
    each grid value, or, for fine grids, the numbers of the values that occur (ascending) and their counts. A grid value
    v has the utility -abs((1 - rank)·below - rank·above), where rows equal to v count on whichever side helps; one row
    more or less moves it by at most max(rank, 1 - rank). ``sensitivity`` is how many rows one unit has. Runs of empty
    grid values share a utility and are drawn as one interval. ``error`` bounds the distance in *rank*, in rows: how
    many rows too low or too high the answer lies.
    """

    examples = (
        {"rank": "1/2", "rate": 1, "low": 0, "high": 9, "grid": 1},
        {"rank": 0.9, "rate": "1/2", "low": 0, "high": 9, "grid": 1},
    )
    reference = "Smith (2011), doi:10.1145/1993636.1993743"
    proof = "McSherry, Talwar 2007, Theorem 6, with utility sensitivity max(rank, 1 - rank)"
    specimen: ClassVar[Any] = np.array([0, 2, 1, 0, 0, 3, 1, 0, 0, 1])

    rank: Chance
    """Share of rows below the answer: 0.5 is the median."""
    rate: Positive
    """How strongly a row of distance in rank is avoided; loss is 2·rate·max(rank, 1 - rank) per row."""
    low: Exact
    """Smallest value of the public range."""
    high: Exact
    """Largest value of the public range."""
    grid: Positive
    """Distance of two candidate answers."""

    @model_validator(mode="after")
    def _whole_steps(self) -> Self:
        if self.low > self.high or ((self.high - self.low) / self.grid).denominator != 1:
            raise ValueError("high - low must be a whole number of grid steps")
        return self

    @classmethod
    def for_epsilon(
        cls, epsilon: Number, *, rank: Number, low: Number, high: Number, grid: Number, sensitivity: Number = 1
    ) -> Self:
        """The sharpest choice that costs ``epsilon``."""
        share = rational(rank)
        rate = rational(epsilon) / (2 * max(share, 1 - share) * sensitivity_of(sensitivity))
        return cls(rank=share, rate=rate, low=rational(low), high=rational(high), grid=rational(grid))

    @property
    def cells(self) -> int:
        """How many grid values there are."""
        return int((self.high - self.low) / self.grid) + 1

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        return pure(2 * self.rate * max(self.rank, 1 - self.rank) * sensitivity_of(sensitivity))

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        """ln(cells / beta) / rate, in rows of rank."""
        return (log(self.cells) + float(ln_up(1 / tail(confidence, outputs)))) / float(self.rate)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Fraction:
        """One grid value, drawn exactly."""
        opened = self._open(value, receipt, self.loss(sensitivity))
        if isinstance(opened, tuple):
            return self.draw_sparse(as_integers(opened[0]), as_integers(opened[1]))
        return self.draw(as_integers(opened))

    def draw(self, counts: Ints) -> Fraction:
        """The choice itself, for mechanisms built on this one that have drawn on their own receipt."""
        if counts.shape != (self.cells,) or counts.min() < 0:
            raise BadParameter(f"a quantile takes one count per grid value ({self.cells} of them).")
        places = np.flatnonzero(counts > 0)
        return self.draw_sparse(places, counts[places])

    def draw_sparse(self, places: Ints, counts: Ints) -> Fraction:
        """The same from the grid values that occur, in ascending order, and how often each does."""
        if len(places) != len(counts) or (
            len(places) and (places[0] < 0 or places[-1] >= self.cells or np.diff(places).min(initial=1) < 1)
        ):
            raise BadParameter("a quantile takes different grid values in ascending order, each with its count.")
        # A grid value is a run of its own where rows lie on it; the empty ones between two such form one run.
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
        # b times (below·(1 - rank) - above·rank), with the rows on the value itself on either side
        least = (up - here) * (b - a) - (total - up + here) * a
        most = up * (b - a) - (total - up) * a
        distance = np.where((least <= 0) & (most >= 0), 0, np.minimum(np.abs(least), np.abs(most)))
        chosen = exponential_race(distance, self.rate / b, sizes)
        cell = int(starts[chosen]) + below_big(int(sizes[chosen]))
        return self.low + cell * self.grid
