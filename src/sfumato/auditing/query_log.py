"""Queries of an audit: the texts of a log, and what a parsed query asks about people and sensitive columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sfumato.auditing.policy_query import PolicyQuery
from sfumato.engines.statements import Query

_QUOTED = r"""('(?:[^']|'')*'|"(?:[^"]|"")*")"""
_PIECES = re.compile(_QUOTED + r"|(;|[^;'\"]+|.)", re.DOTALL)
_BLANKS = re.compile(_QUOTED + r"|\s+")


@dataclass(frozen=True, kw_only=True)
class AuditQuery:
    """A parsed query of an audit."""

    kind: str
    """"values" of a sensitive column, or sum, avg, max, min, count."""
    column: str | None
    """The selected or aggregated column; None for a count."""
    public: Query
    """Statement for the people whom conditions on public columns select."""
    secret: Query | None
    """Statement for the people for whom conditions on a sensitive column hold, for counts only."""
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


def read_audit_query(parsed: PolicyQuery, *, secrets: Sequence[str], other_columns: bool = False) -> AuditQuery:
    """What a parsed query asks of an audit. Unsupported queries are refused; the decision depends on the text only.

    ``other_columns``: whether a query about a column that is not sensitive is accepted; it asks for nothing secret.
    """
    named = {name.lower(): name for name in secrets}
    if parsed.kind == "count" and parsed.value is not None:
        raise parsed.refuse(parsed.node, "The audit supports COUNT(*) only, not COUNT(column).", "Use COUNT(*).")
    hidden = parsed.about(secrets)
    people = parsed.people(part for part in parsed.conditions if part not in hidden)
    if parsed.kind == "count":
        conditioned = {name for part in hidden for name in part.columns}
        if len(conditioned) > 1:
            raise parsed.refuse(hidden[1].node, "COUNT(*) supports conditions on at most one sensitive column.")
        return AuditQuery(
            kind="count", column=None, public=people, secret=parsed.holders(hidden) if hidden else None,
            secret_column=named[conditioned.pop()] if conditioned else None,
        )  # fmt: skip
    column = named.get((parsed.column or "").lower())
    if column is None and not (other_columns and parsed.column):
        raise parsed.refuse(
            parsed.node,
            "The audit answers COUNT(*) and aggregates or values of a sensitive column.",
            f"Sensitive here: {', '.join(secrets)}.",
        )
    return AuditQuery(kind=parsed.kind, column=column or parsed.column, public=people, secret=None, secret_column=None)
