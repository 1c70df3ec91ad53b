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
    """An attacker holds an overlapping outside graph with names, has found a few people, and follows friendships.

    ``overlap`` is the share of friendships that the outside graph has in common with the original; the rest of them
    it does not contain. ``seeds`` people with many friends are already identified. In each round, somebody is matched
    with the released node that is linked to most matches of their friends, if it is better than the second best by
    ``margin``.
    """

    examples = ({}, {"seeds": 20, "overlap": 1})
    reference = "Narayanan, Shmatikov (2009), De-anonymizing social networks, doi:10.1109/SP.2009.22"

    seeds: Annotated[int, Field(ge=1)] = 50
    """Number of people who are already found."""
    overlap: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Share of the friendships that the outside graph contains."""
    margin: Annotated[float, Field(ge=0)] = 0.1
    """How much better than the second best a match must be, as a share of its score."""
    rounds: Annotated[int, Field(ge=1, le=200)] = 40
    """Number of rounds, at most."""
    hubs: Annotated[int, Field(ge=1)] = 1000
    """People with more friends than this are not followed."""

    @property
    def seed_count(self) -> int:  # type: ignore[override]
        return self.seeds

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
