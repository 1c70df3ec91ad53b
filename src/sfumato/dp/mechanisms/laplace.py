"""Laplace mechanism: Laplace noise on a grid."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import ContributionBounds, Mechanism, NoiseModel, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.noise_sums import laplace_mean_square, laplace_radius
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import discrete_laplace, round_scale_up
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue


class Laplace(Mechanism):
    """Add Laplace noise: pure epsilon-differential privacy for counts and sums.

    The input is whole numbers of grid steps. With grid 1 the noise is discrete Laplace on the integers; with a fine
    grid (a power of two such as 1/1024) it approximates Laplace noise on the real line without the floating-point
    attack on its low-order bits. ``sensitivity`` is the L1 distance over the whole vector, in the answer's own unit.
    ``error`` bounds abs(noise).

    >>> Laplace(scale=100).error(confidence="0.99")
    461.0
    """

    main = "scale"
    examples = ({"scale": 1}, {"scale": "10/3"}, {"scale": 2.5, "grid": "1/1024"})
    reference = "Dwork, McSherry, Nissim, Smith (2006), doi:10.1007/11681878_14"
    proof = (
        "Dwork et al. 2006, Proposition 1; on the integers Ghosh, Roughgarden, Sundararajan 2012, doi:10.1137/09076828X"
    )
    specimen = np.array([3, 5, 8])

    scale: Positive
    """Scale b of the noise in the answer's own unit; the loss is sensitivity / b."""
    grid: Positive = Fraction(1)
    """Width of one step; inputs are whole numbers of steps."""

    @classmethod
    def for_epsilon(cls, epsilon: Number, *, sensitivity: Number = 1, grid: Number = 1) -> Self:
        """The noise whose loss at ``sensitivity`` is ``epsilon``."""
        return cls(scale=sensitivity_of(sensitivity) / rational(epsilon), grid=rational(grid))

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        return pure(sensitivity_of(sensitivity) / self.scale)

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        # Groups have independent noise; a shift by ``change`` multiplies a probability by at most exp(change / scale).
        return pure(bounds.groups * (bounds.change / self.scale))

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        return laplace_radius(self.scale, self.grid, tail(confidence, outputs))

    @property
    def noise(self) -> NoiseModel:
        return NoiseModel(scale=self.scale, grid=self.grid)

    @property
    def mean_square(self) -> float:
        return laplace_mean_square(self.scale, self.grid)

    def steps(self) -> Fraction:
        """The scale in grid steps, as the sampler uses it (rounded up where necessary)."""
        return round_scale_up(self.scale / self.grid)

    def check_drawable(self) -> None:
        self.steps()

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Any:
        """The noisy integers times the grid: integers if the grid is 1, floats otherwise."""
        opened = as_integers(self._open(value, receipt, sensitivity))
        noisy = opened + discrete_laplace(self.steps(), opened.size).reshape(opened.shape)
        return noisy if self.grid == 1 else noisy.astype(np.float64) * float(self.grid)
