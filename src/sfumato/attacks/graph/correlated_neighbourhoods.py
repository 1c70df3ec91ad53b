"""Attack: find people by the agreements of their neighbourhoods with all others."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from sfumato.arrays import Ints
from sfumato.attacks.graph._base import GraphView, NodeMatches, NodeMatching
from sfumato.attacks.graph._matching import nearest_rows, propagate
from sfumato.graphs.graph import Graph
from sfumato.graphs.signatures import Features, agreements
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class CorrelatedNeighbourhoods(NodeMatching):
    """An attacker knows who is friends with whom and compares characteristic vectors of neighbourhoods.

    The agreement of two people is the covariance of their friendships, s(i, j) = (1/N) sum_k A_ik A_jk - (1/N²)(sum_k
    A_ik)(sum_k A_jk). The sorted agreements of a person with all others are their characteristic vector, which does not
    depend on names. Vectors are matched with those of the release. Matches are then revised over the friendships:
    somebody is where most of their friends' matches have a common friend.

    Sparse heuristics: only the ``top`` largest agreements are compared, common friends with more than ``hubs`` friends
    are not followed, and only the ``anchors`` people with the most friends are matched by their vectors if there are
    more; the others are found over friendships. The adversary protects their own graph by the published method and
    compares with what is expected to be left of the vectors.
    """

    examples = ({}, {"rounds": 0})
    reference = "Narayanan, Shmatikov (2009), De-anonymizing social networks, doi:10.1109/SP.2009.22"

    top: Annotated[int, Field(ge=1, le=4096)] = 256
    """Number of agreements in a characteristic vector."""
    rounds: Annotated[int, Field(ge=0, le=100)] = 12
    """Number of revisions over the friendships; 0 compares vectors only."""
    hubs: Annotated[int, Field(ge=1)] = 500
    """Common friends with more friends than this are not followed."""
    anchors: Annotated[int, Field(ge=1)] = 8000
    """Number of people who are matched by their vectors, those with the most friends."""

    def match(self, view: GraphView, rng: Rng, progress: Progress = SILENT) -> NodeMatches:
        mine = _most_linked(view.known, self.anchors)
        theirs = _most_linked(view.release, self.anchors)
        if self.rounds == 0:
            mine, theirs = view.targets, np.arange(view.release.size)
        first = theirs[nearest_rows(self._vectors(view.release, theirs), self._expected(view, mine, rng), progress)]
        if self.rounds == 0:
            return NodeMatches.of_nodes(first, view.release.size)
        mapping = np.full(view.known.size, -1, dtype=np.int64)
        mapping[mine] = first
        mapping = propagate(
            view.known, view.release, mapping, rounds=self.rounds, hubs=self.hubs, margin=0.0, progress=progress
        )
        return NodeMatches.of_nodes(mapping[view.targets], view.release.size)

    def _expected(self, view: GraphView, nodes: Ints, rng: Rng) -> Features:
        if view.protect is None:
            return self._vectors(view.known, nodes)
        trials = [self._vectors(view.protect(view.known, rng.child("trial", number)), nodes) for number in range(3)]
        expected: Features = np.mean(trials, axis=0, dtype=np.float32)
        return expected

    def _vectors(self, graph: Graph, nodes: Ints) -> Features:
        own = np.sqrt(graph.degrees[nodes].astype(np.float32))[:, None] * np.float32(self.top**0.5)
        return np.concatenate([own, agreements(graph, nodes, top=self.top, hubs=self.hubs)], axis=1)


def _most_linked(graph: Graph, count: int) -> Ints:
    if graph.size <= count:
        return np.arange(graph.size)
    return np.argpartition(-graph.degrees, count)[:count].astype(np.int64)
