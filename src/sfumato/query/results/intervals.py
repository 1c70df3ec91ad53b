"""Evaluate outputs from noisy numbers, with intervals of the noise."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from operator import mul
from typing import Any

from sfumato.dp.mechanisms.quantile import BEYOND
from sfumato.query.execute.executor import NoisyTable
from sfumato.query.plan.aggregates import BinCounts, ValueCounts
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.outputs import Key, LinearCombination, Measured, Number, Output, Ratio
from sfumato.query.plan.row_steps import WindowColumn, chosen_by_noise
from sfumato.query.results.postprocess import Leaf, NoisyValue, evaluate, finite, shown
from sfumato.rationals import Number as Confidence

_STEPS = 32


class OutputEvaluator:
    """Evaluates the outputs of all groups. Values common to all groups are computed once."""

    def __init__(self, plan: NoisePlan, released: NoisyTable) -> None:
        self._plan = plan
        self._released = released
        self._keys = released.keys
        # Rows chosen by noisy values are those with much noise. The intervals of all that could be chosen hold at once
        # (Bonferroni), so those of the chosen ones do.
        candidates = max(1, len(self._keys)) if chosen_by_noise(plan.query.steps) else 1
        candidates *= plan.query.looks
        self._missed = (1 - plan.query.confidence) / candidates
        self.windows: dict[int, list[NoisyValue]] = {}
        """Results of window functions, one per row."""
        self.blanks: dict[int, object] = {}
        """Results of these functions over no rows."""

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self._keys)

    def add_row(self) -> int:
        """Add a row for an aggregate of no rows. Return its place."""
        self._keys = (*self._keys, (None,) * len(self._plan.query.keys))
        for index, column in self.windows.items():
            column.append(NoisyValue(value=self.blanks[index]))
        return self.size - 1

    def column(self, output: Output) -> list[NoisyValue]:
        """One output for every group. Several noisy numbers divide the error probability among them."""
        keys = self._keys
        if isinstance(output, Key):
            return [NoisyValue(value=key[output.index]) for key in keys]
        if isinstance(output, WindowColumn):
            return self.windows[output.index]
        parts = max(1, len(output.leaves()))
        more = [NoisyValue(value=None)] * (len(keys) - len(self._released.keys))
        columns = {id(leaf): [*self._measured(leaf.number, parts), *more] for leaf in output.measured()}
        if isinstance(output, Measured):
            return columns[id(output)]

        def group_value(place: int, key: tuple[object, ...]) -> NoisyValue:
            def leaf_value(leaf: Leaf) -> NoisyValue:
                return self.windows[leaf.index][place] if isinstance(leaf, WindowColumn) else columns[id(leaf)][place]

            return shown(evaluate(output, key, leaf_value))

        return [group_value(place, key) for place, key in enumerate(keys)]

    def _measured(self, value: Number, parts: int) -> list[NoisyValue]:
        if isinstance(value, Ratio):
            return self._means(value, parts)
        aggregate = self._plan.query.aggregates[value] if isinstance(value, int) else None
        if isinstance(aggregate, ValueCounts):
            return [NoisyValue(value=aggregate.candidates[int(place)]) for place in self._numbers(value)]
        if isinstance(aggregate, BinCounts):
            ends = aggregate.rank in (0, 1) and BEYOND * parts <= self._missed
            return [_quantile(number, aggregate, ends=ends) for number in self._numbers(value)]
        numbers, radius = self._numbers(value), self._radius(value, parts)
        if radius is None:
            noisy = [NoisyValue(value=number) for number in numbers]
        elif isinstance(value, LinearCombination) and value.whole and self._plan.whole_counts:
            noisy = [NoisyValue(value=rounded, low=min(rounded, number - radius), high=max(rounded, number + radius))
                    for number, rounded in zip(numbers, map(round, numbers), strict=True)]  # fmt: skip
        elif isinstance(value, LinearCombination) and value.rounding:
            # The sum without rounding is at most total + rounding · rows, itself a sum of the same shares. Each end
            # is missed by one tail of symmetric noise: by both together, no more often than by an end on either side.
            (lows, down), (highs, up) = ((self._numbers(end), self._plan.error(end, self._level(parts)))
                                         for end in (value.moved(-1), value.moved(1)))  # fmt: skip
            noisy = [NoisyValue(value=number, low=min(number, low - down), high=max(number, high + up))
                     for number, low, high in zip(numbers, lows, highs, strict=True)]  # fmt: skip
        else:
            noisy = [NoisyValue(value=number, low=number - radius, high=number + radius) for number in numbers]
        return noisy if all(abs(number) < 1 << 62 for number in numbers) else [finite(one) for one in noisy]

    def _numbers(self, value: int | LinearCombination) -> Sequence[Any]:
        values = self._released.values
        if isinstance(value, int):
            return values[value]
        weights = [float(weight) for _, weight in value.terms]
        columns = [values[index] for index, _ in value.terms]
        return [sum(map(mul, weights, row)) for row in zip(*columns, strict=True)]

    def _level(self, parts: int) -> Confidence:
        return 1 - self._missed / parts

    def _radius(self, value: int | LinearCombination, parts: int) -> float | None:
        chosen = isinstance(value, int) and self._plan.of(value).mechanism.noise is None
        return None if chosen else self._plan.error(value, self._level(parts)) + self._plan.rounding(value)

    def _means(self, ratio: Ratio, parts: int) -> list[NoisyValue]:
        """Means with Fieller intervals: all m for which total - m·count is within its noise of 0 (Fieller 1954).

        None where the noisy count is not positive; no interval where a count of 0 is within the noise.
        """
        line = _Line(ratio, self._plan, self._level(parts))
        pairs = zip(self._numbers(ratio.total), self._numbers(ratio.count), strict=True)
        return [line.mean(float(total), float(count)) for total, count in pairs]


def _quantile(number: float, cells: BinCounts, *, ends: bool) -> NoisyValue:
    """A quantile. A minimum or maximum is not beyond the true one, which lies within the public bounds (``ends``)."""
    value = cells.value(number)
    if not ends or not isinstance(value, int | float):
        return NoisyValue(value=value)
    least, most = (float(cells.value(float(end))) for end in (cells.low, cells.high))  # type: ignore[arg-type]
    return NoisyValue(value=value, low=value if cells.rank else least, high=most if cells.rank else value)


class _Line:
    """Upper bound on the noise of total - m·count as a step function of m.

    The noise bound falls and then rises in m (Proschan 1965, doi:10.1214/aoms/1177699797), so between two points it is
    at most the larger of them. As a quantile of symmetric log-concave noise it is a norm of the weights and convex
    (Meyer and Reisner 1991): total - m·count exceeds it at most once, or is within it again at the end of the range;
    then everything up to the end counts as inside.
    """

    def __init__(self, ratio: Ratio, plan: NoisePlan, level: Confidence) -> None:
        self.low, self.high, self.rounding = ratio.low, ratio.high, ratio.rounding
        self.points = [(ratio.low * (_STEPS - i) + ratio.high * i) / _STEPS for i in range(_STEPS + 1)]

        @cache
        def error(place: int) -> float:
            return plan.error(ratio.beside(Fraction(self.points[place])), level)

        @cache
        def radius(step: int) -> float:
            return max(error(step - 1), error(step))

        self.radius: Callable[[int], float] = radius
        """Between point ``step`` - 1 and point ``step``."""

    def mean(self, total: float, count: float) -> NoisyValue:
        if count <= 0:
            return NoisyValue(value=None)
        value = min(max(total / count, self.low), self.high)
        step = min(max(bisect_left(self.points, value), 1), _STEPS)
        radius = self.radius(step)
        if abs(total - value * count) > radius:  # far outside the range: probability at most 0.05
            near = radius / count + self.rounding
            return NoisyValue(value=value, low=max(self.low, value - near), high=min(self.high, value + near))
        low, high = self._lower(total, count, step) - self.rounding, self._upper(total, count, step) + self.rounding
        return NoisyValue(value=value, low=max(min(low, value), self.low), high=min(max(high, value), self.high))

    def _upper(self, total: float, count: float, step: int) -> float:
        """The largest m within the noise, searched from ``step`` on; at most the end of the range."""
        if self.high * count - total <= self.radius(_STEPS):
            return self.high
        near, far = step - 1, _STEPS  # the end of step ``far`` is outside, that of ``near`` is not, or not looked at
        while far - near > 1:
            half = (near + far) // 2
            near, far = (half, far) if self.points[half] * count - total <= self.radius(half) else (near, half)
        return min((total + self.radius(far)) / count, self.points[far])

    def _lower(self, total: float, count: float, step: int) -> float:
        if total - self.low * count <= self.radius(1):
            return self.low
        near, far = step + 1, 1
        while near - far > 1:
            half = (near + far) // 2
            near, far = (half, far) if total - self.points[half - 1] * count <= self.radius(half) else (near, half)
        return max((total - self.radius(far)) / count, self.points[far - 1])
