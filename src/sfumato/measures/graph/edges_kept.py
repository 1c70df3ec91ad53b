"""Measure: edges of the original that the release still contains."""

from __future__ import annotations

from typing import ClassVar, Literal

from sfumato.measures.base import MeasureResult
from sfumato.measures.graph._base import GraphMeasure, GraphPair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["EdgesKept"]


class EdgesKept(GraphMeasure):
    """Share of the edges of the original that are in the release, and share of released edges that are true."""

    better: ClassVar[Literal["low", "high"]] = "high"
    label: ClassVar[str] = "edges kept"

    def of(self, pair: GraphPair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        if not pair.original.edge_count:
            return self.result(None, reason="The graph has no edges.")
        common = int(pair.aligned.has_edges(*pair.release.edges().T).sum())
        kept = common / pair.original.edge_count
        true = common / pair.release.edge_count if pair.release.edge_count else 0.0
        return self.result(kept, columns={"kept": kept, "true": true})
