"""Casts and text functions: expressions that raise no error on any data."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sfumato.dataset import Kind, PeriodDomain
from sfumato.engines.expressions import Cast, Coalesce, constant
from sfumato.engines.functions import Function, JoinedText, Like, Shaped, Substring
from sfumato.engines.text_patterns import reads_as
from sfumato.query.plan.scalar import FAMILY, MOST_VALUES, TYPES, Scalar, ScalarFacts, flag, literal

if TYPE_CHECKING:
    from sfumato.query.sql.expressions import ExpressionCompiler, Rule

DAYS = "Use DATE_DIFF('day', DATE '2020-01-01', d) for a number of days."
"""How a date becomes a number."""

_MOST_LISTED = 1_000_000
"""Characters of all possible texts of an expression; longer lists are not kept."""

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
_CASTABLE = {"number": ("number", "boolean", "text"), "boolean": ("number", "text"), "date": ("datetime", "text"),
             "datetime": ("date", "text")}  # fmt: skip
"""Families into which values of a family are converted; any other cast would be missing on every row."""


def _cast(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
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
    if FAMILY[kind] not in _CASTABLE[a.family]:
        fix = DAYS if a.family in ("date", "datetime") and FAMILY[kind] == "number" else ""
        raise reader.refuse(node, f"A {a.family} cannot be cast to a {FAMILY[kind]}: it would always be missing.", fix)
    known: ScalarFacts = {"low": a.low, "high": a.high} if a.number and kind in (Kind.INTEGER, Kind.NUMBER) else {}
    if known and kind is Kind.INTEGER and a.low is not None and a.high is not None:  # 2.5 may become 2 or 3
        half = Fraction(1, 2)
        known = {"low": Fraction(ceil(a.low - half)), "high": Fraction(floor(a.high + half))}
    if a.kind is Kind.BOOLEAN and kind in (Kind.INTEGER, Kind.NUMBER):
        known = {"low": Fraction(0), "high": Fraction(1)}
    if a.first is not None and a.last is not None and kind in (Kind.DATE, Kind.DATETIME):
        period = PeriodDomain(first=a.first, last=a.last)
        first, last = period.moments if kind is Kind.DATETIME else period.days
        known = {"first": first, "last": last}
    return Scalar(node=Cast(a.node, TYPES[kind]), kind=kind, **known)


def _written(reader: ExpressionCompiler, node: exp.Expr, text: str, kind: Kind) -> Scalar:
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


def _text_function(function: str) -> Rule:
    def rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
        if any(value for name, value in node.args.items() if name != "this"):
            raise reader.refuse(node, f"{function.upper()} takes one text here.")
        a = reader.text_value(node.this).node
        # Cut to the length that it had: upper case of some letters is several letters.
        return Scalar(node=Substring(Function(a, function), 1, a.width), kind=Kind.CATEGORY)

    return rule


def _length(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    return Scalar(node=Function(reader.text_value(node.this).node, "length"), kind=Kind.INTEGER)


def _substring(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    a = reader.text_value(node.this)
    numbers = [reader.read(node.args[name]) for name in ("start", "length") if node.args.get(name) is not None]
    if any(not isinstance(n.constant, Fraction) or n.constant not in range(1, 10_000) for n in numbers):
        raise reader.refuse(node, "Start and length of SUBSTRING must be constants from 1 to 9999.")
    if node.args.get("start") is None:
        raise reader.refuse(node, "SUBSTRING needs a start.", "Use SUBSTRING(text, 1, 3).")
    start, length = [*(int(n.constant) for n in numbers), None][:2]
    return Scalar(node=Substring(a.node, start or 1, length), kind=Kind.CATEGORY)


def _joined(reader: ExpressionCompiler, items: list[Scalar]) -> Scalar:
    """Texts one after the other. Where all possible texts are public, so are their combinations."""
    node = JoinedText(tuple(item.node for item in items))
    values: tuple[Any, ...] | None = ("",)
    for item in items:
        if values is None or item.values is None or not _few(values, item.values):
            values = None
            break
        values = tuple(one + other for one in values for other in item.values)
    known = None if values is None else tuple(sorted(set(values)))
    return Scalar(node=node, kind=Kind.CATEGORY, values=known)


def _few(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether all pairs of two texts are few enough to be listed, and short enough."""
    pairs = len(some) * len(others)
    return pairs <= MOST_VALUES and pairs * (max(map(len, some)) + max(map(len, others), default=0)) <= _MOST_LISTED


def _pipe(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    return _joined(reader, [reader.text_value(item) for item in node.flatten()])


def _concat(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    """CONCAT reads missing texts as empty."""
    items = [reader.text_value(item) for item in node.expressions]
    empty = [item.plain(Coalesce((item.node, constant("")))) for item in items]
    more = [replace(e, values=None if i.values is None else (*i.values, "")) for e, i in zip(empty, items, strict=True)]
    return _joined(reader, more)


def _left(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    a, size = reader.text_value(node.this), reader.read(node.expression).constant
    if size not in range(1, 10_000):
        raise reader.refuse(node, "The length of LEFT must be a constant from 1 to 9999.")
    return Scalar(node=Substring(a.node, 1, int(size)), kind=Kind.CATEGORY)


def _contains(form: str) -> Rule:
    def rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
        a, part = reader.text_value(node.this), reader.read(node.expression).constant
        if not isinstance(part, str) or "%" in part or "_" in part:
            raise reader.refuse(node, "The text that is sought must be a constant without % and _.", "Use LIKE.")
        return flag(Like(a.node, form.format(part), False))

    return rule


FUNCTION_RULES: dict[type[exp.Expr], Rule] = {
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Lower: _text_function("lower"),
    exp.Upper: _text_function("upper"),
    exp.Trim: _text_function("trim"),  # blanks only: other white space differs between engines
    exp.Length: _length,
    exp.DPipe: _pipe,
    exp.Concat: _concat,
    exp.Left: _left,
    exp.StartsWith: _contains("{}%"),
    exp.Contains: _contains("%{}%"),
    exp.Substring: _substring,
}
"""Rule by the class of the syntax node."""
