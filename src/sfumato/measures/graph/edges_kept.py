"""Measure: edges of the original that the release still contains."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from sfumato.graphs.edge_labels import label_hashes
from sfumato.graphs.graph import edge_keys
from sfumato.measures.base import MeasureResult
from sfumato.measures.graph._base import GraphMeasure, GraphPair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class EdgesKept(GraphMeasure):
    """Share of the edges of the original that are in the release, and share of released edges that are true.

    Where relations or values of edges are released: also the share of edges that are released with the same ones.
    """

    better: ClassVar[Literal["low", "high"]] = "high"
    label: ClassVar[str] = "edges kept"

    def compute(self, pair: GraphPair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        if not pair.original.edge_count:
            return self.result(None, reason="The graph has no edges.")
        there = pair.aligned.has_edges(*pair.release.edges().T)
        common = int(there.sum())
        kept = common / pair.original.edge_count
        true = common / pair.release.edge_count if pair.release.edge_count else 0.0
        columns = {"kept": kept, "true": true}
        if pair.aligned.labels is not None and pair.release.labels is not None:
            size = pair.release.size
            was, now = (edge_keys(e[:, 0], e[:, 1], size) for e in (pair.aligned.edges(), pair.release.edges()))
            old, new = (label_hashes(graph)[graph.edge_labels()] for graph in (pair.aligned, pair.release))
            same = old[np.searchsorted(was, now[there])] == new[there]
            columns["same kind"] = int(same.sum()) / pair.original.edge_count
        return self.result(kept, columns=columns)
