"""Post-processing: expressions over noisy numbers, with intervals.

Post-processing costs no privacy loss. A value has the interval of its noise; the interval of an expression follows by
interval arithmetic. Intervals cover the noise, not the bias from contribution bounding. What a noisy condition chooses
has the hull of all results that are possible within the intervals that the condition reads: the result that was chosen
alone would be certain of a truth value that is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from typing import Any

from sfumato.engines.expressions import MOST_TEXT
from sfumato.query.plan.outputs import (
    Absolute,
    Applied,
    Choice,
    Clipped,
    Extremum,
    First,
    Joined,
    Key,
    LaterDate,
    Logic,
    Measured,
    Minus,
    Missing,
    Negation,
    Operation,
    Output,
    OutputComparison,
    OutputSpread,
    Power,
    Remainder,
    Rounded,
    Value,
    Written,
)
from sfumato.query.plan.row_steps import WindowColumn
from sfumato.query.sql.calendar import add_interval


@dataclass(frozen=True, kw_only=True, slots=True)
class NoisyValue:
    """A value and its interval; ``low`` and ``high`` are None where there is no interval, or the value may be missing.

    Within an expression, truth values have one, too: False to True where both are possible.
    """

    value: Any
    low: float | None = None
    high: float | None = None


_NONE = NoisyValue(value=None)


def _exact(value: object) -> NoisyValue:
    return NoisyValue(value=value, low=value, high=value) if isinstance(value, int | float) else NoisyValue(value=value)


def _number(value: object) -> bool:
    return isinstance(value, int | float)


def shown(noisy: NoisyValue) -> NoisyValue:
    """As an answer shows it: truth values, texts and dates have no interval."""
    plain = isinstance(noisy.value, bool) or not _number(noisy.value)
    return NoisyValue(value=noisy.value) if plain else noisy


def _ends(*items: NoisyValue) -> bool:
    return all(item.low is not None and item.high is not None for item in items)


def _lift(a: NoisyValue, b: NoisyValue, f: Callable[[Any, Any], object]) -> NoisyValue:
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


def _finite(value: object) -> Any:
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
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
_OPERATIONS: dict[str, Callable[[NoisyValue, NoisyValue], NoisyValue]] = {
    "+": lambda a, b: _lift(a, b, lambda x, y: x + y),
    "-": lambda a, b: _lift(a, b, lambda x, y: x - y),
    "*": lambda a, b: _lift(a, b, lambda x, y: x * y),
    "/": _divide,
}
_FUNCTIONS: dict[str, tuple[Callable[[Any], object], float]] = {
    "sqrt": (sqrt, 0.0), "exp": (math.exp, -math.inf), "ln": (math.log, 5e-324), "log10": (math.log10, 5e-324),
    "log2": (math.log2, 5e-324), "floor": (math.floor, -math.inf), "ceil": (math.ceil, -math.inf),
    "trunc": (math.trunc, -math.inf), "sign": (lambda x: int(x > 0) - int(x < 0), -math.inf),
    "rint": (round, -math.inf), "float": (float, -math.inf),
}  # fmt: skip
"""Increasing functions, and the least argument at which each is defined."""


Leaf = Measured | WindowColumn


def evaluate(output: Output, keys: tuple[object, ...], leaf: Callable[[Leaf], NoisyValue]) -> NoisyValue:
    """The output for one group, from its keys, its noisy measurements and window functions of these."""
    match output:
        case Key(index):
            return NoisyValue(value=keys[index])
        case Value(value):
            return _exact(value)
        case Measured() | WindowColumn():
            return finite(leaf(output))
    args = [_known(arg, evaluate(arg, keys, leaf)) for arg in output.parts()]
    match output:
        case Operation(_, sign):
            return _OPERATIONS[sign](*args)
        case OutputComparison(_, sign):
            return _compare(args[0], args[1], sign)
        case OutputSpread(_, span, sample, root, rounding):
            return _spread(args, span, sample, rounding, root=root)
        case Logic(_, every):
            holds = all if every else any
            truths = list(map(_truth, output.args, args))
            low, high = holds(low for low, _ in truths), holds(high for _, high in truths)
            return NoisyValue(value=holds(arg.value for arg in args), low=low, high=high)
        case Negation():
            low, high = _truth(output.args[0], args[0])
            return NoisyValue(value=not args[0].value, low=not high, high=not low)
        case Missing():
            missing = args[0].value is None
            certain = not output.noisy or _ends(args[0])
            return NoisyValue(value=missing, low=missing, high=missing) if certain else NoisyValue(value=missing)
        case LaterDate(_, months, days, minutes):
            return _plain(args, lambda day: add_interval(day, months, days, minutes))
        case Minus():
            return _lift(_exact(0), args[0], lambda x, y: x - y)
        case Absolute():
            return _absolute(args[0])
        case Rounded(_, places):
            return _monotone(args[0], lambda x: _rounded(x, places))
        case First():
            return _typed(output, args, _first(output, args))
        case Clipped(_, low, high):
            return _typed(output, args, _clip(args[0], low, high))
        case Choice():
            return _typed(output, args[1:], _chosen(args, *_truth(output.args[0], args[0])))
        case Applied(_, function):
            return _applied(args[0], *_FUNCTIONS[function])
        case Extremum(_, least):
            return _typed(output, args, _extremum(args, min if least else max))
        case Power():
            return _plain(args, _power)
        case Remainder():
            return _plain(args, _rest)
        case Joined():
            return _plain(args, lambda *texts: "".join(texts)[:MOST_TEXT])
        case Written():
            return _plain(args, _written)
    raise AssertionError(f"no rule for {type(output).__name__}")


def _known(output: Output, noisy: NoisyValue) -> NoisyValue:
    """Keys and constants are what they are."""
    if output.noisy or noisy.value is None:
        return noisy
    return NoisyValue(value=noisy.value, low=noisy.value, high=noisy.value)


def _truth(output: Output, noisy: NoisyValue) -> tuple[bool, bool]:
    """The least and the greatest truth value that is possible; a missing value counts as false."""
    if not output.noisy:
        return bool(noisy.value), bool(noisy.value)
    if noisy.value is None or noisy.low is None or noisy.high is None:
        return False, True
    return bool(noisy.low), bool(noisy.high)


def _compare(a: NoisyValue, b: NoisyValue, sign: str) -> NoisyValue:
    if a.value is None or b.value is None:
        return _NONE
    value = _COMPARE[sign](a.value, b.value)
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return NoisyValue(value=value)
    if sign in ("=", "<>"):
        apart, alike = a.high < b.low or b.high < a.low, a.low == a.high == b.low == b.high
        low, high = (alike, not apart) if sign == "=" else (apart, not alike)
    else:
        ends = a.low, a.high, b.low, b.high
        truths = [_COMPARE[sign](x, y) for x in ends[:2] for y in ends[2:]]
        low, high = all(truths), any(truths)
    return NoisyValue(value=value, low=low, high=high)


def _chosen(args: list[NoisyValue], low: bool, high: bool) -> NoisyValue:
    """The result of a condition: with the hull of both intervals where the condition may hold and may fail."""
    test, yes, no = args
    chosen = yes if test.value else no
    if low == high:
        return chosen
    if yes.low is None or yes.high is None or no.low is None or no.high is None or not _number(chosen.value):
        return NoisyValue(value=chosen.value)
    return NoisyValue(value=chosen.value, low=min(yes.low, no.low), high=max(yes.high, no.high))


def _typed(output: Output, results: list[NoisyValue], chosen: NoisyValue) -> NoisyValue:
    """The type of what is chosen is that of all results together: a float where one of them is no whole number."""
    value = chosen.value
    if value is None or isinstance(value, bool) or not _number(value):
        return chosen
    if output.fractional or any(isinstance(one.value, float) for one in results):
        return replace(chosen, value=float(value))
    return replace(chosen, value=int(value))


def _first(output: First, args: list[NoisyValue]) -> NoisyValue:
    """The first value that is not missing; without an interval where an earlier one might not be missing."""
    certain = True
    for part, arg in zip(output.args, args, strict=True):
        if arg.value is not None:
            return arg if certain else NoisyValue(value=arg.value)
        certain = certain and not part.noisy
    return _NONE


def _plain(args: list[NoisyValue], function: Callable[..., Any]) -> NoisyValue:
    """A function without an interval; missing where an argument is, or where it is undefined."""
    values = [arg.value for arg in args]
    if any(value is None for value in values):
        return _NONE
    try:
        return NoisyValue(value=_finite(function(*values)))
    except (ArithmeticError, ValueError):
        return _NONE


def _rounded(x: Any, places: int) -> object:
    """Halves go away from zero, as in row expressions."""
    scaled = abs(x) * 10.0**places
    if isinstance(x, int) or not isfinite(scaled) or scaled >= 1 << 52:
        return x
    whole = math.floor(scaled)
    nearest = whole + (scaled - whole >= 0.5)
    return math.copysign(nearest / 10.0**places, x) if places else int(math.copysign(nearest, x))


def _power(a: Any, b: Any) -> object:
    return None if isinstance(power := float(a) ** float(b), complex) else power


def _rest(a: Any, b: Any) -> object:
    return int(math.copysign(abs(a) % abs(b), a)) if isinstance(a, int) and isinstance(b, int) else math.fmod(a, b)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _extremum(args: list[NoisyValue], choose: Callable[..., Any]) -> NoisyValue:
    if any(arg.value is None for arg in args):
        return _NONE
    value = choose(arg.value for arg in args)
    if not _ends(*args):
        return NoisyValue(value=value)
    return NoisyValue(value=value, low=choose(arg.low for arg in args), high=choose(arg.high for arg in args))


def _applied(a: NoisyValue, function: Callable[[Any], object], least: float) -> NoisyValue:
    """An increasing function; the value is missing below its domain, and has no interval that reaches below it."""

    def at(x: object) -> Any:
        try:
            return _finite(function(x))
        except OverflowError:
            return None

    if a.value is None or a.value < least:
        return _NONE
    value = at(a.value)
    if value is None or a.low is None or a.high is None or a.low < least:
        return NoisyValue(value=value)
    low, high = at(a.low), at(a.high)
    return NoisyValue(value=value) if low is None or high is None else NoisyValue(value=value, low=low, high=high)


def _spread(args: list[NoisyValue], span: float, sample: bool, rounding: float, *, root: bool) -> NoisyValue:
    """Variance or standard deviation from the noisy sums of squares and of distances from the middle, and the count."""
    squares, total, count = args
    if count.value is None or count.value <= (1 if sample else 0):
        return _NONE
    mean = _divide(total, count)
    second = _divide(squares, count)
    square = _monotone(_absolute(mean), lambda x: x * x)
    plain = _lift(second, square, lambda x, y: x - y)
    if plain.low is not None and plain.high is not None:
        plain = replace(plain, low=plain.low - rounding, high=plain.high + rounding)
    spread = _clip(plain, 0.0, span)
    if sample:
        known = count if count.low is not None and count.low > 1 else NoisyValue(value=count.value)
        spread = _lift(spread, known, lambda x, n: x * n / (n - 1))
    return _monotone(spread, lambda x: sqrt(max(x, 0.0))) if root else spread
