"""Refusals of SQL, with the position in the query, the reason and a fix."""

from __future__ import annotations

import re
from typing import Any

from sfumato.errors import QueryRefused

__all__ = ["called", "place", "refuse"]

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*\(")
_MOST_CHARACTERS = 40


def called(node: Any, text: str) -> str:
    """What the query calls a function or an operation: the word before its parenthesis, else the expression itself.

    The parser has names of its own for functions, which nobody wrote.
    """
    starts = [child.meta["start"] for child in node.walk() if "start" in child.meta]
    call = _CALL.match(text, min(starts)) if starts else None
    if call is not None and not hasattr(node, "left"):
        return call[1].upper()
    written = " ".join(str(node.sql(dialect="duckdb")).split())
    return written if len(written) <= _MOST_CHARACTERS else f"{written[:_MOST_CHARACTERS]}..."


def place(node: Any, text: str) -> tuple[int | None, int | None]:
    """Line and column (from 1) of the earliest token under a syntax node."""
    starts = [child.meta["start"] for child in node.walk() if "start" in child.meta] if node is not None else []
    if not starts:
        return None, None
    before = text[: min(starts)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def refuse(node: Any, text: str, reason: str, fix: str = "") -> QueryRefused:
    """The error to raise for a syntax node."""
    line, column = place(node, text)
    return QueryRefused(reason, line=line, column=column, fix=fix)
