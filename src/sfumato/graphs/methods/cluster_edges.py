"""Method: cluster-edge anonymization, counts of edges between equivalence classes of the node table."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.errors import TooFewRows, UnknownColumn
from sfumato.graphs.base import GraphChange, GraphMethod
from sfumato.graphs.graph import Graph
from sfumato.graphs.methods.cluster_nodes import clustered
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng
from sfumato.wording import counted, did_you_mean


class ClusterEdges(GraphMethod):
    """Cluster-edge anonymization: nodes with the same attributes form a cluster, and edges become counts.

    Clusters are the equivalence classes of the columns ``by``, after the steps for the node table. Released are the
    attributes and the size of each class, and for each two classes and each relation the number of edges. Whatever an
    attacker knows about attributes and friendships of somebody, they find a class of at least ``k`` people. It differs
    from `cluster-nodes`, which forms clusters by friendships and releases no attributes. Counts are exact.
    """

    uses_attributes = True
    examples = ({"k": 5, "by": ["town"]},)
    reference = (
        "Zheleva, Getoor (2008), Preserving the privacy of sensitive relationships in graph data, "
        "doi:10.1007/978-3-540-78478-4_9"
    )

    k: Annotated[int, Field(ge=2)]
    """Number of nodes of a class, at least. Smaller classes are refused: generalize the node table further."""
    by: Annotated[tuple[str, ...], Field(min_length=1)]
    """Released columns of the node table that are not sensitive."""

    def apply(self, graph: Graph, rng: Rng, progress: Progress = SILENT) -> GraphChange:
        for name in self.by:
            if name not in graph.nodes.columns:
                raise UnknownColumn(
                    f"`{name}` is not a released column of the node table, or it is sensitive.",
                    fix=did_you_mean(name, graph.nodes.columns),
                )
        shown = graph.nodes.select(self.by).with_columns(pl.all().cast(pl.String))
        classes = shown.group_by(self.by).agg(pl.len().alias("_nodes")).sort(self.by)
        small = classes.filter(pl.col("_nodes") < self.k)
        if small.height:
            raise TooFewRows(
                f"{counted(small.height, 'equivalence class')} of {', '.join(self.by)} "
                f"{'has' if small.height == 1 else 'have'} fewer than {self.k} nodes.",
                fix="Generalize or suppress the node table with steps for tables, or use fewer columns in `by`.",
            )
        numbered = classes.select(self.by).with_row_index("_class")
        found = shown.join(numbered, on=self.by, how="left", nulls_equal=True, maintain_order="left")["_class"]
        return clustered(graph, found.to_numpy().astype(np.int64), rng, numbered.drop("_class"))
