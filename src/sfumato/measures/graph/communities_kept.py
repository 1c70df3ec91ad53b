"""Measure: communities that are still found in the release."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from sfumato.arrays import Ints
from sfumato.graphs.communities import communities, modularity
from sfumato.measures.base import MeasureResult
from sfumato.measures.graph._base import GraphMeasure, GraphPair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class CommunitiesKept(GraphMeasure):
    """Normalized mutual information of the communities of original and release (Louvain method): 1 is the same.

    Two runs on the same graph differ, too: ``detail`` has the value of two runs on the original, and both modularities.
    """

    better: ClassVar[Literal["low", "high"]] = "high"
    label: ClassVar[str] = "communities kept"
    reference = "Blondel et al. (2008), doi:10.1088/1742-5468/2008/10/P10008"

    def compute(self, pair: GraphPair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        if not pair.original.edge_count or not pair.release.edge_count:
            return self.result(None, reason="The graph has no edges.")
        original = pair.aligned
        first, second = (communities(original, rng.child("original", number)) for number in range(2))
        after = communities(pair.release, rng.child("release"))
        return self.result(
            _normalized_information(first, after),
            detail={
                "repeated": _normalized_information(first, second),
                "before": modularity(original, first),
                "after": modularity(pair.release, after),
            },
        )


def _normalized_information(one: Ints, other: Ints) -> float:
    size = len(one)
    joint = np.unique(one * (int(other.max()) + 1) + other, return_counts=True)[1] / size
    shares = [np.bincount(labels) / size for labels in (one, other)]
    entropy = [-float((p[p > 0] * np.log(p[p > 0])).sum()) for p in (*shares, joint)]
    total = entropy[0] + entropy[1]
    return 2 * (total - entropy[2]) / total if total else 1.0
