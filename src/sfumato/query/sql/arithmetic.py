"""Arithmetic: expressions that raise no error on any data, with bounds of the result."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING

from sqlglot import exp

from sfumato.dataset import Kind
from sfumato.engines.expressions import (
    NOTHING,
    Arithmetic,
    Case,
    Cast,
    Compare,
    Extreme,
    Modulo,
    Negative,
    NullIf,
    constant,
    equal,
    when,
)
from sfumato.engines.functions import Function, RoundTo
from sfumato.query.plan.scalar import LARGEST_LITERAL, Scalar, ScalarFacts, literal
from sfumato.query.sql.dates import date_difference, shifted

if TYPE_CHECKING:
    from sfumato.query.sql.expressions import ExpressionCompiler, Rule


def _corners(a: Scalar, b: Scalar, f: Callable[[Fraction, Fraction], Fraction]) -> ScalarFacts:
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return {}
    ends = [f(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return {"low": min(ends), "high": max(ends)}


def _dated(reader: ExpressionCompiler, node: exp.Expr, sign: str) -> Scalar | None:
    """A date ± INTERVAL, or the number of days between two dates; None for numbers."""
    moved = shifted(reader, node, 1 if sign == "+" else -1)
    if moved is not None or sign == "+" or not isinstance(node.this, exp.Column | exp.Cast):
        return moved
    if reader.read(node.this).kind is not Kind.DATE or reader.read(node.expression).kind is not Kind.DATE:
        return None
    return date_difference(reader, node, node.this, node.expression, "DAY")


def _arithmetic(sign: str, f: Callable[[Fraction, Fraction], Fraction]) -> Rule:
    def rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
        dated = _dated(reader, node, sign) if sign in "+-" else None
        if dated is not None:
            return dated
        a, b = reader.number(node.this), reader.number(node.expression)
        if isinstance(a.constant, Fraction) and isinstance(b.constant, Fraction):
            exact = f(a.constant, b.constant)
            if abs(exact) <= LARGEST_LITERAL:
                return literal(exact)  # as floats, 0.06 + 0.01 is below 0.07
        return Scalar(node=Arithmetic(sign, a.as_double(), b.as_double()), kind=Kind.NUMBER, **_corners(a, b, f))

    return rule


def _divide(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    a, b = reader.number(node.this), reader.number(node.expression)
    known: ScalarFacts = {}
    if isinstance(b.constant, Fraction) and b.constant != 0:
        known = _corners(a, b, lambda x, y: x / y)
    divisor = NullIf(b.as_double(), constant(0.0))
    return Scalar(node=Arithmetic("/", a.as_double(), divisor), kind=Kind.NUMBER, **known)


def _is_whole(reader: ExpressionCompiler, node: exp.Expr) -> bool:
    """Whether a number is whole on all rows: also sums and products of whole numbers that floats represent exactly."""
    node = node.unnest()
    a = reader.number(node)
    if a.kind is Kind.INTEGER:
        return True
    exact = a.low is not None and a.high is not None and max(abs(a.low), abs(a.high)) < 1 << 53
    return (
        exact
        and isinstance(node, exp.Add | exp.Sub | exp.Mul)
        and all(_is_whole(reader, side) for side in (node.this, node.expression))
    )


def _whole_quotient(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    """``a // b`` of whole numbers: the quotient without its fraction, towards zero; missing where b is 0.

    It is increasing in a for b > 0 and decreasing for b < 0, so that its ends are those of the quotient.
    """
    if not all(_is_whole(reader, side) for side in (node.this, node.expression)):
        raise reader.refuse(node, "`//` takes whole numbers.", "Use FLOOR(a / b) or TRUNC(a / b).")
    quotient = _divide(reader, node)
    known: ScalarFacts = {}
    if quotient.low is not None and quotient.high is not None:
        known = {"low": Fraction(quotient.low.__trunc__()), "high": Fraction(quotient.high.__trunc__())}
    return Scalar(node=Cast(Function(quotient.node, "trunc"), "int"), kind=Kind.INTEGER, **known)


def _modulo(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    """Remainder of a division that truncates towards zero; it has the sign of the dividend, as in standard SQL."""
    a, b = reader.number(node.this), reader.number(node.expression)
    known: ScalarFacts = {}
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


def _negative(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    a = reader.number(node.this)
    if isinstance(a.constant, Fraction):
        return literal(-a.constant)
    known: ScalarFacts = {"low": -a.high, "high": -a.low} if a.low is not None and a.high is not None else {}
    return Scalar(node=Negative(a.as_double()), kind=Kind.NUMBER, **known)


def _absolute(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    a = reader.number(node.this)
    known: ScalarFacts = {}
    if a.low is not None and a.high is not None:
        least = Fraction(0) if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
        known = {"low": least, "high": max(abs(a.low), abs(a.high))}
    return Scalar(node=Function(a.as_double(), "abs"), kind=Kind.NUMBER, **known)


def _whole(function: str, f: Callable[[Fraction], int]) -> Rule:
    def rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
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
                ends: ScalarFacts = {}
                if a.low is not None and a.high is not None:
                    ends = {"low": Fraction((a.low * unit).__floor__(), unit),
                            "high": Fraction((a.high * unit).__ceil__(), unit)}  # fmt: skip
                return Scalar(node=RoundTo(a.as_double(), int(places.constant)), kind=Kind.NUMBER, **ends)
        return _made(a)

    def _made(a: Scalar) -> Scalar:
        known: ScalarFacts = {}
        if a.low is not None and a.high is not None:
            known = {"low": Fraction(f(a.low)), "high": Fraction(f(a.high))}
        return Scalar(node=Cast(Function(a.as_double(), function), "int"), kind=Kind.INTEGER, **known)

    return rule


def _root(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    """SQRT, missing below 0."""
    a = reader.number(node.this)
    known: ScalarFacts = {}
    if a.high is not None:
        known = {"low": Fraction(0), "high": Fraction(isqrt(max(0, a.high.__ceil__())) + 1)}
    x = a.as_double()
    return Scalar(node=when(Compare(">=", x, constant(0.0)), Function(x, "sqrt")), kind=Kind.NUMBER, **known)


def _power(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    a, power = reader.number(node.this), reader.read(node.expression).constant
    if power not in (2, 3):
        raise reader.refuse(node, "POWER supports the constants 2 and 3 here.", "Use x * x * x * x, or SQRT(x).")
    known: ScalarFacts = {}
    if a.low is not None and a.high is not None:
        ends = [a.low**power, a.high**power, *([Fraction(0)] if a.low <= 0 <= a.high else [])]
        known = {"low": min(ends), "high": max(ends)}
    x = a.as_double()
    square = Arithmetic("*", x, x)
    return Scalar(node=square if power == 2 else Arithmetic("*", square, x), kind=Kind.NUMBER, **known)


def _sign(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    x, zero = reader.number(node.this).as_double(), constant(0.0)
    tests = ((Compare(">", x, zero), constant(1)), (Compare("<", x, zero), constant(-1)), (equal(x, zero), constant(0)))
    return Scalar(node=Case(tests, NOTHING), kind=Kind.INTEGER, low=Fraction(-1), high=Fraction(1))


def _bucket(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    """WIDTH_BUCKET(x, low, high, n): 1 to n between the bounds, 0 below and n + 1 from the upper one on."""
    x = reader.number(node.this).as_double()
    names = ("min_value", "max_value", "num_buckets")
    low, high, count = (reader.read(node.args.get(name)).constant for name in names)
    if not all(isinstance(end, Fraction) for end in (low, high, count)) or low >= high or count not in range(1, 10_000):
        raise reader.refuse(node, "WIDTH_BUCKET(x, low, high, n) needs constants: low below high, n from 1 to 9999.")
    above = Arithmetic("-", x, constant(float(low)))
    share = Arithmetic("/", Arithmetic("*", above, constant(float(count))), constant(float(high - low)))
    inside = Arithmetic("+", Cast(Function(share, "floor"), "int"), constant(1))
    tests = (
        (Compare("<", x, constant(float(low))), constant(0)),
        (Compare(">=", x, constant(float(high))), constant(int(count) + 1)),
    )
    last = when(Compare("<", x, constant(float(high))), Extreme((inside, constant(int(count))), True))
    return Scalar(node=Case(tests, last), kind=Kind.INTEGER, low=Fraction(0), high=count + 1)


ARITHMETIC_RULES: dict[type[exp.Expr], Rule] = {
    exp.Add: _arithmetic("+", lambda x, y: x + y),
    exp.Sub: _arithmetic("-", lambda x, y: x - y),
    exp.Mul: _arithmetic("*", lambda x, y: x * y),
    exp.Div: _divide,
    exp.IntDiv: _whole_quotient,
    exp.Mod: _modulo,
    exp.Neg: _negative,
    exp.Abs: _absolute,
    exp.Sqrt: _root,
    exp.Pow: _power,
    exp.Sign: _sign,
    exp.WidthBucket: _bucket,
    exp.Trunc: _whole("trunc", lambda x: x.__trunc__()),
    exp.Floor: _whole("floor", lambda x: x.__floor__()),
    exp.Ceil: _whole("ceil", lambda x: x.__ceil__()),
    exp.Round: _whole("round", lambda x: (abs(x) + Fraction(1, 2)).__floor__() * (1 if x >= 0 else -1)),
}
