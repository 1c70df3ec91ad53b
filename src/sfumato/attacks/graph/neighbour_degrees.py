"""Attack: find people by the numbers of friends of their friends."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.graph._base import GraphView, NodeMatches, NodeMatching, match_classes
from sfumato.attacks.graph._matching import nearest_rows
from sfumato.graphs.signatures import colours, neighbour_degree_profile
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class NeighbourDegrees(NodeMatching):
    """An attacker knows how many friends each friend of the target has: the sorted degrees of the neighbours.

    Nodes with exactly these degrees are the candidates. If there is none, the graph was changed, and the node with the
    most similar distribution of degrees is taken.
    """

    reference = "Hay et al. (2008), doi:10.14778/1453856.1453873"

    def match(self, view: GraphView, rng: Rng, progress: Progress = SILENT) -> NodeMatches:
        labels = colours(view.release, 1)
        exact = match_classes(labels, colours(view.known, 1)[view.targets])
        missed = np.flatnonzero(~exact.made)
        if not len(missed):
            return exact
        profile = neighbour_degree_profile(view.known)[view.targets[missed]]
        guess = exact.guess.copy()
        guess[missed] = labels[nearest_rows(neighbour_degree_profile(view.release), profile, progress)]
        detail = {"exact": int(exact.made.sum())}
        return NodeMatches(labels=labels, guess=guess, made=np.ones(len(guess), dtype=bool), detail=detail)
