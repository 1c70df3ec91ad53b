"""Method: random switching of edges that keeps all degrees."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sfumato.graphs.base import GraphChange, GraphMethod
from sfumato.graphs.edge_switching import switch_edges
from sfumato.graphs.graph import Graph
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class SwitchEdges(GraphMethod):
    """Random switching: pairs of edges exchange their ends, and every node keeps its degree.

    The degree distribution is exact. Degrees identify as many people as before, and a small share of switched edges
    hardly hinders attackers who compare neighbourhoods.
    """

    main = "share"
    examples = ({"share": 0.1}, {"share": 1})
    reference = (
        "Ying, Wu (2008), Randomizing social networks: a spectrum preserving approach, doi:10.1137/1.9781611972788.67"
    )

    share: Annotated[float, Field(gt=0, le=1)]
    """Share of the edges that are switched; 1 randomizes everything but the degrees."""

    def apply(self, graph: Graph, rng: Rng, progress: Progress = SILENT) -> GraphChange:
        switched = switch_edges(graph, self.share, rng.generator)
        gone = graph.edge_count - int(switched.has_edges(*graph.edges().T).sum())
        return GraphChange(graph=switched, counts={"added": gone, "deleted": gone})
