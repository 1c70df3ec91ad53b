"""Expanded size of a query: what it makes an engine compute for one row, with all subqueries written out.

An engine that runs out of memory or time fails, and one person's rows must not decide whether it does. So a query has
bounds that depend on its text alone: the number of expressions with subqueries, views and aliases written out, and the
characters of all texts that it makes for one row. They are refused before anything is spent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from sfumato.engines.expressions import MOST_TEXT, ColumnRef, Expression
from sfumato.errors import QueryRefused
from sfumato.query.plan.relational import PlanNode

MOST_EXPRESSIONS = 50_000
"""Nodes of all expressions of a query. DuckDB plans about ten thousand a second."""
MOST_ROW_TEXT = 200_000
"""Characters of all texts that are made for one row."""
_JOINED = 2
"""Private tables that are joined row by row: one person's rows are combined, up to 65,536 pairs of them."""


def check_expanded_size(rows: PlanNode, *measured: object) -> None:
    """Refuse a query whose expressions, or the texts that they make for one row, are too many."""
    made = [node for node in _expressions((rows, measured)) if not isinstance(node, ColumnRef)]
    if sum(node.nodes for node in made) > MOST_EXPRESSIONS:
        raise QueryRefused(
            "The query is too large when its subqueries are written out.",
            fix="A column of a subquery counts as the expression that it stands for, each time it is used.",
        )
    most = MOST_TEXT if _joins(rows) >= _JOINED else MOST_ROW_TEXT
    texts = {text for node in made for text in node.made if not isinstance(text, ColumnRef)}
    written = sum(text.written for text in texts)
    if written > most:
        raise QueryRefused(
            f"The texts that are made for one row could have {written:,} characters, and {most:,} is the most"
            f"{' where private tables are joined row by row' if most == MOST_TEXT else ''}.",
            fix="Use SUBSTRING or LEFT on the texts that are joined.",
        )


def _joins(node: PlanNode) -> int:
    return max(node.unbounded_joins, *(_joins(child) for child in node.children()), 0)


def _expressions(value: object) -> Iterator[Expression]:
    """The expressions of a plan, found by its form: a new kind of node is counted by having them."""
    if isinstance(value, Expression):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _expressions(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            yield from _expressions(getattr(value, part.name))
