"""Confidence intervals of quantiles behind randomized reports: linear programs over the histograms that fit them.

A device with a number in input bin j reports a value below edge e with a probability between ``below_low[e, j]`` and
``below_high[e, j]``. The share of reports below e is a mean of independent terms in 0 .. 1, so it is within
d = sqrt(copies·ln(2·edges / (1 - confidence)) / (2·reports)) of its expectation at all edges together with the stated
confidence (Hoeffding 1963, doi:10.1080/01621459.1963.10500830, and a union bound; a draw that is among the reports up
to ``copies`` times has a weight of at most copies / reports, so that the sum of the squared weights is at most copies /
reports). The people's own histogram then meets the inequalities of :class:`FittingHistograms`, and every quantile of
theirs lies in the range that these leave. Nothing is assumed about the shape of the distribution; intervals are wider
than those of a fitted model, and at least as likely to cover as stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from sfumato.arrays import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class FittingHistograms:
    """The histograms over input bins that fit the shares of reports below some edges."""

    below_low: Floats
    below_high: Floats
    """Bounds on the probability of a report below each edge (rows) for each input bin (columns)."""
    shares: Floats
    """Share of the reports below each edge."""
    reports: int
    copies: int
    """Most often that one draw is among the reports."""
    confidence: float

    @property
    def radius(self) -> float:
        """Distance of the shares from their expectation, at most."""
        chance = (1 - self.confidence) / (2 * len(self.shares))
        return float((self.copies * log(1 / chance) / (2 * self.reports)) ** 0.5)

    def quantile(self, chance: float) -> tuple[int, int]:
        """Input bin edges between which the quantile lies: the share up to the first is below ``chance`` in every
        histogram that fits, and the share up to the second is at least ``chance``; the ends of the range if none fits.
        """
        bins = self.below_low.shape[1]
        low, high = 0, bins
        # Both bounds of the share up to an edge grow with the edge.
        first, last = 0, bins
        while last - first > 1:
            middle = (first + last) // 2
            most = self._share(middle, sign=-1)
            if most is None:
                return low, high
            first, last = (middle, last) if most < chance else (first, middle)
        low, first, last = first, first, bins
        while last - first > 1:
            middle = (first + last) // 2
            least = self._share(middle, sign=1)
            if least is None:
                return 0, bins
            first, last = (first, middle) if least >= chance else (middle, last)
        return low, last

    def _share(self, bins: int, *, sign: int) -> float | None:
        """Smallest (``sign`` 1) or largest (-1) share in the first bins; None if no histogram fits."""
        from scipy.optimize import linprog

        count = self.below_low.shape[1]
        target = sign * (np.arange(count) < bins).astype(np.float64)
        found = linprog(
            target,
            A_ub=np.vstack([self.below_low, -self.below_high]),
            b_ub=np.concatenate([self.shares + self.radius, self.radius - self.shares]),
            A_eq=np.ones((1, count)),
            b_eq=[1.0],
            bounds=(0, 1),
            method="highs",
        )
        # The solver is exact to 1e-7; the bound is moved outwards by more.
        return None if found.status != 0 else sign * float(found.fun) - sign * 1e-6
