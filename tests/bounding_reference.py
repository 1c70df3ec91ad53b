"""Contribution bounding by its definition, for comparison with what an engine computes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sfumato.engines.aggregation import RowNumber
from sfumato.engines.contribution_bounding import FIT, bounded_totals, sampled_rows
from sfumato.engines.expressions import IsNull, Not, constant, when
from sfumato.engines.statements import Select, Subquery
from sfumato.query.execute.executor import additive_totals, stated_totals
from sfumato.query.execute.fitting import fitting_sql
from sfumato.query.execute.grouped_rows import (
    column_of,
    group_columns,
    grouped_rows,
    inline_values,
    keeps_all_groups,
    keyed_hash,
    whole_column,
)
from sfumato.query.execute.row_sampling import bin_counts_sql, distinct_count_sql
from sfumato.query.execute.sqlgen import bounding_pieces
from sfumato.query.plan.aggregates import BinCounts, Count, DistinctCount, Sum, ValueCounts
from sfumato.query.plan.noise import NoisePlan
from sfumato.secret import Permit

__all__ = ["disagreements", "fitting_units", "groups_of_totals"]

PERMIT = Permit("a test of exact numbers")


def disagreements(plan: NoisePlan, engine: Any, secret: int = 7) -> list[str]:
    """Exact numbers of a plan that differ from the definition: by the statement, and by the engine's faster way."""
    different = []
    width = len(group_columns(plan.query))
    pieces = bounding_pieces(plan, secret)
    if pieces is not None and any(isinstance(m, Count | Sum) for m in plan.query.aggregates):
        rows = engine.run(pieces.source).open(PERMIT)
        defined = bounded_totals(rows, pieces)
        if pieces.limits is not None:
            fitting, *defined = defined
            if _pair(engine.run(fitting_sql(plan)).open(PERMIT)[0]) != _pair(fitting[1:]):
                different.append("fitting")
            if _pair(fitting_units(plan, engine, secret)) != _pair(fitting[1:]):
                different.append("fitting by the engine")
        wanted = _totals([row if width else row[1:] for row in defined], width)
        for passes in {False, engine.passes}:
            stated = stated_totals(plan, engine, secret, passes=passes).open(PERMIT)
            if plan.query.keys and plan.query.public_keys:
                marked = [row for row in stated if row[0] == FIT]
                stated = [row for row in stated if row[0] != FIT]
                if [_pair(row[1:3]) for row in marked] != ([] if pieces.limits is None else [_pair(fitting[1:])]):
                    different.append("fitting by the statement")
            if _totals(stated, width) != wanted:
                different.append("statement")
        if _totals(groups_of_totals(plan, engine, secret), width) != wanted:
            different.append("engine")
    for aggregate in plan.query.aggregates:
        if isinstance(aggregate, DistinctCount):
            found = engine.run(distinct_count_sql(plan, aggregate, secret)).open(PERMIT)
        elif isinstance(aggregate, BinCounts | ValueCounts):
            found = engine.run(bin_counts_sql(plan, aggregate, secret)).open(PERMIT)
        else:
            continue
        if {tuple(map(_same, row[:-1])): row[-1] for row in found if row[-1]} != _sampled(
            plan, aggregate, engine, secret
        ):
            different.append(type(aggregate).__name__)
    return different


def _pair(row: Any) -> tuple[int, int]:
    fit, cut = row
    return int(fit), int(cut)


def groups_of_totals(plan: NoisePlan, engine: Any, secret: int) -> list[Any]:
    """Bounded counts and sums by group, without the row that an engine may put first."""
    rows = additive_totals(plan, engine, secret).open(PERMIT)
    return [row for row in rows if not (plan.query.keys and plan.query.public_keys and row[0] == FIT)]


def fitting_units(plan: NoisePlan, engine: Any, secret: int) -> tuple[int, int]:
    """Units that the limits fit and cut, as the executor gets them."""
    if plan.query.keys and plan.query.public_keys and any(isinstance(m, Count | Sum) for m in plan.query.aggregates):
        rows = additive_totals(plan, engine, secret).open(PERMIT)
        for row in rows:
            if row[0] == FIT:
                return _pair(row[1:3])
    return _pair(engine.run(fitting_sql(plan)).open(PERMIT)[0])


def _same(value: Any) -> Any:
    """A value that is equal to itself: "not a number" is one, and so are both zeros."""
    return "nan" if value != value else value + 0 if isinstance(value, float) else value


def _totals(rows: Any, width: int) -> dict[Any, tuple[int, ...]]:
    """Totals by group. A group without units is no group."""
    return {tuple(map(_same, row[:width])): tuple(map(int, row[width:])) for row in rows if row[-1]}


def _sampled(plan: NoisePlan, aggregate: Any, engine: Any, secret: int) -> dict[Any, int]:
    """The histogram, or the numbers of different values, by the definition."""
    query, keys, unit = plan.query, group_columns(plan.query), plan.query.rows.unit()
    distinct = isinstance(aggregate, DistinctCount)
    value = "value", when(aggregate.condition, aggregate.value if distinct else aggregate.cell)
    column, twin, named = column_of(*value), whole_column("twin"), tuple(node for _, node in keys)
    rows = Select((), Subquery(grouped_rows(query, (value,), inline_values)), where=Not(IsNull(column)), star=True)
    if plan.bounding == "row":
        found = engine.run(Select((*keys, ("value", column)), Subquery(rows))).open(PERMIT)
        kept = [(row[:-1], row[-1]) for row in found]
    else:
        by = (unit[0][1], *named, column)
        numbered = Select((("twin", RowNumber(by, ())),), Subquery(rows), star=True)
        order = keyed_hash((column,) if distinct else (column, twin), unit, secret)
        place = keyed_hash(named, unit, secret) if keys else constant(0)
        items = (*unit, ("place", place), *keys, ("h", order), ("value", column), ("twin", twin))
        found = engine.run(Select(items, Subquery(numbered))).open(PERMIT)
        lying = [(row[0], row[1:-3], row[-3:]) for row in found if not distinct or row[-1] == 1]
        groups = None if not keys or keeps_all_groups(plan) else plan.groups
        kept = [(place[1:], row[1]) for place, row in sampled_rows(lying, rows=plan.rows, groups=groups)]
    counted = [(*map(_same, group), _same(own)) for group, own in kept]
    return dict(Counter(cell[:-1] for cell in set(counted)) if distinct else Counter(counted))
