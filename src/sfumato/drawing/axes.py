"""Scales, ticks, axes and legends."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sfumato.drawing.marks import GRID, INK, MUTED, circle, diamond, rect, rule, text, text_width, wrapped

Words = Callable[[float], str]


@dataclass(frozen=True, kw_only=True)
class AxisScale:
    """Positions of values: ``low`` at ``start``, ``high`` at ``end``. The symmetric logarithm has a place for 0."""

    low: float
    high: float
    start: float
    end: float
    kind: Literal["linear", "log", "symlog"] = "linear"

    def __call__(self, value: float) -> float:
        low, high, at = (self._bent(v) for v in (self.low, self.high, value))
        return self.start + (self.end - self.start) * (at - low) / ((high - low) or 1.0)

    def _bent(self, value: float) -> float:
        match self.kind:
            case "linear":
                return value
            case "log":
                return math.log(value)
            case "symlog":
                return math.copysign(math.log1p(abs(value)), value)


def nice_ticks(high: float, *, low: float = 0.0, most: int = 6, whole: bool = False) -> tuple[float, ...]:
    """Round numbers from at most ``low`` to at least ``high``, ``most`` + 1 at most.

    >>> nice_ticks(0.43)
    (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    >>> nice_ticks(3, whole=True)
    (0.0, 1.0, 2.0, 3.0)
    """
    if not high > low:
        high = low + 1.0
    ten = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(size * ten for size in (1, 2, 5, 10, 20) if size * ten * most >= (high - low) * (1 - 1e-9))
    step = max(1.0, step) if whole else step
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(i * step, 12) for i in range(first, last + 1))


def x_axis(
    scale: AxisScale, ticks: Sequence[float], words: Words, *, top: float, bottom: float, title: str = ""
) -> Iterator[str]:
    """Grid lines, labels below them, and a title. Labels that would touch the one before are left out."""
    free = -math.inf
    for tick in ticks:
        x, said = scale(tick), words(tick)
        half = text_width(said) / 2
        yield rule(x, top, x, bottom, GRID)
        if x - half > free:
            yield text(x, bottom + 17, said, MUTED, anchor="middle")
            free = x + half + 8
    if title:
        yield text((scale.start + scale.end) / 2, bottom + 38, title, MUTED, anchor="middle")


def y_axis(scale: AxisScale, ticks: Sequence[float], words: Words, *, left: float, right: float) -> Iterator[str]:
    """Grid lines with labels to their left. The title stands above the picture, where it is read upright."""
    for tick in ticks:
        y = scale(tick)
        yield rule(left, y, right, y, GRID)
        yield text(left - 8, y + 4, words(tick), MUTED, anchor="end")


def legend(entries: Sequence[tuple[str, str, str]], x: float, width: float) -> tuple[str, float]:
    """Marks with their names in rows from ``x`` on, and the height they take. An entry: name, shape, colour."""
    body, left, y = [], x, 12.0
    for name, shape, colour in entries:
        room = 18 + text_width(name) + 18
        if left > x and left + room > x + width:
            left, y = x, y + 20
        match shape:
            case "dot":
                body.append(circle(left + 6, y, 5, colour))
            case "diamond":
                body.append(diamond(left + 6, y, 6, colour))
            case "tick":
                body.append(rule(left + 6, y - 7, left + 6, y + 7, colour, width=3))
            case "line":
                body.append(rule(left, y, left + 13, y, colour, width=2))
            case _:
                body.append(rect(left, y - 6, 12, 12, colour, edge=shape if shape.startswith("#") else "", corner=2))
        body.append(text(left + 18, y + 4, wrapped(name, width, most=1)[0], INK))
        left += room
    return "".join(body), y + 16 if entries else 0.0
