"""Post-processing: expressions over noisy numbers, with intervals.

Post-processing costs no privacy loss. A value has the interval of its noise; the interval of an expression follows by
interval arithmetic. Intervals cover the noise, not the bias from contribution bounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite, sqrt
from typing import Any

__all__ = ["LEAVES", "LinearCombination", "NoisyValue", "OutputExpr", "Ratio", "evaluate", "family", "finite"]


@dataclass(frozen=True, kw_only=True)
class LinearCombination:
    """A weighted sum of measured numbers."""

    terms: tuple[tuple[int, Fraction], ...]
    """(measurement, weight)."""
    unit: Fraction
    """The most one row can change it; errors of different numbers are compared in this unit."""
    what: str
    whole: bool = False
    """Whether it is a count, reported as an integer."""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A mean: a sum divided by a count of the same rows, known to lie between ``low`` and ``high``."""

    total: LinearCombination
    count: LinearCombination
    low: float
    high: float

    def beside(self, mean: Fraction) -> LinearCombination:
        """total - mean · count, which is 0 apart from noise if ``mean`` is the true mean."""
        count = dict(self.count.terms)
        terms = tuple((index, weight - mean * count.get(index, 0)) for index, weight in self.total.terms)
        extra = tuple((i, -mean * w) for i, w in count.items() if i not in dict(self.total.terms))
        return LinearCombination(terms=terms + extra, unit=self.total.unit, what="Mean")


LEAVES = ("count", "sum", "distinct", "quantile", "mode", "linear", "mean")


@dataclass(frozen=True, kw_only=True)
class OutputExpr:
    """An expression over keys and measurements."""

    op: str
    args: tuple[OutputExpr, ...] = ()
    value: Any = None
    kind: str = "number"
    """Family of a leaf's value; a mode has the family of its column."""

    def leaves(self) -> tuple[int | LinearCombination | Ratio, ...]:
        """The distinct measured numbers in the expression."""
        if self.op in LEAVES:
            return (self.value,)
        return tuple(dict.fromkeys(leaf for arg in self.args for leaf in arg.leaves()))

    def measured(self) -> Iterator[OutputExpr]:
        """All subexpressions that are measured numbers."""
        if self.op in LEAVES:
            yield self
        for arg in self.args:
            yield from arg.measured()


@dataclass(frozen=True, kw_only=True, slots=True)
class NoisyValue:
    """A value and its interval; ``low`` and ``high`` are None where there is no interval."""

    value: Any
    low: float | None = None
    high: float | None = None


_NONE = NoisyValue(value=None)


def _exact(value: Any) -> NoisyValue:
    return NoisyValue(value=value, low=value, high=value) if isinstance(value, int | float) else NoisyValue(value=value)


def _ends(*items: NoisyValue) -> bool:
    return all(item.low is not None and item.high is not None for item in items)


def _lift(a: NoisyValue, b: NoisyValue, f: Callable[[Any, Any], Any]) -> NoisyValue:
    if a.value is None or b.value is None:
        return _NONE
    value = _finite(f(a.value, b.value))
    if value is None or not _ends(a, b):
        return NoisyValue(value=value)
    corners = [_finite(f(x, y)) for x in (a.low, a.high) for y in (b.low, b.high)]
    if any(corner is None for corner in corners):
        return NoisyValue(value=value)
    known = [corner for corner in corners if corner is not None]
    return NoisyValue(value=value, low=min(known), high=max(known))


def finite(noisy: NoisyValue) -> NoisyValue:
    """The same, with the value None if it is not finite."""
    return noisy if _finite(noisy.value) is noisy.value else replace(noisy, value=None)


def _finite(value: Any) -> Any:
    """A reportable number: integers beyond 64 bits as floats; None for what no finite float represents."""
    if isinstance(value, int) and abs(value) >= 1 << 63:
        value = float(value) if abs(value) < 1 << 1023 else None
    return None if isinstance(value, float) and not isfinite(value) else value


def _divide(a: NoisyValue, b: NoisyValue) -> NoisyValue:
    if b.value is None or b.value == 0:
        return _NONE
    if b.low is not None and b.high is not None and b.low <= 0 <= b.high:
        return NoisyValue(value=None if a.value is None else _finite(a.value / b.value))
    return _lift(a, b, lambda x, y: x / y if y else None)


def _monotone(a: NoisyValue, f: Callable[[Any], Any]) -> NoisyValue:
    if a.value is None:
        return _NONE
    if a.low is None or a.high is None:
        return NoisyValue(value=f(a.value))
    return NoisyValue(value=f(a.value), low=f(a.low), high=f(a.high))


def _clip(item: NoisyValue, low: float, high: float) -> NoisyValue:
    return _monotone(item, lambda x: min(max(x, low), high))


