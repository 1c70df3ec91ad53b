"""Scalar expressions: one value per row in engine SQL, with the public bounds of the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from sfumato.data.sql_quoting import quoted_text
from sfumato.engines.text_patterns import reads_as
from sfumato.errors import QueryRefused
from sfumato.schema import Kind

__all__ = ["Scalar", "literal", "number_sql", "same_family"]

_FAMILY = {
    Kind.INTEGER: "number",
    Kind.NUMBER: "number",
    Kind.CATEGORY: "text",
    Kind.BOOLEAN: "boolean",
    Kind.DATE: "date",
    Kind.DATETIME: "datetime",
}
MOST_VALUES = 10_000


@dataclass(frozen=True, kw_only=True)
class Scalar:
    """A typed expression. The engine enforces the bounds and values, so wrong ones cost accuracy, not privacy."""

    sql: str
    """Expression in the engine's dialect, over internal column names. It raises no error on any input."""
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

    @property
    def same(self) -> str:
        """Equal for two expressions of the same value; the unit's column is the same in all tables."""
        return "unit" if self.unit else self.sql

    @property
    def family(self) -> str:
        return _FAMILY[self.kind]

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
        return None

    def as_double(self) -> str:
        """The value as a float for arithmetic: floats raise no overflow error."""
        return self.sql if self.kind is Kind.NUMBER else f"CAST({self.sql} AS DOUBLE)"

    def plain(self, sql: str) -> Scalar:
        """The same bounds and values with other SQL; no longer the unit or a literal."""
        return replace(self, sql=sql, unit=False, constant=None)


def number_sql(value: Fraction) -> str:
    """A fraction as a float literal: exact for multiples of a power of two, otherwise the nearest float."""
    if value.denominator == 1 and abs(value) < 1 << 62:
        return f"CAST({value.numerator} AS BIGINT)"
    return f"CAST({float(value)!r} AS DOUBLE)"


def literal(value: Any) -> Scalar:
    """A constant as an expression."""
    if isinstance(value, bool):
        return Scalar(sql="TRUE" if value else "FALSE", kind=Kind.BOOLEAN, values=(value,), constant=value)
    if isinstance(value, int | Fraction):
        number = Fraction(value)
        if abs(number) > 10**300:
            raise QueryRefused("A number in the query is too large.")
        kind = Kind.INTEGER if number.denominator == 1 and abs(number) < 1 << 62 else Kind.NUMBER
        values = (int(number),) if kind is Kind.INTEGER else None
        return Scalar(sql=number_sql(number), kind=kind, low=number, high=number, values=values, constant=number)
    if isinstance(value, datetime):
        return Scalar(sql=f"TIMESTAMP {quoted_text(value.isoformat(sep=' '))}", kind=Kind.DATETIME, constant=value)
    if isinstance(value, date):
        return Scalar(sql=f"DATE {quoted_text(value.isoformat())}", kind=Kind.DATE, values=(value,), constant=value)
    return Scalar(sql=quoted_text(value), kind=Kind.CATEGORY, values=(value,), constant=value)


def same_family(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar] | None:
    """Both sides of a comparison in one family; text literals become dates beside dates. None where they do not fit.

    Comparing across families would make the engine convert values, and a conversion can fail on some data.
    """
    if a.family == b.family:
        return a, b
    for one, other, order in ((a, b, 1), (b, a, -1)):
        if isinstance(other.constant, str) and one.kind in (Kind.DATE, Kind.DATETIME):
            # Only forms that every engine reads alike: no time zones, no weeks, no other order of day and month.
            if not reads_as(other.constant, "date" if one.kind is Kind.DATE else "time"):
                return None
            converted = literal((date if one.kind is Kind.DATE else datetime).fromisoformat(other.constant))
            return (one, converted) if order == 1 else (converted, one)
        if {one.kind, other.kind} == {Kind.DATE, Kind.DATETIME}:
            casts = [s if s.kind is Kind.DATETIME else Scalar(sql=f"TRY_CAST({s.sql} AS TIMESTAMP)", kind=Kind.DATETIME)
                     for s in (a, b)]  # fmt: skip
            return casts[0], casts[1]
    return None
