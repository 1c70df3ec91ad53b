"""Public domains that a query names: what its conditions say about a column.

Rows outside of it are removed by the condition, so that the values in ``WHERE code IN ('A', 'B')`` are all that a group
can have, whatever the data. They come from the text of the query alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from sfumato.dataset import Kind
from sfumato.engines.expressions import And, ColumnRef, Compare, Constant, Expression, In, Or
from sfumato.query.plan.scalar import Scalar
from sfumato.query.sql.expressions import ColumnScope

_TYPES: dict[Kind, type] = {Kind.CATEGORY: str, Kind.INTEGER: int, Kind.DATE: date}
"""Kinds of columns whose values a condition may name, with the type of such a constant."""


def condition_domains(columns: ColumnScope, condition: Expression) -> ColumnScope:
    """The columns with the range and the values that a condition leaves them."""
    ends: dict[str, list[object]] = {}
    named: dict[str | Expression, set[Any]] = {}
    whole: dict[str, tuple[int | None, int | None]] = {}
    for part in condition.items if isinstance(condition, And) else (condition,):
        if (listed := _listed(part)) is not None:
            column, values = listed
            named[column] = named[column] & values if column in named else values
        match part:
            case Compare(sign, ColumnRef(name=name, type="date" | "time"), Constant(value=value)):
                first, last = ends.setdefault(name, [None, None])
                tick = timedelta(microseconds=1) if isinstance(value, datetime) else timedelta(days=1)
                if sign in (">", ">=", "="):
                    least = _moved(value, tick if sign == ">" else timedelta(0))
                    ends[name][0] = least if first is None or least > first else first
                if sign in ("<", "<=", "="):
                    most = _moved(value, -tick if sign == "<" else timedelta(0))
                    ends[name][1] = most if last is None or most < last else last
            case Compare(sign, ColumnRef(name=name, type="int"), Constant(value=int() as value)):
                least, most = whole.get(name, (None, None))
                low, high = value + (sign == ">"), value - (sign == "<")
                if sign in (">", ">=", "="):
                    least = low if least is None else max(least, low)
                if sign in ("<", "<=", "="):
                    most = high if most is None else min(most, high)
                whole[name] = least, most
    items = [(a, n, _valued(_counted(_ranged(s, ends), whole), named)) for a, n, s in columns.items]
    texts = {
        node: tuple(sorted(values)) for node, values in named.items()
        if not isinstance(node, str) and all(type(value) is str for value in values)
    }  # fmt: skip
    return ColumnScope(items, columns.merged, texts)


def _listed(condition: Expression) -> tuple[str | Expression, set[object]] | None:
    """What has one of some constants where a condition holds, and these: the name of a column, or an expression."""
    match condition:
        case In(node, items):
            return _place(node), {item.value for item in items}
        case Compare("=", node, Constant(value=value)) if not isinstance(node, Constant):
            return _place(node), {value}
        case Or(items):
            parts = [_listed(item) for item in items]
            known = [part for part in parts if part is not None]
            if len(known) == len(parts) and len({name for name, _ in known}) == 1:
                return known[0][0], set().union(*(values for _, values in known))
    return None


def _place(node: Expression) -> str | Expression:
    return node.name if isinstance(node, ColumnRef) else node


def _valued(scalar: Scalar, named: Mapping[str | Expression, set[object]]) -> Scalar:
    values = named.get(scalar.node.name) if isinstance(scalar.node, ColumnRef) else None
    if not values or scalar.unit or any(type(value) is not _TYPES.get(scalar.kind) for value in values):
        return scalar
    left = values if scalar.values is None else values & set(scalar.values)
    return replace(scalar, values=tuple(sorted(left))) if left else scalar


def _counted(scalar: Scalar, whole: dict[str, tuple[int | None, int | None]]) -> Scalar:
    """A whole number with the ends that a condition gives it, where it has none of its own."""
    if not isinstance(scalar.node, ColumnRef) or scalar.kind is not Kind.INTEGER or scalar.unit:
        return scalar
    least, most = whole.get(scalar.node.name, (None, None))
    low = Fraction(least) if scalar.low is None and least is not None else scalar.low
    high = Fraction(most) if scalar.high is None and most is not None else scalar.high
    return scalar if low is not None and high is not None and low > high else replace(scalar, low=low, high=high)


def _moved(value: Any, step: timedelta) -> Any:
    try:
        return value + step
    except OverflowError:
        return value


def _ranged(scalar: Scalar, ends: dict[str, list[Any]]) -> Scalar:
    if not isinstance(scalar.node, ColumnRef) or scalar.kind not in (Kind.DATE, Kind.DATETIME):
        return scalar
    first, last = ends.get(scalar.node.name, (None, None))
    first = scalar.first if first is None or (scalar.first is not None and scalar.first > first) else first
    last = scalar.last if last is None or (scalar.last is not None and scalar.last < last) else last
    return replace(scalar, first=first, last=last)


def wider(a: date | None, b: date | None, *, least: bool) -> date | None:
    """The earlier or later end of two ranges; None where either has none."""
    return None if a is None or b is None else min(a, b) if least else max(a, b)
