"""Sums and means of bounded numbers in whole steps of a grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, isqrt, log2

from sfumato.dataset import Kind
from sfumato.engines.aggregation import Total
from sfumato.engines.expressions import TRUE, Arithmetic, Cast, Coalesce, Expression, all_of, constant, double, when
from sfumato.engines.functions import Function
from sfumato.errors import AnswerFailed
from sfumato.query.plan.aggregate import (
    HUGE,
    Added,
    Aggregate,
    Items,
    Writer,
    clipped,
    column_of,
    present,
    public_bounds,
    whole_column,
)
from sfumato.query.plan.scalar import Scalar

_FINEST, _COARSEST = 31, 20
"""Sums of numbers that are not whole are kept in at least 2**30 steps of the largest value that a unit may add to a
group, which is ``rows`` times that of a row, and in at least 2**19 of a row's. Sums of 2**30 rows then fit 64 bits."""
MOST_SUMMED = 1 << 28
"""Rows of a sum for which intervals include what rounding can do."""


@dataclass(frozen=True, kw_only=True)
class FixedPoint:
    """A bounded number in integer steps of a grid, each row's rounded to the nearest step."""

    value: Expression
    """The number: whole, or a float."""
    present: Expression
    """Condition that the row has a value."""
    least: Fraction
    most: Fraction
    fine: int = _FINEST
    """Number of binary digits that the largest step has, if the number is not whole."""

    @property
    def whole(self) -> bool:
        """Whether each row's number is exact: it is whole, and the steps are."""
        return self.value.type == "int" and max(abs(self.least), abs(self.most)) <= 1 << 40

    @property
    def grid(self) -> Fraction:
        """Width of a step."""
        far = max(abs(self.least), abs(self.most))
        return Fraction(1) if self.whole or not far else Fraction(2) ** (ceil(log2(far)) - self.fine)

    @property
    def low(self) -> int:
        return (self.least / self.grid).__floor__()

    @property
    def high(self) -> int:
        return (self.most / self.grid).__ceil__()

    @property
    def node(self) -> Expression:
        """One row's steps, clipped; undefined where there is no value."""
        if self.whole:
            return clipped(self.value, constant(self.low), constant(self.high))
        ends = [constant(float(end * self.grid)) for end in (self.low, self.high)]
        steps = Arithmetic("/", clipped(double(self.value), *ends), constant(float(self.grid)))
        return Cast(Function(Arithmetic("+", steps, constant(0.5)), "floor"), "int")

    @property
    def rounding(self) -> Fraction:
        """The most that rounding changes one row's number."""
        return Fraction(0) if self.whole else self.grid / 2

    def for_rows(self, rows: int) -> FixedPoint:
        return replace(self, fine=max(_COARSEST, _FINEST - (rows - 1).bit_length()))


@dataclass(frozen=True, kw_only=True)
class Sum(Added):
    """Sum of a value in whole steps of a grid, each row's clipped to ``low`` .. ``high`` steps."""

    title = "Sum"

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

    def ends(self, rows: int) -> tuple[int, int]:
        return min(0, self.low) * rows, max(0, self.high) * rows

    def columns(self, name: str) -> Items:
        return ((name, self.steps),)

    def total(self, name: str) -> Expression:
        return Coalesce((Total(column_of(name, self.steps)), constant(0)))

    def numbers(self, name: str) -> tuple[Items, Items]:
        return ((name, Coalesce((self.steps, constant(0)))),), ((name, whole_column(name)),)

    def for_rows(self, rows: int) -> Aggregate:
        return self if self.of is None else _sum_of(self.of.for_rows(rows), self.condition)

    @property
    def rounding(self) -> Fraction:
        return Fraction(0) if self.of is None else self.of.rounding * MOST_SUMMED

    @property
    def step(self) -> Fraction:
        return self.grid

    def worst(self, rows: int) -> int:
        tries = [sum(max(self.low, min(self.high, v)) for v in [value] * rows)
                 for value in (-HUGE, self.low, 0, self.high, HUGE)]  # fmt: skip
        return max(abs(total) for total in tries)

    def described(self, written: Writer) -> str:
        return f"Sum of {written(self.steps)} in {self.low} .. {self.high} steps of {self.grid}"


@dataclass(frozen=True, kw_only=True)
class Moments(Aggregate):
    """Number of rows with a value, their sum and, in degree 2, the sum of their squares: measured as shares."""

    title = "Mean"

    of: FixedPoint
    condition: Expression
    degree: int

    def sensitivity(self, rows: int) -> int:
        return rows

    def for_rows(self, rows: int) -> Aggregate:
        return replace(self, of=self.of.for_rows(rows))

    def worst(self, rows: int) -> int:
        raise AnswerFailed("Means are measured as shares, which a plan has in their place; no data was read.")

    def described(self, written: Writer) -> str:
        return f"Moments of {written(self.of.node)} up to degree {self.degree}"


def bernstein_weights(width: int, degree: int, step: int) -> tuple[int, ...]:
    """The shares of a row whose value lies ``step`` steps above the lower end, the upper end's last.

    >>> bernstein_weights(10, 1, 3), bernstein_weights(10, 2, 3)
    ((7, 3), (49, 42, 9))
    """
    rest = width - step
    return (rest, step) if degree == 1 else (rest * rest, 2 * step * rest, step * step)


@dataclass(frozen=True, kw_only=True)
class BernsteinSum(Sum):
    """One of ``parts`` sums among which each row's weight of ``high`` steps is divided: see ``shares``.

    Its steps are missing, not 0, for a row that has none, and are written over a column that the parts have in common.
    """

    parts: int
    place: int
    column: tuple[str, Expression] | None
    """Name and expression of that column; None where an earlier part has it already."""
    degree: int = 1

    def columns(self, name: str) -> Items:
        return () if self.column is None else (self.column,)

    def total(self, name: str) -> Expression:
        return Coalesce((Total(self.steps), constant(0)))

    def numbers(self, name: str) -> tuple[Items, Items]:
        return self.columns(name), ((name, Coalesce((self.steps, constant(0)))),)

    def worst(self, rows: int) -> int:
        """The shares of a number move together: their distances are added up, and since none is negative the root of
        their squares is largest where one share has all."""
        width = isqrt(self.high) if self.degree == 2 else self.high
        steps = (0, 1, width // 3, width // 2, width - 1, width)
        return max(sum(rows * share for share in bernstein_weights(width, self.degree, step)) for step in steps)


def fixed_point(scalar: Scalar) -> FixedPoint:
    """A bounded number in steps of the nearest grid points, clipped to its bounds."""
    low, high = public_bounds(scalar)
    value = scalar.node if scalar.kind is Kind.INTEGER else scalar.as_double()
    return FixedPoint(value=value, present=present(scalar), least=low, most=high)


def sum_aggregate(scalar: Scalar, condition: Expression) -> Sum:
    """The aggregate for the sum of a bounded number."""
    return _sum_of(fixed_point(scalar), condition)


def _sum_of(of: FixedPoint, condition: Expression) -> Sum:
    steps = when(all_of(condition, of.present), of.node, constant(0))
    return Sum(steps=steps, low=of.low, high=of.high, grid=of.grid, of=of, condition=condition)


def moments_aggregate(scalar: Scalar, condition: Expression, degree: int) -> Moments:
    """The aggregate for a mean (degree 1) or a variance (degree 2) of a bounded number."""
    return Moments(of=fixed_point(scalar), condition=condition, degree=degree)
