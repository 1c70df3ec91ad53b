"""Bind row expressions, by one rule per class of syntax node. Nodes without a rule are refused.

Every rule returns an expression that raises no error on any data: arithmetic is in floating point, divisors pass
NULLIF, casts give NULL where they fail, and values of different families are never compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from sfumato.dataset import Kind
from sfumato.engines.expressions import (
    MOST_TEXT,
    NOTHING,
    STORED_TEXT,
    Case,
    Coalesce,
    Constant,
    Expression,
    Extreme,
    IsNull,
    NullIf,
    any_of,
    constant,
    double,
    equal,
    when,
)
from sfumato.engines.functions import Function
from sfumato.errors import QueryRefused
from sfumato.query.plan.aggregates import clipped
from sfumato.query.plan.scalar import MOST_VALUES, Scalar, ScalarFacts, literal, same_family
from sfumato.query.sql.arithmetic import ARITHMETIC_RULES
from sfumato.query.sql.conditions import CONDITION_RULES
from sfumato.query.sql.dates import DATE_RULES, date_part
from sfumato.query.sql.functions import DAYS, FUNCTION_RULES
from sfumato.query.sql.refusal import called, nearest, refuse
from sfumato.wording import did_you_mean

_MOST_NODES = 10_000
"""Maximum number of nodes, subqueries written out. Some rules repeat their operand, which grows exponentially when
nested, in one expression or through subqueries: ``SELECT t || t AS t FROM (SELECT t || t AS t FROM ...)``."""
MOST_WRITTEN = 100_000
"""Characters of all texts that are made to compute one expression of a row."""
_DEEPEST = 100
_SUPPORTED = (
    "Supported: arithmetic, comparisons, AND/OR/NOT, BETWEEN, IN, LIKE, REGEXP_MATCHES, IS NULL, CASE, CAST, COALESCE, "
    "NULLIF, LEAST, GREATEST, CLIP, ABS, SIGN, ROUND, FLOOR, CEIL, TRUNC, SQRT, POWER, WIDTH_BUCKET, EXTRACT, "
    "DATE_TRUNC, DATE_DIFF, INTERVAL, STRFTIME, LOWER, UPPER, TRIM, SUBSTRING, LEFT, CONCAT, STARTS_WITH, CONTAINS, "
    "LENGTH."
)


class ColumnScope:
    """The columns in scope, by table alias and name."""

    def __init__(
        self,
        items: Iterable[tuple[str, str, Scalar]] = (),
        merged: Iterable[tuple[str, str, Scalar]] = (),
        texts: Mapping[Expression, tuple[str, ...]] | None = None,
    ) -> None:
        self.items = tuple(items)
        self.merged = tuple(merged)
        """Columns of the right side of USING: the left one has their name, and only ``table.column`` means them."""
        self.texts = texts or {}
        """All values that conditions leave to expressions of text, such as the first two letters of a column."""

    def __add__(self, other: ColumnScope) -> ColumnScope:
        return ColumnScope((*self.items, *other.items), (*self.merged, *other.merged))

    def under(self, alias: str) -> ColumnScope:
        return ColumnScope((alias, name, scalar) for _, name, scalar in self.items)

    def find(self, table: str, name: str) -> list[Scalar]:
        name, table = name.lower(), table.lower()
        seen = (*self.items, *self.merged) if table else self.items
        matches = [s for alias, n, s in seen if n.lower() == name and (not table or alias.lower() == table)]
        return list({scalar.same: scalar for scalar in matches}.values())

    def names(self) -> list[str]:
        return [name for _, name, _ in self.items]


class ExpressionCompiler:
    """Binds syntax nodes to scalars over the columns in scope."""

    def __init__(
        self, columns: ColumnScope, text: str, public_values: Callable[[exp.Expr], list[object] | None] | None = None
    ) -> None:
        self.columns = columns
        self.text = text
        self.public_values = public_values
        """Values of a subquery about a public table; None for other subqueries."""

    def refuse(self, node: exp.Expr | None, reason: str, fix: str = "") -> Exception:
        return refuse(node, self.text, reason, fix)

    def read(self, node: exp.Expr | None) -> Scalar:
        if node is None:
            raise QueryRefused("A function of the query lacks an argument.")
        rule = _RULES.get(type(node))
        if rule is None:
            name = called(node, self.text)
            raise self.refuse(node, f"`{name}` is not supported in row expressions.", nearest(name) or _SUPPORTED)
        scalar = rule(self, node)
        for long, most, what in (
            (scalar.node.width, MOST_TEXT, "The text"),
            (scalar.node.written, MOST_WRITTEN, "All texts of this expression together"),
        ):
            if long > most:
                raise self.refuse(
                    node,
                    f"{what} could have {long:,} characters, and {most:,} is the most.",
                    f"A stored text counts as {STORED_TEXT:,}: use SUBSTRING or LEFT on what is joined.",
                )
        if scalar.node.nodes > _MOST_NODES or scalar.node.depth > _DEEPEST:
            raise self.refuse(
                node,
                "The expression is too long.",
                "A column of a subquery counts as the expression that it stands for.",
            )
        named = self.columns.texts.get(scalar.node) if scalar.values is None else None
        return scalar if named is None else replace(scalar, values=named)

    def condition(self, node: exp.Expr) -> Scalar:
        """Bind a Boolean expression."""
        scalar = self.read(node)
        if scalar.kind is not Kind.BOOLEAN:
            raise self.refuse(node, "A condition is required here.")
        return scalar

    def number(self, node: exp.Expr) -> Scalar:
        scalar = self.read(node)
        if not scalar.number:
            fix = DAYS if scalar.kind in (Kind.DATE, Kind.DATETIME) else "Use CAST(... AS DOUBLE)."
            raise self.refuse(node, f"A number is required here, not a {scalar.family}.", fix)
        return scalar

    def text_value(self, node: exp.Expr) -> Scalar:
        scalar = self.read(node)
        if scalar.family != "text":
            raise self.refuse(node, f"Text is required here, not a {scalar.family}.", "Use CAST(... AS VARCHAR).")
        return scalar

    def pair(self, node: exp.Expr, one: exp.Expr, other: exp.Expr) -> tuple[Scalar, Scalar]:
        a, b = self.read(one), self.read(other)
        fitted = same_family(a, b)
        if fitted is None:
            raise self.refuse(node, f"A {a.family} cannot be compared with a {b.family}.", "Use CAST on one of them.")
        return fitted


Rule = Callable[[ExpressionCompiler, exp.Expr], Scalar]


def _column(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    if node.args.get("db") or node.args.get("catalog"):
        raise reader.refuse(node, "A column is written as `column` or `table.column`.")
    matches = reader.columns.find(node.text("table"), node.name)
    if not matches:
        raise reader.refuse(
            node, f"There is no column `{node.name}` here.", did_you_mean(node.name, reader.columns.names())
        )
    if len(matches) > 1:
        raise reader.refuse(node, f"`{node.name}` is a column of more than one table.", "Use `table.column`.")
    return matches[0]


def _literal(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    if node.is_string:
        if "\x00" in node.this:
            raise reader.refuse(node, "Text constants cannot contain a zero byte.")
        return literal(node.this)
    try:
        # Checked as a float first: as a fraction, 1e999999999 would exhaust the memory.
        size = abs(float(node.this))
    except ValueError:
        raise reader.refuse(node, "The number cannot be parsed.") from None
    if size > 1e300 or (size < 1e-300 and re.search(r"[1-9]", re.split("[eE]", node.this)[0])):
        raise reader.refuse(node, "A number in the query is too large or too small.")
    return literal(Fraction(node.this) if size else Fraction(0))


def _merge(
    reader: ExpressionCompiler, node: exp.Expr, items: list[Scalar], make: Callable[[list[Expression]], Expression]
) -> Scalar:
    """Combine several expressions of one family; bounds and values cover all of them."""
    families = {item.family for item in items}
    if len(families) != 1:
        raise reader.refuse(node, "All results must be of one kind: " + ", ".join(sorted(families)) + " are mixed.")
    if families == {"number"}:
        whole = all(item.kind is Kind.INTEGER for item in items)
        parts = [item.node if whole else item.as_double() for item in items]
        kind = Kind.INTEGER if whole else Kind.NUMBER
    else:
        parts, kind = [item.node for item in items], items[0].kind
    known: ScalarFacts = {}
    lows, highs = [item.low for item in items], [item.high for item in items]
    if all(low is not None for low in lows) and all(high is not None for high in highs):
        known = {"low": min(low for low in lows if low is not None), "high": max(h for h in highs if h is not None)}
    else:
        ends = [(i.low, i.high) if i.expected is None else i.expected for i in items]
        if all(low is not None and high is not None for low, high in ends):
            lows, highs = [low for low, _ in ends], [high for _, high in ends]
            known = {"expected": (min(low for low in lows if low is not None), max(h for h in highs if h is not None))}
    sets = [item.values for item in items]
    if all(values is not None for values in sets) and kind is not Kind.NUMBER:
        values = {value for values in sets if values is not None for value in values}
        if len(values) <= MOST_VALUES:  # a CASE that is nested would double them each time
            known["values"] = tuple(sorted(values))
    return Scalar(node=make(parts), kind=kind, **known)


def _case(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    conditions: list[Expression] = []
    results: list[Scalar] = []
    for branch in node.args["ifs"]:
        if node.this is not None:
            a, b = reader.pair(branch, node.this, branch.this)
            conditions.append(equal(a.node, b.node))
        else:
            conditions.append(reader.condition(branch.this).node)
        results.append(reader.read(branch.args["true"]))
    default = node.args.get("default")
    if default is not None and not isinstance(default, exp.Null):
        results.append(reader.read(default))
    count = len(conditions)

    def make(parts: list[Expression]) -> Expression:
        return Case(tuple(zip(conditions, parts, strict=False)), parts[count] if len(parts) > count else NOTHING)

    return _merge(reader, node, results, make)


def _if(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    condition, yes = reader.condition(node.this), reader.read(node.args["true"])
    no = node.args.get("false")
    items = [yes] if no is None else [yes, reader.read(no)]
    return _merge(reader, node, items, lambda parts: when(condition.node, *parts))


def _coalesce(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    items = [reader.read(item) for item in [node.this, *node.expressions]]
    return _merge(reader, node, items, lambda parts: Coalesce(tuple(parts)))


def _extreme(*, least: bool) -> Rule:
    def rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
        items = [reader.number(item) for item in [node.this, *node.expressions]]
        lows = [item.low for item in items if item.low is not None]
        highs = [item.high for item in items if item.high is not None]
        low = min(lows) if len(lows) == len(items) else None
        high = max(highs) if len(highs) == len(items) else None
        # Missing values are passed over, as in the engines, so only a constant is certain to bound the result.
        fixed = [item.high for item in items if isinstance(item.node, Constant) and item.high is not None]
        if fixed and least:
            high = min(fixed)
        elif fixed:
            low = max(fixed)
        return Scalar(
            node=Extreme(tuple(item.as_double() for item in items), least), kind=Kind.NUMBER, low=low, high=high
        )

    return rule


def _nullif(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    a, b = reader.pair(node, node.this, node.expression)
    return a.plain(NullIf(a.node, b.node))


def _anonymous(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    if str(node.this).upper() == "CLIP" and len(node.expressions) == 3:
        a, low, high = (reader.number(item) for item in node.expressions)
        if (
            not isinstance(low.constant, Fraction)
            or not isinstance(high.constant, Fraction)
            or low.constant > high.constant
        ):
            raise reader.refuse(node, "The bounds of CLIP(x, low, high) must be constants with low ≤ high.")
        if a.kind is low.kind is high.kind is Kind.INTEGER:
            kept = clipped(a.node, low.node, high.node)
            return Scalar(
                node=Case(((IsNull(a.node), NOTHING),), kept), kind=Kind.INTEGER, low=low.constant, high=high.constant
            )
        x = double(a.node)
        inside = clipped(x, constant(float(low.constant)), constant(float(high.constant)))
        missing = any_of(IsNull(x), Function(x, "isnan"))
        return Scalar(node=Case(((missing, NOTHING),), inside), kind=Kind.NUMBER, low=low.constant, high=high.constant)
    if str(node.this).upper() == "DATE_PART" and len(node.expressions) == 2:
        part = reader.read(node.expressions[0]).constant
        return date_part(reader, node, str(part).upper(), node.expressions[1])
    raise reader.refuse(
        node,
        f"`{str(node.this).upper()}` is not a supported function.",
        nearest(str(node.this)) or _SUPPORTED,
    )


def _aggregate(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    raise reader.refuse(
        node,
        f"{called(node, reader.text)} is an aggregate and cannot be used here.",
        "Use aggregates in SELECT, HAVING and ORDER BY; in a subquery, group by the privacy unit.",
    )


def _window(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    raise reader.refuse(
        node,
        "A window function over private rows is a column of a subquery.",
        "Use FROM (SELECT ..., ROW_NUMBER() OVER (PARTITION BY unit ORDER BY ...) AS r FROM ...) WHERE r = 1.",
    )


_RULES: dict[type[exp.Expr], Rule] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda _reader, node: literal(bool(node.this)),
    exp.Paren: lambda reader, node: reader.read(node.this),
    **CONDITION_RULES,
    **ARITHMETIC_RULES,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Least: _extreme(least=True),
    exp.Greatest: _extreme(least=False),
    exp.Nullif: _nullif,
    **FUNCTION_RULES,
    **DATE_RULES,
    exp.Anonymous: _anonymous,
    exp.Window: _window,
    **dict.fromkeys(
        (
            exp.Count,
            exp.Sum,
            exp.Avg,
            exp.Min,
            exp.Max,
            exp.Median,
            exp.Mode,
            exp.Variance,
            exp.Stddev,
            exp.VariancePop,
            exp.StddevSamp,
            exp.StddevPop,
        ),
        _aggregate,
    ),
}
