"""Interval analysis: bounds on the value of a float expression, from its form alone.

If an operation cannot overflow, engines that raise on overflow need no test around it. Sums are over clipped values, so
this applies to most of what is computed for every row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

__all__ = ["Size", "Sized", "fits", "size"]

Size = tuple[float, float]
"""Largest absolute value, and smallest one that is not zero. Values are finite and not NaN."""
_KINDS = {"int": (2.0**63, 1.0), "huge": (2.0**127, 1.0), "flag": (1.0, 1.0)}
_LEAST = 5e-324
_SAFE = 1e-290, 1e290


class Sized(str):
    """The type of a column whose values have a known size. As a type it is like any other of its name."""

    size: Size

    @classmethod
    def of(cls, kind: str, size: Size | None) -> str:
        if size is None:
            return str(kind)
        made = cls(kind)
        made.size = size
        return made


def size(node: Any, kind_of: Callable[[Any], str | None]) -> Size | None:
    """Bounds on the absolute values of an expression, without missing values; None if its form gives none."""
    match type(node).__name__:
        case "Paren" | "Neg" | "Abs":
            return size(node.this, kind_of)
        case "Cast" | "TryCast":
            inner = size(node.this, kind_of)
            whole = node.args["to"].this.name != "DOUBLE"
            return (inner[0] + 1, 1.0) if whole and inner is not None else inner
        case "Literal" if not node.is_string:
            value = float(node.this)
            return (abs(value), abs(value) or 1.0)
        case "Column":
            kind = kind_of(node) or ""
            return kind.size if isinstance(kind, Sized) else _KINDS.get(kind)
        case "Greatest":
            # Within the two bounds whatever is clipped: NaN lies above all numbers and becomes the upper one.
            inner = node.this
            ends = [*node.expressions, *inner.expressions] if type(inner).__name__ == "Least" else []
            sizes = [size(end, kind_of) for end in ends]
            known = [found for found in sizes if found is not None and _constant(ends)]
            return (max(found[0] for found in known), _LEAST) if len(known) == len(sizes) == 2 else None
        case "Case":
            nodes = [item.args["true"] for item in node.args["ifs"]]
            nodes += [node.args["default"]] if node.args.get("default") is not None else []
            sizes = [size(item, kind_of) for item in nodes if type(item).__name__ != "Null"]
            known = [found for found in sizes if found is not None]
            if not known or len(known) < len(sizes):
                return None
            return max(found[0] for found in known), min(found[1] for found in known)
        case "Floor" | "Ceil" | "Round" | "Trunc" if not node.args.get("decimals"):
            inner = size(node.this, kind_of)
            return None if inner is None else (inner[0] + 1, 1.0)
        case "Sqrt":
            inner = size(node.this, kind_of)
            return None if inner is None else (math.sqrt(inner[0]), math.sqrt(inner[1]))
        case "Add" | "Sub" | "Mul" | "Div":
            one, two = size(node.this, kind_of), size(node.expression, kind_of)
            return _of(type(node).__name__, one, two) if one is not None and two is not None else None
    return None


def _constant(nodes: list[Any]) -> bool:
    return not any(type(item).__name__ == "Column" for node in nodes for item in node.walk())


def _of(name: str, one: Size, two: Size) -> Size | None:
    if not fits(name, one, two):
        return None
    match name:
        case "Mul":
            return one[0] * two[0], max(one[1] * two[1], _LEAST)
        case "Div":
            return one[0] / two[1], max(one[1] / two[0], _LEAST)
    return one[0] + two[0], _LEAST


def fits(name: str, one: Size, two: Size) -> bool:
    """Whether the operation can neither overflow nor underflow to zero."""
    low, high = _SAFE
    match name:
        case "Mul":
            # A factor of at least 1 makes nothing smaller.
            return one[0] * two[0] < high and (one[1] * two[1] > low or one[1] >= 1 or two[1] >= 1)
        case "Div":
            return one[0] / two[1] < high and (one[1] / two[0] > low or two[0] <= 1)
    return one[0] + two[0] < high
