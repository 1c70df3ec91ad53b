"""Method: generalize a graph into clusters of nodes with counts of edges."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.arrays import Ints
from sfumato.errors import TooFewRows
from sfumato.graphs.base import GraphChange, GraphMethod
from sfumato.graphs.clusters import Clusters
from sfumato.graphs.communities import communities
from sfumato.graphs.graph import Graph
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class ClusterNodes(GraphMethod):
    """Generalization of a graph: clusters of at least ``k`` nodes, with counts of edges inside and between them.

    Single nodes and edges are not released. Whatever an attacker knows about somebody's friends, they find a cluster
    of at least k people. The counts are exact: that two people are linked is known for sure where all pairs of a
    cluster are linked, and they are not differentially private. Users draw graphs with the same counts. Where relations
    or values of edges are released, there is one count for each.
    """

    main = "k"
    examples = ({"k": 5},)
    reference = (
        "Hay, Miklau, Jensen, Towsley, Weis (2008), Resisting structural re-identification in anonymized social "
        "networks, doi:10.14778/1453856.1453873"
    )

    k: Annotated[int, Field(ge=2)]
    """Number of nodes of a cluster, at least."""

    def apply(self, graph: Graph, rng: Rng, progress: Progress = SILENT) -> GraphChange:
        if graph.size < self.k:
            raise TooFewRows(f"k = {self.k}, and the graph has {graph.size} nodes.", fix="Choose a smaller k.")
        return clustered(graph, _similar_nodes(graph, self.k, rng), rng)


def clustered(graph: Graph, labels: Ints, rng: Rng, attributes: pl.DataFrame | None = None) -> GraphChange:
    """The release of clusters with counts, by the cluster number of each node."""
    clusters = Clusters.of(graph, labels)
    if attributes is not None:
        clusters = replace(clusters, attributes=attributes)
    random = rng.child("sample").generator
    sampled = clusters.sample(random, labels)
    world = replace(Clusters.spread_labels(graph, sampled, labels, random), nodes=graph.nodes)
    return GraphChange(graph=world, clusters=clusters, labels=labels, counts={"clusters": len(clusters.sizes)})


def _similar_nodes(graph: Graph, k: int, rng: Rng) -> Ints:
    """Clusters of nodes of one community with similar degrees: k to 2k - 1 nodes each, larger ones never."""
    groups = communities(graph, rng.child("communities"))
    order = np.lexsort((-graph.degrees, groups))
    group, begins = groups[order], []
    place = 0
    while place < len(order):
        begins.append(place)
        end = place + k
        # A rest of the community that is too small for a cluster of its own joins this one, up to 2k - 1 nodes.
        last = np.searchsorted(group, group[min(end, len(order)) - 1], side="right")
        end = int(last) if last - end < k else end
        end = min(end, place + 2 * k - 1)
        place = len(order) if len(order) - end < k else end
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = np.searchsorted(begins, np.arange(len(order)), side="right") - 1
    return labels
