"""Measure: change of the distances between people."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from sfumato.graphs.graph import Graph
from sfumato.kernels import kernel
from sfumato.measures.base import MeasureResult
from sfumato.measures.graph._base import GraphMeasure, GraphPair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

_LONGEST = 64


class PathLengths(GraphMeasure):
    """Change of the mean number of steps between two people, over paths from ``sample`` random people.

    People who are not connected have no distance; the share of connected pairs stands in ``detail``.
    """

    label: ClassVar[str] = "change of path lengths"

    sample: Annotated[int, Field(ge=1)] = 100
    """Number of people from whom the distances to all others are measured."""

    def compute(self, pair: GraphPair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        (before, reached), (after, still) = (self._mean(graph, rng) for graph in (pair.original, pair.release))
        if before is None or after is None:
            return self.result(None, reason="Nobody is connected to somebody else.")
        detail = {"before": before, "after": after, "connected": {"before": reached, "after": still}}
        return self.result(abs(after - before), detail=detail)

    def _mean(self, graph: Graph, rng: Rng) -> tuple[float | None, float]:
        chosen = rng.child("nodes").generator.permutation(graph.size)[: self.sample]
        counts: Any = _distances(graph.indptr, graph.indices, chosen)
        pairs = counts[1:].sum()
        reached = float(pairs / max(len(chosen) * (graph.size - 1), 1))
        return (float(counts @ np.arange(len(counts)) / pairs) if pairs else None), reached


@kernel(nogil=True)
def _distances(indptr, indices, starts):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Number of pairs by distance; longer ones count as the longest. Breadth-first search from each start."""
    size = len(indptr) - 1
    counts = np.zeros(_LONGEST, dtype=np.int64)
    queue = np.empty(size, dtype=np.int64)
    for start in starts:
        distance = np.full(size, -1, dtype=np.int32)
        distance[start] = 0
        queue[0] = start
        head, tail = 0, 1
        while head < tail:
            node = queue[head]
            head += 1
            counts[min(distance[node], _LONGEST - 1)] += 1
            for other in indices[indptr[node] : indptr[node + 1]]:
                if distance[other] < 0:
                    distance[other] = distance[node] + 1
                    queue[tail] = other
                    tail += 1
    return counts
