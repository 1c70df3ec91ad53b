"""The statement that counts units by whether the contribution limits cut them."""

from __future__ import annotations

from sfumato.engines.aggregation import CountRows, Largest, Total
from sfumato.engines.expressions import Arithmetic, Cast, Compare, Expression, Not, all_of, constant
from sfumato.engines.statements import Query as Statement
from sfumato.engines.statements import Select, Subquery
from sfumato.query.execute.grouped_rows import (
    ValueTables,
    column_of,
    group_columns,
    grouped,
    grouped_rows,
    inline_values,
    whole_column,
)
from sfumato.query.plan.fitting import counted_once
from sfumato.query.plan.noise import NoisePlan

__all__ = ["fitting_limits", "fitting_sql"]


def fitting_limits(plan: NoisePlan) -> tuple[int, int]:
    """(rows, groups) that a unit must not exceed; rows is 0 where it counts once in a group however many it has."""
    return 0 if counted_once(plan.query) else plan.rows, plan.groups


def fitting_sql(plan: NoisePlan, listed: ValueTables = inline_values) -> Statement:
    """Number of units that the limits fit, and number of the others: see ``contribution_bounding.fits_limits``."""
    rows, groups = fitting_limits(plan)
    unit, keys = plan.query.rows.unit(), group_columns(plan.query)
    number: Expression = CountRows() if rows else constant(1)
    each = grouped((("m", number),), Subquery(grouped_rows(plan.query, (), listed)), (*unit, *keys))
    m = whole_column("m")
    if plan.bounding == "clip":
        square = "s", Total(Arithmetic("*", Cast(m, "huge"), m))
        own = grouped((square,), Subquery(each), unit)
        fits: Expression = Compare("<=", column_of(*square), constant(groups * max(rows, 1) ** 2))
    else:
        own = grouped((("most", Largest(m, False)), ("n", CountRows())), Subquery(each), unit)
        tests = (("most", max(rows, 1)), ("n", groups))
        fits = all_of(*(Compare("<=", whole_column(name), constant(limit)) for name, limit in tests))
    return Select((("fit", CountRows(where=fits)), ("cut", CountRows(where=Not(fits)))), Subquery(own))
