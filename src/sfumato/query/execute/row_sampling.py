"""Statements of quantiles, modes and COUNT(DISTINCT): rows sampled by unit and group, then counted."""

from __future__ import annotations

from sfumato.engines.aggregation import CountRows, DenseRank, RowNumber
from sfumato.engines.expressions import (
    Compare,
    Expression,
    IsNull,
    Not,
    Unit,
    all_of,
    constant,
    equal,
    when,
)
from sfumato.engines.statements import Join, NamedView, Select, Subquery, UnionAllQuery, With
from sfumato.engines.statements import Query as Statement
from sfumato.query.execute.grouped_rows import (
    ValueTables,
    group_columns,
    grouped,
    grouped_rows,
    inline_values,
    keeps_all_groups,
    keyed_hash,
)
from sfumato.query.plan.aggregates import DistinctCount, Items, Selected, column_of, whole_column
from sfumato.query.plan.noise import NoisePlan


def _bounded_rows(
    plan: NoisePlan, value: tuple[str, Expression], secret: int, listed: ValueTables, *, same: bool
) -> Statement:
    """Values with at most ``rows`` of each unit in a group and at most ``groups`` groups of each unit.

    With ``same``, equal values within a unit and group count as one.
    """
    query = plan.query
    keys, unit, column = group_columns(query), query.rows.unit(), column_of(*value)
    source = Select((), Subquery(grouped_rows(query, (value,), listed)), where=Not(IsNull(column)), star=True)
    if plan.bounding == "row":
        return source
    named, items = tuple(node for _, node in keys), (*unit, *keys, (column.name, column))
    # Only the rows of a unit that has too many in a group are put in order: sorting takes longer than all the rest.
    many = grouped((("m", CountRows()),), NamedView("rows"), (*unit, *keys))
    views: tuple[tuple[str, Statement], ...] = (
        ("rows", Select(items, Subquery(source), distinct=same)),
        ("many", Select((), Subquery(many), where=Compare(">", whole_column("m"), constant(plan.rows)), star=True)),
    )
    pairs = zip(_of("rows", unit, keys), _of("many", unit, keys), strict=True)
    match = all_of(*(equal(one, two) for one, two in pairs))
    unmatched = IsNull(_of("many", unit, keys)[0])
    short = Select((), Join(NamedView("rows"), NamedView("many"), match, outer=True), where=unmatched, star="rows")
    long: Statement = Select((), Join(NamedView("rows"), NamedView("many"), match), star="rows")
    by = tuple(node for _, node in (*unit, *keys))
    order: tuple[Expression, ...] = (keyed_hash((column,), unit, secret), column)
    if not same:
        # Rows with equal values are numbered, so that each row of a unit is kept with the same probability.
        twin = whole_column("twin")
        long = Select(((twin.name, RowNumber((*by, column), ())),), Subquery(long), star=True)
        order = (keyed_hash((column, twin), unit, secret), column, twin)
    placed = Select((("turn", RowNumber(by, order)),), Subquery(long), star=True)
    first = Select(items, Subquery(placed), where=Compare("<=", whole_column("turn"), constant(plan.rows)))
    kept: Statement = With(views, UnionAllQuery(short, first))
    if keys and not keeps_all_groups(plan):
        rank = DenseRank((unit[0][1],), (keyed_hash(named, unit, secret), *named))
        ranked = Select((("place", rank),), Subquery(kept), star=True)
        within = Compare("<=", whole_column("place"), constant(plan.groups))
        kept = Select((), Subquery(ranked), where=within, star=True)
    return kept


def _of(view: str, unit: Items, keys: Items) -> tuple[Expression, ...]:
    """Unit and keys as columns of a view."""
    origin = unit[0][1].origin if isinstance(unit[0][1], Unit) else None
    return Unit(origin, view), *(column_of(name, node, view) for name, node in keys)


def bin_counts_sql(plan: NoisePlan, aggregate: Selected, secret: int, listed: ValueTables = inline_values) -> Statement:
    """A histogram: keys, cell and number of rows."""
    cell = "cell", when(aggregate.condition, aggregate.cell)
    rows = _bounded_rows(plan, cell, secret, listed, same=False)
    return grouped((("n", CountRows()),), Subquery(rows), (*group_columns(plan.query), ("cell", column_of(*cell))))


def distinct_count_sql(
    plan: NoisePlan, aggregate: DistinctCount, secret: int, listed: ValueTables = inline_values
) -> Statement:
    """COUNT(DISTINCT): keys and number of distinct values."""
    seen = "seen", when(aggregate.condition, aggregate.value)
    rows = _bounded_rows(plan, seen, secret, listed, same=True)
    distinct = CountRows(column_of(*seen), distinct=True)
    return grouped((("n", distinct),), Subquery(rows), group_columns(plan.query))
