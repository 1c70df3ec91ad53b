"""Parse the queries of a log: SELECT of a secret column or an aggregate, with conditions on public columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp

from sfumato.engines.expressions import ColumnRef, Expression
from sfumato.engines.statements import Query
from sfumato.errors import QueryRefused
from sfumato.query.plan.relational import Scan, columns_of
from sfumato.query.plan.scalar import TYPES, Scalar
from sfumato.query.policy.policy_query import NUMBERED, ROW, people
from sfumato.query.sql.expressions import ColumnScope, ExpressionCompiler
from sfumato.schema import Kind

__all__ = ["ASKED", "AuditQuery", "parse_audit_query", "read_log"]

_QUOTED = r"""('(?:[^']|'')*'|"(?:[^"]|"")*")"""
_PIECES = re.compile(_QUOTED + r"|(;|[^;'\"]+|.)", re.DOTALL)
_BLANKS = re.compile(_QUOTED + r"|\s+")
_AGGREGATES: dict[type[exp.Expression], str] = {
    exp.Sum: "sum", exp.Avg: "avg", exp.Max: "max", exp.Min: "min", exp.Count: "count"
}  # fmt: skip
_CONDITIONS = (
    exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In,
    exp.Like, exp.ILike, exp.Is, exp.Null, exp.Boolean, exp.Literal, exp.Column, exp.Identifier, exp.Neg, exp.Add,
    exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam,
)  # fmt: skip
"""Syntax nodes allowed in conditions. Others are refused: an expression that refers to columns other than by name
(`COLUMNS('...')`, `#3`) would bypass the check for secret columns."""
ASKED = "asked"
"""The name of the table in statements, whatever the log calls it."""


@dataclass(frozen=True, kw_only=True)
class AuditQuery:
    """A parsed query of an audit."""

    kind: str
    """"values" of a secret column, or sum, avg, max, min, count."""
    column: str | None
    """The selected or aggregated column; None for a count."""
    public: Query
    """Statement for the people whom conditions on public columns select."""
    secret: Query | None
    """Statement for the people for whom conditions on a secret column hold, for counts only."""
    secret_column: str | None


def read_log(text: str) -> Iterator[str]:
    """The queries of a log: one per line or ended by a semicolon; ``#`` and ``--`` start a comment."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("#", "--"))]
    # Quoted text is kept unchanged: its blanks are not collapsed, and a semicolon in it does not end a query.
    pieces, ended = [""], False
    for quoted, other in _PIECES.findall("\n".join(lines)):
        if other == ";":
            pieces.append("")
            ended = True
        else:
            pieces[-1] += quoted or other
    for piece in pieces if ended else lines:
        if piece.strip():
            yield _BLANKS.sub(lambda match: match[1] or " ", piece).strip()


def parse_audit_query(text: str, *, kinds: Mapping[str, Kind], secrets: Sequence[str]) -> AuditQuery:
    """Parse one query about a table with these columns. Unsupported SQL is refused; only the text decides."""
    try:
        tree: Any = sqlglot.parse_one(text, read="duckdb")
    except sqlglot.errors.SqlglotError:
        raise QueryRefused("The SQL cannot be parsed as a SELECT.") from None
    extra = {"group", "having", "joins", "distinct", "limit", "order", "with_", "qualify", "laterals", "windows"}
    if not isinstance(tree, exp.Select) or any(tree.args.get(name) for name in extra):
        raise QueryRefused(
            "An audited query is SELECT one column or aggregate FROM the table WHERE a condition, nothing more."
        )
    if len(tree.expressions) != 1:
        raise QueryRefused("A query selects one column or aggregate.", fix="Use one query for each column.")
    known = {name.lower(): name for name in kinds}
    for column in tree.find_all(exp.Column):
        if column.name.lower() not in known:
            raise QueryRefused(f"The table has no column `{column.name}`.")
        column.set("table", None)
    reader = ExpressionCompiler(
        ColumnScope(
            ("", name, Scalar(node=ColumnRef(f"c{i}", TYPES[kind]), kind=kind))
            for i, (name, kind) in enumerate(kinds.items())
        ),
        text,
    )
    where = tree.args.get("where")
    visible: list[Expression] = []
    hidden: list[Expression] = []
    hidden_column: set[str] = set()
    for part in where.this.flatten() if where and isinstance(where.this, exp.And) else [where.this] if where else []:
        if any(not isinstance(node, _CONDITIONS) for node in part.walk()):
            raise QueryRefused("Conditions compare columns with constants, without functions or subqueries.")
        names = {known[column.name.lower()] for column in part.find_all(exp.Column)}
        used = names & set(secrets)
        (hidden if used else visible).append(reader.condition(part).node)
        if used and names - used:
            raise QueryRefused("A condition cannot combine a secret column with a public one.")
        hidden_column |= used
    public = _people(kinds, visible)
    item = tree.expressions[0].unalias()
    kind = _AGGREGATES.get(type(item))
    if kind == "count":
        if not isinstance(item.this, exp.Star):
            raise QueryRefused("Use COUNT(*).")
        if len(hidden_column) > 1:
            raise QueryRefused("COUNT(*) supports conditions on at most one secret column.")
        return AuditQuery(
            kind="count", column=None, public=public, secret=_people(kinds, hidden) if hidden else None,
            secret_column=next(iter(hidden_column), None),
        )  # fmt: skip
    if hidden:
        raise QueryRefused(
            "People must be selected by public columns; conditions on a secret column are for COUNT(*) only."
        )
    inner = item.this if kind else item
    if not isinstance(inner, exp.Column) or isinstance(inner.this, exp.Star):
        raise QueryRefused("An audited query selects a column, SUM, AVG, MAX or MIN of a column, or COUNT(*).")
    column_name = known[inner.name.lower()]
    return AuditQuery(kind=kind or "values", column=column_name, public=public, secret=None, secret_column=None)


def _people(kinds: Mapping[str, Kind], conditions: Sequence[Expression]) -> Query:
    """A statement for the rows of the people for whom conditions hold."""
    names = tuple((f"c{i}", name, TYPES[kind]) for i, (name, kind) in enumerate(kinds.items()))
    used = columns_of(conditions)
    kept = tuple(item for item in names if item[0] in used)
    table = Scan(table=ASKED, unit_column=None, names=(*kept, (NUMBERED, ROW, "int")))
    return people(table, conditions, ())
