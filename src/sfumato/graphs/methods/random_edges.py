"""Method: delete random edges and add random ones."""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from sfumato.arrays import Ints
from sfumato.graphs.base import GraphChange, GraphMethod
from sfumato.graphs.graph import Graph, edge_keys
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class RandomEdges(GraphMethod):
    """Random addition and deletion: a share of the edges is deleted, and edges between random nodes are added.

    Whether a released edge is true is uncertain: of all released edges, a share of add / (1 - delete + add) is false.
    Degrees of well-connected nodes change little, so they are still found.
    """

    examples = ({"delete": 0.1, "add": 0.1}, {"delete": 0.2})
    reference = "Hay et al. (2007), Anonymizing social networks, University of Massachusetts technical report 07-19"

    delete: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the edges that are deleted."""
    add: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Number of added edges as a share of the edges of the original."""

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.delete == 0 and self.add == 0:
            raise ValueError("delete or add must be above 0")
        return self

    def apply(self, graph: Graph, rng: Rng, progress: Progress = SILENT) -> GraphChange:
        random, edges = rng.generator, graph.edges()
        gone = round(self.delete * len(edges))
        room = graph.size * (graph.size - 1) // 2 - len(edges)
        wanted = min(round(self.add * len(edges)), room)
        kept = random.permutation(edges)[gone:]
        new = _unlinked_pairs(graph, wanted, random)
        return GraphChange(
            graph=graph.with_edges(np.concatenate([kept, new])), counts={"added": wanted, "deleted": gone}
        )


def _unlinked_pairs(graph: Graph, count: int, random: np.random.Generator) -> Ints:
    """Different pairs of nodes that are not linked, drawn uniformly."""
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < count:
        ends = random.integers(graph.size, size=(2 * (count - len(keys)) + 16, 2))
        ends = ends[(ends[:, 0] != ends[:, 1]) & ~graph.has_edges(ends[:, 0], ends[:, 1])]
        both = np.concatenate([keys, edge_keys(ends[:, 0], ends[:, 1], graph.size)])
        keys = both[np.sort(np.unique(both, return_index=True)[1])][:count]
    return np.column_stack([keys // graph.size, keys % graph.size])
