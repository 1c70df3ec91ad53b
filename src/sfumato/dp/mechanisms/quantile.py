"""Quantile by the exponential mechanism over a public grid."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import log
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, model_validator

from sfumato.arrays import Array
from sfumato.dp.loss import PrivacyLoss, bounded_range
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
from sfumato.dp.sampler import bernoulli_exp, exponential_race
from sfumato.errors import BadParameter
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue

Ints = Array
BEYOND = Fraction(1, 100)
"""Probability, at most, that a minimum or maximum lies beyond all rows, where there are at least ``margin`` rows."""
_STEP = 1024
"""A margin is a whole number of these parts of a row."""
_NEAR = 80
"""Candidates whose logarithm of the probability is lower than the best one's by more than this are sampled together."""


class Quantile(Mechanism):
    """Select the grid value below which a share ``rank`` of the rows lies: median, quartiles, minimum or maximum.

    The input is a histogram over the public grid low, low + grid, ..., high: the number of rows (clipped to the bounds)
    at each grid value; or, for fine grids, the indices of the values that occur (ascending) and their counts. The
    utility of a grid value is -abs((1 - rank)·below - rank·above), where rows equal to it count on the side that helps;
    one row moves it by at most max(rank, 1 - rank). ``sensitivity`` is the number of rows of one unit. Runs of empty
    grid values have the same utility and are sampled as one interval. ``error`` bounds the distance in *rank*: how many
    rows too low or too high the answer lies.

    All values beyond the largest row have no row above them, so a maximum (rank 1) chosen by that utility would be an
    arbitrary one of them. ``margin`` moves the target inwards: with rank 1 the utility is -abs(above - margin), with
    rank 0 -abs(below - margin). A constant changes neither the sensitivity nor the loss. ``for_epsilon`` takes the
    margin at which a value beyond all rows is selected with probability at most 1/100, if there are ``margin`` rows.
    """

    examples = (
        {"rank": "1/2", "rate": 1, "low": 0, "high": 9, "grid": 1},
        {"rank": 0.9, "rate": "1/2", "low": 0, "high": 9, "grid": 1},
        {"rank": 1, "rate": "1/2", "low": 0, "high": 9, "grid": 1, "margin": "3/2"},
    )
    reference = "Smith (2011), doi:10.1145/1993636.1993743"
    proof = "McSherry, Talwar 2007, Theorem 6, with utility sensitivity max(rank, 1 - rank)"
    specimen = np.array([0, 2, 1, 0, 0, 3, 1, 0, 0, 1])

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
    margin: Annotated[Exact, Field(ge=0)] = Fraction(0)
    """Number of rows beyond the answer that is aimed at; for rank 0 and rank 1 only."""

    @model_validator(mode="after")
    def _whole_steps(self) -> Self:
        if self.margin and self.rank not in (0, 1):
            raise ValueError("margin is for rank 0 and rank 1")
        if self.low > self.high or ((self.high - self.low) / self.grid).denominator != 1:
            raise ValueError("high - low must be a whole number of grid steps")
        return self

    @classmethod
    def for_epsilon(
        cls, epsilon: Number, *, rank: Number, low: Number, high: Number, grid: Number, sensitivity: Number = 1
    ) -> Self:
        """The largest rate whose loss at ``sensitivity`` is ``epsilon``; for rank 0 and rank 1 with a margin."""
        share = rational(rank)
        rate = rational(epsilon) / (2 * max(share, 1 - share) * sensitivity_of(sensitivity))
        plain = cls(rank=share, rate=rate, low=rational(low), high=rational(high), grid=rational(grid))
        if share not in (0, 1):
            return plain
        margin = ln_up(plain.cells / BEYOND) / rate
        return plain.model_copy(update={"margin": Fraction((margin * _STEP).__ceil__(), _STEP)})

    @property
    def cells(self) -> int:
        """Number of grid values."""
        return int((self.high - self.low) / self.grid) + 1

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        return bounded_range(2 * self.rate * max(self.rank, 1 - self.rank) * sensitivity_of(sensitivity))

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        # All rows of a unit lie below a candidate, or all above it. Its weight then moves by one factor and, at worst,
        # the sum of all weights by another, in the opposite direction.
        def distance(below: Fraction, above: Fraction) -> Fraction:
            return abs((1 - self.rank) * below - self.rank * above)

        moved = max(distance(bounds.change, Fraction(0)), distance(Fraction(0), bounds.change))
        weight = self.rate * moved
        return bounded_range(weight + weight).times(bounds.groups)

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        """margin + ln(cells / beta) / rate, in rows of rank."""
        return float(self.margin) + (log(self.cells) + float(ln_up(1 / tail(confidence, outputs)))) / float(self.rate)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Fraction:
        """One grid value, sampled exactly."""
        opened = self._open(value, receipt, sensitivity)
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
        upto = np.cumsum(counts, dtype=np.int64)
        first, last = self.near(upto)

        def span(cell: int) -> tuple[int, int]:
            at = int(np.searchsorted(places, cell))
            below = int(upto[at - 1]) if at else 0
            return below, int(upto[at]) if at < len(places) and places[at] == cell else below

        before, total = int(upto[first - 1]) if first else 0, int(upto[-1]) if len(upto) else 0
        return self.low + self.grid * self.draw_near(places[first:last], counts[first:last], before, total, span)

    def near(self, upto: Ints) -> tuple[int, int]:
        """The range of occupied grid values near the best ones, from the numbers of rows up to each.

        Any other value is less probable than the best by a factor of at least exp(-_NEAR).
        """
        total = int(upto[-1]) if len(upto) else 0
        scale, aim = self._aim(total)
        aim, reach = min(max(aim, 0), scale * total), (_NEAR * scale / self.rate).__ceil__()
        low, high = max(-((reach - aim) // scale), 0), min((aim + reach) // scale, total)
        return int(np.searchsorted(upto, low)), min(int(np.searchsorted(upto, high, side="right")) + 1, len(upto))

    def draw_near(
        self, places: Ints, counts: Ints, before: int, total: int, span: Callable[[int], tuple[int, int]]
    ) -> int:
        """Sample the index of a grid value, given the occupied ones near the best and the number of rows below these.

        Rejection sampling: the values before the first and those after the last are proposed as if each was as good as
        the best of them, and accepted with the ratio of the probabilities. ``span`` returns the number of rows below a
        grid value and of those up to it.
        """
        # Each occupied grid value is a run of its own; the empty values between two occupied ones form one run.
        edges = np.concatenate([[0], np.column_stack([places, places + 1]).ravel(), [self.cells]]).astype(np.int64)
        starts, sizes = edges[:-1], np.diff(edges)
        here = np.zeros(len(starts), dtype=np.int64)
        here[1::2] = counts
        up = before + np.cumsum(here)
        kept = sizes > 0
        starts, sizes, here, up = starts[kept], sizes[kept], here[kept], up[kept]
        scale, aim = self._aim(total)
        # scale times (below·(1 - rank) - above·rank ± margin), with the rows at the value itself on either side
        least, most = (up - here) * scale - aim, up * scale - aim
        distance = np.where((least <= 0) & (most >= 0), 0, np.minimum(np.abs(least), np.abs(most)))
        while True:
            chosen = exponential_race(distance, self.rate / scale, sizes)
            cell = int(starts[chosen]) + below_big(int(sizes[chosen]))
            low, high = (rows * scale - aim for rows in span(cell))
            true = 0 if low <= 0 <= high else min(abs(low), abs(high))
            if _accepted(self.rate / scale * (true - int(distance[chosen]))):
                return cell

    def _aim(self, total: int) -> tuple[int, int]:
        """A denominator, and times it the number of rows that are to lie below the answer."""
        scale = self.rank.denominator * self.margin.denominator
        inward = int(self.margin * scale) * (1 if self.rank else -1)
        if total * scale + abs(inward) >= 1 << 62:
            raise BadParameter("the rank has too many digits.", fix="Use a rank such as 0.25 or 1/3.")
        return scale, int(self.rank * scale) * total - inward


def _accepted(rate: Fraction) -> bool:
    """True with probability exp(-rate)."""
    return rate == 0 or bool(bernoulli_exp(np.array([float(rate)]), lambda _: rate)[0])
