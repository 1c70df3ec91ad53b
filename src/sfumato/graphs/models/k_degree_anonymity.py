"""Model: k-degree anonymity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.graphs.base import GraphModel
from sfumato.graphs.clusters import Clusters
from sfumato.graphs.graph import Graph, Ints
from sfumato.graphs.released_files import GraphFiles
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

    @classmethod
    def independent_check(cls, parameters: Mapping[str, Any], files: GraphFiles) -> Verdict:
        name, k = cls.part_name(), int(parameters["k"])
        if files.clusters is not None:
            sizes, what = files.clusters["nodes"], "nodes of a cluster"
        elif files.edges is None or files.nodes is None:
            return Verdict(model=name, state=State.NOT_CHECKED, reason="edges.csv or nodes.csv is missing")
        else:
            nodes = files.nodes.select(pl.col("node").cast(pl.Int64))
            ends = pl.concat([files.edges["source"], files.edges["target"]]).alias("node").to_frame()
            per_node = ends.group_by("node").len()
            if per_node.join(nodes, on="node", how="anti").height:
                return Verdict(model=name, state=State.FAILS, reason="edges name nodes that nodes.csv does not")
            degrees = nodes.join(per_node, on="node", how="left").with_columns(pl.col("len").fill_null(0))
            sizes, what = degrees.group_by("len").agg(pl.len().alias("nodes"))["nodes"], "nodes of a degree"
        small = sizes.filter(sizes < k)
        return Verdict(
            model=name,
            state=State.FAILS if len(small) else State.HOLDS,
            worst=int(sizes.min() or 0),  # type: ignore[arg-type]
            wanted=k,
            failing=int(small.sum()),
            reason=f"fewer than {k} {what}" if len(small) else "",
        )
