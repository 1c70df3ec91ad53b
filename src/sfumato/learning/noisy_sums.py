"""Noisy sums under one budget: the only way from rows to a private model.

Every estimator asks for sums of integers of which one row changes a known L2 distance at most. The sums are answered
with normal noise rounded to whole numbers, and charged to a receipt in Gaussian differential privacy, which composes
adaptively and without loss: the squared parameters of all answers add up to that of the budget.

Sums of integers are exact in 64-bit floats up to 2**53, so matrix products may run in BLAS: every term is an integer of
at most :data:`FEATURE_STEPS` · :data:`WEIGHT_STEPS` = 2**28, and blocks have at most 2**24 rows.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import sqrt

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Array, Floats
from sfumato.dp.curve import gaussian_curve
from sfumato.dp.loss import PrivacyLoss, concentrated
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter
from sfumato.rationals import Number, rational
from sfumato.secret import MeasuredNumbers, SecretValue

FEATURE_STEPS = 1 << 12
"""Grid steps from 0 to 1 of a scaled feature."""
WEIGHT_STEPS = 1 << 16
"""Grid steps from 0 to 1 of a residual or another weight of a row."""
COUNT_STEPS = 1 << 16
"""Grid steps of a count of one row."""
_BLOCK = 1 << 24


def gaussian_loss(squared: Fraction) -> PrivacyLoss:
    """The loss of normal noise at a squared distance, in units of its variance."""
    return replace(concentrated(squared / 2), curve=gaussian_curve(squared))


def exact_product(left: Floats, right: Floats) -> npt.NDArray[np.int64]:
    """``left.T @ right`` for arrays of integers, exact for any number of rows."""
    total = np.zeros((left.shape[1], *right.shape[1:]), dtype=np.int64)
    for start in range(0, len(left), _BLOCK):
        total += (left[start : start + _BLOCK].T @ right[start : start + _BLOCK]).astype(np.int64)
    return total


class NoisySums:
    """A budget for noisy sums over the rows of people who have at most ``rows`` rows each.

    Shares of all answers together are at most 1.
    """

    def __init__(self, receipt: Receipt, squared: Fraction, *, rows: int) -> None:
        self._receipt, self._squared, self._rows = receipt, squared, rows

    def measure(self, sums: Array, *, distance: int, share: Number) -> Floats:
        """Integer sums plus noise. ``distance`` is the largest squared L2 norm of one row's part of the sums."""
        moved = self._moved(distance)
        mechanism = RoundedGaussian(variance=moved / self._part(share))
        measured = MeasuredNumbers(kind="vectors", numbers={"norm": distance})
        noisy = mechanism.release_at(
            SecretValue(sums.ravel(), measured=measured), receipt=self._receipt, distance=moved
        )
        return np.asarray(noisy, dtype=np.float64).reshape(sums.shape)

    def deviation(self, *, distance: int, share: Number) -> float:
        """The standard deviation of the noise of such a measurement. It does not use the data."""
        return sqrt(self._moved(distance) / self._part(share))

    def _moved(self, distance: int) -> int:
        """The squared distance that all rows of one person move a sum: the triangle inequality."""
        return distance * self._rows**2

    def _part(self, share: Number) -> Fraction:
        part = rational(share)
        if not 0 < part <= 1:
            raise BadParameter("a share of the budget is above 0 and at most 1.")
        return part * self._squared

    def __repr__(self) -> str:
        return "<NoisySums>"
