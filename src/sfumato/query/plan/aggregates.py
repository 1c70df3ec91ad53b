"""Aggregates that are measured: exact integers per group, to which noise is added.

An aggregate has the expression of one row's contribution and the integer bounds of that contribution. Its sensitivity
is the most one unit can change it within one group when at most ``rows`` of its rows count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log2
from typing import Any

from sfumato.dataset import Kind
from sfumato.dp.mechanism import Mechanism
from sfumato.dp.mechanisms.exponential import Exponential
from sfumato.engines.expressions import (
    NOTHING,
    TRUE,
    Arithmetic,
    Case,
    Cast,
    Expression,
    Extreme,
    IsNull,
    Not,
    all_of,
    constant,
    equal,
    when,
)
from sfumato.engines.functions import Function
from sfumato.query.plan.scalar import Scalar, literal
from sfumato.rationals import Number, rational

__all__ = [
    "Aggregate",
    "BernsteinSum",
    "BinCounts",
    "Count",
    "DistinctCount",
    "FittingUnits",
    "FixedPoint",
    "Moments",
    "Sum",
    "ValueCounts",
    "bin_counts_aggregate",
    "bounds_problem",
    "clipped",
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

    condition: Expression = TRUE
    once: bool = False

    def sensitivity(self, rows: int) -> int:
        return 1 if self.once else rows


@dataclass(frozen=True, kw_only=True)
class FixedPoint:
    """A bounded number in integer steps of a grid."""

    node: Expression
    """One row's steps, clipped; undefined where there is no value."""
    present: Expression
    """Condition that the row has a value."""
    low: int
    high: int
    grid: Fraction


@dataclass(frozen=True, kw_only=True)
class Sum(Aggregate):
    """Sum of a value in whole steps of a grid, each row's clipped to ``low`` .. ``high`` steps."""

    steps: Expression
    """One row's steps; 0 where there is no value."""
    low: int
    high: int
    grid: Fraction
    of: FixedPoint | None = None
    """The number by itself, and the condition of the rows that count; for sums that may share a measurement."""
    condition: Expression = TRUE

    def sensitivity(self, rows: int) -> int:
        return rows * max(abs(self.low), abs(self.high))


@dataclass(frozen=True, kw_only=True)
class Moments(Aggregate):
    """Number of rows with a value, their sum and, in degree 2, the sum of their squares: measured as shares."""

    of: FixedPoint
    condition: Expression
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
    column: tuple[str, Expression] | None
    """Name and expression of that column; None where an earlier part has it already."""
    ends: tuple[int, int] | None = None
    """Smallest and largest value of a row, of which a unit's sum is kept as far as possible; else its mean is."""
    degree: int = 1


@dataclass(frozen=True, kw_only=True)
class DistinctCount(Aggregate):
    """Different values among the rows for which a condition holds."""

    value: Expression
    condition: Expression

    def sensitivity(self, rows: int) -> int:
        return rows


@dataclass(frozen=True, kw_only=True)
class BinCounts(Aggregate):
    """Rows per cell of a public range of values; a quantile is chosen from these."""

    cell: Expression
    condition: Expression
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

    cell: Expression
    """The place of a row's value in the list."""
    condition: Expression
    candidates: tuple[Any, ...]
    """The public values, sorted."""

    def sensitivity(self, rows: int) -> int:
        return rows

    def error(self, mechanism: Mechanism, confidence: Number) -> float:
        """The most rows that the selected value may have fewer than the most frequent one."""
        assert isinstance(mechanism, Exponential)
        return mechanism.error(confidence=confidence, candidates=len(self.candidates))


@dataclass(frozen=True, kw_only=True)
class FittingUnits(Aggregate):
    """Two numbers over all groups: the units that the contribution limits fit, and the units that they cut.

    Sensitivity: each unit counts 1 in one of the two, and which depends on its own rows alone. Adding a unit changes
    one of the numbers by 1 and the other not.
    """

    def sensitivity(self, rows: int) -> int:
        return 1


def present(scalar: Scalar) -> Expression:
    """The condition that a row has a value: neither missing nor "not a number"."""
    there = Not(IsNull(scalar.node))
    return all_of(there, Not(Function(scalar.node, "isnan"))) if scalar.kind is Kind.NUMBER else there


def clipped(x: Expression, low: Expression, high: Expression) -> Expression:
    """A value within two constants."""
    return Extreme((Extreme((x, high), True), low), False)


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
    if whole:
        inside = clipped(scalar.node, constant(bottom), constant(top))
    else:
        ends = [constant(float(end * grid)) for end in (bottom, top)]
        share = Arithmetic("/", clipped(scalar.as_double(), *ends), constant(float(grid)))
        inside = Cast(Function(share, "floor"), "int")
    return FixedPoint(node=inside, present=present(scalar), low=bottom, high=top, grid=grid)


def sum_aggregate(scalar: Scalar, condition: Expression) -> Sum:
    """The aggregate for the sum of a bounded number."""
    of = _steps(scalar)
    steps = when(all_of(condition, of.present), of.node, constant(0))
    return Sum(steps=steps, low=of.low, high=of.high, grid=of.grid, of=of, condition=condition)


def moments_aggregate(scalar: Scalar, condition: Expression, degree: int) -> Moments:
    """The aggregate for a mean (degree 1) or a variance (degree 2) of a bounded number."""
    return Moments(of=_steps(scalar), condition=condition, degree=degree)


def bin_counts_aggregate(scalar: Scalar, condition: Expression, rank: Fraction) -> BinCounts:
    """The aggregate for a quantile: counts of up to four million cells over the declared range."""
    low, high = _bounds(scalar)
    cell: Expression
    if low == high:
        cells, grid, cell = 1, Fraction(1), constant(0)
    elif scalar.kind is Kind.INTEGER and high - low < _MOST_CELLS:
        low, high = Fraction(low.__floor__()), Fraction(high.__ceil__())
        cells, grid = int(high - low) + 1, Fraction(1)
        cell = Arithmetic("-", clipped(scalar.node, constant(int(low)), constant(int(high))), constant(int(low)))
    else:
        cells, grid = _MOST_CELLS + 1, (high - low) / _MOST_CELLS
        above = Arithmetic("-", scalar.as_double(), constant(float(low)))
        place = Function(Arithmetic("/", above, constant(float(grid))), "round")
        cell = Cast(clipped(place, constant(0.0), constant(float(_MOST_CELLS))), "int")
    condition = all_of(condition, present(scalar))
    return BinCounts(cell=cell, condition=condition, low=low, grid=grid, cells=cells, rank=rank)


def value_counts_aggregate(scalar: Scalar, condition: Expression, candidates: tuple[Any, ...]) -> ValueCounts:
    """The counts that MODE is selected from."""
    nodes = [literal(rational(value) if isinstance(value, float) else value).node for value in candidates]
    places = tuple((equal(scalar.node, value), constant(place)) for place, value in enumerate(nodes))
    return ValueCounts(cell=Case(places, NOTHING), condition=condition, candidates=candidates)
