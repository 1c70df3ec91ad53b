"""Function calls in expressions of engine statements: text, dates, rounding, hashes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.engines.expressions import FlagValued, Unary, Variadic
from sfumato.engines.regular_expressions import PatternBranch

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
    makes_text: ClassVar[bool] = True

    def _width(self) -> int:
        """Upper case of some letters is up to three letters."""
        return 0 if self.type != "text" else 3 * self.a.width if self.name in ("lower", "upper") else self.a.width

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
    makes_text: ClassVar[bool] = True

    def _width(self) -> int:
        return self.a.width if self.length is None else min(self.length, self.a.width)

    @property
    def type(self) -> str:
        return "text"


class JoinedText(Variadic):
    """Concatenated texts; missing where one is."""

    makes_text = True

    def _width(self) -> int:
        return sum(item.width for item in self.items)

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

    def _width(self) -> int:
        return 0

    @property
    def type(self) -> str:
        return "int"
