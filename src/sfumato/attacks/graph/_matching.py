"""Matching of nodes of two graphs: nearest feature vectors, and most common matched neighbours (compiled)."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.deadline import check_deadline
from sfumato.graphs.graph import Graph
from sfumato.graphs.signatures import Features
from sfumato.kernels import kernel
from sfumato.progress import SILENT, Progress

_BLOCK = 1 << 25


def nearest_rows(release: Features, known: Features, progress: Progress = SILENT) -> Ints:
    """For each known vector the number of the nearest released one; the first of several."""
    squares = (release**2).sum(axis=1)
    step = max(1, _BLOCK // max(len(release), 1))
    found = np.empty(len(known), dtype=np.int64)
    for start in range(0, len(known), step):
        check_deadline(progress)
        part = known[start : start + step]
        found[start : start + step] = np.argmin(squares[None, :] - 2 * (part @ release.T), axis=1)
    return found


def best_overlap(
    known: Graph, release: Graph, mapping: Ints, nodes: Ints, *, hubs: int
) -> tuple[Ints, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """For each node the released node that is linked to most of its matched neighbours.

    The score is the cosine of the two neighbourhoods, counted over matched nodes, times the similarity of the degrees
    (the root of their ratio). Returns the node (-1 if no neighbour is matched), its score, and the second best score.
    """
    there = mapping >= 0
    image = np.zeros(release.size, dtype=bool)
    image[mapping[there]] = True
    found = _best_overlap(
        known.indptr, known.indices, release.indptr, release.indices, mapping, nodes.astype(np.int64), hubs,
        _linked_to(known, there), _linked_to(release, image),
    )  # fmt: skip
    return cast(tuple[Ints, npt.NDArray[np.float64], npt.NDArray[np.float64]], found)


def propagate(
    known: Graph,
    release: Graph,
    mapping: Ints,
    *,
    rounds: int,
    hubs: int,
    margin: float,
    fixed: Any = None,
    progress: Progress = SILENT,
) -> Ints:
    """Extend and revise a mapping of known nodes to released ones (-1: not matched) over the friendships of both.

    In each round every node is matched with the released node that shares most matched neighbours, if its score
    exceeds that of the second best by ``margin``. The nodes in ``fixed`` keep their match.
    """
    everyone = np.arange(known.size)
    for _ in range(rounds):
        check_deadline(progress)
        best, score, second = best_overlap(known, release, mapping, everyone, hubs=hubs)
        better = np.where((best >= 0) & (score >= second * (1 + margin)), best, -1)
        # Two people cannot be one node: the better score keeps it.
        order = np.lexsort((-score, better))
        taken = np.zeros(known.size, dtype=bool)
        taken[order[1:]] = (better[order[1:]] == better[order[:-1]]) & (better[order[1:]] >= 0)
        better[taken] = -1
        if fixed is not None:
            better[fixed] = mapping[fixed]
        if (better == mapping).all():
            break
        mapping = better
    return mapping


def _linked_to(graph: Graph, chosen: npt.NDArray[np.bool_]) -> Ints:
    """The number of chosen neighbours of each node."""
    total = np.concatenate([[0], np.cumsum(chosen[graph.indices])])
    counts: Ints = total[graph.indptr[1:]] - total[graph.indptr[:-1]]
    return counts


@kernel(nogil=True)
def _best_overlap(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    indptr, indices, release_indptr, release_indices, mapping, nodes, hubs, matched_known, matched_release
):
    size = len(release_indptr) - 1
    common = np.zeros(size, dtype=np.int32)
    touched = np.empty(size, dtype=np.int64)
    best = np.full(len(nodes), -1, dtype=np.int64)
    score = np.zeros(len(nodes))
    second = np.zeros(len(nodes))
    for row in range(len(nodes)):
        node = nodes[row]
        degree = indptr[node + 1] - indptr[node]
        count = 0
        for at in range(indptr[node], indptr[node + 1]):
            matched = mapping[indices[at]]
            if matched < 0 or release_indptr[matched + 1] - release_indptr[matched] > hubs:
                continue
            for place in range(release_indptr[matched], release_indptr[matched + 1]):
                other = release_indices[place]
                if common[other] == 0:
                    touched[count] = other
                    count += 1
                common[other] += 1
        for place in range(count):
            other = touched[place]
            own = release_indptr[other + 1] - release_indptr[other]
            value = common[other] / np.sqrt(matched_release[other] * matched_known[node])
            value *= np.sqrt(min(own, degree) / max(own, degree))
            if common[other] < 2 and matched_known[node] > 1:
                value *= 0.5
            common[other] = 0
            if value > score[row]:
                second[row] = score[row]
                score[row] = value
                best[row] = other
            elif value > second[row]:
                second[row] = value
    return best, score, second
