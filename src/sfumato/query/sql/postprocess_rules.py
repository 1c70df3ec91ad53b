"""Bind expressions over aggregates in SELECT, HAVING and ORDER BY to post-processing."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

from sqlglot import exp

from sfumato.query.plan.outputs import (
    Absolute,
    Applied,
    Choice,
    Clipped,
    Extremum,
    First,
    Joined,
    LaterDate,
    Logic,
    Minus,
    Missing,
    Negation,
    Operation,
    Output,
    OutputComparison,
    Power,
    Remainder,
    Rounded,
    Value,
    Written,
)
from sfumato.query.sql.dates import interval_size
from sfumato.query.sql.expressions import ExpressionCompiler
from sfumato.query.sql.refusal import nearest


class OutputContext(Protocol):
    """The query being bound."""

    reader: ExpressionCompiler

    def output(self, node: exp.Expr) -> Output: ...

    def refuse(self, node: exp.Expr | None, reason: str, fix: str = "") -> Exception: ...


Rule = Callable[[OutputContext, exp.Expr], Output]


def _pair(make: Callable[[tuple[Output, ...]], Output]) -> Rule:
    return lambda context, node: make((context.output(node.this), context.output(node.expression)))


def _single(make: Callable[[tuple[Output, ...]], Output]) -> Rule:
    return lambda context, node: make((context.output(node.this),))


def _operation(sign: str) -> Rule:
    return _pair(lambda args: Operation(args, sign))


def _moved(sign: int) -> Rule:
    """A sum or difference, or a date ± INTERVAL."""
    plain = _operation("+" if sign > 0 else "-")

    def rule(context: OutputContext, node: exp.Expr) -> Output:
        day, interval = node.this, node.expression
        if sign > 0 and isinstance(day, exp.Interval):
            day, interval = interval, day
        if not isinstance(interval, exp.Interval):
            return plain(context, node)
        step = {name: sign * size for name, size in interval_size(context.reader, interval).items()}
        return LaterDate((context.output(day),), **step)

    return rule


def _comparison(sign: str) -> Rule:
    return _pair(lambda args: OutputComparison(args, sign))


def _function(name: str) -> Rule:
    def rule(context: OutputContext, node: exp.Expr) -> Output:
        if any(value for key, value in node.args.items() if key != "this"):
            raise context.refuse(node, f"{name.upper()} takes one number here.")
        return Applied((context.output(node.this),), name)

    return rule


def _log(context: OutputContext, node: exp.Expr) -> Output:
    """LOG(x) is the logarithm to base 10; LOG(2, x) and LOG(10, x) name their base."""
    if node.expression is None:
        return Applied((context.output(node.this),), "log10")
    base = context.reader.read(node.this).constant
    if base not in (2, 10):
        raise context.refuse(node, "LOG supports the bases 2 and 10.", "Use LN(x) / LN(base).")
    return Applied((context.output(node.expression),), f"log{base}")


def _round(context: OutputContext, node: exp.Expr) -> Output:
    places = node.args.get("decimals")
    digits = context.reader.read(places).constant if places is not None else Fraction(0)
    if not isinstance(digits, Fraction) or digits not in range(10):
        raise context.refuse(node, "The number of decimals must be a constant from 0 to 9.")
    return Rounded((context.output(node.this),), int(digits))


def _coalesce(context: OutputContext, node: exp.Expr) -> Output:
    return First(tuple(context.output(item) for item in [node.this, *node.expressions]))


def _nullif(context: OutputContext, node: exp.Expr) -> Output:
    value = context.output(node.this)
    return Choice((OutputComparison((value, context.output(node.expression)), "="), Value(None), value))


def _is(context: OutputContext, node: exp.Expr) -> Output:
    if not isinstance(node.expression, exp.Null):
        raise context.refuse(node, "IS supports NULL here.")
    return Missing((context.output(node.this),))


def _between(context: OutputContext, node: exp.Expr) -> Output:
    x = context.output(node.this)
    low, high = context.output(node.args["low"]), context.output(node.args["high"])
    return Logic((OutputComparison((x, low), ">="), OutputComparison((x, high), "<=")), True)


def _in(context: OutputContext, node: exp.Expr) -> Output:
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field") or not node.expressions:
        raise context.refuse(node, "IN accepts a list of values, not a subquery.")
    x = context.output(node.this)
    return Logic(tuple(OutputComparison((x, context.output(item)), "=") for item in node.expressions), False)


def _case(context: OutputContext, node: exp.Expr) -> Output:
    default = node.args.get("default")
    result: Output = Value(None)
    if default is not None and not isinstance(default, exp.Null):
        result = context.output(default)
    value = None if node.this is None else context.output(node.this)
    for branch in reversed(node.args["ifs"]):
        test = context.output(branch.this)
        holds = test if value is None else OutputComparison((value, test), "=")
        result = Choice((holds, context.output(branch.args["true"]), result))
    return result


def _if(context: OutputContext, node: exp.Expr) -> Output:
    other = node.args.get("false")
    no = Value(None) if other is None else context.output(other)
    return Choice((context.output(node.this), context.output(node.args["true"]), no))


def _extremum(*, least: bool) -> Rule:
    def rule(context: OutputContext, node: exp.Expr) -> Output:
        return Extremum(tuple(context.output(item) for item in [node.this, *node.expressions]), least)

    return rule


def _concat(context: OutputContext, node: exp.Expr) -> Output:
    """CONCAT reads missing texts as empty."""
    return Joined(tuple(First((_text(context.output(item)), Value(""))) for item in node.expressions))


def _text(output: Output) -> Output:
    return output if isinstance(output, Value) and isinstance(output.value, str) else Written((output,))


_CASTS = {"INT": "rint", "BIGINT": "rint", "SMALLINT": "rint", "FLOAT": "float", "DOUBLE": "float", "DECIMAL": "float"}


def _cast(context: OutputContext, node: exp.Expr) -> Output:
    to = node.args["to"].this.name
    if to in ("VARCHAR", "TEXT"):
        return Written((context.output(node.this),))
    if to not in _CASTS:
        raise context.refuse(node, "A noisy value can be cast to INTEGER, DOUBLE and VARCHAR.")
    return Applied((context.output(node.this),), _CASTS[to])


def _clip(context: OutputContext, node: exp.Expr) -> Output:
    if str(node.this).upper() != "CLIP" or len(node.expressions) != 3:
        name = str(node.this).upper()
        raise context.refuse(node, f"`{name}` is not a supported function.", nearest(name))
    low, high = (context.reader.read(item).constant for item in node.expressions[1:])
    if not isinstance(low, Fraction) or not isinstance(high, Fraction) or low > high:
        raise context.refuse(node, "The bounds of CLIP(x, low, high) must be constants with low ≤ high.")
    return Clipped((context.output(node.expressions[0]),), float(low), float(high))


POST_RULES: dict[type[exp.Expr], Rule] = {
    exp.Add: _moved(1),
    exp.Sub: _moved(-1),
    exp.Mul: _operation("*"),
    exp.Div: _operation("/"),
    exp.EQ: _comparison("="),
    exp.NEQ: _comparison("<>"),
    exp.LT: _comparison("<"),
    exp.LTE: _comparison("<="),
    exp.GT: _comparison(">"),
    exp.GTE: _comparison(">="),
    exp.And: _pair(lambda args: Logic(args, True)),
    exp.Or: _pair(lambda args: Logic(args, False)),
    exp.Not: _single(Negation),
    exp.Neg: _single(Minus),
    exp.Abs: _single(Absolute),
    exp.Sqrt: _function("sqrt"),
    exp.Exp: _function("exp"),
    exp.Ln: _function("ln"),
    exp.Log: _log,
    exp.Floor: _function("floor"),
    exp.Ceil: _function("ceil"),
    exp.Round: _round,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Case: _case,
    exp.Anonymous: _clip,
    exp.If: _if,
    exp.Least: _extremum(least=True),
    exp.Greatest: _extremum(least=False),
    exp.Pow: _pair(Power),
    exp.Mod: _pair(Remainder),
    exp.Sign: _function("sign"),
    exp.Trunc: _function("trunc"),
    exp.DPipe: _pair(lambda args: Joined(tuple(map(_text, args)))),
    exp.Concat: _concat,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
