"""Several quantiles of the same numbers by recursive bisection (approximate quantiles)."""

from __future__ import annotations

from fractions import Fraction
from math import log
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, model_validator

from sfumato.arrays import Ints
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
from sfumato.dp.mechanisms.quantile import BEYOND, Quantile
from sfumato.dp.os_random import words
from sfumato.dp.rational_bounds import ln_up
from sfumato.dp.receipt import Receipt
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue

_TIES = 20
"""Number of random bits that order rows of equal value."""


class Quantiles(Mechanism):
    """Select the grid values below which given shares of the rows lie, by recursive bisection.

    The middle quantile is selected first from all rows by the exponential mechanism, then the lower ones from the rows
    below it and the upper ones from the rows above. Each row takes part once per level, so the loss grows with the
    logarithm of the number of quantiles. Rows of equal value are put in a random order first, so that a value of many
    rows can be divided. The input is that of ``Quantile``; ``sensitivity`` is the number of rows of one unit. ``error``
    bounds the distance in rank, in rows, of every answer.
    """

    examples = (
        {"ranks": ["1/4", "1/2", "3/4"], "price": 1, "low": 0, "high": 9, "grid": 1},
        {"ranks": [0.5], "price": "1/2", "low": 0, "high": 9, "grid": 1},
    )
    reference = "Kaplan, Schnapp, Stemmer (2022), doi:10.48550/arXiv.2110.05429"
    proof = "Kaplan, Schnapp, Stemmer 2022, Lemma 3.1: on one level the rows are disjoint; levels are composed"
    specimen = np.array([0, 2, 1, 0, 0, 3, 1, 0, 0, 1])

    ranks: Annotated[tuple[Chance, ...], Field(min_length=1)]
    """Shares of rows below the answers, ascending."""
    price: Positive
    """Loss of one row on one level."""
    low: Exact
    """Smallest value of the public range."""
    high: Exact
    """Largest value of the public range."""
    grid: Positive
    """Distance between two candidate answers."""

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if any(a >= b for a, b in zip(self.ranks, self.ranks[1:], strict=False)):
            raise ValueError("ranks are ascending and all different")
        if self.low > self.high or ((self.high - self.low) / self.grid).denominator != 1:
            raise ValueError("high - low must be a whole number of grid steps")
        return self

    @classmethod
    def for_epsilon(
        cls, epsilon: Number, *, ranks: tuple[Fraction, ...], low: Number, high: Number, grid: Number,
        sensitivity: Number = 1,
    ) -> Self:  # fmt: skip
        """The largest price per level whose loss at ``sensitivity`` is ``epsilon``."""
        price = rational(epsilon) / (len(ranks).bit_length() * sensitivity_of(sensitivity))
        return cls(ranks=ranks, price=price, low=rational(low), high=rational(high), grid=rational(grid))

    @property
    def levels(self) -> int:
        """Number of levels of the bisection."""
        return len(self.ranks).bit_length()

    @property
    def cells(self) -> int:
        """Number of grid values."""
        return int((self.high - self.low) / self.grid) + 1

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        return bounded_range(self.price * sensitivity_of(sensitivity)).times(self.levels)

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        # On one level a row is in one part only, and the ranges of a unit's rows add up; levels are composed.
        return bounded_range(bounds.change * self.price).times(bounds.groups * _depth(len(self.ranks)))

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        """Each level adds at most ln(candidates·ranks / beta) / (price / 2) rows of rank.

        A minimum or maximum (rank 0 or 1) lies further inside by the margin of ``Quantile``.
        """
        size = self.cells if len(self.ranks) == 1 else self.cells << _TIES
        chance = tail(confidence, outputs) / len(self.ranks)
        rows = self.levels * (log(size) + float(ln_up(1 / chance)))
        margin = log(size) + float(ln_up(1 / BEYOND)) if self.ranks[0] == 0 or self.ranks[-1] == 1 else 0.0
        return 2 * (rows + margin) / float(self.price)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> tuple[Fraction, ...]:
        """One grid value for each rank, none below the one before it."""
        opened = self._open(value, receipt, sensitivity)
        if isinstance(opened, tuple):
            places, counts = as_integers(opened[0]), as_integers(opened[1])
        else:
            dense = as_integers(opened)
            places = np.flatnonzero(dense)
            counts = dense[places]
        if len(self.ranks) == 1:
            selected = [self._choose(self.ranks[0], 0, self.cells - 1, places, counts)]
        else:
            rows = _TiedRows(places, counts)
            top = (self.cells << _TIES) - 1
            selected = self._divide(self.ranks, Fraction(0), Fraction(1), 0, top, rows, 0, rows.total)
        return tuple(self.low + cell * self.grid for cell in selected)

    def _divide(
        self, ranks: tuple[Fraction, ...], under: Fraction, over: Fraction, low: int, high: int, rows: _TiedRows,
        first: int, last: int,
    ) -> list[int]:  # fmt: skip
        """The grid values for ranks between two selected ones, from the rows between those: ``first`` to ``last``."""
        if not ranks:
            return []
        middle = len(ranks) // 2
        rank = (ranks[middle] - under) / (over - under)
        places, counts = rows.cells(first, last)
        if len(ranks) == 1:  # nothing is divided further: a value of many rows is one candidate again
            return [self._choose(rank, low >> _TIES, high >> _TIES, places, counts)]
        one = self._one(rank, low, high)
        upto = np.cumsum(counts, dtype=np.int64)
        start, end = one.near(upto)
        before = int(upto[start - 1]) if start else 0
        tied = rows.ordered(first + before, first + int(upto[end - 1]) if end else first)

        def span(place: int) -> tuple[int, int]:
            below, up = (min(max(rank, first), last) - first for rank in rows.span(low + place))
            return below, up

        chosen = low + one.draw_near(*np.unique(tied - low, return_counts=True), before, last - first, span)
        cut = min(max(rows.span(chosen)[1], first), last)
        left = self._divide(ranks[:middle], under, ranks[middle], low, chosen, rows, first, cut)
        above = min(chosen + 1, high)
        right = self._divide(ranks[middle + 1 :], ranks[middle], over, above, high, rows, cut, last)
        return [*left, chosen >> _TIES, *right]

    def _one(self, rank: Fraction, low: int, high: int) -> Quantile:
        """A quantile over the whole numbers between ``low`` and ``high``, with a loss of ``price``."""
        rank = Fraction(round(rank * 10**6), 10**6)  # a public number; a millionth of the rows
        return Quantile.for_epsilon(self.price, rank=rank, low=0, high=high - low, grid=1)

    def _choose(self, rank: Fraction, low: int, high: int, places: Ints, counts: Ints) -> int:
        return low + int(self._one(rank, low, high).draw_sparse(np.asarray(places) - low, np.asarray(counts)))


