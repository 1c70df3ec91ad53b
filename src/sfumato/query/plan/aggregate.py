"""Aggregates that are measured: exact integers per group, to which noise is added.

An aggregate has the expression of one row's contribution and the integer bounds of that contribution. Its sensitivity
is the most one unit can change it within one group when at most ``rows`` of its rows count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction

from sfumato.arrays import Ints
from sfumato.dataset import Kind
from sfumato.dp.mechanism import Mechanism
from sfumato.engines.expressions import ColumnRef, Expression, Extreme, IsNull, Not, all_of
from sfumato.engines.functions import Function
from sfumato.engines.interval_analysis import size
from sfumato.query.plan.scalar import Scalar
from sfumato.rationals import Number

HUGE = 10**40
"""More rows, and a larger number, than any unit has."""
Writer = Callable[[Expression], str]
Items = tuple[tuple[str, Expression], ...]
"""Expressions with their names."""


def column_of(name: str, expression: Expression, table: str = "") -> ColumnRef:
    """A column of a subquery that has this expression."""
    return ColumnRef(name, expression.type, table, size=size(expression))


def whole_column(name: str, table: str = "") -> ColumnRef:
    return ColumnRef(name, "int", table)


class Aggregate(ABC):
    """An aggregate: one integer per group. It says everything about itself that planning and explaining need.

    How its exact number is computed, and what is made of it, goes by the base class: :class:`Added`,
    :class:`Selected`, or a statement of its own in the executor.
    """

    title: str
    """What is measured, as explanations name it."""
    parts: int = 1
    """Number of aggregates that are measured as one vector, of which this one is the first."""
    once: bool = False
    """Whether a unit counts once, whatever the number of its rows."""

    @property
    def step(self) -> Fraction:
        """What one whole step of the integer stands for."""
        return Fraction(1)

    @abstractmethod
    def worst(self, rows: int) -> int:
        """Second computation of the sensitivity: the engine's rules applied to extreme units with ``rows`` rows."""

    @abstractmethod
    def described(self, written: Writer) -> str:
        """What is measured, for a reviewer: with its expressions, which ``written`` writes as text."""

    @abstractmethod
    def sensitivity(self, rows: int) -> int:
        """Most that one unit with up to ``rows`` rows in a group can add to or take from the number."""

    def for_rows(self, rows: int) -> Aggregate:
        """The aggregate on the finest grid on which sums of ``rows`` rows a unit fit the engine's integers."""
        return self

    @property
    def rounding(self) -> Fraction:
        """The most that rounding rows to the grid changes the answer."""
        return Fraction(0)

    def error(self, mechanism: Mechanism, confidence: Number) -> float:
        """Bound on the error of one answer, in the answer's own unit (rows of rank for a quantile)."""
        return mechanism.error(confidence=confidence)


class Added(Aggregate):
    """An aggregate whose exact number is the sum of what each unit contributes within the limits: counts and sums."""

    place: int = 0
    """Which of the ``parts`` this is."""

    @property
    def every(self) -> bool:
        """Whether it is the number of all rows."""
        return False

    @abstractmethod
    def ends(self, rows: int) -> tuple[int, int]:
        """Least and most that a unit with up to ``rows`` rows in a group contributes to the number."""

    @abstractmethod
    def columns(self, name: str) -> Items:
        """The columns of the rows that the number is computed from."""

    @abstractmethod
    def total(self, name: str) -> Expression:
        """The number over some rows, from these columns."""

    @abstractmethod
    def numbers(self, name: str) -> tuple[Items, Items]:
        """The same as whole numbers of rows, which are added: the columns, and a row's number over them."""


class Selected(Aggregate):
    """An aggregate whose answer a mechanism selects from counts of public candidates: quantiles and modes."""

    cell: Expression
    """The place of a row's value among the candidates."""
    condition: Expression

    def sensitivity(self, rows: int) -> int:
        return rows

    def worst(self, rows: int) -> int:
        return len(range(HUGE)[:rows])  # each row that the engine keeps adds 1 in one place

    @abstractmethod
    def mechanism(self, epsilon: Fraction, rows: int, ranks: tuple[Fraction, ...]) -> Mechanism:
        """What selects in one group at this cost; more than one of ``ranks`` are selected together."""

    def counts(self, cells: Ints, counts: Ints) -> tuple[Ints, Ints] | Ints:
        """The counts of the cells that have rows, as the mechanism takes them."""
        return cells, counts


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


def public_bounds(scalar: Scalar) -> tuple[Fraction, Fraction]:
    """The bounds of a number that has some."""
    if scalar.low is None or scalar.high is None:
        raise AssertionError("only bounded numbers are summed")
    return scalar.low, scalar.high
