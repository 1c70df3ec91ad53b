"""Compile expressions over aggregates in SELECT, HAVING and ORDER BY to post-processing."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

from sfumato.query.results.postprocess import OutputExpr
from sfumato.query.sql.expressions import ExpressionCompiler

__all__ = ["POST_RULES"]


class OutputContext(Protocol):
    """The query being compiled."""

    reader: ExpressionCompiler

    def output(self, node: Any) -> OutputExpr: ...

    def refuse(self, node: Any, reason: str, fix: str = "") -> Exception: ...


def _both(builder: OutputContext, node: Any) -> OutputExpr:
    return OutputExpr(op=type(node).__name__, args=(builder.output(node.this), builder.output(node.expression)))


def _single(builder: OutputContext, node: Any) -> OutputExpr:
    return OutputExpr(op=type(node).__name__, args=(builder.output(node.this),))


def _round(builder: OutputContext, node: Any) -> OutputExpr:
    places = node.args.get("decimals")
    digits = builder.reader.read(places).constant if places is not None else Fraction(0)
    if not isinstance(digits, Fraction) or digits not in range(10):
        raise builder.refuse(node, "The number of decimals must be a constant from 0 to 9.")
    return OutputExpr(op="Round", args=(builder.output(node.this),), value=int(digits))


def _coalesce(builder: OutputContext, node: Any) -> OutputExpr:
    return OutputExpr(op="Coalesce", args=tuple(builder.output(item) for item in [node.this, *node.expressions]))


def _is(builder: OutputContext, node: Any) -> OutputExpr:
    if type(node.expression).__name__ != "Null":
        raise builder.refuse(node, "IS supports NULL here.")
    return OutputExpr(op="IsNull", args=(builder.output(node.this),))


def _between(builder: OutputContext, node: Any) -> OutputExpr:
    x = builder.output(node.this)
    low, high = builder.output(node.args["low"]), builder.output(node.args["high"])
    return OutputExpr(op="And", args=(OutputExpr(op="GTE", args=(x, low)), OutputExpr(op="LTE", args=(x, high))))


def _case(builder: OutputContext, node: Any) -> OutputExpr:
    if node.this is not None:
        raise builder.refuse(node, "CASE over aggregates is written as CASE WHEN condition THEN ...")
    default = node.args.get("default")
    result = OutputExpr(op="constant", value=None)
    if default is not None and type(default).__name__ != "Null":
        result = builder.output(default)
    for branch in reversed(node.args["ifs"]):
        result = OutputExpr(op="If", args=(builder.output(branch.this), builder.output(branch.args["true"]), result))
    return result


def _clip(builder: OutputContext, node: Any) -> OutputExpr:
    if str(node.this).upper() != "CLIP" or len(node.expressions) != 3:
        raise builder.refuse(node, f"`{str(node.this).upper()}` is not a supported function.")
    ends = [builder.reader.read(item).constant for item in node.expressions[1:]]
    if not all(isinstance(end, Fraction) for end in ends) or ends[0] > ends[1]:
        raise builder.refuse(node, "The bounds of CLIP(x, low, high) must be constants with low ≤ high.")
    return OutputExpr(op="Clip", args=(builder.output(node.expressions[0]),), value=tuple(float(end) for end in ends))


POST_RULES: dict[str, Any] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "EQ", "NEQ", "LT", "LTE", "GT", "GTE", "And", "Or"), _both),
    **dict.fromkeys(("Neg", "Abs", "Not"), _single),
    "Round": _round,
    "Coalesce": _coalesce,
    "Is": _is,
    "Between": _between,
    "Case": _case,
    "Anonymous": _clip,
}
