"""Refusals of SQL, with the position in the query, the reason and a fix."""

from __future__ import annotations

from typing import Any

from sfumato.errors import QueryRefused

__all__ = ["place", "refuse"]


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
