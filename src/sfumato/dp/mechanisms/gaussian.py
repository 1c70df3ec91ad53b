"""Discrete Gaussian mechanism: discrete Gaussian noise on a grid."""

from __future__ import annotations

from fractions import Fraction
from statistics import NormalDist
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sfumato.dp.loss import PrivacyLoss, concentrated
from sfumato.dp.mechanism import ContributionBounds, Mechanism, NoiseModel, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.rational_bounds import ln_up, sqrt_up
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import LARGEST_VARIANCE, discrete_gaussian
from sfumato.dp.zcdp import rho_for
from sfumato.errors import BadParameter
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue


class Gaussian(Mechanism):
    """Add discrete Gaussian noise: zero-concentrated differential privacy for vectors with a small L2 sensitivity.

    The input is whole numbers of grid steps. ``sensitivity`` is the L2 distance over the whole vector, in the answer's
    own unit. The loss is rho = sensitivity² / (2·variance). ``error`` bounds abs(noise).

    >>> Gaussian(variance=8).loss(2)
    Loss(rho=1/4)
    """

    main = "variance"
    examples = ({"variance": 4}, {"variance": "2/3"}, {"variance": 6.25, "grid": "1/256"})
    reference = "Canonne, Kamath, Steinke (2020), doi:10.48550/arXiv.2004.00010"
    proof = "Canonne, Kamath, Steinke 2020, Theorem 4 and Corollary 16 (vectors)"
    specimen = np.array([3, 5, 8])

    variance: Positive
    """Variance parameter in the answer's own unit; the variance of the noise is at most this."""
    grid: Positive = Fraction(1)
    """Width of one step; inputs are whole numbers of steps."""

    @classmethod
    def for_rho(cls, rho: Number, *, squared: Number = 1, grid: Number = 1) -> Self:
        """The noise whose loss at a squared L2 sensitivity is ``rho``."""
        return cls(variance=rational(squared) / (2 * rational(rho)), grid=rational(grid))

    @classmethod
    def for_budget(cls, epsilon: Number, delta: Number, *, squared: Number = 1, grid: Number = 1) -> Self:
        """The noise under which a squared L2 sensitivity is (epsilon, delta)-private."""
        return cls.for_rho(rho_for(rational(epsilon), rational(delta)), squared=squared, grid=grid)

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        return self.loss_at(sensitivity_of(sensitivity) ** 2)

    def loss_at(self, distance: Number) -> PrivacyLoss:
        """The loss for a squared L2 sensitivity."""
        return concentrated(sensitivity_of(distance) / (2 * self.variance))

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        # Squared distances add up over the groups, and within a group are largest where one part moves alone.
        return concentrated(bounds.groups * bounds.change**2 / self.variance / 2)

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        """The normal quantile plus one grid step (Canonne, Kamath, Steinke 2020, Proposition 25), or the sub-Gaussian
        bound sigma·sqrt(2·ln(2·outputs / beta)) where that is smaller."""
        chance = tail(confidence, outputs)
        deviation = sqrt_up(self.variance)
        quantile = NormalDist().inv_cdf(1 - float(chance) / 2) if chance > 10**-14 else float("inf")
        rough = float(deviation * sqrt_up(2 * ln_up(2 / chance)))
        return min(rough, float(deviation) * quantile * (1 + 1e-9) + float(self.grid))

    @property
    def noise(self) -> NoiseModel:
        return NoiseModel(variance=self.variance, grid=self.grid)

    @property
    def mean_square(self) -> float:
        return float(self.variance)

    def steps(self) -> Fraction:
        """The variance in squared grid steps; refused if larger than the sampler can draw."""
        steps = self.variance / self.grid**2
        if steps > LARGEST_VARIANCE:
            raise BadParameter("the noise would be larger than 2**50 grid steps.", fix="Use a larger epsilon.")
        return steps

    def check_drawable(self) -> None:
        self.steps()

    def _draw(self, count: int) -> npt.NDArray[np.int64]:
        return discrete_gaussian(self.steps(), count)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Any:
        """The noisy integers times the grid, for an L2 sensitivity."""
        return self.release_at(value, receipt=receipt, distance=sensitivity_of(sensitivity) ** 2)

    def release_at(self, value: SecretValue[Any], *, receipt: Receipt, distance: Number) -> Any:
        """The noisy integers times the grid, for a squared L2 sensitivity."""
        opened = as_integers(self._open(value, receipt, distance))
        noisy = opened + self._draw(opened.size).reshape(opened.shape)
        return noisy if self.grid == 1 else noisy.astype(np.float64) * float(self.grid)
