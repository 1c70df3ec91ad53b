"""Structural signatures of nodes: Weisfeiler-Lehman colours, sorted degrees of neighbours, agreements.

Signatures of two graphs can be compared: equal structure gives equal numbers in both.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Array, Ints
from sfumato.graphs.edge_labels import label_hashes
from sfumato.graphs.graph import Graph
from sfumato.kernels import kernel

Colours = npt.NDArray[np.uint64]
Features = npt.NDArray[np.float32]
_PROFILE = 24


def colours(graph: Graph, depth: int) -> Colours:
    """Weisfeiler-Lehman colours: two nodes have the same one if their surroundings up to ``depth`` look alike.

    Depth 0 is the degree, depth 1 the sorted degrees of the neighbours, depth 2 what the neighbours' neighbours add.
    Labels of edges are part of what is seen.
    Colours are 64-bit hashes; among a million nodes, two different ones are equal by chance once in 40 million graphs.

    >>> path = Graph.of([(0, 1), (1, 2), (2, 3), (3, 4)])
    >>> [len(np.unique(colours(path, depth))) for depth in (0, 1, 2)]
    [2, 3, 3]
    """
    now = _mixed(graph.degrees.astype(np.uint64))
    by_label = None if graph.labels is None else label_hashes(graph)[graph.labels]
    if by_label is not None:
        now = _mixed(now + _sums(graph, _mixed(by_label)))
    for _ in range(depth):
        seen = _mixed(now)[graph.indices]
        now = _mixed(
            now * np.uint64(0x9E3779B97F4A7C15) + _sums(graph, seen if by_label is None else _mixed(seen + by_label))
        )
    return now


def _sums(graph: Graph, hashes: Colours) -> Colours:
    """For each node the sum over its edges: it does not depend on their order."""
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    sums: Colours = total[graph.indptr[1:]] - total[graph.indptr[:-1]]
    return sums


def _mixed(numbers: Colours) -> Colours:
    """The finalizer of splitmix64."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Colours = z ^ (z >> np.uint64(31))
    return mixed


def unique_share(labels: Array) -> float:
    """The share of nodes whose label no other node has."""
    return float((np.unique(labels, return_counts=True)[1] == 1).sum() / max(len(labels), 1))


def neighbour_degree_profile(graph: Graph) -> Features:
    """Degree and quantiles of the neighbours' degrees, on a logarithmic scale: close for similar neighbourhoods."""
    degrees = graph.degrees
    row = np.repeat(np.arange(graph.size), degrees)
    order = np.lexsort((degrees[graph.indices], row))
    ranked = np.log1p(degrees[graph.indices][order]).astype(np.float32)
    place = (np.arange(_PROFILE) + 0.5) / _PROFILE
    at = graph.indptr[:-1, None] + np.minimum(
        (degrees[:, None] * place).astype(np.int64), np.maximum(degrees - 1, 0)[:, None]
    )
    quantiles = ranked[np.minimum(at, max(len(ranked) - 1, 0))] if len(ranked) else np.zeros(at.shape, np.float32)
    quantiles[degrees == 0] = 0
    own = np.log1p(degrees).astype(np.float32)[:, None] * np.sqrt(np.float32(_PROFILE))
    return np.concatenate([own, quantiles], axis=1).astype(np.float32)


def agreements(graph: Graph, nodes: Ints, *, top: int, hubs: int) -> Features:
    """Characteristic vectors: the largest agreements of each node with all others, sorted downwards.

    The agreement of two nodes is the covariance of their rows of the adjacency matrix, s(i, j) = (1/N) sum_k A_ik A_jk
    - (1/N²) d_i d_j. It is returned times N, as a square root, which makes the noise of all entries about equal.
    Common neighbours with more than ``hubs`` neighbours are not followed: they say little and cost most. Agreements of
    nodes without a followed common neighbour are below 0 and left out.
    """
    found = _agreements(graph.indptr, graph.indices, nodes.astype(np.int64), top, hubs)
    return cast(Features, found)


@kernel(nogil=True)
def _agreements(indptr, indices, nodes, top, hubs):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    size = len(indptr) - 1
    common = np.zeros(size, dtype=np.int32)
    touched = np.empty(size, dtype=np.int64)
    result = np.zeros((len(nodes), top), dtype=np.float32)
    for row in range(len(nodes)):
        node = nodes[row]
        count = 0
        degree = indptr[node + 1] - indptr[node]
        for at in range(indptr[node], indptr[node + 1]):
            middle = indices[at]
            if indptr[middle + 1] - indptr[middle] > hubs:
                continue
            for place in range(indptr[middle], indptr[middle + 1]):
                other = indices[place]
                if other == node:
                    continue
                if common[other] == 0:
                    touched[count] = other
                    count += 1
                common[other] += 1
        values = np.empty(count, dtype=np.float32)
        for place in range(count):
            other = touched[place]
            values[place] = common[other] - degree * (indptr[other + 1] - indptr[other]) / size
            common[other] = 0
        values = np.sort(values)[::-1]
        for place in range(min(count, top)):
            if values[place] <= 0:
                break
            result[row, place] = np.sqrt(values[place])
    return result
