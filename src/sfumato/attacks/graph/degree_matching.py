"""Attack: find people by the number of their friends."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.graph._base import GraphView, NodeMatches, NodeMatching, match_classes
from sfumato.graphs.signatures import colours
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class DegreeMatching(NodeMatching):
    """An attacker knows how many friends the target has and looks for a released node with that degree.

    If no node has it, the nodes with the nearest degree are the candidates. Where relations or values of edges are
    released, they know how many friends of each kind the target has, and use the degree alone if no node has these.
    """

    reference = "Hay et al. (2008), doi:10.14778/1453856.1453873"

    def match(self, view: GraphView, rng: Rng, progress: Progress = SILENT) -> NodeMatches:
        degrees = view.release.degrees
        values = np.unique(degrees)
        known = view.known.degrees[view.targets]
        place = np.clip(np.searchsorted(values, known), 1, max(len(values) - 1, 1))
        low, high = values[place - 1], values[np.minimum(place, len(values) - 1)]
        nearest = np.where(np.abs(known - low) <= np.abs(high - known), low, high)
        if view.release.labels is None or view.known.labels is None:
            return NodeMatches(labels=degrees, guess=nearest, made=np.ones(len(known), dtype=bool))
        kinds = colours(view.release, 0)
        exact = match_classes(kinds, colours(view.known, 0)[view.targets])
        # One of the candidates at random where the kinds of friends are not found.
        order = np.argsort(degrees, kind="stable")
        begin = np.searchsorted(degrees[order], nearest, side="left")
        end = np.searchsorted(degrees[order], nearest, side="right")
        drawn = order[begin + (rng.generator.random(len(known)) * (end - begin)).astype(np.int64)]
        guess = np.where(exact.made, exact.guess, kinds[drawn])
        return NodeMatches(labels=kinds, guess=guess, made=np.ones(len(known), dtype=bool))
