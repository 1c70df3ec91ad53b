"""Histogram mechanism: noisy counts of public, disjoint cells."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import ContributionBounds, Mechanism, NoiseModel, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.noise_sums import laplace_mean_square, laplace_radius
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import discrete_laplace
from sfumato.errors import BadParameter
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue


class Histogram(Mechanism):
    """Add discrete Laplace noise to every cell of a histogram whose cells are disjoint and public.

    Each row lies in one cell, so the L1 sensitivity is the number of rows of one unit, whatever the number of cells.
    Empty cells get noise like all others. Sums over cells are post-processing. ``error`` bounds abs(noise) over all
    ``outputs`` cells.

    >>> from sfumato.dp import SecretValue, pure
    >>> from sfumato.ledger import Charge, Ledger
    >>> ledger = Ledger.unkept()
    >>> _ = ledger.set_cap(pure(100), dataset="survey")
    >>> ages = Histogram.for_epsilon(1)
    >>> charge = Charge(loss=ages.loss(), unit="row", what="age groups")
    >>> receipt = ledger.charge(charge, dataset="survey", analyst="ana")
    >>> ages.release(SecretValue([120, 80, 0]), receipt=receipt).shape
    (3,)
    """

    main = "scale"
    examples = ({"scale": 1}, {"scale": "5/2"})
    reference = "Dwork, McSherry, Nissim, Smith (2006), doi:10.1007/11681878_14, Example 2"
    proof = "Dwork et al. 2006, Proposition 1, with L1 sensitivity 1 by disjointness"
    specimen = np.array([3, 5, 8])

    scale: Positive
    """Scale of the noise on each cell; the loss is sensitivity / scale."""

    @classmethod
    def for_epsilon(cls, epsilon: Number, *, sensitivity: Number = 1) -> Self:
        """The noise whose loss at ``sensitivity`` is ``epsilon``."""
        return cls(scale=sensitivity_of(sensitivity) / rational(epsilon))

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        return pure(sensitivity_of(sensitivity) / self.scale)

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        # Cells have independent noise, so the log-ratios of the cells that a unit touches add up.
        return pure(bounds.groups * (bounds.change / self.scale))

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        return laplace_radius(self.scale, Fraction(1), tail(confidence, outputs))

    @property
    def noise(self) -> NoiseModel:
        return NoiseModel(scale=self.scale)

    @property
    def mean_square(self) -> float:
        return laplace_mean_square(self.scale)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Any:
        """The noisy count of each cell. Negative counts are kept, so that sums stay unbiased."""
        counts = as_integers(self._open(value, receipt, sensitivity))
        if counts.size and counts.min() < 0:
            raise BadParameter("a histogram has no negative counts.")
        return counts + discrete_laplace(self.scale, counts.size).reshape(counts.shape)
