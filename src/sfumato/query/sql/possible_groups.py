"""Groups that can have rows: combinations of public keys that neither WHERE nor a public table excludes.

Conditions and joins are evaluated on public values only, never on private rows. A group that is left out cannot have
rows, whatever the data, so that nothing is lost and no noise is spent on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from sfumato.engines.expressions import TRUE, And, ColumnRef, Expression, Read, all_of, constant, equal
from sfumato.engines.statements import Join, Select, Source, Stored, Subquery, Values
from sfumato.query.plan.catalog import PublicTable
from sfumato.query.plan.relational import Filter, PlanNode, PublicJoin, columns_of
from sfumato.query.plan.scalar import Scalar
from sfumato.query.sql.public_rows import public_rows

_MOST = 200_000
"""Combinations of values that are looked at."""


def possible_groups(
    rows: PlanNode, keys: Sequence[tuple[Scalar, tuple[object, ...] | None]], public: Mapping[str, PublicTable]
) -> tuple[int, ...] | None:
    """Numbers of the groups that can have rows, in the order of all combinations of the keys' values; None: all."""
    names = [scalar.node.name if isinstance(scalar.node, ColumnRef) else "" for scalar, _ in keys]
    values = [listed for _, listed in keys if listed is not None]
    if not any(names) or len(values) < len(keys) or not 0 < prod(map(len, values)) <= _MOST:
        return None
    conditions: list[Expression] = []
    joins: list[PublicJoin] = []
    while isinstance(rows, Filter | PublicJoin):
        if isinstance(rows, PublicJoin):
            joins.insert(0, rows)
        else:
            node = rows.condition.node
            conditions += node.items if isinstance(node, And) else [node]
        rows = rows.child
    source: Source | None = None
    for i, listed in enumerate(values):
        pairs = tuple((constant(place), constant(value)) for place, value in enumerate(listed))
        one = Values(pairs, f"v{i}", (f"place{i}", names[i] or f"key{i}"))
        source = one if source is None else Join(source, one, TRUE)
    assert source is not None
    known, joined = {name for name in names if name}, False
    for place, join in enumerate(joins):
        attached = _attached(join, known, f"p{place}")
        if attached is not None:
            table, match = attached
            source, joined = Join(source, table, match), True
            known |= {name for name, _, _ in join.names}
    used = [node for node in conditions if columns_of([node]) and columns_of([node]) <= known]
    if not used and not joined:
        return None
    places = tuple((f"place{i}", ColumnRef(f"place{i}", "int")) for i in range(len(values)))
    return _numbers(Select(places, source, where=all_of(*used), distinct=True), [len(v) for v in values], joins, public)


def _attached(join: PublicJoin, known: set[str], alias: str) -> tuple[Source, Expression] | None:
    """The public table of a join with the condition under which a row of it belongs to a combination of keys.

    A row without a partner has no value in the table's columns and is in no group of them: where one of them is a key,
    an outer join is like an inner one.
    """
    grouped = [item for item in join.names if item[0] in known]
    if join.outer and not grouped:
        return None
    by_key = columns_of(scalar.node for scalar, _, _ in join.on) <= known
    if not by_key and not grouped:
        return None
    tests = [equal(ColumnRef(name, kind), ColumnRef(f"own {name}", kind, alias)) for name, _, kind in grouped]
    items = [(f"own {name}", Read((join.table, column), kind)) for name, column, kind in grouped]
    items += [(name, Read((join.table, column), kind)) for name, column, kind in join.names if name not in known]
    if by_key:
        items += [(f"on {i}", Read((join.table, key), kind)) for i, (_, key, kind) in enumerate(join.on)]
        tests += [equal(s.node, ColumnRef(f"on {i}", kind, alias)) for i, (s, _, kind) in enumerate(join.on)]
    return Subquery(Select(tuple(items), Stored(join.table)), alias), all_of(*tests)


def _numbers(
    query: Select, sizes: Sequence[int], joins: Sequence[PublicJoin], public: Mapping[str, PublicTable]
) -> tuple[int, ...] | None:
    numbers = []
    for row in public_rows(query, [public[name] for name in {join.table for join in joins}]):
        number = 0
        for place, count in zip(row, sizes, strict=True):
            number = number * count + place
        numbers.append(number)
    return tuple(sorted(numbers)) if 0 < len(numbers) < prod(sizes) else None
