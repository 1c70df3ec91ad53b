"""Laplace noise on a grid."""

from __future__ import annotations

from fractions import Fraction
from math import exp
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import Mechanism, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.rational_bounds import ln_up
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import coarser, discrete_laplace
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue

__all__ = ["Laplace"]


class Laplace(Mechanism):
    """Add symmetric noise whose size falls off exponentially; the pure-epsilon workhorse for counts and sums.

    Takes whole numbers of grid steps. With grid 1 this is the discrete Laplace distribution on the integers; with a
    fine grid (a power of two such as 1/1024) it is the real-valued Laplace distribution rounded to the grid, without
    the low-order bits that give floating-point Laplace away. ``sensitivity`` is the L1 distance in the answer's own
    unit that one privacy unit can cause over the whole vector. ``error`` bounds abs(noise).

    >>> Laplace(scale=100).error(confidence="0.99")
    460.51701859880916
    """

    main = "scale"
    examples = ({"scale": 1}, {"scale": "10/3"}, {"scale": 2.5, "grid": "1/1024"})
    reference = "Dwork, McSherry, Nissim, Smith (2006), doi:10.1007/11681878_14"
    proof = (
        "Dwork et al. 2006, Proposition 1; on the integers Ghosh, Roughgarden, Sundararajan 2012, doi:10.1137/09076828X"
    )
    specimen: ClassVar[Any] = np.array([3, 5, 8])

    scale: Positive
    """Size b of the noise in the answer's own unit: the mean of abs(noise) on a fine grid. Loss is sensitivity / b."""
    grid: Positive = Fraction(1)
    """Width of one step; inputs are whole numbers of steps."""

    @classmethod
    def for_epsilon(cls, epsilon: Number, *, sensitivity: Number = 1, grid: Number = 1) -> Self:
        """The noise that makes ``sensitivity`` cost exactly ``epsilon``."""
        return cls(scale=sensitivity_of(sensitivity) / rational(epsilon), grid=rational(grid))

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        return pure(sensitivity_of(sensitivity) / self.scale)

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        """(scale)·ln(outputs / beta): on any grid the chance of more is at most beta."""
        return float(self.scale * ln_up(1 / tail(confidence, outputs)))

    @property
    def bias(self) -> float:
        return 0.0

    @property
    def variance(self) -> float:
        """Exactly 2q / (1 - q)² grid steps squared, with q = exp(-grid / scale)."""
        ratio = float(self.grid / self.scale)
        gap = -np.expm1(-ratio)
        return float(2 * exp(-ratio) / gap**2 * float(self.grid) ** 2)

    def steps(self) -> Fraction:
        """The scale in grid steps, as the sampler uses it (rounded up where it must be)."""
        return coarser(self.scale / self.grid)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Any:
        """The noisy integers times the grid: integers when the grid is 1, floats otherwise."""
        opened = as_integers(self._open(value, receipt, self.loss(sensitivity)))
        noisy = opened + discrete_laplace(self.steps(), opened.size).reshape(opened.shape)
        return noisy if self.grid == 1 else noisy.astype(np.float64) * float(self.grid)
