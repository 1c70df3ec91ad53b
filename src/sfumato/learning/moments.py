"""Noisy second moments of scaled features: the AnalyzeGauss mechanism.

Noise is added to the upper triangle of the matrix of sums of products (Dwork, Talwar, Thakurta, Zhang 2014,
doi:10.1145/2591796.2591883). One row x changes the upper triangle by at most the squared norm of x.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.learning.noisy_sums import FEATURE_STEPS, NoisySums, exact_product
from sfumato.rationals import Number

__all__ = ["noisy_moments"]

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
