"""Aggregates and window functions in expressions of engine statements."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.engines.expressions import Expression, Unary


@dataclass(frozen=True)
class CountRows(Expression):
    """Number of rows with a value; of all rows without one; of different values if ``distinct``."""

    a: Expression | None = None
    distinct: bool = False
    where: Expression | None = None

    def parts(self) -> tuple[Expression, ...]:
        return tuple(part for part in (self.a, self.where) if part is not None)

    @property
    def type(self) -> str:
        return "int"


class Total(Unary):
    """The exact sum of whole numbers."""

    @property
    def type(self) -> str:
        return "huge"


@dataclass(frozen=True)
class Largest(Unary):
    """The largest value of a group, or its least."""

    least: bool
    where: Expression | None = None

    def parts(self) -> tuple[Expression, ...]:
        return (self.a,) if self.where is None else (self.a, self.where)


@dataclass(frozen=True)
class RowNumber(Expression):
    """The number of a row, from 1, within its partition."""

    partition: tuple[Expression, ...]
    order: tuple[Expression, ...]

    def parts(self) -> tuple[Expression, ...]:
        return (*self.partition, *self.order)

    @property
    def type(self) -> str:
        return "int"


class DenseRank(RowNumber):
    """As the number of a row, but equal rows have the same."""


class Descending(Unary):
    """A value by which rows are ordered from the largest to the least; only in the order of a window function."""


@dataclass(frozen=True)
class Shifted(Expression):
    """The value of the row so many places before in its partition (after, if negative); missing where there is none."""

    a: Expression
    partition: tuple[Expression, ...]
    order: tuple[Expression, ...]
    offset: int

    def parts(self) -> tuple[Expression, ...]:
        return (self.a, *self.partition, *self.order)

    @property
    def type(self) -> str:
        return self.a.type


@dataclass(frozen=True)
class WholePartition(Expression):
    """An aggregate over all rows of a row's partition."""

    aggregate: Expression
    partition: tuple[Expression, ...]

    def parts(self) -> tuple[Expression, ...]:
        return (self.aggregate, *self.partition)

    @property
    def type(self) -> str:
        return self.aggregate.type
