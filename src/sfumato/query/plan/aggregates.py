"""Aggregates that are measured: exact integers per group, to which noise is added.

An aggregate has the engine SQL of one row's contribution and the integer bounds of that contribution. Its sensitivity
is the most one unit can change it within one group when at most ``rows`` of its rows count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log2
from typing import Any

from sfumato.dp.mechanism import Mechanism
from sfumato.dp.mechanisms.exponential import Exponential
from sfumato.query.plan.scalar import Scalar, literal
from sfumato.rationals import Number, rational
from sfumato.schema import Kind

__all__ = [
    "Aggregate",
    "BernsteinSum",
    "BinCounts",
    "Count",
    "DistinctCount",
    "FixedPoint",
    "Moments",
    "Sum",
    "ValueCounts",
    "bin_counts_aggregate",
    "bounds_problem",
    "moments_aggregate",
    "present",
    "sum_aggregate",
    "value_counts_aggregate",
]

_FINE = 20
"""Sums are kept in at least 2**20 steps of the largest value, so rounding is a millionth of it."""
_MOST_CELLS = 1 << 22
"""Number of candidate values of a quantile over the declared range."""


class Aggregate(ABC):
    """An aggregate: one integer per group."""

    @abstractmethod
    def sensitivity(self, rows: int) -> int:
        """Most that one unit with up to ``rows`` rows in a group can add to or take from the number."""

    def error(self, mechanism: Mechanism, confidence: Number) -> float:
        """Bound on the error of one answer, in the answer's own unit (rows of rank for a quantile)."""
        return mechanism.error(confidence=confidence)


@dataclass(frozen=True, kw_only=True)
class Count(Aggregate):
    """Rows for which a condition holds; with ``once``, units that have such a row."""

    condition: str = "TRUE"
    once: bool = False

    def sensitivity(self, rows: int) -> int:
        return 1 if self.once else rows


@dataclass(frozen=True, kw_only=True)
class FixedPoint:
    """A bounded number in integer steps of a grid."""

    sql: str
    """Engine SQL for one row's steps, clipped; undefined where there is no value."""
    present: str
    """Condition that the row has a value."""
    low: int
    high: int
    grid: Fraction


@dataclass(frozen=True, kw_only=True)
class Sum(Aggregate):
    """Sum of a value in whole steps of a grid, each row's clipped to ``low`` .. ``high`` steps."""

    steps: str
    """Engine SQL for one row's steps; 0 where there is no value."""
    low: int
    high: int
    grid: Fraction
    of: FixedPoint | None = None
    """The number by itself, and the condition of the rows that count; for sums that may share a measurement."""
    condition: str = "TRUE"

    def sensitivity(self, rows: int) -> int:
        return rows * max(abs(self.low), abs(self.high))


@dataclass(frozen=True, kw_only=True)
class Moments(Aggregate):
    """Number of rows with a value, their sum and, in degree 2, the sum of their squares: measured as shares."""

    of: FixedPoint
    condition: str
    degree: int

    def sensitivity(self, rows: int) -> int:
        return rows


@dataclass(frozen=True, kw_only=True)
class BernsteinSum(Sum):
    """One of ``parts`` sums among which each row's weight of ``high`` steps is divided: see ``shares``.

    Its steps are missing, not 0, for a row that has none, and are written over a column that the parts have in common.
    """

    parts: int
    place: int
    column: tuple[str, str] | None
    """Name and engine SQL of that column; None where an earlier part has it already."""
    ends: tuple[int, int] | None = None
    """Smallest and largest value of a row, of which a unit's sum is kept as far as possible; else its mean is."""
    degree: int = 1


@dataclass(frozen=True, kw_only=True)
class DistinctCount(Aggregate):
    """Different values among the rows for which a condition holds."""

    value: str
    condition: str

    def sensitivity(self, rows: int) -> int:
        return rows


@dataclass(frozen=True, kw_only=True)
class BinCounts(Aggregate):
    """Rows per cell of a public range of values; a quantile is chosen from these."""

    cell: str
    condition: str
    low: Fraction
    grid: Fraction
    cells: int
    rank: Fraction

    def sensitivity(self, rows: int) -> int:
        return rows


@dataclass(frozen=True, kw_only=True)
class ValueCounts(Aggregate):
    """Rows per value of a public list; MODE is selected from these counts by the exponential mechanism.

    Sensitivity: of each unit at most ``rows`` rows count within a group, and which of them count depends on the unit's
    own rows alone. Adding a unit therefore raises each count by 0 to ``rows`` and lowers none. For such monotone
    utilities the weight exp(rate·count) of each value is multiplied by a factor between 1 and exp(rate·rows), and so is
    their sum: no probability changes by more than a factor exp(rate·rows), and the loss within one group is rate·rows
    (not twice that). A unit in several groups pays once for each. Rows whose value is not in the list count nowhere.
    """

    cell: str
    """Engine SQL for the place of a row's value in the list."""
    condition: str
    candidates: tuple[Any, ...]
    """The public values, sorted."""

    def sensitivity(self, rows: int) -> int:
        return rows

    def error(self, mechanism: Mechanism, confidence: Number) -> float:
        """The most rows that the selected value may have fewer than the most frequent one."""
        assert isinstance(mechanism, Exponential)
        return mechanism.error(confidence=confidence, candidates=len(self.candidates))


