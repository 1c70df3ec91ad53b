"""Function calls in expressions of engine statements: text, dates, rounding, hashes."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.engines.expressions import FlagValued, Unary, Variadic
from sfumato.engines.regular_expressions import PatternBranch

__all__ = [
    "AddInterval",
    "DatePart",
    "DateTrunc",
    "DayNumber",
    "Function",
    "Hash",
    "JoinedText",
    "Like",
    "Matches",
    "RoundTo",
    "Shaped",
    "Substring",
]


_RESULTS = {"isnan": "flag", "length": "int", "lower": "text", "upper": "text", "trim": "text"}


@dataclass(frozen=True)
class Like(FlagValued, Unary):
    """A text matches a pattern, with or without regard to upper and lower case."""

    pattern: str
    fold: bool


@dataclass(frozen=True)
class Matches(FlagValued, Unary):
    """A text, or a part of it, matches a regular expression of the common subset."""

    branches: tuple[PatternBranch, ...]


@dataclass(frozen=True)
class Function(Unary):
    """floor, ceil, round, trunc, sqrt, abs, isnan of floats; lower, upper, trim, length of text."""

    name: str

    @property
    def type(self) -> str:
        return _RESULTS.get(self.name, "float")


@dataclass(frozen=True)
class RoundTo(Unary):
    """A float rounded to some decimals."""

    places: int

    @property
    def type(self) -> str:
        return "float"


@dataclass(frozen=True)
class Shaped(Unary):
    """A text of the shape that casts to a type need; else a text that casts to a missing value."""

    shape: str

    @property
    def type(self) -> str:
        return f"{self.shape} in text"


@dataclass(frozen=True)
class Substring(Unary):
    """A part of a text, from a place (counted from 1) on."""

    start: int
    length: int | None

    @property
    def type(self) -> str:
        return "text"


class JoinedText(Variadic):
    """Concatenated texts; missing where one is."""

    @property
    def type(self) -> str:
        return "text"


@dataclass(frozen=True)
class DateTrunc(Unary):
    """The beginning of the unit of time that a date is in; weeks begin on Monday. For the years 1 to 9999."""

    unit: str


@dataclass(frozen=True)
class AddInterval(Unary):
    """A date so much later. The 31st of a shorter month is its last day. For the years 1 to 9999."""

    months: int = 0
    days: int = 0
    minutes: int = 0


class DayNumber(Unary):
    """Number of days since the first day of the year 1, of a date that is not before."""

    @property
    def type(self) -> str:
        return "int"


@dataclass(frozen=True)
class DatePart(Unary):
    """A part of a date or time as a whole number."""

    part: str

    @property
    def type(self) -> str:
        return "int"


class Hash(Variadic):
    """A keyed hash: at least 60 bits that are not negative as a whole number."""

    @property
    def type(self) -> str:
        return "int"
