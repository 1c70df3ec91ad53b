"""Measure: whether the same people are central in the release."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Array
from sfumato.graphs.graph import Graph
from sfumato.measures.base import MeasureResult
from sfumato.measures.graph._base import GraphMeasure, GraphPair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

_STEPS = 60
_DAMPING = 0.85


class CentralityRanks(GraphMeasure):
    """Rank correlation (Spearman) of people's centrality in original and release, by PageRank and by degree.

    The value is that of PageRank.
    """

    better: ClassVar[Literal["low", "high"]] = "high"
    label: ClassVar[str] = "centrality ranks"

    def compute(self, pair: GraphPair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        if pair.release.size < 3 or not pair.original.edge_count or not pair.release.edge_count:
            return self.result(None, reason="The graph is too small.")
        original = pair.aligned
        ranks = {
            "PageRank": _correlation(_pagerank(original), _pagerank(pair.release)),
            "degree": _correlation(original.degrees, pair.release.degrees),
        }
        return self.result(ranks["PageRank"], columns=ranks)


def _pagerank(graph: Graph) -> npt.NDArray[np.float64]:
    matrix, degrees = graph.matrix(), np.maximum(graph.degrees, 1)
    rank = np.full(graph.size, 1 / graph.size)
    for _ in range(_STEPS):
        rank = (1 - _DAMPING) / graph.size + _DAMPING * (matrix @ (rank / degrees))
    return np.round(rank, 12)


def _correlation(one: Array, other: Array) -> float:
    from scipy.stats import rankdata

    ranks = [rankdata(values) for values in (one, other)]
    spread = [held.std() for held in ranks]
    if min(spread) == 0:
        return 1.0 if max(spread) == 0 else 0.0
    return float(((ranks[0] - ranks[0].mean()) * (ranks[1] - ranks[1].mean())).mean() / (spread[0] * spread[1]))