def present(scalar: Scalar) -> str:
    """The condition that a row has a value: neither missing nor "not a number"."""
    if scalar.kind is Kind.NUMBER:
        return f"({scalar.sql} IS NOT NULL AND NOT isnan({scalar.sql}))"
    return f"({scalar.sql} IS NOT NULL)"


_WIDEST = Fraction(10**15)
_NARROWEST = Fraction(1, 10**100)


def bounds_problem(scalar: Scalar) -> str:
    """Why a number cannot be measured within its bounds, or nothing.

    Bounds beyond what floats can tell apart would make steps of width 0, and a division by those fails or not depending
    on the rows.
    """
    if scalar.low is None or scalar.high is None:
        return "This number has no public bounds, which are required to size the noise."
    far = max(abs(scalar.low), abs(scalar.high))
    if far > _WIDEST:
        return "The bounds of this number are too wide."
    if 0 < far < _NARROWEST or 0 < scalar.high - scalar.low < _NARROWEST:
        return "The bounds of this number are too narrow."
    return ""


def _bounds(scalar: Scalar) -> tuple[Fraction, Fraction]:
    if scalar.low is None or scalar.high is None:
        raise AssertionError("only bounded numbers are summed")
    return scalar.low, scalar.high


def _grid(largest: Fraction, whole: bool) -> Fraction:
    if whole and largest <= 1 << 40:
        return Fraction(1)
    return Fraction(2) ** (ceil(log2(largest)) - _FINE) if largest > 0 else Fraction(1)


def _steps(scalar: Scalar) -> FixedPoint:
    low, high = _bounds(scalar)
    grid = _grid(max(abs(low), abs(high)), scalar.kind is Kind.INTEGER)
    bottom, top = (low / grid).__floor__(), (high / grid).__ceil__()
    # A grid of 1 does not imply integers: bounds near a million have it too, and floats must not be summed.
    whole = scalar.kind is Kind.INTEGER and grid == 1
    x = scalar.sql if whole else scalar.as_double()
    ends = [str(end) if whole else f"CAST({float(end * grid)!r} AS DOUBLE)" for end in (bottom, top)]
    clipped = f"greatest(least({x}, {ends[1]}), {ends[0]})"
    inside = clipped if whole else f"CAST(floor({clipped} / CAST({float(grid)!r} AS DOUBLE)) AS BIGINT)"
    return FixedPoint(sql=inside, present=present(scalar), low=bottom, high=top, grid=grid)


def sum_aggregate(scalar: Scalar, condition: str) -> Sum:
    """The aggregate for the sum of a bounded number."""
    of = _steps(scalar)
    steps = f"(CASE WHEN {condition} AND {of.present} THEN {of.sql} ELSE 0 END)"
    return Sum(steps=steps, low=of.low, high=of.high, grid=of.grid, of=of, condition=condition)


def moments_aggregate(scalar: Scalar, condition: str, degree: int) -> Moments:
    """The aggregate for a mean (degree 1) or a variance (degree 2) of a bounded number."""
    return Moments(of=_steps(scalar), condition=condition, degree=degree)


def bin_counts_aggregate(scalar: Scalar, condition: str, rank: Fraction) -> BinCounts:
    """The aggregate for a quantile: counts of up to four million cells over the declared range."""
    low, high = _bounds(scalar)
    if low == high:
        cells, grid, cell = 1, Fraction(1), "0"
    elif scalar.kind is Kind.INTEGER and high - low < _MOST_CELLS:
        low, high = Fraction(low.__floor__()), Fraction(high.__ceil__())
        cells, grid = int(high - low) + 1, Fraction(1)
        cell = f"greatest(least({scalar.sql}, {int(high)}), {int(low)}) - ({int(low)})"
    else:
        cells, grid = _MOST_CELLS + 1, (high - low) / _MOST_CELLS
        share = f"(({scalar.as_double()} - CAST({float(low)!r} AS DOUBLE)) / CAST({float(grid)!r} AS DOUBLE))"
        cell = f"CAST(greatest(least(round({share}), {_MOST_CELLS}), 0) AS BIGINT)"
    condition = f"({condition} AND {present(scalar)})"
    return BinCounts(cell=cell, condition=condition, low=low, grid=grid, cells=cells, rank=rank)


def value_counts_aggregate(scalar: Scalar, condition: str, candidates: tuple[Any, ...]) -> ValueCounts:
    """The counts that MODE is selected from."""
    written = [literal(rational(value) if isinstance(value, float) else value).sql for value in candidates]
    places = " ".join(f"WHEN {scalar.sql} = {value} THEN {place}" for place, value in enumerate(written))
    return ValueCounts(cell=f"(CASE {places} END)", condition=condition, candidates=candidates)
