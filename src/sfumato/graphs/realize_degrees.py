"""Change few edges of a graph so that its degrees become k-anonymous.

The dynamic program says which degree each node should have. Adding and deleting edges change two degrees at a time, so
few degree sequences can be reached by them alone. Cheapest means come first:

1. delete an edge between two nodes with too high a degree, add one between two with too low a degree;
2. move an edge from a node with too high a degree to one with too low a degree; its other end stays;
3. add (or delete) an edge to a node of an equivalence class with more than k members, which joins the class of the next
   degree: no other edge changes, and both classes keep k members;
4. replace an edge between two other nodes by an edge of each of them (or the other way round).

The result is counted before it is returned: a graph that is not k-anonymous is an error, never a result.
"""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Ints
from sfumato.errors import Unmet
from sfumato.graphs.degree_sequence import anonymous_degrees, smallest_class
from sfumato.graphs.edge_edits import EdgeEdits
from sfumato.graphs.graph import Graph

_ROUNDS = 12
_TRIES = 400
_SAMPLE = 4000


def anonymize_degrees(
    graph: Graph, k: int, random: np.random.Generator, *, deletion_weight: int | None = None
) -> EdgeEdits:
    """Edits after which every degree is shared by at least ``k`` nodes.

    With ``deletion_weight=None`` edges are deleted only by means 4, where nothing else leads to the goal.
    """
    work = _Realization(graph, k, random, anonymous_degrees(graph.degrees, k, deletion_weight=deletion_weight))
    for _ in range(_ROUNDS):
        work.between_nodes_in_need()
        work.move_edges()
        work.join_next_class()
        work.replace_edges()
        if not work.need.any():
            break
        work.shift_a_class()
    if work.need.any() or smallest_class(work.degree) < min(k, graph.size):
        raise Unmet(
            f"No graph with {k}-anonymous degrees was found near this one.",
            fix="Choose a smaller k, or generalize the graph into clusters.",
        )
    return work.edits


