"""Rows of a plan with the group they are in: the source of every statement of exact numbers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from sfumato.dataset import Kind
from sfumato.engines.contribution_bounding import CODE_BITS
from sfumato.engines.expressions import (
    Arithmetic,
    Cast,
    ColumnRef,
    Compare,
    Expression,
    In,
    IsNull,
    Not,
    ShiftRight,
    all_of,
    constant,
    equal,
    when,
)
from sfumato.engines.functions import Hash
from sfumato.engines.statements import Join, Listed, Select, Source, Subquery, Values
from sfumato.engines.statements import Query as Statement
from sfumato.query.plan.aggregates import Items, column_of, whole_column
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.query import GroupKey, Query
from sfumato.query.plan.relational import columns_of

_DAYS = date(1, 1, 1), date(9999, 12, 31)
_TIMES = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)
ValueTables = Callable[[tuple[Any, ...]], str | None]
"""Returns the engine's table of a list of public values, or None to write the values into the statement."""


def inline_values(values: tuple[object, ...]) -> None:
    """Write all values into the statement."""


GROUP_NUMBER = whole_column("g")
ZERO = constant(0)


def group_columns(query: Query) -> Items:
    """Columns that identify a group: its number where all groups are public, otherwise its keys."""
    if query.keys and query.public_keys:
        return (("g", GROUP_NUMBER),)
    return tuple((f"k{i}", column_of(f"k{i}", key.scalar.node)) for i, key in enumerate(query.keys))


def grouped_rows(query: Query, columns: Items, listed: ValueTables) -> Statement:
    """The rows with their group. Rows outside the public groups are removed before contribution bounding."""
    used = columns_of([*(key.scalar.node for key in query.keys), *(node for _, node in columns)])
    kept = query.rows.keep(used)
    rows: Source = Subquery(kept.query())
    unit = query.rows.unit()
    if query.keys and query.public_keys:
        number: Expression | None = None
        for i, key in enumerate(query.keys):
            values, code = key.values or (), whole_column(f"code{i}")
            name, table = ColumnRef(f"name{i}", key.scalar.node.type), listed(values)
            pairs: Source = Listed(table, f"v{i}", (name.name, code.name)) if table else Values(
                tuple((constant(value), constant(place)) for place, value in enumerate(values)),
                f"v{i}", (name.name, code.name),
            )  # fmt: skip
            rows = Join(rows, pairs, equal(key.scalar.node, name))
            number = (
                Cast(code, "int")
                if number is None
                else Arithmetic("+", Arithmetic("*", number, constant(len(values))), code)
            )
        assert number is not None
        return Select((*unit, ("g", number), *columns), rows)
    keys = tuple((f"k{i}", _nameable(key)) for i, key in enumerate(query.keys))
    inner = Select((*unit, *keys, *columns) or (("one", constant(1)),), rows)
    if not keys:
        return inner
    tests: list[Expression] = []
    for (title, node), key in zip(keys, query.keys, strict=True):
        column = column_of(title, node)
        tests.append(Not(IsNull(column)) if key.values is None else In(column, tuple(map(constant, key.values))))
    return Select((), Subquery(inner), where=all_of(*tests), star=True)


def _nameable(key: GroupKey) -> Expression:
    """A private key. Dates outside the calendar ("infinity", year 12000) cannot be represented and are in no group."""
    x = key.scalar.node
    if key.values is not None or key.scalar.kind not in (Kind.DATE, Kind.DATETIME):
        return x
    first, last = map(constant, _DAYS if key.scalar.kind is Kind.DATE else _TIMES)
    return when(all_of(Compare(">=", x, first), Compare("<=", x, last)), x)


def grouped(items: Items, source: Source, keys: Items) -> Select:
    return Select((*keys, *items), source, group_by=len(keys))


def keyed_hash(values: tuple[Expression, ...], unit: Items, secret: int) -> Expression:
    return Hash((*values, unit[0][1], constant(secret)))


def group_place(unit: Items, secret: int) -> Expression:
    """Rank of group ``g`` in the random order of unit ``u``: a keyed hash of both, the group's number in the low bits.

    Two groups of a unit never have the same rank, and a rank depends only on unit, group and the query's secret. Which
    groups of a unit are kept therefore depends on that unit's own rows only, for any hash. The secret prevents anyone
    from choosing which groups are kept.
    """
    high = ShiftRight(keyed_hash((GROUP_NUMBER,), unit, secret), CODE_BITS + 1)
    return Arithmetic("+", Arithmetic("*", high, constant(1 << CODE_BITS)), GROUP_NUMBER)


def keeps_all_groups(plan: NoisePlan) -> bool:
    """Whether all groups of a unit are kept, because there are no more groups than the limit."""
    groups = plan.query.groups
    return groups is not None and plan.groups >= groups
