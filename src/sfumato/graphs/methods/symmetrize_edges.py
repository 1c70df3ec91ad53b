"""Method: k-automorphism with about as many edges as before."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sfumato.graphs.base import GraphChange, GraphMethod
from sfumato.graphs.graph import Graph
from sfumato.graphs.symmetry import symmetric_graph
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class SymmetrizeEdges(GraphMethod):
    """k-automorphism: the released graph looks the same from at least ``k`` nodes, however far an attacker looks.

    Nodes of a community form rows of k, and edges are changed until the graph stays the same when all rows are rotated
    at once. It implies k-degree anonymity and k-neighbourhood anonymity (Zhou and Pei 2008) for neighbourhoods of any
    radius. Many edges are changed: the total number and the communities stay, single friendships often do not. Node
    attributes tell symmetric nodes apart; release the edges alone.
    """

    main = "k"
    examples = ({"k": 5},)
    reference = (
        "Zou, Chen, Özsu (2009), K-automorphism: a general framework for privacy preserving network publication, "
        "doi:10.14778/1687627.1687734"
    )

    k: Annotated[int, Field(ge=2)]
    """Number of nodes from which the graph looks the same, at least."""

    def apply(self, graph: Graph, rng: Rng, progress: Progress = SILENT) -> GraphChange:
        done = symmetric_graph(graph, self.k, rng)
        kept = int(done.graph.has_edges(*graph.edges().T).sum())
        counts = {"added": done.graph.edge_count - kept, "deleted": graph.edge_count - kept}
        return GraphChange(graph=done.graph, symmetry=done.symmetry, counts=counts)
