"""The statement that counts units by whether the contribution limits cut them."""

from __future__ import annotations

from math import isqrt

from sfumato.engines.aggregation import CountRows, Largest, Total
from sfumato.engines.expressions import (
    Arithmetic,
    Cast,
    Compare,
    Expression,
    Not,
    all_of,
    any_of,
    constant,
    equal,
    when,
)
from sfumato.engines.statements import Query as Statement
from sfumato.engines.statements import Select, Subquery
from sfumato.query.execute.grouped_rows import ValueTables, group_columns, grouped, grouped_rows, inline_values
from sfumato.query.plan.aggregates import Items, clipped, column_of, whole_column
from sfumato.query.plan.fitting import counted_once
from sfumato.query.plan.noise import NoisePlan


def fitting_limits(plan: NoisePlan) -> tuple[int, int]:
    """(rows, groups) that a unit must not exceed; rows is 0 where it counts once in a group however many it has."""
    return 0 if counted_once(plan.query) else plan.rows, plan.groups


def fitting_sql(plan: NoisePlan, listed: ValueTables = inline_values) -> Statement:
    """Number of units that the limits fit, and number of the others: see ``contribution_bounding.fits_limits``."""
    rows, _ = fitting_limits(plan)
    unit, keys = plan.query.rows.unit(), group_columns(plan.query)
    numbers: Items = (("m", CountRows() if rows else constant(1)),)
    items, fits = fitting_test(plan, whole_column("m"))
    columns: Items = ()
    if plan.query.assumed:
        beyond = whole_column("beyond")
        columns = (("beyond", when(any_of(*plan.query.assumed), constant(1), constant(0))),)
        numbers, items = ((*some, ("beyond", Largest(beyond, False))) for some in (numbers, items))
        fits = all_of(fits, equal(beyond, constant(0)))
    each = grouped(numbers, Subquery(grouped_rows(plan.query, columns, listed)), (*unit, *keys))
    counts = tuple((name, CountRows(where=test)) for name, test in fitting_numbers(fits))
    return Select(counts, Subquery(grouped(items, Subquery(each), unit)))


def fitting_test(plan: NoisePlan, number: Expression) -> tuple[Items, Expression]:
    """Columns of a unit, from its number of rows in each group, and the test on these whether the limits fit it."""
    rows, groups = fitting_limits(plan)
    if plan.bounding == "clip":
        bound = groups * max(rows, 1) ** 2
        # More rows than this exceed the bound however many they are, and their square may not fit 64 bits.
        number = clipped(number, constant(0), constant(isqrt(bound) + 1))
        square = "square", Total(Arithmetic("*", Cast(number, "huge"), number))
        return (square,), Compare("<=", column_of(*square), constant(bound))
    tests = (("most", max(rows, 1)), ("n", groups))
    fits = all_of(*(Compare("<=", whole_column(name), constant(limit)) for name, limit in tests))
    return (("most", Largest(number, False)), ("n", CountRows())), fits


def fitting_numbers(fits: Expression) -> Items:
    """The names of both numbers of units, and which units they count: those that the limits fit, and cut."""
    return ("fit", fits), ("cut", Not(fits))