class _TiedRows:
    """Rows in the order of their values, and in a random order where these are equal.

    The random bits of a value's rows are drawn when they are first needed: most values are far from every quantile.
    """

    def __init__(self, places: Ints, counts: Ints) -> None:
        self._places, self._counts = places.astype(np.int64), counts.astype(np.int64)
        self._upto = np.cumsum(self._counts)
        self.total = int(self._upto[-1]) if len(places) else 0
        self._known = np.zeros(len(places), np.bool_)
        self._ordered = np.empty(self.total, np.int64)

    def cells(self, first: int, last: int) -> tuple[Ints, Ints]:
        """The values of the rows ``first`` to ``last``, and how many of these rows have each."""
        start, end = self._range(first, last)
        counts = self._counts[start:end].copy()
        if len(counts):
            counts[0] -= first - (int(self._upto[start]) - int(self._counts[start]))
            counts[-1] -= int(self._upto[end - 1]) - last
        return self._places[start:end], counts

    def ordered(self, first: int, last: int) -> Ints:
        """The rows ``first`` to ``last``: value and random bits, ascending."""
        start, end = self._range(first, last)
        new = start + np.flatnonzero(~self._known[start:end])
        counts = self._counts[new]
        values = np.repeat(self._places[new] << _TIES, counts)
        values += (words(len(values)) >> np.uint64(64 - _TIES)).astype(np.int64)
        values.sort()
        starts = self._upto[new] - np.cumsum(counts)
        self._ordered[np.repeat(starts, counts) + np.arange(len(values))] = values
        self._known[new] = True
        return self._ordered[first:last]

    def span(self, place: int) -> tuple[int, int]:
        """Number of rows below a value with random bits, and of those up to it."""
        at = int(np.searchsorted(self._places, place >> _TIES))
        below = int(self._upto[at - 1]) if at else 0
        if at == len(self._places) or self._places[at] != place >> _TIES:
            return below, below
        own = self.ordered(below, int(self._upto[at]))
        return below + int(np.searchsorted(own, place)), below + int(np.searchsorted(own, place, side="right"))

    def _range(self, first: int, last: int) -> tuple[int, int]:
        if first == last:
            return 0, 0
        return int(np.searchsorted(self._upto, first, side="right")), int(np.searchsorted(self._upto, last)) + 1


def _depth(ranks: int) -> int:
    """Levels of the recursion in :meth:`Quantiles._divide` for that many ranks."""
    middle = ranks // 2
    return 0 if ranks == 0 else 1 + max(_depth(middle), _depth(ranks - middle - 1))
