"""Column decisions: the role of each column, who decided it and why, and whether the column leaves unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sfumato.data.table import Table
from sfumato.release.change import Lineage


@dataclass(frozen=True, kw_only=True)
class ColumnDecision:
    """The decision about one column. All of it is public: it is derived from the manifest of a release.

    ``Evaluation.decisions`` and ``column_decisions(report.manifest)`` give one entry per column of the recipe, in the
    recipe's order, including the columns that are not released.
    """

    column: str
    role: str
    decided_by: str | None
    """None if the recipe does not say who decided."""
    reason: str | None
    """None if the recipe does not say why."""
    released: bool
    unchanged: bool | None
    """Whether every released value is the original one; None if that was not compared (a file larger than memory)."""

    def to_dict(self) -> dict[str, object]:
        """The decision as plain data."""
        return asdict(self)


def column_decisions(manifest: Mapping[str, Any]) -> tuple[ColumnDecision, ...]:
    """The decisions that the manifest of a release records."""
    declared = manifest.get("recipe", {}).get("columns") or manifest.get("columns", {})
    released, unchanged = manifest.get("columns", {}), manifest.get("unchanged")
    return tuple(
        ColumnDecision(
            column=name,
            role=str(column["role"]),
            decided_by=column.get("decided_by"),
            reason=column.get("reason"),
            released=name in released,
            unchanged=None if unchanged is None else name in unchanged,
        )
        for name, column in declared.items()
    )


def unchanged_columns(original: Table, release: Table, lineage: Lineage) -> list[str]:
    """Released columns whose values are those of the original in every released row that came from one."""
    known = np.flatnonzero(lineage.rows >= 0)
    if not len(known):
        return []
    rows = lineage.rows[known]
    return [
        name
        for name in release.columns
        if name in original.columns
        and release.column(name).dtype == original.column(name).dtype
        and release.column(name)[known].equals(original.column(name)[rows], null_equal=True)
    ]
