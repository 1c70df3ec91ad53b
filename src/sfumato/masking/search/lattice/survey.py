"""Survey of a lattice: every combination of levels evaluated, for people who want to look at it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from sfumato.deadline import check_deadline
from sfumato.errors import BadParameter
from sfumato.masking.search.lattice.level_range import LevelRange
from sfumato.masking.search.lattice.space import LatticeSpace, Node
from sfumato.progress import SILENT, Progress

LARGEST = 20_000
"""Maximum number of combinations of a survey."""
_BATCH = 100


@dataclass(frozen=True, kw_only=True)
class LatticeSurvey:
    """All combinations of levels of a lattice, and the best of those that meet the models."""

    columns: tuple[str, ...]
    within: LevelRange
    rows: int
    nodes: tuple[Node, ...]

    @property
    def best(self) -> Node | None:
        """The combination with the least loss; None if none meets the models."""
        return min((node for node in self.nodes if node.meets), key=lambda node: node.score, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data. A combination that fails has its levels alone: nothing more is computed for it."""
        return {
            "columns": list(self.columns),
            "low": list(self.within.low),
            "high": list(self.within.high),
            "rows": self.rows,
            "best": list(self.best.levels) if self.best is not None else None,
            "nodes": [
                {
                    "levels": list(node.levels), "meets": node.meets,
                    **({"suppressed": node.shape.suppressed, "classes": node.shape.classes, "smallest": node.smallest,
                        "loss": node.score} if node.meets else {}),
                }
                for node in self.nodes
            ],
        }  # fmt: skip


def survey(space: LatticeSpace, within: LevelRange, progress: Progress = SILENT) -> LatticeSurvey:
    """Evaluate every combination of levels within the range. A lattice of more than 20,000 is refused."""
    if within.nodes > LARGEST:
        raise BadParameter(
            f"{within.nodes:,} combinations of levels are too many to look at (at most {LARGEST:,}).",
            fix="Narrow `lowest` and `highest` of the step, or let the search choose.",
        )
    ranges = (range(low, high + 1) for low, high in zip(within.low, within.high, strict=True))
    nodes: list[Node] = []
    with progress.task("evaluating combinations of levels", within.nodes) as tick:
        for number, levels in enumerate(product(*ranges), start=1):
            nodes.append(space.evaluate(levels))
            if number % _BATCH == 0:
                check_deadline(progress)
                tick(_BATCH)
    return LatticeSurvey(columns=tuple(space.table.columns), within=within, rows=space.rows, nodes=tuple(nodes))
