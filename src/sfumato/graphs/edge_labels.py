"""Labels of edges: the relations that link two people, and what is released about each.

Two people may be linked in several relations. The label of their edge stands for all of them, so that the graph stays
simple. Labels of two graphs are compared by what they stand for.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.errors import BadParameter
from sfumato.graphs.graph import Graph, edge_keys

_MOST = 500
"""Different labels, at most."""


def labelled_graph(rows: pl.DataFrame, *, size: int, nodes: pl.DataFrame | None = None) -> Graph:
    """A graph from rows of ``source`` and ``target`` (node numbers) and columns that describe the edge.

    >>> rows = pl.DataFrame({"source": [0, 1, 1], "target": [1, 0, 2], "relation": ["call", "mail", "call"]})
    >>> graph = labelled_graph(rows, size=3)
    >>> graph, graph.label_table.rows()
    (<Graph: 3 nodes, 2 edges>, [(0, 'call'), (1, 'call'), (1, 'mail')])
    """
    told = [name for name in rows.columns if name not in ("source", "target")]
    if not told:
        return Graph.of(rows.select("source", "target").to_numpy(), size=size, nodes=nodes)
    keys = edge_keys(rows["source"].to_numpy(), rows["target"].to_numpy(), size)
    kinds = rows.select(told).unique().sort(told, nulls_last=False).with_row_index("kind")
    if kinds.height > _MOST:
        raise _too_many(kinds.height)
    kind = rows.select(told).join(kinds, on=told, how="left", nulls_equal=True, maintain_order="left")["kind"]
    pairs = pl.DataFrame({"key": keys, "kind": kind}).unique().group_by("key").agg(pl.col("kind").sort())
    pairs = pairs.with_columns(pl.col("kind").cast(pl.List(pl.String)).list.join(" ").alias("text"))
    sets = pairs.select("text", "kind").unique("text").sort("kind").with_row_index("label")
    if sets.height > _MOST:
        raise _too_many(sets.height)
    labels = pairs.join(sets.select("text", "label"), on="text", how="left", maintain_order="left")
    table = sets.select("label", "kind").explode("kind").join(kinds, on="kind", how="left").sort("label", "kind")
    found = labels["key"].to_numpy()
    return Graph.of(
        np.column_stack([found // size, found % size]),
        size=size,
        nodes=nodes,
        labels=labels["label"].to_numpy(),
        label_table=table.select("label", *told),
    )


def _too_many(count: int) -> BadParameter:
    return BadParameter(
        f"Edges have {count:,} different descriptions, and at most {_MOST} are released.",
        fix="Use fewer bands, coarser dates, or drop a column of the edges in `edge_columns`.",
    )


def labelled_edges(graph: Graph) -> pl.DataFrame:
    """One row per edge and relation: ``source``, ``target`` (node numbers) and what is released about it."""
    ends, labels = graph.edges(), graph.edge_labels()
    rows = pl.DataFrame({"source": ends[:, 0], "target": ends[:, 1]})
    if labels is None:
        return rows
    rows = rows.with_columns(pl.Series("label", labels, dtype=pl.Int64))
    table = graph.label_table.with_columns(pl.col("label").cast(pl.Int64))
    return rows.join(table, on="label", how="left", maintain_order="left_right").drop("label")


def label_hashes(graph: Graph) -> npt.NDArray[np.uint64]:
    """A hash of what each label stands for, the same in all graphs."""
    texts: list[list[str]] = [[] for _ in range(1 + max(graph.label_table["label"], default=-1))]
    for label, *told in graph.label_table.iter_rows():
        texts[label].append("\x1f".join("" if value is None else str(value) for value in told))
    digests = [blake2b("\x1e".join(sorted(text)).encode(), digest_size=8).digest() for text in texts]
    return np.array([int.from_bytes(digest, "big") for digest in digests], dtype=np.uint64)


def carry_labels(before: Graph, after: Graph, random: np.random.Generator) -> Graph:
    """The graph after a step with labels: edges that were kept keep theirs.

    Added edges get the labels of deleted ones in random order; if more were added, labels of random edges.
    """
    old = before.edge_labels()
    if old is None or after.labels is not None:
        return after
    was, now = (edge_keys(ends[:, 0], ends[:, 1], before.size) for ends in (before.edges(), after.edges()))
    place = np.minimum(np.searchsorted(was, now), max(len(was) - 1, 0))
    kept = was[place] == now if len(was) else np.zeros(len(now), dtype=bool)
    labels = np.zeros(len(now), dtype=np.int32)
    labels[kept] = old[place[kept]]
    free, wanted = random.permutation(old[~np.isin(was, now)]), int((~kept).sum())
    if wanted > len(free) and len(old):
        free = np.concatenate([free, random.choice(old, size=wanted - len(free))])
    labels[~kept] = free[:wanted]
    ends = after.edges()
    nodes = after.nodes if after.nodes.width else None
    return Graph.of(ends, size=after.size, nodes=nodes, labels=labels, label_table=before.label_table)
