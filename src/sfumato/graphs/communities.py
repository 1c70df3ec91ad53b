"""Communities of a graph by the Louvain method (compiled).

Reference: Blondel et al. (2008), Fast unfolding of communities in large networks,
doi:10.1088/1742-5468/2008/10/P10008.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from sfumato.arrays import Ints
from sfumato.graphs.graph import Graph
from sfumato.kernels import kernel
from sfumato.rng import Rng

_LEVELS = 6


def communities(graph: Graph, rng: Rng, *, levels: int = _LEVELS) -> Ints:
    """A community number (0, 1, ...) for each node, with high modularity. One level gives the smallest communities."""
    if not graph.edge_count:
        return np.arange(graph.size)
    matrix: Any = graph.matrix().astype(np.float64)
    labels = np.arange(graph.size)
    for _ in range(levels):
        size = matrix.shape[0]
        order = rng.generator.permutation(size)
        weights = np.asarray(matrix.sum(axis=1)).ravel()
        moved = cast(Ints, _move(matrix.indptr, matrix.indices, matrix.data, weights, order))
        found, number = np.unique(moved, return_inverse=True)
        labels = number[labels]
        if len(found) == size:
            break
        matrix = _merged(matrix, number, len(found))
    return labels.astype(np.int64)


def modularity(graph: Graph, labels: Ints) -> float:
    """Share of edges inside communities beyond what random edges with the same degrees would give."""
    if not graph.edge_count:
        return 0.0
    ends = labels[graph.edges()]
    inside = float((ends[:, 0] == ends[:, 1]).mean())
    weights = np.bincount(labels, weights=graph.degrees) / (2 * graph.edge_count)
    return inside - float((weights**2).sum())


def _merged(matrix: Any, number: Ints, count: int) -> object:
    from scipy.sparse import csr_matrix

    entries = matrix.tocoo()
    merged = csr_matrix((entries.data, (number[entries.row], number[entries.col])), shape=(count, count))
    merged.sum_duplicates()
    return merged


@kernel()
def _move(indptr, indices, data, weights, order):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Move nodes to the community of a neighbour while modularity grows."""
    size = len(weights)
    total = weights.sum()
    label = np.arange(size)
    inside = weights.copy()
    links = np.zeros(size)
    touched = np.empty(size, dtype=np.int64)
    for _ in range(20):
        moves = 0
        for node in order:
            count = 0
            for place in range(indptr[node], indptr[node + 1]):
                other = indices[place]
                if other == node:
                    continue
                if links[label[other]] == 0.0:
                    touched[count] = label[other]
                    count += 1
                links[label[other]] += data[place]
            own = label[node]
            inside[own] -= weights[node]
            best, gain = own, links[own] - inside[own] * weights[node] / total
            for place in range(count):
                tried = touched[place]
                more = links[tried] - inside[tried] * weights[node] / total
                if more > gain + 1e-12:
                    best, gain = tried, more
            inside[best] += weights[node]
            moves += best != own
            label[node] = best
            for place in range(count):
                links[touched[place]] = 0.0
        if moves * 1000 < size:
            break
    return label
