"""Attack: find out whether two people are friends."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.attacks.graph._base import GraphView, LinkGuessing
from sfumato.attacks.graph.correlated_neighbourhoods import CorrelatedNeighbourhoods
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class LinkDisclosure(LinkGuessing):
    """An attacker knows other friendships of two people, finds both nodes in the release, and looks whether they link.

    Both are found as by `correlated-neighbourhoods`. The friendship in question is not among what the attacker knows.
    Trials are half pairs of friends and half pairs who are not friends but have a common friend. The baseline is the
    best guess from the number of common friends that the attacker knows without the release.
    """

    reference = (
        "Zheleva, Getoor (2008), Preserving the privacy of sensitive relationships, doi:10.1007/978-3-540-78478-4_9"
    )

    def linked(self, view: GraphView, pairs: Ints, rng: Rng, progress: Progress = SILENT) -> npt.NDArray[np.int8]:
        people, place = np.unique(pairs, return_inverse=True)
        asked = GraphView(release=view.release, known=view.known, targets=people, protect=view.protect)
        found = CorrelatedNeighbourhoods().match(asked, rng, progress)
        first, second = np.where(found.made, found.guess, -1)[place.reshape(pairs.shape)].T
        there = (first >= 0) & (second >= 0) & (first != second)
        linked = view.release.has_edges(np.where(there, first, 0), np.where(there, second, 0))
        return np.where(there, linked, -1).astype(np.int8)
