"""Scalar expressions: one value per row, with the public bounds of the result."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import ceil, floor
from typing import Any, TypedDict

from sfumato.dataset import Kind
from sfumato.engines.expressions import Cast, Expression, constant, double
from sfumato.engines.text_patterns import reads_as
from sfumato.errors import QueryRefused

TYPES = {
    Kind.INTEGER: "int", Kind.NUMBER: "float", Kind.CATEGORY: "text", Kind.DATE: "date", Kind.DATETIME: "time",
    Kind.BOOLEAN: "flag",
}  # fmt: skip
"""Type of engine expressions by kind of column."""

FAMILY = {
    Kind.INTEGER: "number",
    Kind.NUMBER: "number",
    Kind.CATEGORY: "text",
    Kind.BOOLEAN: "boolean",
    Kind.DATE: "date",
    Kind.DATETIME: "datetime",
}
MOST_VALUES = 10_000
_MOST_BITS, _FAR, _FINE = 4_096, 1 << 1_024, 1 << 1_100


class ScalarFacts(TypedDict, total=False):
    """What is publicly known of a value; the fields of a scalar of these names."""

    low: Fraction | None
    high: Fraction | None
    values: tuple[Any, ...] | None
    expected: tuple[Fraction, Fraction] | None
    first: date | None
    last: date | None


@dataclass(frozen=True, kw_only=True)
class Scalar:
    """A typed expression. The engine enforces the bounds and values, so wrong ones cost accuracy, not privacy."""

    node: Expression
    """The expression, over internal column names. It raises no error on any input."""
    kind: Kind
    low: Fraction | None = None
    high: Fraction | None = None
    values: tuple[Any, ...] | None = None
    """All possible values, where these are publicly known."""
    unit: bool = False
    """Whether this is the column of the privacy unit. Its value is read as declared, like any other; whose row it is
    goes by what is stored."""
    constant: Any = None
    """The value, for a literal."""
    expected: tuple[Fraction, Fraction] | None = None
    """Bounds to which a number is clipped where it is measured, if it has none: a person's sum of bounded rows."""
    first: date | None = None
    last: date | None = None
    """The public range of a date, where the conditions of the query give one."""

    def __post_init__(self) -> None:
        for bound, outward in (("low", floor), ("high", ceil)):
            object.__setattr__(self, bound, _short(getattr(self, bound), outward))

    @property
    def same(self) -> Expression | str:
        """Equal for two expressions of the same value; the unit's column is the same in all tables."""
        return "unit" if self.unit else self.node

    @property
    def family(self) -> str:
        return FAMILY[self.kind]

    @property
    def number(self) -> bool:
        return self.family == "number"

    def keys(self) -> tuple[Any, ...] | None:
        """The public values to group by, or None where they are not known."""
        if self.values is not None:
            return self.values if len(self.values) <= MOST_VALUES else None
        if self.kind is Kind.BOOLEAN:
            return (False, True)
        if self.kind is Kind.INTEGER and self.low is not None and self.high is not None:
            low, high = -(-self.low.numerator // self.low.denominator), self.high.numerator // self.high.denominator
            if high - low < MOST_VALUES:
                return tuple(range(low, high + 1))
        if self.kind is Kind.DATE and self.first is not None and self.last is not None:
            days = self.last.toordinal() - self.first.toordinal()
            if days < MOST_VALUES:
                return tuple(self.first + timedelta(days=place) for place in range(days + 1))
        return None

    def as_double(self) -> Expression:
        """The value as a float for arithmetic: floats raise no overflow error."""
        return double(self.node)

    def plain(self, node: Expression) -> Scalar:
        """The same bounds and values of another expression; no longer the unit or a literal."""
        return replace(self, node=node, unit=False, constant=None)


def _short(bound: Fraction | None, outward: Callable[[Fraction], int]) -> Fraction | None:
    """A bound in few digits, moved outward; none beyond all floats. Nested powers have exponentially many digits."""
    if bound is None or max(bound.numerator.bit_length(), bound.denominator.bit_length()) <= _MOST_BITS:
        return bound
    return None if abs(bound) >= _FAR else Fraction(outward(bound * _FINE), _FINE)


def flag(condition: Expression) -> Scalar:
    """A condition."""
    return Scalar(node=condition, kind=Kind.BOOLEAN, values=(False, True))


LARGEST_LITERAL = 10**300
"""Largest number in the text of a query."""


def literal(value: object) -> Scalar:
    """A constant as an expression. A fraction that no float equals is the nearest float."""
    if isinstance(value, bool):
        return Scalar(node=constant(value), kind=Kind.BOOLEAN, values=(value,), constant=value)
    if isinstance(value, int | Fraction):
        number = Fraction(value)
        if abs(number) > LARGEST_LITERAL:
            raise QueryRefused("A number in the query is too large.")
        if number.denominator == 1 and abs(number) < 1 << 62:
            whole = int(number)
            return Scalar(
                node=constant(whole), kind=Kind.INTEGER, low=number, high=number, values=(whole,), constant=number
            )
        return Scalar(node=constant(float(number)), kind=Kind.NUMBER, low=number, high=number, constant=number)
    if isinstance(value, datetime):
        return Scalar(node=constant(value), kind=Kind.DATETIME, constant=value)
    if isinstance(value, date):
        return Scalar(node=constant(value), kind=Kind.DATE, values=(value,), constant=value)
    return Scalar(node=constant(value), kind=Kind.CATEGORY, values=(value,), constant=value)


_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d{1,6})?)Z", re.ASCII)
"""A time in UTC as tools write it. Times of tables have no zone: it is read without, as PostgreSQL reads it."""


def same_family(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar] | None:
    """Both sides of a comparison in one family; text literals become dates beside dates. None where they do not fit.

    Comparing across families would make the engine convert values, and a conversion can fail on some data.
    """
    if a.family == b.family:
        return a, b
    for one, other, order in ((a, b, 1), (b, a, -1)):
        if isinstance(other.constant, str) and one.kind in (Kind.DATE, Kind.DATETIME):
            # Only forms that every engine reads alike: no other time zone, no weeks, no other order of day and month.
            text, instant = other.constant, _INSTANT.fullmatch(other.constant)
            if instant is not None:
                text = instant[1] if one.kind is Kind.DATE else f"{instant[1]} {instant[2]}"
            if not reads_as(text, "date" if one.kind is Kind.DATE else "time"):
                return None
            converted = literal((date if one.kind is Kind.DATE else datetime).fromisoformat(text))
            return (one, converted) if order == 1 else (converted, one)
        if {one.kind, other.kind} == {Kind.DATE, Kind.DATETIME}:
            times = [s if s.kind is Kind.DATETIME else Scalar(node=Cast(s.node, "time"), kind=Kind.DATETIME)
                     for s in (a, b)]  # fmt: skip
            return times[0], times[1]
    return None
