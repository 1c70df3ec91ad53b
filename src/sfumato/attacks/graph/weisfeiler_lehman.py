"""Attack: find people by the structure around them."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from sfumato.attacks.graph._base import GraphView, NodeMatches, NodeMatching
from sfumato.deadline import check_deadline
from sfumato.graphs.signatures import colours
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class WeisfeilerLehman(NodeMatching):
    """An attacker knows all friendships up to ``depth`` steps away from the target and compares exact signatures.

    Weisfeiler-Lehman colours are equal for nodes whose surroundings look alike. A target whose colour is not in the
    release is looked for with less depth.
    """

    main = "depth"
    examples = ({"depth": 2},)
    reference = "Weisfeiler, Leman (1968); Hay et al. (2008), doi:10.14778/1453856.1453873"

    depth: Annotated[int, Field(ge=1, le=20)] = 2
    """Number of steps."""

    def match(self, view: GraphView, rng: Rng, progress: Progress = SILENT) -> NodeMatches:
        count = len(view.targets)
        guess, exact = np.full(count, -1, dtype=np.int64), np.full(count, -1, dtype=np.int64)
        for depth in range(self.depth, -1, -1):
            check_deadline(progress)
            released, known = colours(view.release, depth), colours(view.known, depth)[view.targets]
            values, place, sizes = np.unique(released, return_inverse=True, return_counts=True)
            at = np.minimum(np.searchsorted(values, known), len(values) - 1)
            found = (values[at] == known) & (exact < 0)
            exact[found] = depth
            # One of the candidates at random: targets are matched at different depths.
            order = np.argsort(place, kind="stable")
            begin = np.concatenate([[0], np.cumsum(sizes)])
            drawn = order[begin[at] + (rng.generator.random(count) * sizes[at]).astype(np.int64)]
            guess[found] = drawn[found]
        depths = {str(depth): int((exact == depth).sum()) for depth in range(self.depth + 1)}
        return NodeMatches.of_nodes(guess, view.release.size, depth_of_match=depths)
