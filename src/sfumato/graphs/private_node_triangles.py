"""Differentially private number of triangles with one person, and all their friendships, as privacy unit.

A person with many friends may be part of any number of triangles, so at most M triangles of each person are counted, in
parts if necessary: the count is the largest sum of weights in [0, 1] of all triangles such that the weights of the
triangles of each person sum up to M at most. A person more or less, with all their triangles, changes this sum by at
most M (remove their triangles: the other weights remain feasible). If nobody has more than M triangles, it is the true
count. The linear program is solved by HiGHS; its result is rounded, which the sensitivity M + 1 covers.

Reference: Kasiviswanathan, Nissim, Raskhodnikova, Smith (2013), Analyzing graphs with node differential privacy,
doi:10.1007/978-3-642-36594-2_26.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from sfumato.arrays import Ints
from sfumato.dp.mechanisms.geometric import Geometric
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter
from sfumato.graphs.graph import Graph
from sfumato.kernels import kernel
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue

_MOST = 50_000
"""Variables of the linear program, at most: it then takes seconds, and its tolerances stay below a half in total."""


def private_node_triangle_count(graph: Graph, *, epsilon: Number, most: int, receipt: Receipt) -> tuple[int, int]:
    """The number of triangles under node privacy, at least 0, and the sensitivity that its noise is made for.

    ``most`` bounds the triangles of one person that are counted. Choose it without looking at the data.
    """
    if rational(epsilon) <= 0:
        raise BadParameter("epsilon must be above 0.")
    if most < 1:
        raise BadParameter("At least 1 triangle of each person is counted.")
    sensitivity = most + 1
    noise = Geometric.for_epsilon(epsilon, sensitivity=sensitivity)
    secret: Any = SecretValue(np.array([round(bounded_triangles(graph, most))], dtype=np.int64))
    noisy = np.asarray(noise.release(secret, receipt=receipt, sensitivity=sensitivity), dtype=np.int64)
    return max(0, int(noisy[0])), sensitivity


def bounded_triangles(graph: Graph, most: int) -> float:
    """The largest sum of weights of triangles in which each node has a total weight of ``most`` at most.

    >>> square = Graph.of([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    >>> bounded_triangles(square, 2), bounded_triangles(square, 1)
    (2.0, 1.0)
    """
    own = cast(Ints, _triangles_of_nodes(graph.indptr, graph.indices))
    total, full = int(own.sum()) // 3, np.flatnonzero(own > most)
    if not len(full):
        return float(total)
    corners = cast(Ints, _list_triangles(graph.indptr, graph.indices, total))
    place = np.full(graph.size, -1, dtype=np.int64)
    place[full] = np.arange(len(full))
    bound = place[corners]
    touching = (bound >= 0).any(axis=1)
    return float(total - int(touching.sum())) + _packed(bound[touching], len(full), most)


def _packed(bound: Ints, rows: int, most: int) -> float:
    """Optimum of the linear program over the triangles that contain a node with too many of them.

    Triangles with the same bounded nodes are one variable with a larger upper bound.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    kinds, counts = np.unique(np.sort(bound, axis=1), axis=0, return_counts=True)
    if len(kinds) > _MOST:
        raise BadParameter("Too many triangles are above the bound to be weighted.", fix="Use a larger max_triangles.")
    row, column = kinds[kinds >= 0], np.repeat(np.arange(len(kinds)), (kinds >= 0).sum(axis=1))
    matrix = csr_matrix((np.ones(len(row)), (row, column)), shape=(rows, len(kinds)))
    limits = np.column_stack([np.zeros(len(kinds)), counts])
    solved = linprog(-np.ones(len(kinds)), A_ub=matrix, b_ub=np.full(rows, most), bounds=limits, method="highs")
    if solved.status != 0:
        raise BadParameter("The number of triangles could not be bounded.", fix="Use a larger max_triangles.")
    return float(-solved.fun)


@kernel()
def _triangles_of_nodes(indptr, indices):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    size = len(indptr) - 1
    own = np.zeros(size, dtype=np.int64)
    linked = np.full(size, -1, dtype=np.int64)
    for node in range(size):
        for at in range(indptr[node], indptr[node + 1]):
            linked[indices[at]] = node
        for at in range(indptr[node], indptr[node + 1]):
            middle = indices[at]
            for place in range(indptr[middle], indptr[middle + 1]):
                own[node] += linked[indices[place]] == node
        own[node] //= 2
    return own


@kernel()
def _list_triangles(indptr, indices, total):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    size = len(indptr) - 1
    corners = np.empty((total, 3), dtype=np.int64)
    linked = np.full(size, -1, dtype=np.int64)
    count = 0
    for node in range(size):
        for at in range(indptr[node], indptr[node + 1]):
            linked[indices[at]] = node
        for at in range(indptr[node], indptr[node + 1]):
            middle = indices[at]
            if middle < node:
                continue
            for place in range(indptr[middle], indptr[middle + 1]):
                other = indices[place]
                if other > middle and linked[other] == node:
                    corners[count, 0], corners[count, 1], corners[count, 2] = node, middle, other
                    count += 1
    return corners
