"""Measure: change of the degree distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.measures.base import MeasureResult
from sfumato.measures.graph._base import GraphMeasure, GraphPair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class DegreeDistribution(GraphMeasure):
    """Change of the degree distribution: mean difference of sorted degrees, as a share of the mean degree.

    This is the Wasserstein distance of the two distributions, divided by the mean degree of the original.
    """

    label: ClassVar[str] = "change of degrees"

    def compute(self, pair: GraphPair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        if not pair.original.edge_count or not pair.release.size:
            return self.result(None, reason="The graph has no edges.")
        place = (np.arange(1000) + 0.5) / 1000 if pair.release.size != pair.original.size else None
        sorted_degrees = [np.sort(graph.degrees) for graph in (pair.original, pair.release)]
        if place is not None:
            sorted_degrees = [held[(place * len(held)).astype(np.int64)] for held in sorted_degrees]
        mean = float(pair.original.degrees.mean())
        value = float(np.abs(sorted_degrees[0] - sorted_degrees[1]).mean()) / mean
        return self.result(value, detail={"before": mean, "after": float(pair.release.degrees.mean())})
