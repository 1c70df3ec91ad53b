"""From noisy marginals to a distribution: pooled estimates, non-negative targets, and a fitted junction tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.arrays import Floats
from sfumato.synthesis.junction_tree import JunctionTree, tree_cells, triangulate
from sfumato.synthesis.private_counts import NoisyMarginal
from sfumato.synthesis.raking import RakedTree
from sfumato.synthesis.residuals import (
    Columns,
    Residuals,
    project_to_simplex,
    project_to_sums,
    shrink_singular_values,
)

_FLOOR = 1e-9
"""Smallest share of a cell in a target: zero would remove combinations that another marginal needs."""


class MarginalEstimates:
    """Noisy marginals that were measured so far, and what follows from them. Everything here is public."""

    def __init__(self, shape: Sequence[int], *, given: Columns = ()) -> None:
        """``given``: columns whose values are known when rows are drawn."""
        self.shape, self.given = tuple(shape), given
        self.residuals = Residuals(shape)
        self.measured: list[Columns] = []

    def add(self, measurement: NoisyMarginal) -> None:
        """Add a noisy marginal."""
        self.residuals.add(measurement.columns, measurement.noisy, variance=measurement.variance, most=measurement.most)
        if measurement.columns not in self.measured:
            self.measured.append(measurement.columns)

    @property
    def total(self) -> float:
        """The estimated number of rows, at least 1."""
        return max(1.0, self.residuals.total)

    def dependent(self, columns: Columns) -> bool:
        """Whether the columns of a measured marginal depend on each other beyond its noise."""
        return len(columns) != 2 or bool(self._dependence(columns).any())

    def target(self, columns: Columns) -> Floats:
        """The non-negative shares that are closest to the pooled estimate of a marginal.

        Those of a pair have the one-way targets of its columns as sums: many noisy marginals contribute to these.
        """
        total = self.total
        if len(columns) == 2:
            one, other = (project_to_simplex(self.residuals.marginal((c,)), total) for c in columns)
            product = np.outer(one, other) / total
            shares = project_to_sums(product + self._dependence(columns), one, other) / total
        else:
            shares = project_to_simplex(self.residuals.marginal(columns), total) / total
        positive: Floats = np.maximum(shares, _FLOOR)
        return positive / float(positive.sum())

    def _dependence(self, columns: Columns) -> Floats:
        """The difference of a measured pair from independence, without what its noise could have made."""
        total = self.total
        one, other = (project_to_simplex(self.residuals.marginal((c,)), total) for c in columns)
        apart = self.residuals.marginal(columns) - np.outer(one, other) / total
        return shrink_singular_values(apart, deviation=self.residuals.deviation(columns))

    def fitted(self, *, sweeps: int, max_cells: int) -> RakedTree:
        """The maximum entropy distribution with the measured marginals.

        Marginals are fitted exactly on a junction tree of at most ``max_cells`` cells, those with the most information
        first. Rows that are drawn from the tree are raked to the others.
        """
        targets = {columns: self.target(columns) for columns in self.measured}
        inside: list[Columns] = []
        for columns in sorted(targets, key=lambda c: -_information(targets[c])):
            if tree_cells(self.shape, triangulate(self.shape, [*inside, self.given, columns])) <= max_cells:
                inside.append(columns)
        tree = JunctionTree(self.shape, inside, root=self.given)
        tree.fit({columns: targets[columns] for columns in inside}, sweeps=sweeps)
        return RakedTree(tree=tree, targets=targets if len(inside) < len(targets) else {})

    def independent(self, columns: Columns) -> Floats:
        """The expected counts of a marginal if its columns were independent."""
        shares = np.ones(())
        for column in columns:
            shares = np.multiply.outer(shares, self.target((column,)))
        return shares * self.total


def _information(shares: Floats) -> float:
    """How many nats the columns of a marginal tell about each other."""
    axes = range(shares.ndim)
    alone = [shares.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]
    product = np.ones(())
    for one in alone:
        product = np.multiply.outer(product, one)
    return float((shares * np.log(shares / product)).sum())
