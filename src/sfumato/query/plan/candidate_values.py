"""Candidate answers of a quantile: which value the number of a cell stands for.

The exponential mechanism selects the number of a cell. Cells of narrow ranges are equally wide. A range of millions has
levels, as floating-point numbers have: equally wide cells below 2**19 steps, cells of 16 times the width up to
2**23 steps, and so on. A cell is then at most 1/32768 of the value wide, wherever in the range the data lie. The number
of a cell grows with the value, and depends on the row alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction

from sfumato.engines.expressions import Arithmetic, Case, Cast, Compare, Expression, constant
from sfumato.engines.functions import Function

_FIRST, _FACTOR = 1 << 19, 16
_LEAST = _FIRST // _FACTOR
_CELLS = _FIRST - _LEAST
"""Cells of every level but the first."""


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Numbers of both signs in levels of cells, the narrowest of which are ``step`` wide.

    >>> wide = Levels(step=Fraction(1), low=Fraction(0), high=Fraction(10**12))
    >>> [wide.number(Fraction(x)) for x in (0, 37, -37, 10**12)]
    [0, 37, -37, 3008725]
    >>> wide.value(37), wide.value(wide.number(Fraction(123456789))), wide.value(3008725)
    (37, 123456768, 1000000000000)
    """

    step: Fraction
    low: Fraction
    high: Fraction

    def _width(self, level: int) -> Fraction:
        return self.step * int(_FACTOR**level)

    def number(self, x: Fraction) -> int:
        """The number of the cell that holds a value; 0 is at 0."""
        level, far = 0, abs(x)
        while far >= _FIRST * self._width(level):
            level += 1
        place = (far / self._width(level) + Fraction(1, 2)).__floor__()
        place += level and _CELLS * level
        return place if x >= 0 else -place

    def value(self, number: int) -> float | int:
        """The middle of a cell, or the bound if that is nearer to 0."""
        level, far = 0, abs(number)
        while far >= _FIRST and level * _CELLS + _FIRST <= abs(number):
            level += 1
            far = abs(number) - level * _CELLS
        found = min(max(far * self._width(level) * (1 if number >= 0 else -1), self.low), self.high)
        whole = all(one.denominator == 1 for one in (self.step, self.low, self.high))
        return int(found) if whole else float(found)

    def place(self, x: Expression) -> Expression:
        """The number of the cell of a float within the bounds: see ``number``."""
        far, last = Function(x, "abs"), 0
        while max(abs(self.low), abs(self.high)) >= _FIRST * self._width(last):
            last += 1

        def on(level: int) -> Expression:
            steps = Arithmetic("/", far, constant(float(self._width(level))))
            place = Cast(Function(Arithmetic("+", steps, constant(0.5)), "floor"), "int")
            return Arithmetic("+", place, constant(_CELLS * level)) if level else place

        def beyond(level: int) -> Expression:
            return Compare(">=", far, constant(float(_FIRST * self._width(level - 1))))

        above = Case(tuple((beyond(level), on(level)) for level in range(last, 0, -1)), on(0)) if last else on(0)
        below = Arithmetic("-", constant(0), above)
        return Case(((Compare("<", x, constant(0.0)), below),), above)


@dataclass(frozen=True, kw_only=True)
class DaysSince:
    """Days, by their number since the first one."""

    first: date

    def value(self, number: int) -> date:
        return self.first + timedelta(days=number)


@dataclass(frozen=True, kw_only=True)
class TimesSince:
    """Beginnings of days, hours or minutes, by their number since the first one."""

    first: datetime
    minutes: int
    """Minutes between two of them."""

    def value(self, number: int) -> datetime:
        return self.first + timedelta(minutes=number * self.minutes)
