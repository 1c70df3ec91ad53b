"""Noisy second moments of scaled features: the AnalyzeGauss mechanism.

Noise is added to the upper triangle of the matrix of sums of products (Dwork, Talwar, Thakurta, Zhang 2014,
doi:10.1145/2591796.2591883). One row x changes the upper triangle by at most the squared norm of x.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats
from sfumato.learning.noisy_sums import FEATURE_STEPS, NoisySums, exact_product
from sfumato.rationals import Number


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


def clip_to_spread(mean: Floats, square: Floats, numbers: npt.NDArray[np.bool_], noise: float) -> Scaling:
    """Three noisy standard deviations around the noisy mean of every number, within -1 .. 1.

    ``noise`` is the standard deviation of the noise of a mean and of a mean square. That of a variance is at most
    sqrt(5) times as large and is added to it: an interval that is too wide costs little, one that is too narrow removes
    the feature.
    """
    mean = np.clip(mean, -1, 1)
    variance = np.maximum(square - mean**2, 0) + sqrt(5) * noise
    spread = _SPREAD * np.sqrt(variance)
    low = np.clip(mean - spread, -1, 0.9)
    high = np.maximum(np.minimum(mean + spread, 1), low + 0.01)
    inside = np.append(numbers, False)
    center, scale = np.append((low + high) / 2, 0.0), np.append((high - low) / 2, 1.0)
    return Scaling(center=np.where(inside, center, 0.0), scale=np.where(inside, scale, 1.0))


def measured_scaling(design: Floats, numbers: npt.NDArray[np.bool_], *, share: Number, sums: NoisySums) -> Scaling:
    """:func:`clip_to_spread` from noisy sums of every number and of its square, without products of two columns.

    ``design`` is in whole grid steps within -1 .. 1, and its last column is one. One row changes the sum of a number
    and of its square by at most one each, and the number of rows by one.
    """
    columns = design[:, np.append(numbers, False)]
    count, width = len(design), columns.shape[1]
    squares = np.trunc(columns**2 / FEATURE_STEPS)
    exact = np.concatenate([columns.sum(axis=0), squares.sum(axis=0), [count * FEATURE_STEPS]]).astype(np.int64)
    distance = (2 * width + 1) * FEATURE_STEPS**2
    noisy = sums.measure(exact, distance=distance, share=share) / FEATURE_STEPS
    rows = max(1.0, float(noisy[-1]))
    mean, square = np.zeros(len(numbers)), np.zeros(len(numbers))
    mean[numbers], square[numbers] = noisy[:width] / rows, noisy[width:-1] / rows
    noise = sums.deviation(distance=distance, share=share) / FEATURE_STEPS / rows
    return clip_to_spread(mean, square, numbers, noise)


def shortened(design: Floats, *, norm: int) -> Floats:
    """Rows in grid steps, each scaled down as a whole until its squared norm is at most ``norm`` in scaled units.

    Feature, target and constant of a row shrink by one factor, so a linear relation among them stays as it is: the
    factor is a weight of the row in least squares.
    """
    squared = np.einsum("ij,ij->i", design, design) / FEATURE_STEPS**2
    # Rounding of floats must not lengthen a row: the factor is a little too small, and steps are cut towards zero.
    factor = np.minimum(1.0, np.sqrt(norm / np.maximum(squared, 1e-300)) * (1 - 1e-9))
    return np.asarray(np.trunc(design * factor[:, None]))
