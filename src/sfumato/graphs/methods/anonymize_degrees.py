"""Method: k-degree anonymity with few changed edges."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sfumato.graphs.base import GraphChange, GraphMethod
from sfumato.graphs.graph import Graph
from sfumato.graphs.realize_degrees import anonymize_degrees
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class AnonymizeDegrees(GraphMethod):
    """k-degree anonymity: at least ``k`` nodes share every degree of the released graph.

    An optimal degree sequence is found by dynamic programming; few edges are then added, deleted and moved to reach it.
    It protects against attackers who know how many friends somebody has, and not against those who know more: sorted
    degrees of the friends identify almost everybody in a graph with k-anonymous degrees.
    """

    main = "k"
    examples = ({"k": 5}, {"k": 3, "deletion_weight": "never"})
    reference = "Liu, Terzi (2008), Towards identity anonymization on graphs, doi:10.1145/1376616.1376629"

    k: Annotated[int, Field(ge=2)]
    """Number of nodes that share a degree, at least."""
    deletion_weight: Annotated[int, Field(ge=1)] | Literal["never"] = 2
    """How many added edges one deleted edge is worth; `never` adds edges and deletes them only as a last resort."""

    def apply(self, graph: Graph, rng: Rng, progress: Progress = SILENT) -> GraphChange:
        weight = None if self.deletion_weight == "never" else self.deletion_weight
        edits = anonymize_degrees(graph, self.k, rng.generator, deletion_weight=weight)
        counts = {"added": len(edits.added()), "deleted": len(edits.deleted())}
        return GraphChange(graph=edits.result(), counts=counts)
