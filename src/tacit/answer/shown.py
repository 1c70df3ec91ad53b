"""Noisy numbers with the intervals of their noise."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tacit.answer.compute import Released
from tacit.answer.output import Linear, Noisy, Output, Ratio, evaluate
from tacit.answer.strategy import Strategy
from tacit.exact import Number

__all__ = ["Shown"]

_STEPS = 32


class Shown:
    """What is shown of each group; the width of each interval is computed once for all groups."""

    def __init__(self, strategy: Strategy, released: Released) -> None:
        self._strategy = strategy
        self._released = released
        self._radius: dict[tuple[int | Linear, int], float | None] = {}
        self._lines: dict[tuple[Ratio, int], tuple[list[float], list[float]]] = {}

    def cell(self, output: Output, place: int, key: tuple[Any, ...]) -> Noisy:
        """One output for one group; an output that rests on several numbers shares its 5 % among them."""
        parts = max(1, len(output.leaves()))

        def measured(value: int | Linear | Ratio) -> Noisy:
            if isinstance(value, Ratio):
                return self._mean(value, place, parts)
            number, radius = self._number(value, place), self._of(value, parts)
            shown = round(number) if isinstance(value, Linear) and value.whole and self._counts else number
            if radius is None:
                return Noisy(value=shown)
            return Noisy(value=shown, low=min(shown, number - radius), high=max(shown, number + radius))

        return evaluate(output, key, measured)

    @property
    def _counts(self) -> bool:
        """Whether the exact counts are whole numbers; contributions scaled down to a norm are not."""
        return self._strategy.bounding != "clip"

    def _number(self, value: int | Linear, place: int) -> Any:
        values = self._released.values
        if isinstance(value, Linear):
            return sum(float(weight) * values[index][place] for index, weight in value.terms)
        return values[value][place]

    def _level(self, parts: int) -> Number:
        return 1 - Fraction(1, 20) / parts

    def _of(self, value: int | Linear, parts: int) -> float | None:
        if (value, parts) not in self._radius:
            quantile = isinstance(value, int) and self._strategy.of(value).mechanism.part_name() == "quantile"
            self._radius[(value, parts)] = None if quantile else self._strategy.error(value, self._level(parts))
        return self._radius[(value, parts)]

    def _mean(self, ratio: Ratio, place: int, parts: int) -> Noisy:
        """A mean with all values m for which total - m·count is within its noise of 0 (Fieller 1954).

        None where the noisy count is not positive; no interval where a count of 0 is within the noise.
        """
        total, count = float(self._number(ratio.total, place)), float(self._number(ratio.count, place))
        if count <= 0:
            return Noisy(value=None)
        value = min(max(total / count, ratio.low), ratio.high)
        radius = self._line(ratio, parts)

        def inside(mean: float) -> bool:
            return abs(total - mean * count) <= radius(mean)

        if not inside(value):  # far outside the range, by noise that happens once in twenty times at most
            near = radius(value) / count
            return Noisy(value=value, low=max(ratio.low, value - near), high=min(ratio.high, value + near))
        return Noisy(value=value, low=_edge(inside, value, ratio.low), high=_edge(inside, value, ratio.high))

    def _line(self, ratio: Ratio, parts: int) -> Callable[[float], float]:
        """The noise of total - m·count as a function of m, never too small.

        The function falls and then rises (Proschan 1965, doi:10.1214/aoms/1177699797), so that between two of its
        points it is below the larger.
        """
        if (ratio, parts) not in self._lines:
            low, high = Fraction(ratio.low), Fraction(ratio.high)
            level, exact = self._level(parts), [low + (high - low) * i / _STEPS for i in range(_STEPS + 1)]
            made = [self._strategy.error(ratio.beside(point), level) for point in exact]
            self._lines[(ratio, parts)] = [float(point) for point in exact], made
        points, errors = self._lines[(ratio, parts)]

        def radius(mean: float) -> float:
            right = min(max(bisect_right(points, mean), 1), _STEPS)
            return max(errors[right - 1], errors[right])

        return radius


def _edge(inside: Callable[[float], bool], middle: float, end: float) -> float:
    """The last value from ``middle`` towards ``end`` that is inside; the end itself where all are."""
    if inside(end):
        return end
    near, far = middle, end
    for _ in range(24):
        half = (near + far) / 2
        near, far = (half, far) if inside(half) else (near, half)
    return far
