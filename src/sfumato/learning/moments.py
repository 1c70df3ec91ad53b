"""Noisy second moments of scaled features: the AnalyzeGauss mechanism.

Noise is added to the upper triangle of the matrix of sums of products (Dwork, Talwar, Thakurta, Zhang 2014,
doi:10.1145/2591796.2591883). One row x changes the upper triangle by at most the squared norm of x.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from sfumato.learning.noisy_sums import FEATURE_STEPS, NoisySums, exact_product
from sfumato.rationals import Number

__all__ = ["Scaling", "clip_to_spread", "noisy_moments"]

Floats = npt.NDArray[np.float64]


def noisy_moments(design: Floats, *, norm: int, share: Number, sums: NoisySums) -> tuple[Floats, float, float]:
    """Means of products of features, the noisy number of rows, and the standard deviation of the noise of a mean.

    ``design`` is in whole grid steps, its last column is one, and ``norm`` is the largest squared norm of a row in
    scaled units.
    """
    distance = norm**2 * FEATURE_STEPS**4
    upper = np.triu_indices(design.shape[1])
    noisy = sums.measure(exact_product(design, design)[upper], distance=distance, share=share) / FEATURE_STEPS**2
    matrix = np.zeros((design.shape[1],) * 2)
    matrix[upper] = noisy
    matrix = matrix + np.triu(matrix, 1).T
    rows = max(1.0, float(matrix[-1, -1]))
    return matrix / rows, rows, sums.deviation(distance=distance, share=share) / FEATURE_STEPS**2 / rows


_SPREAD = 3.0
"""Standard deviations around the mean to which numbers are clipped."""


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """Numbers clipped to an interval and scaled to -1 .. 1; other columns stay as they are. Public."""

    center: Floats
    scale: Floats

    def steps(self, design: Floats) -> Floats:
        """A design in grid steps, scaled."""
        scaled = np.clip((design / FEATURE_STEPS - self.center) / self.scale, -1, 1)
        return np.trunc(scaled * FEATURE_STEPS)

    def moments(self, moments: Floats) -> Floats:
        """Moments of the scaled columns, as if nothing was clipped."""
        change = np.diag(1 / self.scale)
        change[:, -1] -= self.center / self.scale
        return np.asarray(change @ moments @ change.T)


def clip_to_spread(moments: Floats, numbers: npt.NDArray[np.bool_], noise: float) -> Scaling:
    """Three noisy standard deviations around the noisy mean of every number, within -1 .. 1.

    ``noise`` is the standard deviation of the noise of a moment. That of a variance is at most sqrt(5) times as large
    and is added to it: an interval that is too wide costs little, one that is too narrow removes the feature.
    """
    mean = np.clip(moments[-1, :-1], -1, 1)
    variance = np.maximum(np.diag(moments)[:-1] - mean**2, 0) + sqrt(5) * noise
    spread = _SPREAD * np.sqrt(variance)
    low = np.clip(mean - spread, -1, 0.9)
    high = np.maximum(np.minimum(mean + spread, 1), low + 0.01)
    inside = np.append(numbers, False)
    center, scale = np.append((low + high) / 2, 0.0), np.append((high - low) / 2, 1.0)
    return Scaling(center=np.where(inside, center, 0.0), scale=np.where(inside, scale, 1.0))
