"""Model: k-degree anonymity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.arrays import Array, Ints
from sfumato.graphs.base import GraphModel
from sfumato.graphs.clusters import Clusters
from sfumato.graphs.graph import Graph
from sfumato.graphs.released_files import GraphFiles
from sfumato.graphs.signatures import colours
from sfumato.release import State, Verdict


class KDegreeAnonymity(GraphModel):
    """k-degree anonymity: every degree of the graph is shared by at least ``k`` nodes.

    Where relations or values of edges are released, k nodes must have the same number of edges of each kind: one k for
    all relations together. A generalized graph meets it if every cluster has at least k nodes. Attackers who know more
    than the numbers of somebody's friends are not covered: a degree with released attributes may identify somebody even
    if each of both is k-anonymous.
    """

    main = "k"
    examples = ({"k": 5},)
    reference = "Liu, Terzi (2008), Towards identity anonymization on graphs, doi:10.1145/1376616.1376629"

    k: Annotated[int, Field(ge=2)]
    """Number of nodes that share a degree, at least."""
    kinds: Literal["known", "unknown"] = "known"
    """Whether attackers know how many friends of each released kind somebody has, or only their total number."""

    def check(self, graph: Graph, clusters: Clusters | None = None, symmetry: Ints | None = None) -> Verdict:
        seen: Array = colours(graph, 0) if self.kinds == "known" else graph.degrees
        sizes = clusters.sizes if clusters is not None else np.unique(seen, return_counts=True)[1]
        worst = int(sizes.min(initial=graph.size))
        return Verdict(
            model=self.part_name(),
            state=State.HOLDS if worst >= self.k else State.FAILS,
            worst=worst,
            wanted=self.k,
            failing=int(sizes[sizes < self.k].sum()),
            reason="" if worst >= self.k else self._reason(graph),
        )

    def _reason(self, graph: Graph) -> str:
        by_kind = graph.labels is not None and self.kinds == "known"
        return f"fewer than k nodes share a degree{' in all relations and values of edges' if by_kind else ''}"

    @classmethod
    def independent_check(cls, parameters: Mapping[str, Any], files: GraphFiles) -> Verdict:
        name, k = cls.part_name(), int(parameters["k"])
        if files.clusters is not None:
            sizes, what = files.clusters["nodes"], "nodes of a cluster"
        elif files.edges is None or files.nodes is None:
            return Verdict(model=name, state=State.NOT_CHECKED, reason="edges.csv or nodes.csv is missing")
        else:
            nodes = files.nodes.select(pl.col("node").cast(pl.Int64))
            ends = _ends(files.edges, by_kind=parameters.get("kinds", "known") == "known")
            if ends.join(nodes, on="node", how="anti").height:
                return Verdict(model=name, state=State.FAILS, reason="edges name nodes that nodes.csv does not")
            degrees = ends.group_by("node", "kind").len().sort("node", "kind").group_by("node").agg("kind", "len")
            classes = nodes.join(degrees, on="node", how="left").group_by("kind", "len").agg(pl.len().alias("nodes"))
            sizes, what = classes["nodes"], "nodes of a degree"
        small = sizes.filter(sizes < k)
        return Verdict(
            model=name,
            state=State.FAILS if len(small) else State.HOLDS,
            worst=int(sizes.min() or 0),  # type: ignore[arg-type]
            wanted=k,
            failing=int(small.sum()),
            reason=f"fewer than {k} {what}" if len(small) else "",
        )


def _ends(edges: pl.DataFrame, *, by_kind: bool) -> pl.DataFrame:
    """Both ends of every linked pair, with all that the rows of the pair say about it."""
    told = [column for column in edges.columns if column not in ("source", "target")] if by_kind else []
    texts = [pl.col(column).cast(pl.String).fill_null("") for column in told]
    kind = pl.concat_str(texts, separator="\x1f") if told else pl.lit("")
    low, high = pl.min_horizontal("source", "target"), pl.max_horizontal("source", "target")
    rows = edges.select(low.alias("low"), high.alias("high"), kind.alias("kind"))
    pairs = rows.group_by("low", "high").agg(pl.col("kind").sort().str.join("\x1e"))
    return pl.concat([pairs.select(pl.col(end).alias("node"), "kind") for end in ("low", "high")])
