"""Conditions in row expressions: comparisons, logic, BETWEEN, IN, LIKE, IS. None raises an error on any data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp, tokenize

from sfumato.dataset import Kind
from sfumato.engines.expressions import (
    TRUE,
    Compare,
    Constant,
    Expression,
    IsNull,
    IsTruth,
    Not,
    all_of,
    any_of,
    equal,
    when,
)
from sfumato.engines.functions import Like, Matches
from sfumato.engines.regular_expressions import PatternRefused, parse_pattern
from sfumato.query.plan.scalar import Scalar, flag, literal, same_family
from sfumato.rationals import rational

if TYPE_CHECKING:
    from sfumato.query.sql.expressions import ExpressionCompiler, Rule

_MOST_LISTED = 1_000
"""Values in IN."""
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _compare(sign: str) -> Rule:
    def rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
        a, b = reader.pair(node, node.this, node.expression)
        # Constants stand on the right, so that `18 <= age` is the same query as `age >= 18`.
        turned = isinstance(a.node, Constant) and not isinstance(b.node, Constant)
        return flag(Compare(_TURNED[sign], b.node, a.node) if turned else Compare(sign, a.node, b.node))

    return rule


def _logic(join: Callable[..., Expression]) -> Rule:
    def rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
        # A chain of conditions is read as one: as nested pairs, a long one would be too deep.
        # In a fixed order, so that the order in which conditions are written makes no other query.
        parts = [reader.condition(part).node for part in node.flatten()]
        return flag(join(*sorted(parts, key=repr)))

    return rule


def _between(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    a, low = reader.pair(node, node.this, node.args["low"])
    b, high = reader.pair(node, node.this, node.args["high"])
    return flag(all_of(Compare(">=", a.node, low.node), Compare("<=", b.node, high.node)))


def _in_public(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    """IN (SELECT ...) over a public table: its values are constants. A missing one makes a mismatch unknown."""
    values = reader.public_values(node.args["query"]) if reader.public_values is not None else None
    if values is None:
        raise reader.refuse(
            node,
            "IN (SELECT ...) is answered for the privacy unit and for public tables.",
            "Use `unit IN (SELECT unit FROM ...)`, joined by AND, or a join on the unit.",
        )
    known = [value for value in values if value is not None]
    if len(known) > _MOST_LISTED:
        raise reader.refuse(node, f"IN accepts at most {_MOST_LISTED:,} values.", "Use a join with the public table.")
    a = reader.read(node.this)
    tests = []
    for value in known:
        pair = same_family(a, literal(rational(value) if isinstance(value, float) else value))
        if pair is None:
            raise reader.refuse(node, f"A {a.family} cannot be compared with this column.", "Use CAST on one of them.")
        tests.append(equal(pair[0].node, pair[1].node))
    test = any_of(*tests)
    return flag(test if len(known) == len(values) else when(test, TRUE))


def _in(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    if node.args.get("query") is not None:
        return _in_public(reader, node)
    if node.args.get("unnest") or node.args.get("field") or not node.expressions:
        raise reader.refuse(node, "IN accepts a list of values.", "Use `x IN (1, 2)`.")
    if len(node.expressions) > _MOST_LISTED:
        raise reader.refuse(node, f"IN accepts at most {_MOST_LISTED:,} values.", "Use a join with a public table.")
    tests = [reader.pair(node, node.this, item) for item in node.expressions]
    return flag(any_of(*(equal(a.node, b.node) for a, b in tests)))


def _like(*, fold: bool) -> Rule:
    def rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
        a, pattern = reader.text_value(node.this), reader.read(node.expression)
        if not isinstance(pattern.constant, str):
            raise reader.refuse(node, "The pattern of LIKE must be a text constant.")
        test = Like(a.node, pattern.constant, fold)
        return flag(Not(test) if node.args.get("negate") else test)

    return rule


def _matches(*, whole: bool) -> Rule:
    def rule(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
        a, pattern = reader.text_value(node.this), reader.read(node.expression)
        if not isinstance(pattern.constant, str):
            raise reader.refuse(node, "The pattern of a regular expression must be a text constant.")
        if "~" in reader.text and any(token.text in ("~", "!~") for token in tokenize(reader.text, "duckdb")):
            raise reader.refuse(
                node,
                "`~` matches a part of the text in some databases and all of it in others.",
                "Use REGEXP_MATCHES(x, pattern) for a part, or REGEXP_FULL_MATCH(x, pattern).",
            )
        try:
            return flag(Matches(a.node, parse_pattern(pattern.constant, whole=whole)))
        except PatternRefused as reason:
            raise reader.refuse(node, str(reason), "Or use LIKE, STARTS_WITH or CONTAINS.") from None

    return rule


def _is(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    a = reader.read(node.this)
    match node.expression:
        case exp.Null():
            return flag(IsNull(a.node))
        case exp.Boolean() as truth if a.kind is Kind.BOOLEAN:
            return flag(IsTruth(a.node, bool(truth.this)))
    raise reader.refuse(node, "IS supports NULL, TRUE and FALSE.")


def _exists(reader: ExpressionCompiler, node: exp.Expr) -> Scalar:
    raise reader.refuse(
        node, "EXISTS stands in WHERE by itself or joined by AND.", "Use `unit IN (SELECT unit FROM ... WHERE ...)`."
    )


CONDITION_RULES: dict[type[exp.Expr], Rule] = {
    exp.EQ: _compare("="),
    exp.NEQ: _compare("<>"),
    exp.LT: _compare("<"),
    exp.LTE: _compare("<="),
    exp.GT: _compare(">"),
    exp.GTE: _compare(">="),
    exp.And: _logic(all_of),
    exp.Or: _logic(any_of),
    exp.Not: lambda reader, node: flag(Not(reader.condition(node.this).node)),
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like(fold=False),
    exp.ILike: _like(fold=True),
    exp.RegexpLike: _matches(whole=False),
    exp.RegexpFullMatch: _matches(whole=True),
    exp.Is: _is,
    exp.Exists: _exists,
}
"""Rule by the class of the syntax node."""
