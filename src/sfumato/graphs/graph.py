"""Undirected social graph: a node table, and friendships as a sparse adjacency matrix."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Array, Ints
from sfumato.data.fingerprint import frame_digest
from sfumato.errors import BadParameter
from sfumato.memory import require_memory

_BYTES_PER_EDGE = 80
"""Peak memory while the matrix is built: keys of both directions, their order and the result."""


def edge_keys(first: Array, second: Array, nodes: int) -> Ints:
    """One number per pair of nodes, the same for both directions."""
    low, high = np.minimum(first, second).astype(np.int64), np.maximum(first, second).astype(np.int64)
    keys: Ints = low * nodes + high
    return keys


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Graph:
    """A simple undirected graph: no self-loops, no parallel edges. Nodes are numbered from 0.

    >>> graph = Graph.of([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> graph
    <Graph: 4 nodes, 4 edges>
    >>> graph.degrees.tolist(), graph.has_edges([0, 0], [3, 2]).tolist()
    ([2, 2, 3, 1], [False, True])
    """

    indptr: Ints
    """Where the neighbours of each node begin in ``indices`` (compressed sparse rows)."""
    indices: npt.NDArray[np.int32]
    """The neighbours of all nodes, sorted for each node."""
    nodes: pl.DataFrame = field(default_factory=pl.DataFrame)
    """Attributes, one row per node; without columns if there are none."""
    labels: npt.NDArray[np.int32] | None = None
    """For each entry of ``indices`` the number of the edge's label; None if nothing is known about single edges."""
    label_table: pl.DataFrame = field(default_factory=pl.DataFrame)
    """What the labels stand for: ``label`` and columns such as ``relation``; one row per relation of a linked pair."""

    @classmethod
    def of(
        cls,
        pairs: object,
        *,
        size: int | None = None,
        nodes: pl.DataFrame | None = None,
        labels: Array | None = None,
        label_table: pl.DataFrame | None = None,
    ) -> Graph:
        """A graph of pairs of node numbers. Pairs must differ, and no node is its own neighbour.

        ``labels`` holds one number per pair.
        """
        ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        count = max(int(ends.max(initial=-1)) + 1, 0) if size is None else size
        if nodes is not None and nodes.width and nodes.height != count:
            raise BadParameter(f"The node table has {nodes.height} rows, and the graph has {count} nodes.")
        if count >= 1 << 31:
            raise BadParameter("A graph has at most 2,147,483,647 nodes.")
        require_memory(len(ends) * _BYTES_PER_EDGE + count * 8, f"A graph of {count:,} nodes and {len(ends):,} edges")
        if len(ends) and (ends.min() < 0 or ends.max() >= count):
            raise BadParameter(f"An edge names a node that is not among the {count} nodes.")
        if (ends[:, 0] == ends[:, 1]).any():
            raise BadParameter("The graph has a self-loop.", fix="Leave out edges from a node to itself.")
        keys = np.concatenate([ends[:, 0] * count + ends[:, 1], ends[:, 1] * count + ends[:, 0]])
        both = None
        if labels is None:
            keys.sort()
        else:
            order = np.argsort(keys, kind="stable")
            keys, both = keys[order], np.concatenate([labels, labels]).astype(np.int32)[order]
        if (keys[1:] == keys[:-1]).any():
            raise BadParameter("The graph has a duplicate edge.", fix="Name each edge once, in one direction.")
        rows = keys // count if count else keys
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))]).astype(np.int64)
        keys -= rows * count
        return cls(
            indptr=indptr,
            indices=keys.astype(np.int32),
            nodes=pl.DataFrame() if nodes is None else nodes,
            labels=both,
            label_table=pl.DataFrame() if label_table is None or labels is None else label_table,
        )

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.indptr) - 1

    @property
    def edge_count(self) -> int:
        """The number of edges."""
        return len(self.indices) // 2

    @property
    def digest(self) -> str:
        """SHA-256 of its edges, labels and attributes."""
        labels = np.empty(0, dtype=np.int32) if self.labels is None else self.labels
        digest = hashlib.sha256("".join(map(frame_digest, (self.nodes, self.label_table))).encode())
        for array in (self.indptr, self.indices, labels):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @property
    def degrees(self) -> Ints:
        """The number of neighbours of each node."""
        return np.diff(self.indptr)

    def neighbours(self, node: int) -> npt.NDArray[np.int32]:
        """The neighbours of a node, sorted."""
        return self.indices[self.indptr[node] : self.indptr[node + 1]]

    @cached_property
    def _keys(self) -> Ints:
        rows = np.repeat(np.arange(self.size, dtype=np.int64), self.degrees)
        keys: Ints = rows * self.size + self.indices
        return keys

    def has_edges(self, first: object, second: object) -> npt.NDArray[np.bool_]:
        """Whether each pair of nodes is linked."""
        wanted = np.asarray(first, dtype=np.int64) * self.size + np.asarray(second, dtype=np.int64)
        place = np.minimum(np.searchsorted(self._keys, wanted), max(len(self._keys) - 1, 0))
        if not len(self._keys):
            return np.zeros(len(wanted), dtype=bool)
        return np.asarray(self._keys[place] == wanted)

    def edges(self) -> npt.NDArray[np.int64]:
        """Every edge once, as pairs of node numbers with the smaller one first."""
        rows = np.repeat(np.arange(self.size, dtype=np.int64), self.degrees)
        once = rows < self.indices
        return np.column_stack([rows[once], self.indices[once].astype(np.int64)])

    def edge_labels(self) -> npt.NDArray[np.int32] | None:
        """The label of every edge, in the order of :meth:`edges`."""
        if self.labels is None:
            return None
        return self.labels[np.repeat(np.arange(self.size), self.degrees) < self.indices]

    def matrix(self) -> Any:
        """The adjacency matrix as ``scipy.sparse.csr_matrix`` of float32."""
        from scipy.sparse import csr_matrix

        ones = np.ones(len(self.indices), dtype=np.float32)
        return csr_matrix((ones, self.indices, self.indptr), shape=(self.size, self.size))

    def with_edges(self, pairs: Array, labels: Array | None = None) -> Graph:
        """The same nodes with other edges; without ``labels``, they have none."""
        nodes = self.nodes if self.nodes.width else None
        return Graph.of(pairs, size=self.size, nodes=nodes, labels=labels, label_table=self.label_table)

    def with_some_edges(self, kept: npt.NDArray[np.bool_]) -> Graph:
        """The same nodes with a part of the edges and their labels. ``kept`` is in the order of :meth:`edges`."""
        labels = self.edge_labels()
        return self.with_edges(self.edges()[kept], None if labels is None else labels[kept])

    def reordered(self, order: Ints) -> Graph:
        """The graph whose node ``i`` is node ``order[i]`` of this one; nodes left out of ``order`` are removed."""
        place = np.full(self.size, -1, dtype=np.int64)
        place[order] = np.arange(len(order))
        ends, labels = place[self.edges()], self.edge_labels()
        kept = (ends >= 0).all(axis=1)
        return Graph.of(
            ends[kept],
            size=len(order),
            nodes=self.nodes[order] if self.nodes.width else None,
            labels=None if labels is None else labels[kept],
            label_table=self.label_table,
        )

    def __repr__(self) -> str:
        return f"<Graph: {self.size:,} nodes, {self.edge_count:,} edges>"
