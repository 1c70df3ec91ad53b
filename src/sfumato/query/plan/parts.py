"""The part of a data set that a question reads: every row that counts has one value in a column that splits the data.

A question names a part only by a constant that is, in the exact type of the column, one of the declared values. All
else (`1.0` for the whole number 1, a value that is not declared) demands no part: engines could find the same rows.

Only where each row is a unit. A row is in at most one part, because a column has one value in it; a row without the
value is in none. See :mod:`sfumato.ledger.parts` for what a question to a part costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sfumato.dataset import Kind
from sfumato.dataset.part_column import PartColumn
from sfumato.engines.expressions import And, ColumnRef, Compare, Constant, Expression
from sfumato.query.plan.relational import Filter, PlanNode, Project, PublicJoin, Scan

Values: TypeAlias = Mapping[str, Any]
"""Columns of a private table, each with the one declared value that all rows have."""
_TYPES = {Kind.INTEGER: "int", Kind.CATEGORY: "text"}
"""The types in which conditions compare columns that split people into parts."""


def part_read(nodes: Iterable[PlanNode], columns: Mapping[str, PartColumn]) -> tuple[str, Any] | None:
    """The first of the columns in which all rows of all nodes have one value, and that value; None for the whole."""
    read = [_values(node, columns) for node in nodes]
    for column in columns:
        found = [values.get(column) for values in read]
        if found and found[0] is not None and all(value == found[0] for value in found):
            return column, found[0]
    return None


def _values(node: PlanNode, columns: Mapping[str, PartColumn]) -> Values:
    if isinstance(node, Scan) or not node.by_row:
        return {}
    below = [_values(child, columns) for child in node.children()]
    own = demanded(node, columns) if isinstance(node, Filter) else {}
    return {**_agreed(below), **own}


def _agreed(below: Sequence[Values]) -> Values:
    first, *others = below
    return {column: value for column, value in first.items() if all(other.get(column) == value for other in others)}


def demanded(node: Filter, columns: Mapping[str, PartColumn]) -> Values:
    """Columns of the table below that the condition compares with a declared value: ``column = value``, alone or with
    AND."""
    condition, names = node.condition.node, _columns(node.child)
    items: Sequence[Expression] = condition.items if isinstance(condition, And) else [condition]
    found: dict[str, Any] = {}
    for item in items:
        match item:
            case Compare(sign="=", a=ColumnRef(name=name, table="") as read, b=Constant(value=value, kind=kind)):
                part = columns.get(names.get(name, ""))
                if part is not None and read.type == kind == _TYPES[part.kind] and part.holds(value):
                    found.setdefault(part.name, value)
    return found


def _columns(node: PlanNode) -> Mapping[str, str]:
    """Internal names that stand for a stored column of the one table below."""
    match node:
        case Scan(names=names):
            return {name: column for name, column, _ in names}
        case Filter(child=child) | PublicJoin(child=child):
            return _columns(child)
        case Project(child=child, items=items):
            below = _columns(child)
            plain = {name: scalar.node for name, scalar in items}
            return {
                name: below[item.name]
                for name, item in plain.items()
                if isinstance(item, ColumnRef) and not item.table and item.name in below
            }
    return {}  # rows of several tables: what a name stands for is not followed
