"""Differentially private degree sequences, degree histograms and edge counts.

| privacy unit | neighbours differ by | statistic | L1 sensitivity |
|---|---|---|---|
| edge | one friendship; people and their number are public | edge count | 1 |
| edge | the same | sorted degree sequence | 2 |
| node | one person with all their friendships | edge count, at most D friends each | D |
| node | the same | number of people with 0, at most 1, ..., at most D friends | D + 1 |

For nodes, edges are taken in a fixed order of the nodes; an edge is left out if one of its ends has D edges already. A
person more, with d counted edges, moves the degrees of at most d others by one, which changes one cumulative count
each, and adds to the D - d + 1 cumulative counts from d to D.
Noise is drawn against a receipt of the ledger; all else is post-processing.

References: Hay, Li, Miklau, Jensen (2009), Accurate estimation of the degree distribution of private networks,
doi:10.1109/ICDM.2009.11; Day, Li, Lian (2016), Publishing graph degree distribution with node differential privacy,
doi:10.1145/2882903.2926745.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.dp.mechanisms.geometric import Geometric
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter
from sfumato.graphs.graph import Graph
from sfumato.kernels import kernel
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue

SORTED_DEGREES_SENSITIVITY = 2
"""An edge changes two degrees by one. Sorting brings two sequences no farther apart."""


def private_edge_count(
    graph: Graph, *, unit: Literal["edge", "node"], epsilon: Number, receipt: Receipt, max_degree: int | None = None
) -> int:
    """The number of edges with geometric noise, at least 0.

    ``max_degree`` is required for the unit ``node``: a bound that does not depend on the data. Edges beyond it are not
    counted.

    >>> from sfumato.ledger import Charge, Ledger
    >>> from sfumato.dp.loss import pure
    >>> ledger = Ledger.unkept()
    >>> _ = ledger.set_cap(pure(1000), dataset="friends")
    >>> charge = Charge(loss=pure(1000), unit="row", what="edges")
    >>> paid = ledger.charge(charge, dataset="friends", analyst="me")
    >>> private_edge_count(Graph.of([(0, 1), (1, 2)]), unit="edge", epsilon=1000, receipt=paid)
    2
    """
    match unit:
        case "edge":
            if max_degree is not None:
                raise BadParameter("max_degree is for the unit `node`.")
            count, sensitivity = graph.edge_count, 1
        case "node":
            bound = _bound(max_degree)
            count, sensitivity = int(bounded_degrees(graph, bound).sum()) // 2, bound
        case _:
            raise BadParameter("The unit is `edge` or `node`.")
    return max(0, int(_noisy(np.array([count]), sensitivity, epsilon, receipt)[0]))


def private_degree_sequence(graph: Graph, *, epsilon: Number, receipt: Receipt) -> npt.NDArray[np.float64]:
    """The sorted degrees under edge privacy, smallest first: noise of scale 2 / epsilon, then isotonic regression.

    Sorting first and regression afterwards remove most of the noise where many people have the same degree. The number
    of people is public.
    """
    noisy = _noisy(np.sort(graph.degrees), SORTED_DEGREES_SENSITIVITY, epsilon, receipt)
    fitted = cast(npt.NDArray[np.float64], _isotonic(noisy.astype(np.float64)))
    return np.clip(fitted, 0, max(graph.size - 1, 0))


def private_degree_histogram(graph: Graph, *, epsilon: Number, max_degree: int, receipt: Receipt) -> Ints:
    """The number of people with 0, 1, ..., ``max_degree`` friends under node privacy, at least 0 each.

    Friendships beyond ``max_degree`` are left out, which lowers the degrees of well-connected people. Noise is added to
    cumulative counts, which isotonic regression makes ascending again.
    """
    bound = _bound(max_degree)
    counts = np.cumsum(np.bincount(bounded_degrees(graph, bound), minlength=bound + 1))
    noisy = _noisy(counts, bound + 1, epsilon, receipt).astype(np.float64)
    ascending = np.rint(np.maximum(cast(npt.NDArray[np.float64], _isotonic(noisy)), 0)).astype(np.int64)
    return np.diff(ascending, prepend=0)


def bounded_degrees(graph: Graph, most: int) -> Ints:
    """Degrees of the graph in which no node has more than ``most`` edges: edges are taken in the order of their nodes.

    One node more or less, with all its edges, changes the degrees of at most ``most`` other nodes, by one each.
    """
    return cast(Ints, _projected(graph.edges(), graph.size, most))


def _bound(max_degree: int | None) -> int:
    if max_degree is None or max_degree < 1:
        raise BadParameter(
            "max_degree is required under node privacy: the largest number of friends that is counted, at least 1.",
            fix="Choose it without looking at the data.",
        )
    return max_degree


def _noisy(values: Ints, sensitivity: int, epsilon: Number, receipt: Receipt) -> Ints:
    if rational(epsilon) <= 0:
        raise BadParameter("epsilon must be above 0.")
    noise = Geometric.for_epsilon(epsilon, sensitivity=sensitivity)
    secret: Any = SecretValue(values.astype(np.int64))
    return np.asarray(noise.release(secret, receipt=receipt, sensitivity=sensitivity), dtype=np.int64)


@kernel()
def _projected(edges, size, most):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    degrees = np.zeros(size, dtype=np.int64)
    for row in range(len(edges)):
        a, b = edges[row, 0], edges[row, 1]
        if degrees[a] < most and degrees[b] < most:
            degrees[a] += 1
            degrees[b] += 1
    return degrees


@kernel()
def _isotonic(values):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Least-squares fit by a non-decreasing sequence: neighbouring violators are pooled."""
    means = np.empty(len(values))
    sizes = np.empty(len(values), dtype=np.int64)
    blocks = 0
    for value in values:
        means[blocks] = value
        sizes[blocks] = 1
        blocks += 1
        while blocks > 1 and means[blocks - 2] > means[blocks - 1]:
            total = sizes[blocks - 2] + sizes[blocks - 1]
            means[blocks - 2] = (means[blocks - 2] * sizes[blocks - 2] + means[blocks - 1] * sizes[blocks - 1]) / total
            sizes[blocks - 2] = total
            blocks -= 1
    return np.repeat(means[:blocks], sizes[:blocks])
