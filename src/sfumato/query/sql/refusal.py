"""Refusals of SQL, with the position in the query, the reason and a fix."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sfumato.errors import QueryRefused

if TYPE_CHECKING:
    from sqlglot import exp

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\(")
_MOST_CHARACTERS = 40


def called(node: exp.Expr, text: str) -> str:
    """What the query calls a function or an operation: the word before its parenthesis, else the expression itself.

    The parser has names of its own for functions, which nobody wrote.
    """
    starts = [child.meta["start"] for child in node.walk() if "start" in child.meta]
    call = _CALL.match(text, min(starts)) if starts else None
    if call is not None and not hasattr(node, "left"):
        return call[1].upper()
    written = " ".join(str(node.sql(dialect="duckdb")).split())
    return written if len(written) <= _MOST_CHARACTERS else f"{written[:_MOST_CHARACTERS]}..."


_NEAREST = {
    "HISTOGRAM": "Use HISTOGRAM(x, n) as an item of SELECT, or GROUP BY WIDTH_BUCKET(x, low, high, n).",
    "AGE": "Use DATE_DIFF('year', first, last).",
    "TO_CHAR": "Use STRFTIME(day, '%Y-%m').",
    "DATE_FORMAT": "Use STRFTIME(day, '%Y-%m').",
    "STRING_AGG": "Lists of values are not released. Use COUNT(*) with GROUP BY.",
    "LISTAGG": "Lists of values are not released. Use COUNT(*) with GROUP BY.",
    "ARRAY_AGG": "Lists of values are not released. Use COUNT(*) with GROUP BY.",
    "LIST": "Lists of values are not released. Use COUNT(*) with GROUP BY.",
    "ANY_VALUE": "Values of single rows are not released. Use MODE(x), or add it to GROUP BY.",
    "FIRST": "Values of single rows are not released. Use ROW_NUMBER() OVER (PARTITION BY unit ORDER BY ...) = 1.",
    "REGEXP_EXTRACT": "Use REGEXP_MATCHES(x, pattern) in CASE WHEN, or SUBSTRING with constants.",
    "REGEXP_REPLACE": "Use REGEXP_MATCHES(x, pattern) in CASE WHEN, or SUBSTRING with constants.",
    "SPLIT_PART": "Use SUBSTRING with constants.",
    "REPLACE": "Use CASE, or SUBSTRING with constants.",
    "KURTOSIS": "Use VARIANCE and QUANTILE_CONT.",
    "SKEWNESS": "Use MEDIAN, AVG and QUANTILE_CONT.",
    "BOOL_OR": "Use COUNT_IF(condition) > 0.",
    "BOOL_AND": "Use COUNT_IF(NOT condition) = 0.",
}


def nearest(name: str) -> str:
    """What is answered instead of a function; empty where nothing is near.

    >>> nearest("bool_or"), nearest("unknown")
    ('Use COUNT_IF(condition) > 0.', '')
    """
    return _NEAREST.get(name.upper(), "")


def place(node: exp.Expr | None, text: str) -> tuple[int | None, int | None]:
    """Line and column (from 1) of the earliest token under a syntax node."""
    starts = [child.meta["start"] for child in node.walk() if "start" in child.meta] if node is not None else []
    if not starts:
        return None, None
    before = text[: min(starts)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def refuse(node: exp.Expr | None, text: str, reason: str, fix: str = "") -> QueryRefused:
    """The error to raise for a syntax node."""
    line, column = place(node, text)
    return QueryRefused(reason, line=line, column=column, fix=fix)
