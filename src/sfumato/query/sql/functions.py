"""Casts, date parts and text functions: expressions that raise no error on any data."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sfumato.engines.expressions import Cast, constant
from sfumato.engines.functions import DatePart, Function, Shaped, Substring
from sfumato.engines.text_patterns import reads_as
from sfumato.query.plan.scalar import TYPES, Scalar, literal
from sfumato.schema import Kind

if TYPE_CHECKING:
    from sfumato.query.sql.expressions import ExpressionCompiler

__all__ = ["FUNCTION_RULES"]

_PARTS = {"YEAR": None, "QUARTER": (1, 4), "MONTH": (1, 12), "DAY": (1, 31), "DOW": (0, 6), "DAYOFWEEK": (0, 6),
          "HOUR": (0, 23), "MINUTE": (0, 59), "WEEK": (1, 53)}  # fmt: skip
_CASTS = {
    "TINYINT": Kind.INTEGER, "SMALLINT": Kind.INTEGER, "INT": Kind.INTEGER, "BIGINT": Kind.INTEGER,
    "FLOAT": Kind.NUMBER, "DOUBLE": Kind.NUMBER, "DECIMAL": Kind.NUMBER, "VARCHAR": Kind.CATEGORY,
    "TEXT": Kind.CATEGORY, "DATE": Kind.DATE, "TIMESTAMP": Kind.DATETIME,
    "TIMESTAMPNTZ": Kind.DATETIME, "BOOLEAN": Kind.BOOLEAN,
}  # fmt: skip
_SHAPED = {
    Kind.INTEGER: ("int", "number such as 12 or -3"), Kind.NUMBER: ("float", "number such as 12, -0.5 or 1e6"),
    Kind.DATE: ("date", "date of the form 2024-12-31"), Kind.DATETIME: ("time", "time of the form 2024-12-31 23:59:00"),
    Kind.BOOLEAN: ("flag", "`true` or `false`"),
}  # fmt: skip
"""How the text that is cast must read, by its name among the engines' shapes and in words."""


def _cast(reader: ExpressionCompiler, node: Any) -> Scalar:
    kind = _CASTS.get(node.args["to"].this.name)
    if kind is None:
        raise reader.refuse(node, "CAST supports INTEGER, DOUBLE, VARCHAR, DATE, TIMESTAMP and BOOLEAN.")
    a = reader.read(node.this)
    if a.kind is kind:
        return a.plain(a.node) if a.constant is None else a
    if isinstance(a.constant, str):
        return _written(reader, node, a.constant, kind)
    if a.family == "text":
        return Scalar(node=Cast(Shaped(a.node, _SHAPED[kind][0]), TYPES[kind]), kind=kind)
    known: dict[str, Any] = {"low": a.low, "high": a.high} if a.number and kind in (Kind.INTEGER, Kind.NUMBER) else {}
    return Scalar(node=Cast(a.node, TYPES[kind]), kind=kind, **known)


def _written(reader: ExpressionCompiler, node: Any, text: str, kind: Kind) -> Scalar:
    """Cast of a text constant, evaluated here by the rules of the engines."""
    shape, words = _SHAPED[kind]
    if not reads_as(text, shape):
        raise reader.refuse(node, f"This text is no {words}.")
    match kind:
        case Kind.DATE:
            return literal(date.fromisoformat(text))
        case Kind.DATETIME:
            return literal(datetime.fromisoformat(text))
        case Kind.BOOLEAN:
            return literal(text[0] in "tTyY1")
    number = Fraction(text.strip())
    if kind is Kind.NUMBER:
        return Scalar(node=constant(float(number)), kind=kind, low=number, high=number)
    whole = int(abs(number) + Fraction(1, 2)) * (1 if number >= 0 else -1)
    if abs(whole) >= 1 << 62:
        raise reader.refuse(node, "A number in the query is too large.")
    return literal(whole)


def _date_part(reader: ExpressionCompiler, node: Any) -> Scalar:
    if isinstance(node, exp.Extract):
        part, inner = node.this.name.upper(), node.expression
    else:
        part, inner = node.key.upper(), node.this
    part = {"DAYOFMONTH": "DAY", "DAY_OF_WEEK": "DOW", "DAYOFWEEK": "DOW", "WEEKOFYEAR": "WEEK"}.get(part, part)
    if part not in _PARTS:
        raise reader.refuse(node, f"`{part}` is not a supported date part.", "Known: " + ", ".join(_PARTS) + ".")
    a = reader.read(_undone(inner))
    if a.kind not in (Kind.DATE, Kind.DATETIME):
        raise reader.refuse(node, f"A date is required here, not a {a.family}.")
    if part == "WEEK" and a.kind is Kind.DATE:
        # Of the first year of all that a date can be, no week can be told; such a date is no time either.
        a = Scalar(node=Cast(a.node, "time"), kind=Kind.DATETIME)
    ends = _PARTS[part]
    known: dict[str, Any] = {} if ends is None else {"low": Fraction(ends[0]), "high": Fraction(ends[1])}
    return Scalar(node=DatePart(a.node, part.lower()), kind=Kind.INTEGER, **known)


def _undone(node: Any) -> Any:
    """Some parsers wrap the argument of YEAR(...) in a conversion to a date; what was written is inside."""
    return node.this if isinstance(node, exp.TsOrDsToDate | exp.TsOrDsToTimestamp) else node


def _text_function(function: str) -> Callable[[ExpressionCompiler, Any], Scalar]:
    def rule(reader: ExpressionCompiler, node: Any) -> Scalar:
        if any(value for name, value in node.args.items() if name != "this"):
            raise reader.refuse(node, f"{function.upper()} takes one text here.")
        return Scalar(node=Function(reader.text_value(node.this).node, function), kind=Kind.CATEGORY)

    return rule


def _length(reader: ExpressionCompiler, node: Any) -> Scalar:
    return Scalar(node=Function(reader.text_value(node.this).node, "length"), kind=Kind.INTEGER)


def _substring(reader: ExpressionCompiler, node: Any) -> Scalar:
    a = reader.text_value(node.this)
    numbers = [reader.read(node.args[name]) for name in ("start", "length") if node.args.get(name) is not None]
    if any(not isinstance(n.constant, Fraction) or n.constant not in range(1, 10_000) for n in numbers):
        raise reader.refuse(node, "Start and length of SUBSTRING must be constants from 1 to 9999.")
    start, length = [*(int(n.constant) for n in numbers), None][:2]
    return Scalar(node=Substring(a.node, start or 1, length), kind=Kind.CATEGORY)


FUNCTION_RULES: dict[type[exp.Expression], Callable[[ExpressionCompiler, Any], Scalar]] = {
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _date_part,
    **dict.fromkeys(
        (
            exp.Year,
            exp.Quarter,
            exp.Month,
            exp.Day,
            exp.DayOfMonth,
            exp.DayOfWeek,
            exp.Hour,
            exp.Minute,
            exp.Week,
            exp.WeekOfYear,
        ),
        _date_part,
    ),
    exp.Lower: _text_function("lower"),
    exp.Upper: _text_function("upper"),
    exp.Trim: _text_function("trim"),  # blanks only: other white space differs between engines
    exp.Length: _length,
    exp.Substring: _substring,
}
"""Rule by the class of the syntax node."""
