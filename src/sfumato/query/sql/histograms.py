"""HISTOGRAM(x, n): the number of rows in each of n equally wide bins between the public bounds of a number.

It is a count by groups, whose keys are the bins: ``HISTOGRAM(x, n) AS h`` becomes the columns ``bin_low``, ``bin_high``
and ``h`` with one row a bin. Every row with a value is in exactly one bin, which depends on the row alone: values
beyond the bounds are in the first and the last bin, as they are clipped elsewhere. The sensitivity is therefore that of
COUNT(*) with GROUP BY.
"""

from __future__ import annotations

from sqlglot import exp

from sfumato.query.plan.aggregates import bounds_problem
from sfumato.query.sql.expressions import ExpressionCompiler

_MOST_BINS = 1_000


def is_histogram(node: exp.Expr) -> bool:
    """Whether a syntax node is a call of HISTOGRAM."""
    return isinstance(node, exp.Anonymous) and str(node.this).upper() == "HISTOGRAM"


def with_bins(tree: exp.Expr, reader: ExpressionCompiler) -> exp.Expr:
    """The SELECT with its HISTOGRAM as a count by bin; the SELECT itself where it has none."""
    found = [item for item in tree.expressions if is_histogram(item.unalias())]
    if not found:
        return tree
    if len(found) > 1:
        raise reader.refuse(found[1], "A query has one HISTOGRAM.", "Use one query for each.")
    group = tree.args.get("group")
    if group is not None and any(isinstance(key, exp.Literal) for key in group.expressions):
        raise reader.refuse(
            found[0], "HISTOGRAM is a count by its own bins.", "Leave out GROUP BY, or write its other columns by name."
        )
    call = found[0].unalias()
    key, low, width = _bins(call, reader)
    below = exp.Sub(this=key.copy(), expression=exp.Literal.number(1))
    made = tree.copy()
    place = tree.expressions.index(found[0])
    items = list(made.expressions)
    items[place : place + 1] = [
        exp.alias_(_edge(below, low, width), "bin_low"),
        exp.alias_(_edge(key.copy(), low, width), "bin_high"),
        exp.alias_(exp.Count(this=exp.Star()), found[0].alias or "histogram"),
    ]
    made.set("expressions", items)
    group = made.args.get("group") or exp.Group(expressions=[])
    group.append("expressions", key)
    made.set("group", group)
    return made


def _edge(number: exp.Expr, low: float, width: float) -> exp.Expr:
    return exp.Add(this=_constant(low), expression=exp.Mul(this=exp.paren(number), expression=_constant(width)))


def _constant(value: float) -> exp.Expr:
    return exp.Literal.number(repr(value)) if value >= 0 else exp.Neg(this=exp.Literal.number(repr(-value)))


def _bins(call: exp.Expr, reader: ExpressionCompiler) -> tuple[exp.Expr, float, float]:
    """The number of a row's bin as a syntax node, the lower end of the first bin, and the width of a bin."""
    if len(call.expressions) != 2:
        raise reader.refuse(
            call, "HISTOGRAM takes a number and how many bins.", "Use HISTOGRAM(x, 10); for values: GROUP BY x."
        )
    x, count = call.expressions
    bins = reader.read(count).constant
    if bins is None or bins not in range(1, _MOST_BINS + 1):
        raise reader.refuse(call, f"The number of bins must be a constant from 1 to {_MOST_BINS:,}.")
    scalar = reader.number(x)
    reason = bounds_problem(scalar) or ("The bounds of this number are one point." if scalar.low == scalar.high else "")
    if reason:
        raise reader.refuse(call, reason, "Use CLIP(x, low, high), or declare a domain for the column.")
    low, high = float(scalar.low or 0), float(scalar.high or 0)
    clipped = _clip(x.copy(), _constant(low), _constant(high))
    bucket = exp.WidthBucket(
        this=clipped, min_value=_constant(low), max_value=_constant(high), num_buckets=count.copy()
    )
    inside = _clip(bucket, exp.Literal.number(1), count.copy())
    return exp.cast(inside, "BIGINT"), low, (high - low) / int(bins)


def _clip(x: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="CLIP", expressions=[x, low, high])
