"""The text of a statement: where one statement ends, and which marks and prefixes it contains.

Texts are cut by the tokens of the SQL dialect, never by searching: a mark in a string, name or comment is not one.
Prefixes are blanked out with spaces of the same length, so that positions in later errors stay right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from sfumato.errors import QueryRefused
from sfumato.query.dbapi import literal_text

_MOST_NESTED = 200
_MOST_TOKENS = 10_000
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


class _Tokenizer(Postgres.Tokenizer):
    """PostgreSQL's tokens, also behind words such as EXPLAIN, where the parser takes the rest as one text."""

    COMMANDS: ClassVar[set[Any]] = set()


def _postgres_tokens(sql: str) -> object:
    return _Tokenizer(dialect="postgres").tokenize(sql)  # a tokenizer serves one thread


def tokens(sql: str, tokenize: Callable[[str], Any] = _postgres_tokens) -> list[Any]:
    """The tokens of a text; deep nesting is refused here, before any parser recurses into it."""
    try:
        found = list(tokenize(sql))
    except (SqlglotError, RecursionError):
        raise QueryRefused("The SQL cannot be parsed.", fix="Check quotation marks and comments.") from None
    if len(found) > _MOST_TOKENS:
        raise QueryRefused(f"The query is too long: at most {_MOST_TOKENS:,} words and marks.")
    depth = 0
    for token in found:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > _MOST_NESTED:
            raise QueryRefused("The query is nested too deeply.", fix=f"Nest at most {_MOST_NESTED} parentheses.")
    return found


def split_statements(sql: str) -> list[str]:
    """The statements of a text, without their semicolons; empty ones are left out.

    >>> split_statements("SELECT ';' ; -- done;\\n COMMIT;")
    ["SELECT ';' ", ' -- done;\\n COMMIT']
    """
    parts, start, used = [], 0, False
    for token in tokens(sql):
        if token.token_type is TokenType.SEMICOLON:
            if used:
                parts.append(sql[start : token.start])
            start, used = token.end + 1, False
        else:
            used = True
    return [*parts, sql[start:]] if used else parts


def without_prefix(sql: str, *prefixes: tuple[str, ...]) -> str:
    """The text with schemas in front of names blanked out; a prefix is one name, or several with dots between them."""
    found, text, place = tokens(sql), list(sql), 0
    while place < len(found):
        if place and found[place - 1].token_type is TokenType.DOT:
            place += 1
            continue
        matching = [prefix for prefix in prefixes if _starts(found[place:], prefix)]
        if not matching:
            place += 1
            continue
        size = 2 * len(max(matching, key=len))
        for at in range(found[place].start, found[place + size - 1].end + 1):
            text[at] = " "
        place += size
    return "".join(text)


def _starts(found: Sequence[Any], prefix: tuple[str, ...]) -> bool:
    """Whether tokens begin with the names of a prefix, each with a dot behind it."""
    if len(found) <= 2 * len(prefix):
        return False
    return all(
        found[2 * i].token_type is not TokenType.STRING
        and found[2 * i].text.lower() == name
        and found[2 * i + 1].token_type is TokenType.DOT
        for i, name in enumerate(prefix)
    )


_DATES = {
    ("TO_DATE", "YYYY-MM-DD"): "DATE", ("TO_TIMESTAMP", "YYYY-MM-DD HH24:MI:SS"): "TIMESTAMP",
    ("TO_TIMESTAMP", "YYYY-MM-DD HH24:MI:SS.US"): "TIMESTAMP",
}  # fmt: skip
_CALL = (TokenType.L_PAREN, TokenType.STRING, TokenType.COMMA, TokenType.STRING, TokenType.R_PAREN)


def with_date_literals(sql: str) -> str:
    """The text with calls that read a constant date, as tools write their filters, as literals of the same length.

    >>> with_date_literals("born >= TO_DATE('1999-01-31', 'YYYY-MM-DD') AND flu")
    "born >= DATE '1999-01-31'                   AND flu"
    """
    found, text = tokens(sql), sql
    for place, name in enumerate(found):
        call = found[place + 1 : place + 6]
        if tuple(token.token_type for token in call) != _CALL:
            continue
        kind, written = _DATES.get((name.text.upper(), call[3].text)), call[1].text
        if kind is not None and re.fullmatch(r"[\d .:-]{1,40}", written):
            start, end = name.start, call[4].end + 1
            text = text[:start] + f"{kind} '{written}'".ljust(end - start) + text[end:]
    return text


_RESERVED = ("SELECT", "INSERT", "UPDATE", "DELETE", "TABLE", "USER", "ORDER", "GROUP")


