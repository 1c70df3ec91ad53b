"""Base class of SQL dialects: values, functions and clauses that engines write differently."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from functools import cache

from sfumato.data.sql_quoting import quoted_name
from sfumato.engines.regular_expressions import PatternBranch
from sfumato.errors import QueryRefused


@cache
def largest_for(places: int) -> float:
    """The largest float whose product with that power of ten is finite."""
    ten = 10.0**places
    top = sys.float_info.max / ten
    while math.isinf(top * ten):
        top = math.nextafter(top, 0)
    while not math.isinf(math.nextafter(top, math.inf) * ten):
        top = math.nextafter(top, math.inf)
    return top


class SqlDialect(ABC):
    """Values, functions and clauses that differ between engines. None of them may raise on any data."""

    title = ""
    """The engine's name in refusals."""

    def no(self, what: str) -> QueryRefused:
        return QueryRefused(
            f"{self.title} cannot compute {what} with exactly the result the other engines give.",
            fix="Ask in another way, or copy the table to a Parquet file and use DuckDB.",
        )

    def name(self, value: str) -> str:
        """A name in quotation marks, as the standard writes them."""
        return quoted_name(value)

    @abstractmethod
    def text(self, value: str) -> str: ...

    @abstractmethod
    def constant(self, value: str, kind: str) -> str:
        """A written-out float, date or time."""

    def whole(self, value: int) -> str:
        """A written-out whole number that is not negative."""
        return str(value)

    @abstractmethod
    def cast(self, sql: str, kind: str, to: str) -> str:
        """A conversion that gives NULL where it is not possible."""

    @abstractmethod
    def arithmetic(self, sign: str, a: str, b: str) -> str:
        """IEEE arithmetic on floats that never raises."""

    @abstractmethod
    def modulo(self, a: str, b: str) -> str:
        """Remainder of a division of floats that truncates towards zero (fmod). Exact; never raises."""

    @abstractmethod
    def function(self, name: str, a: str, *, small: bool = False) -> str:
        """floor, ceil, round, trunc (floats; ``small`` are those below 2**52); isnan, sqrt, abs; lower, upper, trim,
        length."""

    @abstractmethod
    def round_to(self, a: str, places: int) -> str:
        """A float's product with a power of ten, rounded as ``round`` does, divided again; where the product overflows,
        the float itself."""

    @abstractmethod
    def shaped(self, a: str, pattern: str) -> str:
        """A text where it matches as a whole, else NULL or an empty text."""

    @abstractmethod
    def substring(self, items: list[str]) -> str: ...

    @abstractmethod
    def part(self, part: str, a: str) -> str:
        """A date part as a whole number."""

    @abstractmethod
    def truncate(self, unit: str, a: str, kind: str) -> str:
        """The beginning of a unit of time, as a value of ``kind`` (date or time)."""

    @abstractmethod
    def day_number(self, a: str) -> str:
        """Days since 0001-01-01 as a whole number."""

    @abstractmethod
    def add_interval(self, a: str, kind: str, months: int, days: int, minutes: int) -> str:
        """A date or time plus an interval, as a value of ``kind``."""

    @abstractmethod
    def like(self, a: str, pattern: str, *, fold: bool) -> str: ...

    @abstractmethod
    def matches(self, a: str, branches: tuple[PatternBranch, ...]) -> str:
        """Whether a text has a part that matches one of the alternatives."""

    @abstractmethod
    def whole_division(self, a: str, b: str, kind: str) -> str:
        """Integer division of numbers that are not negative."""

    @abstractmethod
    def digest(self, text: str) -> str:
        """The first 60 bits of a text's SHA-256 as a whole number."""

    @abstractmethod
    def joined(self, items: list[str]) -> str:
        """Concatenated texts."""

    def ordered(self, sql: str, kind: str) -> str:
        """A value in a comparison or ORDER BY: text is ordered by its bytes."""
        return sql

    def values(self, rows: list[str], alias: str, columns: list[str]) -> str:
        return f"(VALUES {', '.join(rows)}) AS {alias}({', '.join(columns)})"

    def read_stored(self, sql: str, to: str) -> str:
        """A stored text as the kind that was declared for it. Questions cast text of a shape only; what DuckDB reads
        from files of text is more than that."""
        raise self.no("with a column whose stored type is not the declared one")

    def fast_hash(self, items: list[tuple[str, str]]) -> str:
        """The engine's own hash of whole numbers (kind ``int``) and texts: 60 bits, not negative."""
        raise self.no("a hash of its own")

    def product(self, a: str, b: str) -> str:
        """The exact product of two whole numbers, wider than 64 bits."""
        return f"({a} * {b})"

    def sum(self, a: str, *, small: bool, over: str = "") -> str:
        """An exact sum of whole numbers, wider than 64 bits; of ``small`` ones 64 bits hold 2**39 rows. ``over`` is the
        window of a window function."""
        return f"SUM({a}){over}"

    def window_order(self, by: list[str]) -> str:
        return f" ORDER BY {', '.join(by)}" if by else ""
