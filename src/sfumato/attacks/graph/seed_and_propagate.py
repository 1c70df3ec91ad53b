"""Attack: start with a few known people and follow friendships."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from sfumato.attacks.graph._base import GraphView, NodeMatches, NodeMatching
from sfumato.attacks.graph._matching import propagate
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class SeedAndPropagate(NodeMatching):
    """An attacker knows friendships by name, has found some people, and follows the friendships from there.

    ``overlap`` is the share of the friendships that the attacker knows. ``seeds`` people with many friends are already
    identified, one person in ten if omitted. No symmetry of the release protects the others: known friends tell the
    images of a node apart. In each round, somebody is matched with the released node that is linked to most matches of
    their friends, if it is better than the second best by ``margin``.
    """

    examples = ({}, {"seeds": 20, "overlap": 0.8})
    reference = "Narayanan, Shmatikov (2009), De-anonymizing social networks, doi:10.1109/SP.2009.22"

    seeds: Annotated[int, Field(ge=1)] | None = None
    """Number of people who are already found; a tenth of them if omitted."""
    overlap: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the friendships that the attacker knows."""
    margin: Annotated[float, Field(ge=0)] = 0.1
    """How much better than the second best a match must be, as a share of its score."""
    rounds: Annotated[int, Field(ge=1, le=200)] = 40
    """Number of rounds, at most."""
    hubs: Annotated[int, Field(ge=1)] = 1000
    """People with more friends than this are not followed."""

    def seed_count(self, people: int) -> int:
        return self.seeds if self.seeds is not None else max(1, people // 10)

    def match(self, view: GraphView, rng: Rng, progress: Progress = SILENT) -> NodeMatches:
        if view.seeds is None or not len(view.seeds[0]):
            raise NotApplicable("Nobody is known to start with: none of the seeds is in the release.")
        edges = view.known.edges()
        known = view.known.with_some_edges(rng.generator.random(len(edges)) < self.overlap)
        mapping = np.full(known.size, -1, dtype=np.int64)
        mapping[view.seeds[0]] = view.seeds[1]
        mapping = propagate(
            known,
            view.release,
            mapping,
            rounds=self.rounds,
            hubs=self.hubs,
            margin=self.margin,
            fixed=view.seeds[0],
            progress=progress,
        )
        return NodeMatches.of_nodes(mapping[view.targets], view.release.size, matched=int((mapping >= 0).sum()))
