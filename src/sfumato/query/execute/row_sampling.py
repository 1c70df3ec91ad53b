"""Statements of quantiles, modes and COUNT(DISTINCT): rows sampled by unit and group, then counted."""

from __future__ import annotations

from sfumato.engines.aggregation import CountRows, DenseRank, RowNumber
from sfumato.engines.expressions import (
    Compare,
    Expression,
    IsNull,
    Not,
    constant,
    when,
)
from sfumato.engines.statements import Query as Statement
from sfumato.engines.statements import Select, Subquery
from sfumato.query.execute.grouped_rows import (
    ValueTables,
    column_of,
    group_columns,
    grouped,
    grouped_rows,
    inline_values,
    keeps_all_groups,
    keyed_hash,
    whole_column,
)
from sfumato.query.plan.aggregates import BinCounts, DistinctCount, ValueCounts
from sfumato.query.plan.noise import NoisePlan

__all__ = ["bin_counts_sql", "distinct_count_sql"]


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
    by, named = tuple(node for _, node in (*unit, *keys)), tuple(node for _, node in keys)
    if same:
        source = Select((*unit, *keys, (column.name, column)), Subquery(source), distinct=True)
        order: tuple[Expression, ...] = (keyed_hash((column,), unit, secret), column)
    else:
        # Rows with equal values are numbered, so that each row of a unit is kept with the same probability.
        twin = whole_column("twin")
        source = Select(((twin.name, RowNumber((*by, column), ())),), Subquery(source), star=True)
        order = (keyed_hash((column, twin), unit, secret), column, twin)
    few = Select((("turn", RowNumber(by, order)),), Subquery(source), star=True)
    kept = Select((), Subquery(few), where=Compare("<=", whole_column("turn"), constant(plan.rows)), star=True)
    if keys and not keeps_all_groups(plan):
        rank = DenseRank((unit[0][1],), (keyed_hash(named, unit, secret), *named))
        ranked = Select((("place", rank),), Subquery(kept), star=True)
        within = Compare("<=", whole_column("place"), constant(plan.groups))
        kept = Select((), Subquery(ranked), where=within, star=True)
    return kept


def bin_counts_sql(
    plan: NoisePlan, aggregate: BinCounts | ValueCounts, secret: int, listed: ValueTables = inline_values
) -> Statement:
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
