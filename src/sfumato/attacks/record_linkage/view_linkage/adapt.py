"""Adaptation of a distance to the masking, from the pairs of person and row that were found so far.

The differences in these pairs show how far each column was moved, and which columns moved together. The distance by
their covariance links more people, whose differences give a better covariance. The truth is not used.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.attacks.record_linkage.view_linkage.views import Features

Floats = npt.NDArray[np.float64]

_KEPT = 0.8
"""Share of the pairs from which differences are estimated; the others are the most different ones."""
_RIDGE = 1e-6
"""Smallest variance of a difference, as a share of the variance of the column."""


def adapted(features: Features, rows: npt.NDArray[np.int64]) -> Features:
    """The features in units of the differences between each target and its row in ``rows``.

    The known values of each column are fitted to the released ones first, so that a change of scale is no difference.
    """
    left, right = features
    middle, paired = left.mean(axis=0), right[rows]
    kept = rows >= 0
    known, released = left - middle, paired - paired[kept].mean(axis=0)
    ridge = np.diag(_RIDGE * right.var(axis=0) + 1e-12)
    for _ in range(2):
        slope = (known[kept] * released[kept]).sum(axis=0) / np.maximum((known[kept] ** 2).sum(axis=0), 1e-12)
        gap = released - known * slope
        spread = np.atleast_2d(np.cov(gap[kept], rowvar=False)) + ridge
        size = np.einsum("ij,jk,ik->i", gap, np.linalg.pinv(spread), gap)
        kept = (rows >= 0) & (size <= np.quantile(size[rows >= 0], _KEPT))
    level, axes = np.linalg.eigh(np.atleast_2d(np.cov(gap[kept], rowvar=False)) + ridge)
    turn = axes / np.sqrt(np.maximum(level, 1e-12))
    return (known * slope + paired[rows >= 0].mean(axis=0)) @ turn, right @ turn
