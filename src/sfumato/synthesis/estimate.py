"""From noisy marginals to a distribution: pooled estimates, non-negative targets, and a fitted junction tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.arrays import Floats
from sfumato.synthesis.junction_tree import JunctionTree
from sfumato.synthesis.private_counts import NoisyMarginal
from sfumato.synthesis.residuals import Columns, Residuals, project_to_simplex, project_to_sums

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

    def target(self, columns: Columns) -> Floats:
        """The non-negative shares that are closest to the pooled estimate of a marginal.

        Those of a pair have the one-way targets of its columns as sums: many noisy marginals contribute to these.
        """
        estimate, total = self.residuals.marginal(columns), self.total
        if len(columns) == 2:
            one, other = (project_to_simplex(self.residuals.marginal((c,)), total) for c in columns)
            shares = project_to_sums(estimate, one, other) / total
        else:
            shares = project_to_simplex(estimate, total) / total
        positive: Floats = np.maximum(shares, _FLOOR)
        return positive / float(positive.sum())

    def tree(self, *, sweeps: int) -> JunctionTree:
        """The maximum entropy distribution with the measured marginals."""
        tree = JunctionTree(self.shape, self.measured, root=self.given)
        tree.fit({columns: self.target(columns) for columns in self.measured}, sweeps=sweeps)
        return tree

    def independent(self, columns: Columns) -> Floats:
        """The expected counts of a marginal if its columns were independent."""
        shares = np.ones(())
        for column in columns:
            shares = np.multiply.outer(shares, self.target((column,)))
        return shares * self.total
