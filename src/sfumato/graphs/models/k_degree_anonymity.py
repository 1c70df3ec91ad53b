"""Model: k-degree anonymity."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from sfumato.graphs.base import GraphModel
from sfumato.graphs.clusters import Clusters
from sfumato.graphs.graph import Graph, Ints
from sfumato.release import State, Verdict

__all__ = ["KDegreeAnonymity"]


class KDegreeAnonymity(GraphModel):
    """k-degree anonymity: every degree of the graph is shared by at least ``k`` nodes.

    A generalized graph meets it if every cluster has at least k nodes. Attackers who know more than the number of
    somebody's friends are not covered.
    """

    main = "k"
    examples = ({"k": 5},)
    reference = "Liu, Terzi (2008), Towards identity anonymization on graphs, doi:10.1145/1376616.1376629"

    k: Annotated[int, Field(ge=2)]
    """Number of nodes that share a degree, at least."""

    def check(self, graph: Graph, clusters: Clusters | None = None, symmetry: Ints | None = None) -> Verdict:
        sizes = clusters.sizes if clusters is not None else np.unique(graph.degrees, return_counts=True)[1]
        worst = int(sizes.min(initial=graph.size))
        return Verdict(
            model=self.part_name(),
            state=State.HOLDS if worst >= self.k else State.FAILS,
            worst=worst,
            wanted=self.k,
            failing=int(sizes[sizes < self.k].sum()),
            reason="" if worst >= self.k else "fewer than k nodes share a degree",
        )