class _Realization:
    def __init__(self, graph: Graph, k: int, random: np.random.Generator, wanted: Ints) -> None:
        self.k, self.random, self.size = k, random, graph.size
        self.edits = EdgeEdits(graph)
        self.degree = graph.degrees.copy()
        self.need = wanted - self.degree
        """How many edges each node still lacks; negative if it has too many."""
        self.classes = np.bincount(wanted, minlength=int(wanted.max(initial=0)) + 3)
        """Number of nodes by wanted degree."""

    def _add(self, one: int, other: int) -> None:
        self.edits.add(one, other)
        for node in (one, other):
            self.degree[node] += 1
            self.need[node] -= 1

    def _delete(self, one: int, other: int) -> None:
        self.edits.delete(one, other)
        for node in (one, other):
            self.degree[node] -= 1
            self.need[node] += 1

    def _in_need(self, sign: int) -> Ints:
        """Nodes that lack edges (1) or have too many (-1), those in greatest need first."""
        nodes = np.flatnonzero(self.need * sign > 0)
        return nodes[np.argsort(-np.abs(self.need[nodes]), kind="stable")]

    def between_nodes_in_need(self) -> None:
        for node in self._in_need(-1):
            for other in self.edits.neighbours(int(node)):
                if self.need[node] >= 0:
                    break
                if self.need[other] < 0:
                    self._delete(int(node), int(other))
        for node in self._in_need(1):
            if self.need[node] <= 0:
                continue
            others = self._in_need(1)[: int(self.need[node]) + _SAMPLE]
            others = others[(others != node) & ~np.isin(others, self.edits.neighbours(int(node)))]
            for other in others[: self.need[node]]:
                self._add(int(node), int(other))

    def move_edges(self) -> None:
        for rich in self._in_need(-1):
            for poor in self._in_need(1):
                if self.need[rich] >= 0:
                    break
                mine = self.edits.neighbours(int(rich))
                free = np.setdiff1d(mine, self.edits.neighbours(int(poor)), assume_unique=True)
                free = free[free != poor]
                count = min(len(free), int(-self.need[rich]), int(self.need[poor]))
                for end in self.random.choice(free, count, replace=False) if count else ():
                    self._delete(int(rich), int(end))
                    self._add(int(poor), int(end))

    def join_next_class(self) -> None:
        """Use nodes of large classes: each changes its degree by one and leaves k nodes behind."""
        for sign in (1, -1):
            for node in self._in_need(sign):
                for everybody in (False, True):
                    if self.need[node] * sign > 0:
                        self._join(int(node), sign, everybody)

    def _join(self, node: int, sign: int, everybody: bool) -> None:
        mine = self.edits.neighbours(node)
        others, amount = (mine if sign < 0 else self._not_yet_linked(node, mine, everybody)), int(abs(self.need[node]))
        others = others[self.need[others] == 0]
        now = self.degree[others]
        spare = self.classes - self.k
        spare[np.roll(self.classes, -sign) < self.k] = 0  # the next class must exist
        spare[[0, -1] if sign < 0 else -1] = 0
        order = np.argsort(now, kind="stable")
        first = np.searchsorted(now[order], now[order])
        rank = np.empty(len(now), dtype=np.int64)
        rank[order] = np.arange(len(now)) - first
        for other in others[rank < spare[now]][:amount]:
            self.classes[self.degree[other]] -= 1
            (self._add if sign > 0 else self._delete)(node, int(other))
            self.need[other] = 0
            self.classes[self.degree[other]] += 1

    def _not_yet_linked(self, node: int, mine: Ints, everybody: bool) -> Ints:
        """Nodes that are not linked to ``node``: friends of friends first, then others, in random order."""
        others = np.arange(self.size) if everybody else self.random.integers(self.size, size=_SAMPLE)
        asked = self.random.permutation(mine)[:200]
        near = [self.edits.graph.neighbours(int(friend)) for friend in asked]
        friends = np.unique(np.concatenate(near)).astype(np.int64) if near else np.empty(0, dtype=np.int64)
        far = np.setdiff1d(others, friends)
        both = np.concatenate([self.random.permutation(friends), self.random.permutation(far)])
        return both[~np.isin(both, np.append(mine, node))]

    def replace_edges(self) -> None:
        for sign in (1, -1):
            for _ in range(int(np.abs(self.need).sum())):
                nodes = self._in_need(sign)
                if not len(nodes) or not (abs(self.need[nodes[0]]) > 1 or len(nodes) > 1):
                    break
                one = int(nodes[0])
                other = one if abs(self.need[one]) > 1 else int(nodes[1])
                if not (self._split_edge(one, other) if sign > 0 else self._join_ends(one, other)):
                    break

    def _split_edge(self, one: int, other: int) -> bool:
        """Replace an edge a-b by one-a and other-b."""
        graph = self.edits.graph
        for _ in range(_TRIES):
            place = int(self.random.integers(len(graph.indices)))
            a = int(np.searchsorted(graph.indptr, place, side="right")) - 1
            b = int(graph.indices[place])
            free = a != one and b != other and a != other and b != one and self.edits.linked(a, b)
            if free and not self.edits.linked(one, a) and not self.edits.linked(other, b):
                self._delete(a, b)
                self._add(one, a)
                self._add(other, b)
                return True
        return False

    def _join_ends(self, one: int, other: int) -> bool:
        """Replace the edges one-a and other-b by a-b."""
        mine, theirs = self.edits.neighbours(one), self.edits.neighbours(other)
        for _ in range(_TRIES if len(mine) and len(theirs) else 0):
            a, b = int(self.random.choice(mine)), int(self.random.choice(theirs))
            if a != b and a != other and b != one and not self.edits.linked(a, b):
                self._delete(one, a)
                self._delete(other, b)
                self._add(a, b)
                return True
        return False

    def shift_a_class(self) -> None:
        """Another sequence near the present one: a whole class is wanted one degree higher."""
        wanted = self.degree + self.need
        values = np.unique(wanted)
        values = values[values < self.size - 1]
        if len(values):
            chosen = wanted == self.random.choice(values)
            self.need[chosen] += 1
            wanted[chosen] += 1
            self.classes = np.bincount(wanted, minlength=len(self.classes) + 1)
