"""Maximum entropy distribution with given marginals, on a junction tree of bounded size, and sampling from it.

Iterative proportional fitting multiplies the cells of a clique until a marginal has its target values; the change is
then passed along the tree (Jirousek and Preucil 1995, doi:10.1016/0167-9473(93)E0055-9). For marginals that form a tree
one sweep is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats
from sfumato.synthesis.residuals import Columns

Codes = npt.NDArray[np.int32]
_GOLDEN = (5**0.5 - 1) / 2


def triangulate(shape: Sequence[int], marginals: Sequence[Columns]) -> list[Columns]:
    """Cliques of a chordal graph that contains all marginals, by greedy elimination of the smallest clique.

    >>> triangulate((2, 2, 2, 2), [(0, 1), (1, 2), (2, 3), (0, 3)])
    [(0, 1, 3), (1, 2, 3)]
    """
    neighbours: dict[int, set[int]] = {column: set() for column in range(len(shape))}
    for marginal in marginals:
        for one, other in combinations(marginal, 2):
            neighbours[one].add(other)
            neighbours[other].add(one)

    def cost(column: int) -> tuple[bool, float, int]:
        near = neighbours[column]
        fills = any(other not in neighbours[one] for one, other in combinations(near, 2))
        return fills, prod(float(shape[c]) for c in near) * shape[column], column

    costs = {column: cost(column) for column in neighbours}
    cliques: list[frozenset[int]] = []
    while costs:
        column = min(costs, key=lambda c: costs[c])
        near = neighbours.pop(column)
        del costs[column]
        clique = frozenset({column, *near})
        if not any(clique <= other for other in cliques):
            cliques.append(clique)
        for one in near:
            neighbours[one] |= near
            neighbours[one] -= {one, column}
        touched = near.union(*(neighbours[one] for one in near)) if near else set()
        costs.update({one: cost(one) for one in touched})
    return [tuple(sorted(clique)) for clique in cliques]


def tree_cells(shape: Sequence[int], cliques: Sequence[Columns]) -> float:
    """The number of cells of all cliques together."""
    return sum(prod(float(shape[column]) for column in clique) for clique in cliques)


class JunctionTree:
    """A distribution over coded columns: uniform at first, then fitted to marginals."""

    def __init__(self, shape: Sequence[int], marginals: Sequence[Columns], *, root: Columns = ()) -> None:
        """``root``: columns that the first clique contains, so that rows can be drawn given their values."""
        self.shape = tuple(shape)
        cliques = triangulate(shape, [*marginals, root])
        first = next(number for number, clique in enumerate(cliques) if set(root) <= set(clique))
        self.cliques = [cliques[first], *cliques[:first], *cliques[first + 1 :]]
        self._order, self._parent = _spanning_tree(self.cliques)
        self._children: dict[int, list[int]] = {clique: [] for clique in range(len(self.cliques))}
        for clique, parent in self._parent.items():
            self._children[parent].append(clique)
        sizes = [[self.shape[column] for column in clique] for clique in self.cliques]
        self._beliefs: list[Floats] = [np.full(size, 1 / prod(size)) for size in sizes]
        self._separators = {
            clique: tuple(c for c in self.cliques[clique] if c in self.cliques[parent])
            for clique, parent in self._parent.items()
        }
        self._messages = {clique: self._sum_to(clique, common) for clique, common in self._separators.items()}

    def fit(self, targets: Mapping[Columns, Floats], *, sweeps: int) -> None:
        """Iterative proportional fitting to positive target shares; every target lies inside a clique."""
        inside: dict[int, list[tuple[Columns, Floats]]] = {clique: [] for clique in range(len(self.cliques))}
        for columns, target in targets.items():
            homes = [i for i, clique in enumerate(self.cliques) if set(columns) <= set(clique)]
            inside[min(homes, key=lambda i: self._beliefs[i].size)].append((columns, target))
        tour = self._tour()
        for _ in range(sweeps):
            for clique, via in tour:
                if via is None:
                    for columns, target in inside[clique]:
                        self._scale(clique, columns, target / np.maximum(self._sum_to(clique, columns), 1e-300))
                else:
                    self._send(via, clique)

    def _tour(self) -> list[tuple[int, int | None]]:
        """Visits of the fitting sweep: (clique, None) updates a clique, (receiver, child) passes over an edge."""
        tour: list[tuple[int, int | None]] = []

        def visit(clique: int) -> None:
            tour.append((clique, None))
            for child in self._children[clique]:
                tour.append((child, child))
                visit(child)
                tour.append((clique, child))

        visit(self._order[0])
        return tour

    def _sum_to(self, clique: int, columns: Columns) -> Floats:
        away = tuple(axis for axis, column in enumerate(self.cliques[clique]) if column not in columns)
        belief = self._beliefs[clique]
        return np.asarray(belief.sum(axis=away)) if away else belief

    def _scale(self, clique: int, columns: Columns, factor: Floats) -> None:
        shape = [self.shape[column] if column in columns else 1 for column in self.cliques[clique]]
        self._beliefs[clique] *= factor.reshape(shape)

    def _send(self, edge: int, receiver: int) -> None:
        """Pass the belief of the other end of an edge (named by its lower clique) to ``receiver``."""
        sender = self._parent[edge] if receiver == edge else edge
        message, common = self._sum_to(sender, self._separators[edge]), self._separators[edge]
        self._scale(receiver, common, message / np.maximum(self._messages[edge], 1e-300))
        self._messages[edge] = message

    def sample(self, rows: int, random: np.random.Generator, *, given: Mapping[int, Codes] | None = None) -> Codes:
        """Draw rows column by column, evenly: counts of marginals are close to those expected.

        Each column is drawn given the earlier ones of its clique. Rows are kept sorted by the columns drawn so far, and
        a low-discrepancy sequence runs over them, so that a column is spread evenly also over columns of other cliques.
        ``given``: the values of some columns of the root, one per row.
        """
        drawn = np.zeros((len(self.shape), rows), dtype=np.int32)
        fixed = tuple(sorted(given or ()))
        for column in fixed:
            drawn[column] = (given or {})[column]
        order = np.arange(rows)
        for clique in self._order:
            # By the running intersection property, a given column of any other clique is in its separator.
            known = self._separators.get(clique, fixed)
            for column in self.cliques[clique]:
                if column not in known:
                    lines = _joint_codes(drawn, known, self.shape, rows)
                    order = order[np.argsort(lines[order], kind="stable")]
                    drawn[column, order] = _evenly(self._given(clique, known, column), lines[order], random)
                    order = order[np.argsort(drawn[column, order], kind="stable")]
                    known = (*known, column)
        return drawn if fixed else drawn[:, random.permutation(rows)]

    def _given(self, clique: int, known: Columns, column: int) -> Floats:
        """The belief of one column, one line for each combination of values of ``known``."""
        left = [c for c in self.cliques[clique] if c in known or c == column]
        table = self._sum_to(clique, tuple(left))
        return table.transpose([left.index(c) for c in (*known, column)]).reshape(-1, self.shape[column])


def _joint_codes(drawn: Codes, columns: Columns, shape: Sequence[int], rows: int) -> npt.NDArray[np.int64]:
    if not columns:
        return np.zeros(rows, dtype=np.int64)
    codes = np.ravel_multi_index([drawn[c] for c in columns], [shape[c] for c in columns])
    return np.asarray(codes, dtype=np.int64)


def evenly(count: int, random: np.random.Generator) -> Floats:
    """Numbers in 0 .. 1 of which any stretch is spread evenly: multiples of the golden ratio from a random start."""
    return np.asarray((np.arange(count) * _GOLDEN + random.random()) % 1)


def _evenly(table: Floats, lines: npt.NDArray[np.int64], random: np.random.Generator) -> npt.NDArray[np.int64]:
    """One cell per row from its line of the table; ``lines`` are sorted."""
    high, wide = table.shape
    sums = table.sum(axis=1, keepdims=True)
    chances = np.where(sums > 0, table / np.where(sums > 0, sums, 1), 1 / wide)
    edges = (np.cumsum(chances, axis=1) + np.arange(high)[:, None]).ravel()
    cells = np.searchsorted(edges, lines + evenly(len(lines), random), side="right") - lines * wide
    return np.asarray(np.clip(cells, 0, wide - 1), dtype=np.int64)


def _spanning_tree(cliques: Sequence[Columns]) -> tuple[list[int], dict[int, int]]:
    """Cliques in an order that starts at the root, and the parent of every other clique: maximal separators."""
    order, parent = [0], {}
    best = {i: (len(set(cliques[0]) & set(cliques[i])), 0) for i in range(1, len(cliques))}
    while best:
        nearest = max(best, key=lambda i: best[i][0])
        parent[nearest] = best.pop(nearest)[1]
        order.append(nearest)
        for other, (width, _) in best.items():
            common = len(set(cliques[nearest]) & set(cliques[other]))
            if common > width:
                best[other] = (common, nearest)
    return order, parent
