"""Symmetric graphs: rows of k similar nodes, and edges that stay when every row is rotated at once.

A rotation of all rows maps the node in column c of a row to the one in column c + 1. The pairs of nodes fall into
orbits: the k pairs between two rows whose columns differ by the same number. A graph that consists of whole orbits is
the same after the rotation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Array, Ints
from sfumato.errors import TooFewRows
from sfumato.graphs.align_rows import aligned_rows
from sfumato.graphs.graph import Graph
from sfumato.rng import Rng


@dataclass(frozen=True, kw_only=True, eq=False)
class SymmetricGraph:
    """A graph with a permutation of its nodes that maps edges to edges."""

    graph: Graph
    symmetry: Ints
    """The image of each node. Every node comes back after k or more applications, and not before."""


def symmetric_graph(graph: Graph, k: int, rng: Rng) -> SymmetricGraph:
    """A graph near ``graph``, with about as many edges, in which each node has at least ``k`` images.

    Nodes of a community form rows of k, arranged so that many edges lie in the same orbits. Orbits are taken in the
    order of the share of their pairs that are linked, the largest first, until the number of edges of the original is
    reached. All edges of an orbit get the label of one of its linked pairs, drawn at random. If k does not divide the
    number of nodes, the nodes of the smallest degrees that are left over, and k more, lose their edges.
    """
    if graph.size < k:
        raise TooFewRows(f"k = {k}, and the graph has {graph.size} nodes.", fix="Choose a smaller k.")
    left = graph.size % k
    by_degree = np.argsort(graph.degrees, kind="stable")
    alone = by_degree[: k + left] if left else by_degree[:0]
    rows = aligned_rows(graph, np.sort(by_degree[len(alone) :]), k, rng)
    symmetry = np.empty(graph.size, dtype=np.int64)
    symmetry[rows] = np.roll(rows, -1, axis=1)
    symmetry[alone] = np.roll(alone, -1)
    return SymmetricGraph(graph=graph.with_edges(*_densest_orbits(graph, rows, rng.generator)), symmetry=symmetry)


def _densest_orbits(graph: Graph, rows: Ints, random: np.random.Generator) -> tuple[Ints, Ints | None]:
    """Whole orbits of pairs with about as many edges as the graph has, and their labels."""
    count, k = rows.shape
    row, column = np.full(graph.size, -1, dtype=np.int64), np.zeros(graph.size, dtype=np.int64)
    row[rows], column[rows] = np.arange(count)[:, None], np.arange(k)
    ends, labels = graph.edges(), graph.edge_labels()
    inside = (row[ends] >= 0).all(axis=1)
    ends = ends[inside]
    low = np.where(row[ends[:, 0]] <= row[ends[:, 1]], ends[:, 0], ends[:, 1])
    high = ends.sum(axis=1) - low
    step = (column[high] - column[low]) % k
    step = np.where(row[low] == row[high], np.minimum(step, k - step), step)
    keys, place, linked = np.unique((row[low] * count + row[high]) * k + step, return_inverse=True, return_counts=True)
    first, second, step = keys // k // count, keys // k % count, keys % k
    # Inside a row, a step of k / 2 pairs every node twice.
    size = np.where((first == second) & (2 * step == k), k // 2, k)
    order = np.lexsort((random.random(len(keys)), -linked / size))
    total = np.cumsum(size[order])
    wanted = int(np.searchsorted(total, graph.edge_count, side="right"))
    kept = order[:wanted]
    orbit = np.repeat(kept, size[kept])
    turn = np.arange(len(orbit)) - np.repeat(np.cumsum(size[kept]) - size[kept], size[kept])
    pairs = np.column_stack([rows[first[orbit], turn], rows[second[orbit], (turn + step[orbit]) % k]])
    if labels is None:
        return pairs, None
    drawn, of_orbit = random.permutation(len(place)), np.zeros(len(keys), dtype=np.int64)
    of_orbit[place[drawn]] = labels[inside][drawn]  # the last one of an orbit stays
    return pairs, of_orbit[orbit]


def is_symmetry(graph: Graph, symmetry: Ints) -> bool:
    """Whether a permutation maps edges to edges with the same label, and nodes to nodes with the same attributes."""
    if not np.array_equal(np.sort(symmetry), np.arange(graph.size)):
        return False
    ends = graph.edges()
    if not graph.has_edges(symmetry[ends[:, 0]], symmetry[ends[:, 1]]).all():
        return False
    moved = graph.reordered(symmetry).labels
    if graph.labels is not None and moved is not None and not np.array_equal(moved, graph.labels):
        return False
    return not graph.nodes.width or graph.nodes[symmetry].equals(graph.nodes)


def cycle_lengths(symmetry: Array) -> Ints:
    """For each node the number of nodes on its cycle.

    >>> cycle_lengths(np.array([1, 2, 0, 3])).tolist()
    [3, 3, 3, 1]
    """
    lengths = np.zeros(len(symmetry), dtype=np.int64)
    for start in range(len(symmetry)):
        if lengths[start]:
            continue
        cycle, node = [start], int(symmetry[start])
        while node != start:
            cycle.append(node)
            node = int(symmetry[node])
        lengths[cycle] = len(cycle)
    return lengths
