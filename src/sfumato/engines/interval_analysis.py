"""Interval analysis: bounds on the value of a float expression, from its form alone.

If an operation cannot overflow, engines that raise on overflow need no test around it. Sums are over clipped values, so
this applies to most of what is computed for every row.
"""

from __future__ import annotations

import math

from sfumato.engines.expressions import (
    Arithmetic,
    Case,
    Cast,
    ColumnRef,
    Constant,
    Expression,
    Extreme,
    Negative,
    Read,
    Size,
)
from sfumato.engines.functions import Function

_KINDS = {"int": (2.0**63, 1.0), "huge": (2.0**127, 1.0), "flag": (1.0, 1.0)}
_LEAST = 5e-324
_SAFE = 1e-290, 1e290


def size(node: Expression) -> Size | None:
    """Bounds on the absolute values of an expression, without missing values; None if its form gives none."""
    match node:
        case Negative(a) | Function(a, "abs"):
            return size(a)
        case Cast(a, to):
            inner = size(a) if a.type in ("int", "huge", "float", "flag") else None
            return (inner[0] + 1, 1.0) if to != "float" and inner is not None else inner
        case Constant(value, "int" | "huge" | "float"):
            return abs(float(value)), abs(float(value)) or 1.0
        case ColumnRef(kind=kind, size=known):
            return known or _KINDS.get(kind)
        case Read(kind=kind):
            return _KINDS.get(kind)
        case Extreme((Extreme((_, Constant() as high), True), Constant() as low), False):
            # Within the two bounds whatever is clipped: NaN lies above all numbers and becomes the upper one.
            return max(abs(float(low.value)), abs(float(high.value))), _LEAST
        case Case(branches, default):
            results = [*(result for _, result in branches), default]
            sizes = [size(item) for item in results if item.type != "null"]
            known_sizes = [found for found in sizes if found is not None]
            if not known_sizes or len(known_sizes) < len(sizes):
                return None
            return max(found[0] for found in known_sizes), min(found[1] for found in known_sizes)
        case Function(a, "floor" | "ceil" | "round" | "trunc"):
            inner = size(a)
            return None if inner is None else (inner[0] + 1, 1.0)
        case Function(a, "sqrt"):
            inner = size(a)
            return None if inner is None else (math.sqrt(inner[0]), math.sqrt(inner[1]))
        case Arithmetic(sign, a, b):
            one, two = size(a), size(b)
            return _of(sign, one, two) if one is not None and two is not None else None
    return None


def _of(sign: str, one: Size, two: Size) -> Size | None:
    if not fits(sign, one, two):
        return None
    match sign:
        case "*":
            return one[0] * two[0], max(one[1] * two[1], _LEAST)
        case "/":
            return one[0] / two[1], max(one[1] / two[0], _LEAST)
    return one[0] + two[0], _LEAST


def fits(sign: str, one: Size, two: Size) -> bool:
    """Whether the operation can neither overflow nor underflow to zero."""
    low, high = _SAFE
    match sign:
        case "*":
            # A factor of at least 1 makes nothing smaller.
            return one[0] * two[0] < high and (one[1] * two[1] > low or one[1] >= 1 or two[1] >= 1)
        case "/":
            return one[0] / two[1] < high and (one[1] / two[0] > low or two[0] <= 1)
    return one[0] + two[0] < high
