"""Generalized graph: clusters of nodes, the number of edges inside each and between each two."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.errors import BadParameter
from sfumato.graphs.edge_labels import labelled_edges
from sfumato.graphs.graph import Graph, edge_keys

_SPARSE = 8
"""Blocks with a larger share of linked pairs than 1 / 8 (1 / 4 inside a cluster) are drawn from a list of all pairs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Clusters:
    """Counts that stand for all graphs that have them.

    Reference: Hay et al. (2008), Resisting structural re-identification in anonymized social networks,
    doi:10.14778/1453856.1453873.
    """

    sizes: Ints
    """The number of nodes of each cluster."""
    first: Ints
    """For each released count of edges, one of its clusters; the same as ``second`` for edges inside a cluster."""
    second: Ints
    counts: Ints
    """The number of edges between the two clusters."""
    kinds: pl.DataFrame = field(default_factory=pl.DataFrame)
    """Where edges have labels: ``first``, ``second`` (from 1), what labels stand for, and the number of ``edges``."""
    attributes: pl.DataFrame = field(default_factory=pl.DataFrame)
    """What is released about the nodes of each cluster, one row per cluster; without columns if nothing is."""

    def __post_init__(self) -> None:
        room = np.where(
            self.first == self.second,
            self.sizes[self.first] * (self.sizes[self.first] - 1) // 2,
            self.sizes[self.first] * self.sizes[self.second],
        )
        if (self.counts > room).any() or (self.counts < 0).any():
            raise BadParameter("A count of edges is larger than the number of pairs of nodes.")

    @classmethod
    def of(cls, graph: Graph, labels: Ints) -> Clusters:
        """The counts of a graph whose nodes have these cluster numbers (0, 1, ...)."""
        sizes = np.bincount(labels)
        ends = labels[graph.edges()]
        keys, counts = np.unique(edge_keys(ends[:, 0], ends[:, 1], len(sizes)), return_counts=True)
        kinds = pl.DataFrame()
        if graph.labels is not None:
            told = labelled_edges(graph)
            pair = labels[told.select("source", "target").to_numpy()]
            names = [name for name in told.columns if name not in ("source", "target")]
            kinds = told.select(names).with_columns(
                pl.Series("first", pair.min(axis=1) + 1), pl.Series("second", pair.max(axis=1) + 1)
            )
            kinds = kinds.group_by("first", "second", *names).agg(pl.len().alias("edges"))
            kinds = kinds.sort("first", "second", *names)
        return cls(sizes=sizes, first=keys // len(sizes), second=keys % len(sizes), counts=counts, kinds=kinds)

    @property
    def edge_count(self) -> int:
        """The number of edges of every graph with these counts."""
        return int(self.counts.sum())

    def tables(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The released tables: one row per cluster, and one row per pair of linked clusters."""
        inside = np.zeros(len(self.sizes), dtype=np.int64)
        own = self.first == self.second
        inside[self.first[own]] = self.counts[own]
        clusters = pl.DataFrame({"cluster": np.arange(1, len(self.sizes) + 1), "nodes": self.sizes, "edges": inside})
        clusters = clusters.hstack(self.attributes) if self.attributes.width else clusters
        between = pl.DataFrame(
            {"first": self.first[~own] + 1, "second": self.second[~own] + 1, "edges": self.counts[~own]}
        )
        return clusters, between

    @classmethod
    def from_tables(cls, clusters: pl.DataFrame, between: pl.DataFrame, kinds: pl.DataFrame | None = None) -> Clusters:
        """The inverse of :meth:`tables`, with :attr:`kinds` where they were released."""
        inside = clusters["edges"].to_numpy().astype(np.int64)
        own = np.flatnonzero(inside)
        ends = [between[name].to_numpy().astype(np.int64) - 1 for name in ("first", "second")]
        return cls(
            sizes=clusters["nodes"].to_numpy().astype(np.int64),
            first=np.concatenate([own, ends[0]]),
            second=np.concatenate([own, ends[1]]),
            counts=np.concatenate([inside[own], between["edges"].to_numpy().astype(np.int64)]),
            kinds=pl.DataFrame() if kinds is None else kinds,
            attributes=clusters.drop("cluster", "nodes", "edges"),
        )

    def sample(self, random: np.random.Generator, labels: Ints | None = None) -> Graph:
        """One graph with these counts, drawn uniformly. Nodes have the given cluster numbers (default: in order)."""
        labels = np.repeat(np.arange(len(self.sizes)), self.sizes) if labels is None else labels
        members = np.argsort(labels, kind="stable")
        begin, size = np.concatenate([[0], np.cumsum(self.sizes)]), len(labels)
        dense = self.counts * _SPARSE > self.sizes[self.first] * self.sizes[self.second]
        a, b = (np.repeat(ends[~dense], self.counts[~dense]) for ends in (self.first, self.second))
        keys = np.empty(0, dtype=np.int64)
        while len(a):
            ends = [members[begin[c] + random.integers(self.sizes[c])] for c in (a, b)]
            tried = edge_keys(ends[0], ends[1], size)
            fresh = np.zeros(len(tried), dtype=bool)
            fresh[np.unique(tried, return_index=True)[1]] = True
            fresh &= (ends[0] != ends[1]) & ~np.isin(tried, keys)
            keys = np.concatenate([keys, tried[fresh]])
            a, b = a[~fresh], b[~fresh]
        filled = members[self._places_in_dense_blocks(np.flatnonzero(dense), begin, random)]
        return Graph.of(np.concatenate([np.column_stack([keys // size, keys % size]), filled]), size=size)

    @staticmethod
    def spread_labels(original: Graph, sampled: Graph, labels: Ints, random: np.random.Generator) -> Graph:
        """A sampled graph whose edges have, between each two clusters, the labels of the original in random order."""
        told = original.edge_labels()
        if told is None:
            return sampled
        orders = []
        for graph in (original, sampled):
            pair = labels[graph.edges()]
            block = edge_keys(pair[:, 0], pair[:, 1], int(labels.max()) + 1)
            orders.append(np.lexsort((random.random(len(pair)), block)))
        spread = np.empty(len(told), dtype=np.int32)
        spread[orders[1]] = told[orders[0]]
        return replace(original, nodes=sampled.nodes).with_edges(sampled.edges(), spread)

    def _places_in_dense_blocks(self, blocks: Ints, begin: Ints, random: np.random.Generator) -> Ints:
        """All pairs of these blocks in random order, of which each block keeps its number of edges."""
        one, other = self.first[blocks], self.second[blocks]
        room = self.sizes[one] * self.sizes[other]
        block = np.repeat(np.arange(len(blocks)), room)
        within = np.arange(len(block)) - np.repeat(np.cumsum(room) - room, room)
        row, column = np.divmod(within, self.sizes[other][block])
        real = (one[block] != other[block]) | (row < column)
        block, row, column = block[real], row[real], column[real]
        order = np.lexsort((random.random(len(block)), block))
        ranked = block[order]
        rank = np.arange(len(ranked)) - np.searchsorted(ranked, ranked)
        chosen = order[rank < self.counts[blocks][ranked]]
        pairs = [begin[one[block[chosen]]] + row[chosen], begin[other[block[chosen]]] + column[chosen]]
        return np.column_stack(pairs)
