"""Model: k-automorphism."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from sfumato.graphs.base import GraphModel
from sfumato.graphs.clusters import Clusters
from sfumato.graphs.graph import Graph, Ints
from sfumato.graphs.signatures import colours
from sfumato.graphs.symmetry import cycle_lengths, is_symmetry
from sfumato.release import State, Verdict

__all__ = ["KAutomorphism"]


class KAutomorphism(GraphModel):
    """k-automorphism: a symmetry of the released graph maps every node to at least ``k`` nodes in turn.

    An attacker finds a person with probability 1/k at most, even if they know the original graph, the method and the
    symmetry: node numbers are drawn at random, so a person is equally likely to be any node of the cycle. It covers
    identity, not links between people. The symmetry is released and checked; without one, the model fails if fewer than
    k nodes have the same surroundings (Weisfeiler-Lehman colour), and is not checked otherwise. A generalized graph
    meets it if every cluster has at least k nodes.
    """

    main = "k"
    examples = ({"k": 5},)
    reference = (
        "Zou, Chen, Özsu (2009), K-automorphism: a general framework for privacy preserving network publication, "
        "doi:10.14778/1687627.1687734"
    )

    k: Annotated[int, Field(ge=2)]
    """Number of nodes from which the graph looks the same, at least."""

    def check(self, graph: Graph, clusters: Clusters | None = None, symmetry: Ints | None = None) -> Verdict:
        reason, sizes = "fewer than k nodes have the same surroundings", _stable_class_sizes(graph)
        proved = clusters is not None
        if clusters is not None:
            reason, sizes = "a cluster has fewer than k nodes", np.repeat(clusters.sizes, clusters.sizes)
        elif symmetry is not None and is_symmetry(graph, symmetry):
            proved, reason, sizes = True, "a cycle of the symmetry has fewer than k nodes", cycle_lengths(symmetry)
        failing = int((sizes < self.k).sum())
        state = State.FAILS if failing else State.HOLDS if proved else State.NOT_CHECKED
        if state is State.NOT_CHECKED:
            reason = "no symmetry of the edges and the node attributes is released"
        return Verdict(
            model=self.part_name(),
            state=state,
            worst=int(sizes.min(initial=graph.size)) if state is not State.NOT_CHECKED else None,
            wanted=self.k,
            failing=failing,
            reason="" if state is State.HOLDS else reason,
        )


def _stable_class_sizes(graph: Graph) -> Ints:
    """For each node the number of nodes that refinement of colours cannot tell from it: its images are among them."""
    depth, classes = 0, 0
    while True:
        _, place, counts = np.unique(colours(graph, depth), return_inverse=True, return_counts=True)
        if len(counts) == classes:
            return counts[place]
        depth, classes = depth + 1, len(counts)
