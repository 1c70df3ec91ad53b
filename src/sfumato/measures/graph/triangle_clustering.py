"""Measure: change of the clustering coefficient."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from sfumato.graphs.graph import Graph
from sfumato.kernels import kernel
from sfumato.measures.base import MeasureResult
from sfumato.measures.graph._base import GraphMeasure, GraphPair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class TriangleClustering(GraphMeasure):
    """Change of the mean local clustering coefficient: how often two friends of somebody are friends.

    Large graphs are sampled: the coefficient is the mean over ``sample`` nodes with at least two friends.
    """

    label: ClassVar[str] = "change of clustering"
    reference = "Watts, Strogatz (1998), Collective dynamics of small-world networks, doi:10.1038/30918"

    sample: Annotated[int, Field(ge=1)] = 5000
    """Number of nodes, at most."""

    def compute(self, pair: GraphPair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        before, after = (_mean(graph, self.sample, rng) for graph in (pair.original, pair.release))
        if before is None or after is None:
            return self.result(None, reason="Nobody has two friends.")
        return self.result(abs(after - before), detail={"before": before, "after": after})


def _mean(graph: Graph, sample: int, rng: Rng) -> float | None:
    nodes = np.flatnonzero(graph.degrees > 1)
    if not len(nodes):
        return None
    chosen = rng.child("nodes").generator.permutation(nodes)[:sample]
    return float(_coefficients(graph.indptr, graph.indices, chosen).mean())


@kernel(nogil=True)
def _coefficients(indptr, indices, nodes):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    marked = np.zeros(len(indptr) - 1, dtype=np.bool_)
    result = np.zeros(len(nodes))
    for row in range(len(nodes)):
        node = nodes[row]
        friends = indices[indptr[node] : indptr[node + 1]]
        marked[friends] = True
        links = 0
        for friend in friends:
            for other in indices[indptr[friend] : indptr[friend + 1]]:
                links += marked[other]
        marked[friends] = False
        result[row] = links / (len(friends) * (len(friends) - 1))
    return result
