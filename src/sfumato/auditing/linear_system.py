"""Linear system of the answers: integers x[atom, value] with known sums, and tests that need no search.

x[atom, value] is how many people of the atom have the value. Each atom's numbers sum to its size. Each answered query
states linear facts about the numbers of its atoms, added up (see ``AnswerConstraint``). A value is possible for a
person iff some solution has x[atom of the person, value] >= 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.auditing.atoms import AnswerConstraint, Flags, Sense


@dataclass(frozen=True, kw_only=True)
class CountSystem:
    """Atoms of a connected set of queries, the answers, and one known solution (the true one)."""

    member: Flags
    """Queries by atoms."""
    answers: Sequence[AnswerConstraint]
    sizes: Ints
    known: Ints
    """Atoms by values: a solution, by construction consistent with every answer."""

    def fits(self, x: Ints) -> bool:
        """Whether integers solve the system. The check is exact."""
        if (x < 0).any() or (x.sum(axis=1) != self.sizes).any():
            return False
        # Counts of people are far below 2**53, so floating-point sums are exact.
        sums = self.member.astype(np.float64) @ x.astype(np.float64)
        for counts, answer in zip(sums, self.answers, strict=True):
            reached = answer.weights @ counts.astype(np.int64)
            for value, total, sense in zip(reached.tolist(), answer.totals.tolist(), answer.senses, strict=True):
                if (sense is not Sense.AT_LEAST and value > total) or (sense is not Sense.AT_MOST and value < total):
                    return False
        return True


def connected(member: Flags, start: Flags) -> tuple[Flags, Flags]:
    """Connected component: queries and atoms linked to the queries marked in ``start``."""
    rows = start.copy()
    while True:
        atoms = np.asarray(member[rows].any(axis=0))
        more = np.asarray(member[:, atoms].any(axis=1))
        if (more == rows).all():
            return rows, atoms
        rows = more


def upper_bounds(system: CountSystem) -> Ints:
    """Upper bound of each x[atom, value] from single answers."""
    bounds = np.repeat(system.sizes[:, None], system.known.shape[1], axis=1)
    for row, answer in zip(system.member, system.answers, strict=True):
        for weights, total, sense in answer.facts:
            used = weights > 0
            if sense is not Sense.AT_LEAST and used.any():
                at_most = np.full(len(weights), np.iinfo(np.int64).max)
                at_most[used] = total // weights[used]
                bounds[row] = np.minimum(bounds[row], at_most[None, :])
    return bounds


def closed(system: CountSystem) -> npt.NDArray[np.bool_] | None:
    """All possible pairs where the queries are nested or disjoint; None where some overlap.

    Nested queries form a tree, and the system is a flow from atoms up the tree, one lane per value. A pair is possible
    iff the known solution uses it or it lies on a cycle of the residual graph, that is, both of its ends are in one
    strongly connected component. This is the rule for edges of perfect matchings, and it decides all pairs at once.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    parent = _tree(system.member)
    if parent is None or not all(answer.fine for answer in system.answers):
        return None
    queries, atoms = system.member.shape
    wide = system.known.shape[1]
    sizes = system.member.sum(axis=1)
    home = np.array([min(np.flatnonzero(column), key=lambda q: sizes[q]) for column in system.member.T])
    node = np.arange(queries)[:, None] * wide + np.arange(wide)[None, :] + atoms  # lane of a value at a query
    sink = atoms + queries * wide
    tails: list[Ints] = []
    heads: list[Ints] = []

    def arc(tail: Ints, head: Ints, forward: npt.NDArray[np.bool_], back: npt.NDArray[np.bool_]) -> None:
        tails.extend([tail[forward], head[back]])
        heads.extend([head[forward], tail[back]])

    atom, value = np.divmod(np.arange(atoms * wide), wide)
    used = system.known.ravel() > 0
    arc(atom, node[home[atom], value], np.ones(len(atom), np.bool_), used)
    flow = np.stack([system.known[row].sum(axis=0) for row in system.member])
    for q, answer in enumerate(system.answers):
        top = node[parent[q]] if parent[q] >= 0 else np.full(wide, sink)
        room = flow[q] < answer.totals
        # Without counterfeits the count is exact, so the flow of the lane upwards cannot decrease.
        arc(node[q], top, room, (flow[q] > 0) & np.bool_(answer.slack))
    graph = coo_array(
        (np.ones(sum(map(len, tails)), np.int8), (np.concatenate(tails), np.concatenate(heads))),
        shape=(sink + 1, sink + 1),
    ).tocsr()
    _, label = connected_components(graph, directed=True, connection="strong")
    same: Flags = (label[atom] == label[node[home[atom], value]]).reshape(atoms, wide)
    return used.reshape(atoms, wide) | same


def _tree(member: Flags) -> Ints | None:
    """For each query the smallest query that contains it (-1: none); None unless all are nested or disjoint."""
    narrow = member.astype(np.float32)
    common = narrow @ narrow.T
    size = common.diagonal()
    smaller = np.minimum(size[:, None], size[None, :])
    if ((common > 0) & (common < smaller)).any():
        return None
    order = np.lexsort((np.arange(len(size)), size))
    rank = np.empty(len(size), np.int64)
    rank[order] = np.arange(len(size))
    parent = np.full(len(size), -1, np.int64)
    for q in range(len(size)):
        around = np.flatnonzero((common[q] == size[q]) & (size > 0) & (rank > rank[q]))
        if len(around):
            parent[q] = around[np.argmin(rank[around])]
    return parent
