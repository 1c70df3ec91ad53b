"""Joins of noisy rows with themselves and with their own totals: year over year, shares of a total, above the mean.

Both sides are the rows of one subquery of WITH, which is measured once: what is computed from them is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sfumato.query.plan.outputs import Key, LaterDate, Operation, Output, Value
from sfumato.query.plan.query import GroupKey
from sfumato.query.plan.row_steps import Collapse, Compute, Keep, RowStep, WindowCall, WindowColumn
from sfumato.query.sql.aggregate_calls import AggregateCompiler
from sfumato.query.sql.calendar import add_interval
from sfumato.query.sql.expressions import ExpressionCompiler
from sfumato.query.sql.relation import Views
from sfumato.query.sql.released import ReleasedRows, bind_released
from sfumato.query.sql.unit_sets import split_conditions

_LAG = "Use LAG(n) OVER (ORDER BY period), or one aggregate query with FILTER."


def joined_released(
    tree: exp.Expr, rows: ReleasedRows, views: Views, reader: ExpressionCompiler
) -> tuple[exp.Expr, ReleasedRows]:
    """A SELECT over noisy rows without its joins and scalar subqueries, and the rows with the columns of these."""
    item = tree.args["from_"].this
    if not isinstance(item, exp.Table) or item.name.lower() not in views:
        return tree, rows
    source, made = item.name.lower(), tree.copy()
    made.set("with_", None)
    scalars = [
        node for node in made.find_all(exp.Subquery)
        if isinstance(node.this, exp.Select) and not isinstance(node.parent, exp.In | exp.From | exp.Join)
        and _is_total(node.this, source) and len(node.this.expressions) == 1
    ]  # fmt: skip
    for place, node in enumerate(scalars):
        hidden = f"subquery {place}"
        rows = _with_totals(node.this, hidden, rows, reader)
        [name] = [name for alias, name, _ in rows.joined if alias == hidden]
        node.replace(exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(hidden, quoted=True)))
    left, kept = [], []
    for join in made.args.get("joins") or ():
        named = join.this.name.lower() if isinstance(join.this, exp.Table) else ""
        select, scope = views.get(named, (None, {}))
        if named == source and (join.args.get("on") or join.args.get("using")):
            rows, partner = _with_lookup(join, item.alias_or_name.lower(), rows, reader)
            kept += [] if join.side else [Keep(partner)]
        elif (
            select is not None and not join.args.get("on") and not join.args.get("using") and not join.side
            and _is_total(select, source) and scope.get(source, (None,))[0] is views[source][0]
        ):  # fmt: skip
            rows = _with_totals(select, join.this.alias_or_name.lower(), rows, reader)
        else:
            left.append(join)
    made.set("joins", left)
    # Every join is with all rows: those without a partner leave after the last one.
    return made, ReleasedRows(rows.outputs, (*rows.steps, *kept), rows.families, rows.windows, rows.joined)


def _is_total(select: exp.Expr, source: str) -> bool:
    """Whether a SELECT is one row of aggregates of all rows of ``source``."""
    if not isinstance(select, exp.Select):
        return False
    others = [name for name, value in select.args.items() if value and name not in ("expressions", "from_")]
    table = select.args["from_"].this if select.args.get("from_") else None
    if others or not isinstance(table, exp.Table) or table.name.lower() != source:
        return False
    return all(
        any(map(AggregateCompiler.is_aggregate, item.walk())) and all(map(_inside, item.find_all(exp.Column)))
        for item in select.expressions
    )


def _inside(column: exp.Column) -> bool:
    """Whether a column is in an aggregate."""
    node: exp.Expr | None = column
    while node is not None and not isinstance(node, exp.Select):
        if AggregateCompiler.is_aggregate(node):
            return True
        node = node.parent
    return False


def _with_totals(select: exp.Expr, alias: str, rows: ReleasedRows, reader: ExpressionCompiler) -> ReleasedRows:
    """The rows with the aggregates of all of them as further columns: window functions without a partition."""
    over = select.copy()
    for node in [node for node in over.walk() if AggregateCompiler.is_aggregate(node)]:
        node.replace(exp.Window(this=node.copy()))
    own = select.args["from_"].this.alias_or_name
    made = bind_released(over, ReleasedRows(rows.outputs, rows.steps, rows.families, rows.windows), own, reader)
    joined = [(alias, name, output) for name, output in made.outputs]
    return ReleasedRows(rows.outputs, made.steps, rows.families, made.windows, (*rows.joined, *joined))


def _with_lookup(
    join: exp.Join, own: str, rows: ReleasedRows, reader: ExpressionCompiler
) -> tuple[ReleasedRows, WindowColumn]:
    """The rows with the columns of the one row that ON names, and a column that is true where there is one."""
    alias, side = join.this.alias_or_name.lower(), (join.side or "").upper()
    if side not in ("", "LEFT") or (join.kind or "").upper() not in ("", "INNER", "OUTER"):
        raise reader.refuse(join, "Noisy rows are joined with JOIN or LEFT JOIN.", _LAG)
    here, there = [], []
    for one, other in _equalities(join, reader):
        for node in (one, other):
            if {column.table.lower() for column in node.find_all(exp.Column)} == {alias}:
                there.append(_output(node, alias, rows, reader))
            else:
                here.append(_output(node, own, rows, reader))
    keys = {_key(output) for output in there}
    if len(here) != len(there) or keys != {Key(place) for place in range(len(rows.families))}:
        raise reader.refuse(
            join, "A join of noisy rows must equate each group key of one side, and no other column, with the other.",
            f"Name all keys of GROUP BY in ON. {_LAG}",
        )  # fmt: skip
    if any(isinstance(step, Collapse) for step in rows.steps):
        raise reader.refuse(join, "Groups of noisy rows cannot be joined with each other.", _LAG)
    steps: list[RowStep] = list(rows.steps)
    joined, windows = list(rows.joined), rows.windows
    for name, output in (*rows.outputs, ("", Value(True))):
        windows += 1
        steps.append(Compute(windows, WindowCall(function="lookup", args=(output, *here), partition=tuple(there))))
        found = WindowColumn(windows, output.family(rows.families))
        joined += [(alias, name, found)] if name else []
    return ReleasedRows(rows.outputs, steps, rows.families, windows, joined), found


def _equalities(join: exp.Join, reader: ExpressionCompiler) -> list[tuple[exp.Expr, exp.Expr]]:
    using, alias = join.args.get("using"), join.this.alias_or_name
    if using:
        return [(exp.column(node.copy()), exp.column(node.copy(), table=alias)) for node in using]
    parts = split_conditions(join.args["on"])
    if not all(isinstance(part, exp.EQ) for part in parts):
        raise reader.refuse(join, "ON supports equalities joined by AND.", "Use WHERE for other conditions.")
    return [(part.this, part.expression) for part in parts]


def _output(node: exp.Expr, alias: str, rows: ReleasedRows, reader: ExpressionCompiler) -> Output:
    select = exp.Select(expressions=[exp.alias_(node.copy(), "key")])
    plain = ReleasedRows(rows.outputs, (), rows.families, rows.windows)
    return bind_released(select, plain, alias, reader).outputs[0][1]


def _key(output: Output) -> Output:
    """The key of ``key + 1``, ``key - 1`` and ``key + INTERVAL``, which are different for different keys."""
    match output:
        case Operation(args=(Key() as key, Value(value=int())), sign="+" | "-"):
            return key
        case Operation(args=(Value(value=int()), Key() as key), sign="+"):
            return key
        case LaterDate(args=(Key() as key,)):
            return key
    return output


def check_shifted(steps: Sequence[RowStep], keys: Sequence[GroupKey], reader: ExpressionCompiler) -> None:
    """Refuse a join on dates of which an INTERVAL makes one of two, such as the last days of a month."""
    for step in steps:
        if not isinstance(step, Compute) or step.call.function != "lookup":
            continue
        for output in step.call.partition:
            if isinstance(output, LaterDate) and isinstance(output.args[0], Key) and output.months:
                days = keys[output.args[0].index].values
                if days is None or len({add_interval(day, output.months) for day in days}) < len(days):
                    raise reader.refuse(
                        None, "An INTERVAL of months is added to keys that are first days of publicly known months.",
                        "Use DATE_TRUNC('month', day) with a range of dates in WHERE, or an INTERVAL of days.",
                    )  # fmt: skip
