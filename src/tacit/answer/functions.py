"""Casts, date parts and text functions of the language: total, like all its expressions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.answer.scalar import Scalar, literal, text_sql
from tacit.schema import Kind

if TYPE_CHECKING:
    from tacit.answer.expression import Reader

__all__ = ["FUNCTION_RULES", "TYPES"]

_PARTS = {"YEAR": None, "QUARTER": (1, 4), "MONTH": (1, 12), "DAY": (1, 31), "DOW": (0, 6), "DAYOFWEEK": (0, 6),
          "HOUR": (0, 23), "MINUTE": (0, 59), "WEEK": (1, 53)}  # fmt: skip
_CASTS = {
    "TINYINT": Kind.INTEGER, "SMALLINT": Kind.INTEGER, "INT": Kind.INTEGER, "BIGINT": Kind.INTEGER,
    "FLOAT": Kind.NUMBER, "DOUBLE": Kind.NUMBER, "DECIMAL": Kind.NUMBER, "VARCHAR": Kind.CATEGORY,
    "TEXT": Kind.CATEGORY, "DATE": Kind.DATE, "TIMESTAMP": Kind.DATETIME,
    "TIMESTAMPNTZ": Kind.DATETIME, "BOOLEAN": Kind.BOOLEAN,
}  # fmt: skip
TYPES = {
    Kind.INTEGER: "BIGINT", Kind.NUMBER: "DOUBLE", Kind.CATEGORY: "VARCHAR", Kind.DATE: "DATE",
    Kind.DATETIME: "TIMESTAMP", Kind.BOOLEAN: "BOOLEAN",
}  # fmt: skip


def _cast(reader: Reader, node: Any) -> Scalar:
    kind = _CASTS.get(node.args["to"].this.name)
    if kind is None:
        raise reader.no(node, "A cast goes to INTEGER, DOUBLE, VARCHAR, DATE, TIMESTAMP or BOOLEAN.")
    a = reader.read(node.this)
    if a.kind is kind:
        return a.plain(a.sql) if a.constant is None else a
    if isinstance(a.constant, str) and kind in (Kind.DATE, Kind.DATETIME):
        try:
            return literal((date if kind is Kind.DATE else datetime).fromisoformat(a.constant))
        except ValueError:
            raise reader.no(node, "This text is no date of the form 2024-12-31.") from None
    known: dict[str, Any] = {"low": a.low, "high": a.high} if a.number and kind in (Kind.INTEGER, Kind.NUMBER) else {}
    return Scalar(sql=f"TRY_CAST({a.sql} AS {TYPES[kind]})", kind=kind, **known)


def _date_part(reader: Reader, node: Any) -> Scalar:
    if type(node).__name__ == "Extract":
        part, inner = node.this.name.upper(), node.expression
    else:
        part, inner = node.key.upper(), node.this
    part = {"DAYOFMONTH": "DAY", "DAY_OF_WEEK": "DOW", "DAYOFWEEK": "DOW", "WEEKOFYEAR": "WEEK"}.get(part, part)
    if part not in _PARTS:
        raise reader.no(node, f"`{part}` is not a date part of the language.", "Known: " + ", ".join(_PARTS) + ".")
    a = reader.read(_undone(inner))
    if a.kind not in (Kind.DATE, Kind.DATETIME):
        raise reader.no(node, f"A date is needed here, not a {a.family}.")
    ends = _PARTS[part]
    known: dict[str, Any] = {} if ends is None else {"low": Fraction(ends[0]), "high": Fraction(ends[1])}
    return Scalar(sql=f"CAST(date_part({text_sql(part.lower())}, {a.sql}) AS BIGINT)", kind=Kind.INTEGER, **known)


def _undone(node: Any) -> Any:
    """Some parsers wrap the argument of YEAR(...) in a conversion to a date; what was written is inside."""
    return node.this if type(node).__name__ in ("TsOrDsToDate", "TsOrDsToTimestamp") else node


def _text_function(function: str) -> Callable[[Reader, Any], Scalar]:
    def rule(reader: Reader, node: Any) -> Scalar:
        if any(value for name, value in node.args.items() if name != "this"):
            raise reader.no(node, f"{function.upper()} takes one text here.")
        return Scalar(sql=f"{function}({reader.text_value(node.this).sql})", kind=Kind.CATEGORY)

    return rule


def _length(reader: Reader, node: Any) -> Scalar:
    return Scalar(sql=f"CAST(length({reader.text_value(node.this).sql}) AS BIGINT)", kind=Kind.INTEGER)


def _substring(reader: Reader, node: Any) -> Scalar:
    a = reader.text_value(node.this)
    numbers = [reader.read(node.args[name]) for name in ("start", "length") if node.args.get(name) is not None]
    if any(not isinstance(n.constant, Fraction) or n.constant not in range(1, 10_000) for n in numbers):
        raise reader.no(node, "Start and length of SUBSTRING are written out, 1 to 9999.")
    return Scalar(sql=f"substring({', '.join([a.sql, *(n.sql for n in numbers)])})", kind=Kind.CATEGORY)


FUNCTION_RULES: dict[str, Callable[[Reader, Any], Scalar]] = {
    "Cast": _cast,
    "TryCast": _cast,
    "Extract": _date_part,
    **dict.fromkeys(
        ("Year", "Quarter", "Month", "Day", "DayOfMonth", "DayOfWeek", "Hour", "Minute", "Week", "WeekOfYear"),
        _date_part,
    ),
    "Lower": _text_function("lower"),
    "Upper": _text_function("upper"),
    "Trim": _text_function("trim"),
    "Length": _length,
    "Substring": _substring,
}
"""Rule by the name of the syntax node."""