def catalog_text(sql: str) -> str:
    """A query as the parser reads it: without ``pg_catalog.``, which is searched first in any case, and with quotation
    marks around reserved words behind AS, which PostgreSQL does not need.

    >>> catalog_text("SELECT pg_catalog.version() AS table, 1")
    'SELECT            version() AS "table", 1'
    """
    plain = without_prefix(sql, ("pg_catalog",)) if "pg_catalog" in sql.lower() else sql
    plain = plain.replace("information_schema._pg_expandarray", "_pg_expandarray")
    parts, last, found = [], 0, tokens(plain)
    for alias, word, after in zip(found, found[1:], found[2:], strict=False):
        named = alias.text.upper() == "AS" and word.text.upper() in _RESERVED and plain[word.start] != '"'
        if named and (after.token_type in (TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN)):
            parts += [plain[last : word.start], f'"{word.text.lower()}"']
            last = word.end + 1
    return "".join([*parts, plain[last:]])


class _Numbered(DuckDB.Tokenizer):
    """Tokens without texts in dollar signs, as whose beginning ``$1,$`` would be read."""

    HEREDOC_STRINGS: ClassVar[list[Any]] = []


_NUMBER = re.compile(r"\$\d")
_DOLLAR_TEXT = re.compile(r"\$\$|\$[A-Za-z_]")


def separate_numbers(sql: str) -> str:
    """The text with a space behind each ``$1``, without which parsers take ``$1,$`` for the beginning of a text.

    >>> separate_numbers("a IN ($1,$2)")
    'a IN ($1 ,$2 )'
    """
    if not _NUMBER.search(sql) or _DOLLAR_TEXT.search(sql):
        return sql
    parts, last, found = [], 0, tokens(sql, _Numbered(dialect="duckdb").tokenize)
    for mark, number in pairwise(found):
        adjacent = mark.token_type is TokenType.PARAMETER and number.start == mark.end + 1
        if adjacent and sql[number.end + 1 :][:1].strip():
            parts.append(sql[last : number.end + 1])
            last = number.end + 1
    return " ".join([*parts, sql[last:]])


def bind_numbered(sql: str, values: Sequence[object]) -> str:
    """Put the literal of each parameter in place of its ``$1``, ``$2``, ... as the parser of questions sees them.

    >>> bind_numbered("SELECT COUNT(*) FROM t WHERE a = $1 AND b = '$1'", ["it's"])
    "SELECT COUNT(*) FROM t WHERE a =  'it''s'  AND b = '$1'"
    >>> bind_numbered("SELECT COUNT(*) FROM t WHERE a = ANY($1)", [[1, 2]])
    'SELECT COUNT(*) FROM t WHERE a IN (1, 2)'
    """
    if not values:
        return lists_as_in(sql)
    if _DOLLAR_TEXT.search(sql):
        raise QueryRefused("Texts in dollar signs and parameters do not go together.", fix="Write texts in quotes.")
    parts, last, found = [], 0, tokens(sql, _Numbered(dialect="duckdb").tokenize)
    for mark, number in pairwise(found):
        adjacent = mark.token_type is TokenType.PARAMETER and number.start == mark.end + 1
        if not adjacent or number.token_type is not TokenType.NUMBER or not number.text.isdigit():
            continue
        place = int(number.text)
        if not 1 <= place <= len(values):
            raise QueryRefused(f"There is no parameter ${place}.")
        # A space on both sides: a prefix such as E would give the literal another meaning.
        parts += [sql[last : mark.start], f" {_literal(values[place - 1])} "]
        last = number.end + 1
    return lists_as_in("".join([*parts, sql[last:]]))


def _literal(value: object) -> str:
    return f"ARRAY[{', '.join(map(literal_text, value))}]" if isinstance(value, list) else literal_text(value)


_LISTS = {("=", "ANY"): "IN", ("=", "SOME"): "IN", ("<>", "ALL"): "NOT IN", ("!=", "ALL"): "NOT IN"}


def lists_as_in(sql: str) -> str:
    """``= ANY(ARRAY[...])`` as ``IN (...)`` and ``<> ALL(ARRAY[...])`` as ``NOT IN (...)``, which questions know.

    >>> lists_as_in("SELECT 1 WHERE a = ANY(ARRAY['x', 'y']::text[]) AND b <> ALL (ARRAY[1])")
    "SELECT 1 WHERE a IN ('x', 'y') AND b NOT IN (1)"
    """
    if "ARRAY" not in sql.upper():
        return sql
    parts, last, found = [], 0, tokens(sql)
    for place, token in enumerate(found[:-4]):
        operator = _LISTS.get((token.text, found[place + 1].text.upper()))
        words = [one.text.upper() for one in found[place + 2 : place + 5]]
        if operator is None or words != ["(", "ARRAY", "["]:
            continue
        depth, end = 0, place + 2
        closing = 0
        while end < len(found):
            kind = found[end].token_type
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if depth == 1 and kind is TokenType.R_BRACKET and not closing:
                closing = end
            if depth == 0:
                break
            end += 1
        items = sql[found[place + 4].end + 1 : found[closing].start].strip()
        if depth or not closing or not items:
            raise QueryRefused("A list of values is not closed, or is empty.", fix="Give at least one value.")
        parts += [sql[last : token.start], f"{operator} ({items})"]
        last = found[end].end + 1
    return "".join([*parts, sql[last:]])
