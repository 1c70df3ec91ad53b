"""Arithmetic: expressions that raise no error on any data, with bounds of the result."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sfumato.engines.expressions import Arithmetic, Cast, Modulo, Negative, NullIf, constant
from sfumato.engines.functions import Function, RoundTo
from sfumato.query.plan.scalar import Scalar, literal
from sfumato.schema import Kind

if TYPE_CHECKING:
    from sfumato.query.sql.expressions import ExpressionCompiler

__all__ = ["ARITHMETIC_RULES"]


def _corners(a: Scalar, b: Scalar, f: Callable[[Fraction, Fraction], Fraction]) -> dict[str, Any]:
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return {}
    ends = [f(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return {"low": min(ends), "high": max(ends)}


def _arithmetic(sign: str, f: Callable[[Fraction, Fraction], Fraction]) -> Callable[[ExpressionCompiler, Any], Scalar]:
    def rule(reader: ExpressionCompiler, node: Any) -> Scalar:
        a, b = reader.number(node.this), reader.number(node.expression)
        return Scalar(node=Arithmetic(sign, a.as_double(), b.as_double()), kind=Kind.NUMBER, **_corners(a, b, f))

    return rule


def _divide(reader: ExpressionCompiler, node: Any) -> Scalar:
    a, b = reader.number(node.this), reader.number(node.expression)
    known: dict[str, Any] = {}
    if isinstance(b.constant, Fraction) and b.constant != 0:
        known = _corners(a, b, lambda x, y: x / y)
    divisor = NullIf(b.as_double(), constant(0.0))
    return Scalar(node=Arithmetic("/", a.as_double(), divisor), kind=Kind.NUMBER, **known)


def _modulo(reader: ExpressionCompiler, node: Any) -> Scalar:
    """Remainder of a division that truncates towards zero; it has the sign of the dividend, as in standard SQL."""
    a, b = reader.number(node.this), reader.number(node.expression)
    known: dict[str, Any] = {}
    if isinstance(b.constant, Fraction) and b.constant != 0:
        far = abs(b.constant)
        whole = a.kind is Kind.INTEGER and far.denominator == 1
        most = far - 1 if whole else far
        known = {"low": Fraction(0) if a.low is not None and a.low >= 0 else -most,
                 "high": Fraction(0) if a.high is not None and a.high <= 0 else most}  # fmt: skip
        if whole and far < 1 << 62:
            # In integers, which are exact at any size. The divisor's sign only matters for an overflow.
            return Scalar(node=Modulo(a.node, constant(int(far))), kind=Kind.INTEGER, **known)
    divisor = NullIf(b.as_double(), constant(0.0))
    return Scalar(node=Modulo(a.as_double(), divisor), kind=Kind.NUMBER, **known)


def _negative(reader: ExpressionCompiler, node: Any) -> Scalar:
    a = reader.number(node.this)
    if isinstance(a.constant, Fraction):
        return literal(-a.constant)
    known: dict[str, Any] = {"low": -a.high, "high": -a.low} if a.low is not None and a.high is not None else {}
    return Scalar(node=Negative(a.as_double()), kind=Kind.NUMBER, **known)


def _absolute(reader: ExpressionCompiler, node: Any) -> Scalar:
    a = reader.number(node.this)
    known: dict[str, Any] = {}
    if a.low is not None and a.high is not None:
        least = Fraction(0) if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
        known = {"low": least, "high": max(abs(a.low), abs(a.high))}
    return Scalar(node=Function(a.as_double(), "abs"), kind=Kind.NUMBER, **known)


def _whole(function: str, f: Callable[[Fraction], int]) -> Callable[[ExpressionCompiler, Any], Scalar]:
    def rule(reader: ExpressionCompiler, node: Any) -> Scalar:
        a = reader.number(node.this)
        strange = {name for name, value in node.args.items() if value is not None} - {"this", "decimals"}
        if strange or (function != "round" and node.args.get("decimals") is not None):
            raise reader.refuse(node, f"{function.upper()} of this form is not supported.")
        if node.args.get("decimals") is not None:
            places = reader.read(node.args["decimals"])
            if not isinstance(places.constant, Fraction) or places.constant not in range(10):
                raise reader.refuse(node, "The number of decimals must be a constant from 0 to 9.")
            if places.constant:
                unit = 10 ** int(places.constant)
                ends: dict[str, Any] = {}
                if a.low is not None and a.high is not None:
                    ends = {"low": Fraction((a.low * unit).__floor__(), unit),
                            "high": Fraction((a.high * unit).__ceil__(), unit)}  # fmt: skip
                return Scalar(node=RoundTo(a.as_double(), int(places.constant)), kind=Kind.NUMBER, **ends)
        return _made(a)

    def _made(a: Scalar) -> Scalar:
        known: dict[str, Any] = {}
        if a.low is not None and a.high is not None:
            known = {"low": Fraction(f(a.low)), "high": Fraction(f(a.high))}
        return Scalar(node=Cast(Function(a.as_double(), function), "int"), kind=Kind.INTEGER, **known)

    return rule


ARITHMETIC_RULES: dict[type[exp.Expression], Callable[[ExpressionCompiler, Any], Scalar]] = {
    exp.Add: _arithmetic("+", lambda x, y: x + y),
    exp.Sub: _arithmetic("-", lambda x, y: x - y),
    exp.Mul: _arithmetic("*", lambda x, y: x * y),
    exp.Div: _divide,
    exp.Mod: _modulo,
    exp.Neg: _negative,
    exp.Abs: _absolute,
    exp.Floor: _whole("floor", lambda x: x.__floor__()),
    exp.Ceil: _whole("ceil", lambda x: x.__ceil__()),
    exp.Round: _whole("round", lambda x: (x + Fraction(1, 2)).__floor__()),
}
