"""Parse the text of a query: one SELECT statement, and the ERROR clause behind it."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.errors import QueryRefused
from sfumato.query.plan.query import DEFAULT_CONFIDENCE, ErrorTarget
from sfumato.query.sql.allowed_forms import check_forms

if TYPE_CHECKING:
    from sqlglot import exp

_MAX_CHARACTERS = 20_000
_ERROR_CLAUSE = re.compile(
    r"\s+ERROR\s*(?:±|\+-|\+/-)?\s*(?P<size>\d{1,15}(?:\.\d{1,15})?)\s*(?P<unit>%?)"
    r"(?:\s+CONFIDENCE\s+(?P<level>\d{1,3}(?:\.\d{1,6})?)\s*%)?\s*;?\s*$",
    re.IGNORECASE,
)


def parse_statement(sql: str) -> tuple[str, exp.Expr, ErrorTarget | None]:
    """Parse one SELECT statement. Return its text without the ERROR clause, its syntax tree and the error target."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    from sfumato.query.sql.spellings import written_out

    if len(sql) > _MAX_CHARACTERS:
        raise QueryRefused(f"A query has at most {_MAX_CHARACTERS} characters.")
    sql, target = split_error_clause(sql)
    try:
        trees = sqlglot.parse(sql, dialect="duckdb")
    except SqlglotError as failure:
        first = (getattr(failure, "errors", None) or [{}])[0]
        raise QueryRefused(
            "The SQL cannot be parsed" + (f", near `{first['highlight']}`." if first.get("highlight") else "."),
            line=first.get("line"), column=first.get("col"),
        ) from None  # fmt: skip
    except RecursionError:
        raise QueryRefused("The query is nested too deeply.") from None
    except Exception:
        raise QueryRefused("The SQL cannot be parsed.") from None
    statements = [tree for tree in trees if tree is not None]
    if len(statements) != 1:
        raise QueryRefused("A query is exactly one SELECT statement.")
    try:
        tree = written_out(statements[0])
    except RecursionError:
        raise QueryRefused("The query is nested too deeply.") from None
    check_forms(tree, sql)
    return sql, tree, target


def split_error_clause(sql: str) -> tuple[str, ErrorTarget | None]:
    """The text without the ERROR clause behind it, and what the clause asks for."""
    clause = _ERROR_CLAUSE.search(sql)
    if clause is None:
        return sql, None
    relative, size = clause["unit"] == "%", Fraction(clause["size"])
    level = DEFAULT_CONFIDENCE if clause["level"] is None else Fraction(clause["level"]) / 100
    if size <= 0 or not 0 < level < 1:
        raise QueryRefused("ERROR must be above 0 and CONFIDENCE between 0% and 100%.")
    return sql[: clause.start()], ErrorTarget(
        size=size / 100 if relative else size, relative=relative, confidence=level
    )
