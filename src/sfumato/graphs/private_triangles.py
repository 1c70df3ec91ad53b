"""Differentially private number of triangles by the ladder mechanism, with one friendship as privacy unit.

One edge closes as many triangles as its ends have common neighbours: up to n - 2, and far fewer in real graphs. The
local sensitivity L of a graph is the largest number of common neighbours of two nodes; one edge changes it by at most
1. Hence I_t = min(L + t, n - 2) is a ladder: what one edge can change after t other changes. Whole numbers at a
distance of at most I_0 from the true count form rung 1, the next I_1 on both sides rung 2, and so on; one edge moves a
number by at most one rung. The exponential mechanism selects a rung, and a number of the rung with equal chances. The
outermost rung holds all numbers that are left between 0 and the number of triples of nodes.

Reference: Zhang, Cormode, Procopiuc, Srivastava, Xiao (2015), Private release of graph statistics using ladder
functions, doi:10.1145/2723372.2737785.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb, log
from typing import cast

import numpy as np
import numpy.typing as npt

from sfumato.dp.mechanisms.exponential import Exponential
from sfumato.dp.os_random import below_big
from sfumato.dp.receipt import Receipt, require
from sfumato.dp.sampler import exponential_race
from sfumato.errors import BadParameter
from sfumato.graphs.graph import Graph
from sfumato.kernels import kernel
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue

_LARGEST = 3_000_000
"""Nodes, at most: the number of triples must fit in 64 bits."""
_UNLIKELY = 40
"""The outermost rung is selected with probability exp(-40) at most."""


def private_triangle_count(graph: Graph, *, epsilon: Number, receipt: Receipt) -> int:
    """The number of triangles under edge privacy. The number of people is public.

    The error is about 2 L / epsilon, where L is the largest number of common neighbours of two people.

    >>> from sfumato.ledger import Charge, Ledger
    >>> from sfumato.dp.loss import pure
    >>> ledger = Ledger.unkept()
    >>> _ = ledger.set_cap(pure(1000), dataset="friends")
    >>> charge = Charge(loss=pure(1000), unit="row", what="triangles")
    >>> paid = ledger.charge(charge, dataset="friends", analyst="me")
    >>> private_triangle_count(Graph.of([(0, 1), (1, 2), (2, 0), (2, 3)]), epsilon=1000, receipt=paid)
    1
    """
    if rational(epsilon) <= 0:
        raise BadParameter("epsilon must be above 0.")
    check_triangle_size(graph)
    choice = Exponential.for_epsilon(epsilon)
    last = ceil((log(comb(graph.size, 3)) + _UNLIKELY) / float(choice.rate)) + 1
    counted = SecretValue(triangles(graph)).open(require(receipt, choice.loss()))
    rungs = Rungs.of(*counted, nodes=graph.size, last=last)
    rung = exponential_race(np.arange(last + 1), choice.rate, rungs.below + rungs.above)
    return rungs.number(rung, below_big(int(rungs.below[rung] + rungs.above[rung])))


def check_triangle_size(graph: Graph) -> None:
    """Refuse graphs without triples of nodes, or with more than 64 bits count."""
    if not 3 <= graph.size <= _LARGEST:
        raise BadParameter(f"Triangles are counted in graphs of 3 to {_LARGEST:,} nodes.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Rungs:
    """The numbers of each rung below and above the true count; rung 0 is the true count itself."""

    count: int
    below: npt.NDArray[np.int64]
    above: npt.NDArray[np.int64]

    @classmethod
    def of(cls, count: int, steepest: int, *, nodes: int, last: int) -> Rungs:
        """The rungs 0 to ``last`` of a graph with ``count`` triangles and local sensitivity ``steepest``."""
        steps = np.minimum(steepest + np.arange(last - 1, dtype=np.int64), nodes - 2)
        reach = np.concatenate([[0], np.cumsum(steps)])
        highest = comb(nodes, 3)
        sides = []
        for room in (count, highest - count):
            ends = np.append(np.minimum(reach, room), room)
            sides.append(np.concatenate([[0], np.diff(ends)]))
        sides[1][0] = 1
        return cls(count=count, below=sides[0], above=sides[1])

    def number(self, rung: int, place: int) -> int:
        """One of the numbers of a rung: those below the count first, from the nearest outwards."""
        if place < self.below[rung]:
            return self.count - int(self.below[:rung].sum()) - place - 1
        return self.count + int(self.above[:rung].sum()) + place - int(self.below[rung])


def triangles(graph: Graph) -> tuple[int, int]:
    """The number of triangles, and the largest number of common neighbours of two nodes.

    >>> triangles(Graph.of([(0, 1), (1, 2), (2, 0), (2, 3)]))
    (1, 1)
    """
    total, steepest = cast(tuple[int, int], _triangles(graph.indptr, graph.indices))
    return int(total), int(steepest)


@kernel()
def _triangles(indptr, indices):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    size = len(indptr) - 1
    common = np.zeros(size, dtype=np.int32)
    total, steepest = 0, 0
    for node in range(size):
        for at in range(indptr[node], indptr[node + 1]):
            middle = indices[at]
            for place in range(indptr[middle], indptr[middle + 1]):
                common[indices[place]] += 1
        for at in range(indptr[node], indptr[node + 1]):
            total += common[indices[at]]
        common[node] = 0
        for at in range(indptr[node], indptr[node + 1]):
            middle = indices[at]
            for place in range(indptr[middle], indptr[middle + 1]):
                other = indices[place]
                steepest = max(steepest, common[other])
                common[other] = 0
    return total // 6, steepest