def _absolute(a: NoisyValue) -> NoisyValue:
    if a.value is None or a.low is None or a.high is None:
        return NoisyValue(value=None if a.value is None else abs(a.value))
    least = 0.0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return NoisyValue(value=abs(a.value), low=least, high=max(abs(a.low), abs(a.high)))


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": lambda a, b: a == b, "NEQ": lambda a, b: a != b, "LT": lambda a, b: a < b,
    "LTE": lambda a, b: a <= b, "GT": lambda a, b: a > b, "GTE": lambda a, b: a >= b,
}  # fmt: skip
_BINARY: dict[str, Callable[[NoisyValue, NoisyValue], NoisyValue]] = {
    "Add": lambda a, b: _lift(a, b, lambda x, y: x + y),
    "Sub": lambda a, b: _lift(a, b, lambda x, y: x - y),
    "Mul": lambda a, b: _lift(a, b, lambda x, y: x * y),
    "Div": _divide,
}


_RESULT_FAMILY = {
    "IsNull": "boolean", "variance": "number", "deviation": "number", **dict.fromkeys(LEAVES, "number"),
}  # fmt: skip
_OF_NUMBERS = (*_BINARY, "Neg", "Abs", "Round", "Clip")


def family(output: OutputExpr, keys: Sequence[str]) -> str:
    """Type family of an output ("" if it is always missing), from the families of the keys.

    TypeError if families are mixed. The check comes before anything is spent.
    """
    op = output.op
    if op == "key":
        return keys[int(output.value)]
    if op == "constant":
        value = output.value
        return "" if value is None else "text" if isinstance(value, str) else (
            "boolean" if isinstance(value, bool) else "number")  # fmt: skip
    if op == "mode":
        return output.kind
    if op in _RESULT_FAMILY:
        return _RESULT_FAMILY[op]
    families = [family(arg, keys) for arg in output.args]
    if op in _OF_NUMBERS:
        return _common_family(families, "number")
    if op in ("And", "Or", "Not"):
        return _common_family(families, "boolean")
    if op in _COMPARE:
        _common_family(families)
        return "boolean"
    if op == "If":
        _common_family(families[:1], "boolean")
        return _common_family(families[1:])
    return _common_family(families)


def _common_family(families: list[str], required: str = "") -> str:
    distinct = {name for name in [*families, required] if name}
    if len(distinct) > 1:
        raise TypeError(" and ".join(sorted(distinct)))
    return distinct.pop() if distinct else ""


def evaluate(output: OutputExpr, keys: tuple[Any, ...], measured: Callable[[Any], NoisyValue]) -> NoisyValue:
    """The output for one group, from its keys and its noisy measurements."""
    op = output.op
    if op == "key":
        return NoisyValue(value=keys[output.value])
    if op == "constant":
        return _exact(output.value)
    if op in LEAVES:
        return finite(measured(output.value))
    args = [evaluate(arg, keys, measured) for arg in output.args]
    if op in _BINARY:
        return _BINARY[op](*args)
    if op in _COMPARE:
        a, b = args[0].value, args[1].value
        return NoisyValue(value=None if a is None or b is None else _COMPARE[op](a, b))
    match op:
        case "variance" | "deviation":
            return _spread(args, *output.value, root=op == "deviation")
        case "And" | "Or":
            truths = [bool(arg.value) for arg in args]
            return NoisyValue(value=all(truths) if op == "And" else any(truths))
        case "Not":
            return NoisyValue(value=not args[0].value)
        case "IsNull":
            return NoisyValue(value=args[0].value is None)
        case "Neg":
            return _lift(_exact(0), args[0], lambda x, y: x - y)
        case "Abs":
            return _absolute(args[0])
        case "Round":
            return _monotone(args[0], lambda x: round(x, output.value))
        case "Coalesce":
            return next((arg for arg in args if arg.value is not None), _NONE)
        case "Clip":
            return _clip(args[0], *output.value)
        case "If":
            return args[1] if args[0].value else args[2]
        case _:
            raise AssertionError(f"no rule for {op}")


def _spread(args: list[NoisyValue], span: float, sample: bool, *, root: bool) -> NoisyValue:
    """Variance or standard deviation from the noisy sums of squares and of distances from the middle, and the count."""
    squares, total, count = args
    if count.value is None or count.value <= (1 if sample else 0):
        return _NONE
    mean = _divide(total, count)
    second = _divide(squares, count)
    square = _monotone(_absolute(mean), lambda x: x * x)
    spread = _clip(_lift(second, square, lambda x, y: x - y), 0.0, span)
    if sample:
        spread = _monotone(spread, lambda x: x * count.value / (count.value - 1))
    return _monotone(spread, lambda x: sqrt(max(x, 0.0))) if root else spread
