"""Model: k-automorphism."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from sfumato.arrays import Ints
from sfumato.graphs.base import GraphModel
from sfumato.graphs.clusters import Clusters
from sfumato.graphs.graph import Graph
from sfumato.graphs.released_files import GraphFiles
from sfumato.graphs.signatures import colours
from sfumato.graphs.symmetry import cycle_lengths, is_symmetry
from sfumato.release import State, Verdict


class KAutomorphism(GraphModel):
    """k-automorphism: a symmetry of the released graph maps every node to at least ``k`` nodes in turn.

    An attacker finds a person with probability 1/k at most, even if they know the original graph, the method and the
    symmetry: node numbers are drawn at random, so a person is equally likely to be any node of the cycle. It covers
    identity, not links between people, and no attackers who have already found some people: known friends tell the
    images of a node apart. The symmetry is released and checked; without one, the model fails if fewer than
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

    @classmethod
    def independent_check(cls, parameters: Mapping[str, Any], files: GraphFiles) -> Verdict:
        """The symmetry maps nodes one to one, edges to edges and equal attributes to each other; cycles are counted."""
        name, k = cls.part_name(), int(parameters["k"])

        def verdict(state: State, reason: str) -> Verdict:
            return Verdict(model=name, state=state, wanted=k, reason=reason)

        if files.clusters is not None:
            lengths = files.clusters["nodes"].to_list()
        elif files.symmetry is None or files.nodes is None or files.edges is None:
            return verdict(State.NOT_CHECKED, "there is no symmetry.csv")
        else:
            image = dict(zip(files.symmetry["node"], files.symmetry["image"], strict=True))
            edges = {(frozenset((a, b)), *about) for a, b, *about in files.edges.iter_rows()}
            row = {number: rest for number, *rest in files.nodes.iter_rows()}
            if not set(row) == set(image) == set(image.values()):
                return verdict(State.FAILS, "symmetry.csv does not map the nodes one to one")
            if any((frozenset(image[end] for end in pair), *about) not in edges for pair, *about in edges):
                return verdict(State.FAILS, "symmetry.csv does not map edges to edges of the same kind")
            if any(row[node] != row[image[node]] for node in row):
                return verdict(State.NOT_CHECKED, "attributes tell symmetric nodes apart")
            lengths = _walked_cycles(image)
        small = [length for length in lengths if length < k]
        return Verdict(
            model=name,
            state=State.FAILS if small else State.HOLDS,
            worst=min(lengths, default=0),
            wanted=k,
            failing=sum(small),
            reason=f"fewer than {k} nodes look the same" if small else "",
        )


def _walked_cycles(image: Mapping[int, int]) -> list[int]:
    lengths, left = [], set(image)
    while left:
        cycle, node = set(), next(iter(left))
        while node not in cycle:
            cycle.add(node)
            node = image[node]
        lengths.append(len(cycle))
        left -= cycle
    return lengths


def _stable_class_sizes(graph: Graph) -> Ints:
    """For each node the number of nodes that refinement of colours cannot tell from it: its images are among them."""
    depth, classes = 0, 0
    while True:
        _, place, counts = np.unique(colours(graph, depth), return_inverse=True, return_counts=True)
        if len(counts) == classes:
            return counts[place]
        depth, classes = depth + 1, len(counts)
