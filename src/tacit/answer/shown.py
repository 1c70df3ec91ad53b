"""Noisy numbers with the intervals of their noise."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from operator import mul
from typing import Any

from tacit.answer.compute import Released
from tacit.answer.output import LEAVES, Linear, Noisy, Output, Ratio, evaluate, finite
from tacit.answer.strategy import Strategy
from tacit.exact import Number

__all__ = ["Shown"]

_STEPS = 32
_CHOICES = ("quantile", "quantiles")


Cell = Callable[[int, tuple[Any, ...]], Noisy]
"""An output's value for a group, by its place and its key."""


class Shown:
    """What is shown of each group; whatever is the same for all groups is computed once, when an output is prepared."""

    def __init__(self, strategy: Strategy, released: Released) -> None:
        self._strategy = strategy
        self._released = released

    def cells(self, output: Output) -> Cell:
        """One output, group by group; an output that rests on several numbers shares its 5 % among them."""
        if output.op == "key":
            return lambda place, key: Noisy(value=key[output.value])
        parts = max(1, len(output.leaves()))
        made = {id(leaf.value): self._measured(leaf.value, parts) for leaf in output.measured()}
        if output.op in LEAVES:
            own = made[id(output.value)]
            return lambda place, key: finite(own(place))
        return lambda place, key: evaluate(output, key, lambda value: made[id(value)](place))

    def _measured(self, value: int | Linear | Ratio, parts: int) -> Callable[[int], Noisy]:
        if isinstance(value, Ratio):
            return self._mean(value, parts)
        numbers, radius = self._numbers(value), self._radius(value, parts)
        if radius is None:
            made = [Noisy(value=number) for number in numbers]
        elif isinstance(value, Linear) and value.whole and self._counts:
            made = [Noisy(value=shown, low=min(shown, number - radius), high=max(shown, number + radius))
                    for number, shown in zip(numbers, map(round, numbers), strict=True)]  # fmt: skip
        else:
            made = [Noisy(value=number, low=number - radius, high=number + radius) for number in numbers]
        return made.__getitem__

    @property
    def _counts(self) -> bool:
        """Whether the exact counts are whole numbers; contributions scaled down to a norm are not."""
        return self._strategy.bounding != "clip"

    def _numbers(self, value: int | Linear) -> Sequence[Any]:
        values = self._released.values
        if isinstance(value, int):
            return values[value]
        weights = [float(weight) for _, weight in value.terms]
        columns = [values[index] for index, _ in value.terms]
        return [sum(map(mul, weights, row)) for row in zip(*columns, strict=True)]

    def _level(self, parts: int) -> Number:
        return 1 - Fraction(1, 20) / parts

    def _radius(self, value: int | Linear, parts: int) -> float | None:
        quantile = isinstance(value, int) and self._strategy.of(value).mechanism.part_name() in _CHOICES
        return None if quantile else self._strategy.error(value, self._level(parts))

    def _mean(self, ratio: Ratio, parts: int) -> Callable[[int], Noisy]:
        """A mean with all values m for which total - m·count is within its noise of 0 (Fieller 1954).

        None where the noisy count is not positive; no interval where a count of 0 is within the noise.
        """
        totals, counts = self._numbers(ratio.total), self._numbers(ratio.count)
        radius = self._line(ratio, parts)

        def mean(place: int) -> Noisy:
            total, count = float(totals[place]), float(counts[place])
            if count <= 0:
                return Noisy(value=None)
            value = min(max(total / count, ratio.low), ratio.high)

            def inside(mean: float) -> bool:
                return abs(total - mean * count) <= radius(mean)

            if not inside(value):  # far outside the range, by noise that happens once in twenty times at most
                near = radius(value) / count
                return Noisy(value=value, low=max(ratio.low, value - near), high=min(ratio.high, value + near))
            return Noisy(value=value, low=_edge(inside, value, ratio.low), high=_edge(inside, value, ratio.high))

        return mean

    def _line(self, ratio: Ratio, parts: int) -> Callable[[float], float]:
        """The noise of total - m·count as a function of m, never too small.

        The function falls and then rises (Proschan 1965, doi:10.1214/aoms/1177699797), so that between two of its
        points it is below the larger.
        """
        low, high, level = Fraction(ratio.low), Fraction(ratio.high), self._level(parts)
        exact = [low + (high - low) * i / _STEPS for i in range(_STEPS + 1)]
        points = [float(point) for point in exact]

        @cache
        def error(place: int) -> float:
            return self._strategy.error(ratio.beside(exact[place]), level)

        def radius(mean: float) -> float:
            right = min(max(bisect_right(points, mean), 1), _STEPS)
            return max(error(right - 1), error(right))

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
