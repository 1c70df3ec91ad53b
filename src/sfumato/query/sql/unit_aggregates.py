"""Aggregates over one unit's own rows, in subqueries that group by the unit."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from sfumato.dataset import Kind
from sfumato.engines.aggregation import CountRows, Largest, Total
from sfumato.engines.expressions import (
    NOTHING,
    Arithmetic,
    Case,
    Cast,
    Compare,
    Expression,
    Not,
    NullIf,
    constant,
    equal,
    when,
)
from sfumato.engines.functions import Function
from sfumato.query.plan.aggregates import bounds_problem, clipped, fixed_point, present
from sfumato.query.plan.scalar import Scalar, flag
from sfumato.query.sql.expressions import ExpressionCompiler, Rule

_FAR = 1 << 61
"""Returns the aggregate with the public bounds of its value."""


def _unit_count(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    inner = node.this
    least = 0
    if isinstance(inner, exp.Star):
        count, least = CountRows(), 1  # a group that is there has a row
    elif isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
        count = CountRows(reader.read(inner.expressions[0]).node, distinct=True)
    else:
        count = CountRows(reader.read(inner).node)
    return Scalar(node=count, kind=Kind.INTEGER, low=Fraction(least))


def _unit_extreme(*, least: bool) -> Rule:
    def rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
        dated = reader.read(node.this)
        if dated.kind in (Kind.DATE, Kind.DATETIME):
            return Scalar(node=Largest(dated.node, least), kind=dated.kind, first=dated.first, last=dated.last)
        scalar = reader.number(node.this)
        if scalar.kind is Kind.INTEGER:
            return Scalar(node=Largest(scalar.node, least), kind=Kind.INTEGER, low=scalar.low, high=scalar.high)
        x, zero = scalar.as_double(), constant(0.0)
        # Zeros lose their sign: which of two equal zeros is the extreme would depend on the order of rows.
        value = Case(((equal(x, zero), zero), (Not(Function(x, "isnan")), x)), NOTHING)
        return Scalar(node=Largest(value, least), kind=Kind.NUMBER, low=scalar.low, high=scalar.high)

    return rule


def _unit_sum(*, mean: bool) -> Rule:
    """Sums are of integer steps, exact in any order: a float sum could change with rows of *other* units.

    The sum of no values is missing, as in SQL, and not 0.
    """

    def rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
        scalar = reader.number(node.this)
        reason = bounds_problem(scalar)
        if reason:
            raise reader.refuse(node, reason, "Use CLIP(x, low, high) inside the aggregate.")
        steps = fixed_point(scalar)
        total: Expression = Total(when(steps.present, steps.node))
        if scalar.kind is Kind.INTEGER and steps.grid == 1 and not mean:
            # Clipped, because engines raise on sums beyond 64 bits. LEAST and GREATEST skip missing values on some.
            some = Compare(">", CountRows(where=steps.present), constant(0))
            inside = Cast(clipped(total, constant(-_FAR), constant(_FAR)), "int")
            return Scalar(node=when(some, inside), kind=Kind.INTEGER)
        total = Arithmetic("*", Cast(total, "float"), constant(float(steps.grid)))
        if not mean:
            return Scalar(node=total, kind=Kind.NUMBER)
        count = NullIf(CountRows(where=present(scalar)), constant(0))
        average = Arithmetic("/", total, Cast(count, "float"))
        return Scalar(node=average, kind=Kind.NUMBER, low=scalar.low, high=scalar.high)

    return rule


def _unit_truth(*, every: bool) -> Rule:
    """Whether a condition holds for a row, or for all of them; missing where it is known for none."""

    def rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
        condition = reader.condition(node.this).node
        wanted = Not(condition) if every else condition
        found = Compare("=" if every else ">", CountRows(where=wanted), constant(0))
        return flag(when(Compare(">", CountRows(condition), constant(0)), found))

    return rule


UNIT_AGGREGATES: dict[type[exp.Expr], Rule] = {
    exp.Count: _unit_count,
    exp.Sum: _unit_sum(mean=False),
    exp.Avg: _unit_sum(mean=True),
    exp.Min: _unit_extreme(least=True),
    exp.Max: _unit_extreme(least=False),
    exp.LogicalOr: _unit_truth(every=False),
    exp.LogicalAnd: _unit_truth(every=True),
}


def unfiltered(node: exp.Expr) -> exp.Expr:
    """``COUNT_IF`` and aggregates with FILTER as aggregates of CASE; everything else as it is."""
    if isinstance(node, exp.CountIf):
        return exp.Count(this=_where(node.this, exp.Literal.number(1)))
    if not isinstance(node, exp.Filter) or type(node.this) not in UNIT_AGGREGATES:
        return node
    call: exp.Expr = node.this.copy()
    condition: exp.Expr = node.expression.this
    if isinstance(call.this, exp.Distinct):
        call.this.set("expressions", [_where(condition, value) for value in call.this.expressions])
    else:
        call.set("this", _where(condition, exp.Literal.number(1) if isinstance(call.this, exp.Star) else call.this))
    return call


def filtered_groups(node: exp.Select) -> exp.Select:
    """A SELECT with GROUP BY and HAVING as one with WHERE over the same groups, which have what HAVING reads."""
    groups = node.copy()
    condition = exp.Paren(this=groups.args.pop("having").this)
    items = [exp.column(exp.to_identifier(item.alias_or_name, quoted=True)) for item in groups.expressions]
    keys = {key.name.lower() for key in groups.args["group"].expressions if isinstance(key, exp.Column)}
    read = [call for call in condition.find_all(*UNIT_AGGREGATES) if call.find_ancestor(*UNIT_AGGREGATES) is None]
    # A name in HAVING is a key before it is an alias of SELECT.
    read += [
        column for column in condition.find_all(exp.Column)
        if column.name.lower() in keys and column.find_ancestor(*UNIT_AGGREGATES) is None
    ]  # fmt: skip
    for place, part in enumerate(read):
        name = exp.to_identifier(f"having {place}", quoted=True)
        groups.append("expressions", exp.alias_(part.copy(), name))
        part.replace(exp.column(name.copy()))
    return exp.Select(expressions=items).from_(groups.subquery("groups"), copy=False).where(condition, copy=False)


def computed_groups(node: exp.Select) -> exp.Select | None:
    """A SELECT with GROUP BY whose columns compute with aggregates as one over the same groups, which have these; None
    where there is nothing to compute."""
    if not any(_computes(item) for item in node.expressions):
        return None
    groups, keys = node.copy(), node.args["group"].expressions
    inner: list[exp.Expr] = []
    outer: list[exp.Expr] = []
    for item in groups.expressions:
        if not _computes(item):
            inner.append(item)
            outer.append(exp.column(exp.to_identifier(item.alias_or_name, quoted=True)))
            continue
        made = exp.Select(expressions=[item.copy()])
        for part in list(made.find_all(exp.Expr)):
            known = part in keys or isinstance(part, exp.Column) or type(part) in UNIT_AGGREGATES
            if known and part.parent is not None and part.root() is made and not isinstance(part.parent, exp.Select):
                name = exp.to_identifier(f"computed {len(inner)}", quoted=True)
                inner.append(exp.alias_(part.copy(), name))
                part.replace(exp.column(name.copy()))
        outer += made.expressions
    groups.set("expressions", inner)
    return exp.Select(expressions=outer).from_(groups.subquery("groups"), copy=False)


def _computes(item: exp.Expr) -> bool:
    """Whether a column is an expression of aggregates, and not one of them."""
    node = item.unalias()
    whole = type(node) in UNIT_AGGREGATES or isinstance(node, exp.Star) or node.find(exp.Window, exp.Query) is not None
    return not whole and node.find(*UNIT_AGGREGATES) is not None


def _where(condition: exp.Expr, value: exp.Expr) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])
