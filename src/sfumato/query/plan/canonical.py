"""Canonical form of what a query measures: the key under which its answer is stored.

Two queries with the same form measure the same numbers on all data. Subqueries and common table expressions that only
rename, compute or filter columns are resolved to the columns of the tables; nested filters are one set of conditions;
the order and repetition of conditions and of keys, the names of columns and the columns that nobody uses have no
effect; conditions are in their normal form. The form
only decides whether a stored answer is returned, so a difference that it does not see through costs budget and nothing
else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from sfumato.engines.expressions import TRUE, And, ColumnRef, Compare, Not, Or
from sfumato.query.plan.first_rows import FirstRows
from sfumato.query.plan.normal_form import normal_form
from sfumato.query.plan.relational import Filter, PlanNode, Project, PublicJoin, Scan, UnitJoin
from sfumato.query.plan.scalar import Scalar

Names = Mapping[str, str]
"""What each column above a node is, as a digest."""


def canonical_form(rows: PlanNode, keys: Sequence[object], measured: object) -> tuple[str, tuple[int, ...]]:
    """The digest of rows and of what is measured on them, and the keys' order in it."""
    base, conditions, names = _rows(rows)
    forms = [_form(key, names) for key in keys]
    order = tuple(sorted(range(len(forms)), key=lambda place: forms[place]))
    return _digest((base, conditions, [forms[place] for place in order], _form(measured, names))), order


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "backslashreplace")).hexdigest()


def _rows(node: PlanNode) -> tuple[str, tuple[str, ...], dict[str, str]]:
    """The rows of a node as their source and the conditions on it, and its columns."""
    match node:
        case Scan(table=table, unit_column=unit, names=columns):
            names = {name: _digest(("column", table, column, kind)) for name, column, kind in columns}
            return _digest(("table", table, unit)), (), names
        case Filter(child=child, condition=condition):
            base, conditions, names = _rows(child)
            normal = normal_form(condition.node)
            more = normal.items if isinstance(normal, And) else (normal,)
            kept = {_form(item, names) for item in more if item != TRUE}
            return base, tuple(sorted({*conditions, *kept})), names
        case Project(child=child, items=items):
            base, conditions, names = _rows(child)
            return base, conditions, {name: _form(scalar.node, names) for name, scalar in items}
    below = [_rows(child) for child in node.children()]
    inner = {name: _digest((side, form)) for side, (_, _, names) in enumerate(below) for name, form in names.items()}
    # A node of another kind is itself, with its own parameters. A join keeps the columns under it; other nodes may
    # compute theirs from all of them, so that these are part of it, and its columns are known by their place.
    joins = isinstance(node, PublicJoin | UnitJoin | FirstRows)
    sources = [(base, conditions, [] if joins else list(names.values())) for base, conditions, names in below]
    own = _digest((type(node).__name__, sources, _parameters(node, inner)))
    same = inner if joins else {}
    return own, (), {name: same.get(name) or _digest((own, place)) for place, (name, _) in enumerate(node.columns())}


def _parameters(node: Any, names: Names) -> list[str]:
    values = ((field.name, getattr(node, field.name)) for field in fields(node) if field.compare)
    return [_form((name, value), names) for name, value in values if not isinstance(value, PlanNode)]


def _form(value: object, names: Names) -> str:
    """The digest of an expression, an aggregate or any other part, with columns by what they are."""
    if isinstance(value, Not | Compare | And | Or):
        value = normal_form(value)
    match value:
        case ColumnRef(name=name) if name in names:
            return names[name]
        case And(items=items) | Or(items=items):
            return _digest((type(value).__name__, sorted({_form(item, names) for item in items})))
        case Scalar(node=node, values=values):
            return _digest((_form(node, names), value.kind, value.low, value.high, values))
        case tuple() if not any(isinstance(item, tuple) or is_dataclass(item) for item in value):
            return _digest(value)
        case tuple() | list():
            return _digest([_form(item, names) for item in value])
    if is_dataclass(value) and not isinstance(value, type):
        return _digest((type(value).__name__, _parameters(value, names)))
    return _digest(value)
