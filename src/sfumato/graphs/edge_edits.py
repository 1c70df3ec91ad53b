"""A graph with a small number of added and deleted edges, without rebuilding its matrix after each of them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from sfumato.arrays import Ints
from sfumato.graphs.graph import Graph


class EdgeEdits:
    """Edits of a graph. An edge that is deleted and added again counts as unchanged."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._added: dict[int, set[int]] = defaultdict(set)
        self._deleted: dict[int, set[int]] = defaultdict(set)

    def neighbours(self, node: int) -> Ints:
        """The neighbours of a node after all edits so far, sorted."""
        now = self.graph.neighbours(node).astype(np.int64)
        if gone := self._deleted.get(node):
            now = now[~np.isin(now, np.fromiter(gone, dtype=np.int64))]
        if more := self._added.get(node):
            now = np.union1d(now, np.fromiter(more, dtype=np.int64))
        return now

    def linked(self, one: int, other: int) -> bool:
        """Whether two nodes are linked after all edits so far."""
        if other in self._added.get(one, ()):
            return True
        if other in self._deleted.get(one, ()):
            return False
        row = self.graph.neighbours(one)
        place = int(np.searchsorted(row, other))
        return place < len(row) and int(row[place]) == other

    def add(self, one: int, other: int) -> None:
        self._change(one, other, self._added, self._deleted)

    def delete(self, one: int, other: int) -> None:
        self._change(one, other, self._deleted, self._added)

    @staticmethod
    def _change(one: int, other: int, into: dict[int, set[int]], undone: dict[int, set[int]]) -> None:
        for a, b in ((one, other), (other, one)):
            if b in undone.get(a, ()):
                undone[a].remove(b)
            else:
                into[a].add(b)

    def added(self) -> Ints:
        """The added edges, each once."""
        return self._pairs(self._added)

    def deleted(self) -> Ints:
        """The deleted edges, each once."""
        return self._pairs(self._deleted)

    @staticmethod
    def _pairs(changes: dict[int, set[int]]) -> Ints:
        pairs = sorted((a, b) for a, others in changes.items() for b in others if a < b)
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def result(self) -> Graph:
        """The graph after all edits."""
        edges, deleted = self.graph.edges(), self.deleted()
        if len(deleted):
            size = self.graph.size
            gone = np.isin(edges[:, 0] * size + edges[:, 1], deleted[:, 0] * size + deleted[:, 1])
            edges = edges[~gone]
        return self.graph.with_edges(np.concatenate([edges, self.added()]))
