"""Attack: find people by the number of their friends."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.graph._base import GraphView, NodeMatches, NodeMatching
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["DegreeMatching"]


class DegreeMatching(NodeMatching):
    """An attacker knows how many friends the target has and looks for a released node with that degree.

    If no node has it, the nodes with the nearest degree are the candidates.
    """

    reference = "Hay et al. (2008), doi:10.14778/1453856.1453873"

    def match(self, view: GraphView, rng: Rng, progress: Progress = SILENT) -> NodeMatches:
        degrees = view.release.degrees
        values = np.unique(degrees)
        known = view.known.degrees[view.targets]
        place = np.clip(np.searchsorted(values, known), 1, max(len(values) - 1, 1))
        low, high = values[place - 1], values[np.minimum(place, len(values) - 1)]
        nearest = np.where(np.abs(known - low) <= np.abs(high - known), low, high)
        return NodeMatches(labels=degrees, guess=nearest, made=np.ones(len(known), dtype=bool))
