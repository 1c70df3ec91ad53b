"""Rows bound to the column names of a query, and limits on how often a query repeats one unit's rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sfumato.query.plan.query import ContributionLimits
from sfumato.query.plan.relational import PlanNode
from sfumato.query.sql.expressions import ColumnScope
from sfumato.query.sql.refusal import refuse

if TYPE_CHECKING:
    from sqlglot import exp

_MAX_UNBOUNDED_JOINS = 3
_MAX_REPETITION = 64
"""How often UNION ALL may repeat a unit's row; a quarter as often for each further joined table. Without this limit an
adversary could make a query time out only when a certain person is in the data, and observe that."""

Views: TypeAlias = Mapping[str, tuple["exp.Expr", "Views"]]
"""The subqueries of WITH that are in scope, by name, each with those in its own scope."""


@dataclass(frozen=True, kw_only=True)
class BoundRelation:
    """Rows, the column names a query can use for them, and their contribution limits."""

    rows: PlanNode
    columns: ColumnScope
    limits: ContributionLimits
    """(rows, groups, typical groups) of one unit, as the owner declared them."""


def check_row_repetition(rows: PlanNode, node: exp.Expr, text: str) -> None:
    """Refuse a query that repeats one unit's rows too often."""
    if rows.unbounded_joins > _MAX_UNBOUNDED_JOINS:
        raise refuse(
            node,
            text,
            f"At most {_MAX_UNBOUNDED_JOINS} private tables are joined row by row.",
            "Join subqueries that GROUP BY the unit alone: they have one row per person.",
        )
    if rows.max_row_multiplicity * 4 ** max(0, rows.unbounded_joins - 1) > _MAX_REPETITION:
        raise refuse(
            node,
            text,
            "One person's rows would be repeated too often.",
            "Use fewer parts in UNION ALL, and join fewer private tables with it.",
        )


def wider_limits(a: ContributionLimits, b: ContributionLimits) -> ContributionLimits:
    """The larger limit of two relations, one by one; None where either has none."""
    first, second, third = (None if x is None or y is None else max(x, y) for x, y in zip(a, b, strict=True))
    return first, second, third
