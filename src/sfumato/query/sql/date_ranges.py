"""Public ranges of dates: what the conditions of a query say about a column that is a date."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from sfumato.dataset import Kind
from sfumato.engines.expressions import And, ColumnRef, Compare, Constant, Expression
from sfumato.query.plan.scalar import Scalar
from sfumato.query.sql.expressions import ColumnScope

__all__ = ["date_ranges", "wider"]


def date_ranges(columns: ColumnScope, condition: Expression) -> ColumnScope:
    """The columns with the range that a condition leaves them. Rows outside of it are removed by the condition."""
    ends: dict[str, list[Any]] = {}
    for part in condition.items if isinstance(condition, And) else (condition,):
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
    return ColumnScope((alias, name, _ranged(scalar, ends)) for alias, name, scalar in columns.items)


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
