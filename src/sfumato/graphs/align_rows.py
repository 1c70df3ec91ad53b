"""Rows of k nodes such that many edges of a graph lie in the same orbits of a rotation of all rows (compiled).

Each community is arranged for itself. It starts with rows of similar degrees; then random pairs of its nodes change
places while the sum of squares of the numbers of edges per orbit grows. Nodes that do not fill a row of their community
form rows of their own.
"""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Ints
from sfumato.graphs.communities import communities
from sfumato.graphs.graph import Graph
from sfumato.kernels import kernel
from sfumato.rng import Rng

_TRIES = 30
"""Tried exchanges per node. Ten times as many keep one in a hundred edges more."""
_LARGEST = 4000
"""Nodes that are arranged together, at most: orbits are counted in a dense array."""


def aligned_rows(graph: Graph, nodes: Ints, k: int, rng: Rng) -> Ints:
    """Rows of k of the given nodes, whose number is a multiple of k."""
    if not len(nodes):
        return np.empty((0, k), dtype=np.int64)
    groups = communities(graph, rng.child("communities"), levels=1)[nodes]
    order = np.lexsort((-graph.degrees[nodes], groups))
    nodes, groups = nodes[order], groups[order]
    begin = np.searchsorted(groups, groups)
    rank = np.arange(len(nodes)) - begin
    size = np.searchsorted(groups, groups, side="right") - begin
    inside = rank < size // k * k
    part = np.unique(np.column_stack([groups, rank // (_LARGEST // k * k or k)])[inside], axis=0, return_counts=True)[1]
    starts = np.concatenate([[0], np.cumsum(part)]).astype(np.int64)
    filled, rest = nodes[inside], nodes[~inside]
    seed = int(rng.child("exchanges").generator.integers(1 << 62))
    place = _arrange(graph.indptr, graph.indices, filled, starts, k, _TRIES, np.uint64(seed))
    rows = np.empty(len(filled), dtype=np.int64)
    rows[np.asarray(place)] = filled
    return np.concatenate([rows.reshape(-1, k), rest.reshape(-1, k)])


@kernel()
def _arrange(indptr, indices, nodes, starts, k, tries, state):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The place (row times k, plus column) of each node."""
    result = np.empty(len(nodes), dtype=np.int64)
    number = np.full(len(indptr) - 1, -1, dtype=np.int64)
    for part in range(len(starts) - 1):
        low, size = starts[part], starts[part + 1] - starts[part]
        for own in range(size):
            number[nodes[low + own]] = own
        begin = np.zeros(size + 1, dtype=np.int64)
        for own in range(size):
            node = nodes[low + own]
            begin[own + 1] = begin[own]
            for at in range(indptr[node], indptr[node + 1]):
                begin[own + 1] += number[indices[at]] >= 0
        linked = np.empty(begin[size], dtype=np.int64)
        for own in range(size):
            node, into = nodes[low + own], begin[own]
            for at in range(indptr[node], indptr[node + 1]):
                if number[indices[at]] >= 0:
                    linked[into] = number[indices[at]]
                    into += 1
        place = np.arange(size)
        counts = np.zeros((size // k) * (size // k) * k, dtype=np.int32)
        for own in range(size):
            for at in range(begin[own], begin[own + 1]):
                if own < linked[at]:
                    counts[_orbit(place[own], place[linked[at]], size // k, k)] += 1
        for _ in range(tries * size):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            one = np.int64((state >> np.uint64(33)) % np.uint64(size))
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            other = np.int64((state >> np.uint64(33)) % np.uint64(size))
            if one == other:
                continue
            if _exchange(one, other, begin, linked, place, counts, size // k, k) < 0:
                _exchange(one, other, begin, linked, place, counts, size // k, k)
        for own in range(size):
            result[low + own] = low + place[own]
            number[nodes[low + own]] = -1
    return result


@kernel()
def _orbit(one, other, rows, k):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The number of the orbit of a pair of places."""
    if one // k > other // k:
        one, other = other, one
    step = (other - one) % k
    if one // k == other // k:
        step = min(step, k - step)
    return (one // k * rows + other // k) * k + step


@kernel()
def _exchange(one, other, begin, linked, place, counts, rows, k):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Let two nodes change places; returns by how much the sum of squares grows."""
    gain = _count(one, other, -1, begin, linked, place, counts, rows, k)
    gain += _count(other, -1, -1, begin, linked, place, counts, rows, k)
    place[one], place[other] = place[other], place[one]
    gain += _count(one, other, 1, begin, linked, place, counts, rows, k)
    return gain + _count(other, -1, 1, begin, linked, place, counts, rows, k)


@kernel()
def _count(node, skipped, sign, begin, linked, place, counts, rows, k):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Add or remove the edges of a node; an edge to ``skipped`` is left to the other end."""
    gain = 0
    for at in range(begin[node], begin[node + 1]):
        if linked[at] != skipped:
            orbit = _orbit(place[node], place[linked[at]], rows, k)
            gain += 2 * sign * counts[orbit] + 1
            counts[orbit] += sign
    return gain
