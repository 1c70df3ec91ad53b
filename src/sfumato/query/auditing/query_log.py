"""Parse the queries of a log: SELECT of a secret column or an aggregate, with conditions on public columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.errors import QueryRefused

__all__ = ["AuditQuery", "parse_audit_query", "read_log"]

_AGGREGATES = {"Sum": "sum", "Avg": "avg", "Max": "max", "Min": "min", "Count": "count"}
_QUOTED = r"""('(?:[^']|'')*'|"(?:[^"]|"")*")"""
_PIECES = re.compile(_QUOTED + r"|(;|[^;'\"]+|.)", re.DOTALL)
_BLANKS = re.compile(_QUOTED + r"|\s+")
_CONDITIONS = frozenset(
    {
        "And", "Or", "Not", "Paren", "EQ", "NEQ", "GT", "GTE", "LT", "LTE", "Between", "In", "Like", "ILike", "Is",
        "Null", "Boolean", "Literal", "Column", "Identifier", "Neg", "Add", "Sub", "Mul", "Div", "Mod", "Cast",
        "TryCast", "DataType", "DataTypeParam",
    }
)  # fmt: skip
"""Syntax nodes allowed in conditions. Others are refused: an expression that refers to columns other than by name
(`COLUMNS('...')`, `#3`) would bypass the check for secret columns."""


@dataclass(frozen=True, kw_only=True)
class AuditQuery:
    """A parsed query of an audit."""

    kind: str
    """"values" of a secret column, or sum, avg, max, min, count."""
    column: str | None
    """The selected or aggregated column; None for a count."""
    public: str
    """Condition on public columns that selects the people, in DuckDB's dialect."""
    secret: str | None
    """Condition on a secret column, for counts only."""
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


def parse_audit_query(text: str, *, columns: Sequence[str], secrets: Sequence[str]) -> AuditQuery:
    """Parse one query. Unsupported SQL is refused with the reason; the decision depends on the text only."""
    import sqlglot
    from sqlglot import exp

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
    known = {name.lower(): name for name in columns}
    for column in tree.find_all(exp.Column):
        if column.name.lower() not in known:
            raise QueryRefused(f"The table has no column `{column.name}`.")
        column.this.set("this", known[column.name.lower()])
        column.this.set("quoted", True)
        column.set("table", None)
    where = tree.args.get("where")
    visible: list[str] = []
    hidden: list[str] = []
    hidden_column: set[str] = set()
    for part in where.this.flatten() if where and isinstance(where.this, exp.And) else [where.this] if where else []:
        if any(type(node).__name__ not in _CONDITIONS for node in part.walk()):
            raise QueryRefused("Conditions compare columns with constants, without functions or subqueries.")
        used = {column.name for column in part.find_all(exp.Column)} & set(secrets)
        (hidden if used else visible).append(part.sql(dialect="duckdb"))
        if used and {column.name for column in part.find_all(exp.Column)} - used:
            raise QueryRefused("A condition cannot combine a secret column with a public one.")
        hidden_column |= used
    public = " AND ".join(f"({part})" for part in visible) or "TRUE"
    item = tree.expressions[0].unalias()
    kind = _AGGREGATES.get(type(item).__name__)
    if kind == "count":
        if not isinstance(item.this, exp.Star):
            raise QueryRefused("Use COUNT(*).")
        if len(hidden_column) > 1:
            raise QueryRefused("COUNT(*) supports conditions on at most one secret column.")
        return AuditQuery(
            kind="count", column=None, public=public, secret=" AND ".join(f"({p})" for p in hidden) or None,
            secret_column=next(iter(hidden_column), None),
        )  # fmt: skip
    if hidden:
        raise QueryRefused(
            "People must be selected by public columns; conditions on a secret column are for COUNT(*) only."
        )
    inner = item.this if kind else item
    if not isinstance(inner, exp.Column) or isinstance(inner.this, exp.Star):
        raise QueryRefused("An audited query selects a column, SUM, AVG, MAX or MIN of a column, or COUNT(*).")
    return AuditQuery(kind=kind or "values", column=inner.name, public=public, secret=None, secret_column=None)
