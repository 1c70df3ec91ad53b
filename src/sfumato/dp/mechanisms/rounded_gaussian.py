"""Analytic Gaussian mechanism: normal noise rounded to a grid."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import log, sqrt
from statistics import NormalDist
from typing import Annotated, Self

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field

from sfumato.dp.analytic_gaussian import normal_epsilon, squared_for
from sfumato.dp.curve import gaussian_curve
from sfumato.dp.loss import NOTHING, PrivacyLoss, approximate, concentrated
from sfumato.dp.mechanism import ContributionBounds, sensitivity_of, tail
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.sampler import SMALLEST_NORMAL, rounded_normal
from sfumato.errors import BadParameter
from sfumato.rationals import Number, rational


class RoundedGaussian(Gaussian):
    """Add normal noise rounded to whole grid steps, with the exact (epsilon, delta) of the Gaussian mechanism.

    The input is whole numbers of grid steps. Adding rounded noise to a whole number is the same as rounding the noisy
    sum, which is post-processing, so the exact trade-off between epsilon and delta of normal noise holds for vectors of
    any length. Discrete Gaussian noise of the same variance needs 2 % to a factor of 3 more delta on a grid of 1.
    ``sensitivity`` is the L2 distance over the whole vector, in the answer's own unit. ``error`` bounds abs(noise).

    >>> loss = RoundedGaussian(variance=20, delta="1e-6").loss(1)
    >>> round(float(loss.size), 3), float(loss.delta)
    (0.941, 1e-06)
    """

    main = "variance"
    examples = (
        {"variance": 4, "delta": "1e-6"},
        {"variance": "2/3"},
        {"variance": 6.25, "grid": "1/256", "delta": "1e-9"},
    )
    reference = "Balle, Wang (2018), doi:10.48550/arXiv.1805.06530"
    proof = "Balle, Wang 2018, Theorem 8; rounding is post-processing"
    specimen = Gaussian.specimen

    delta: Annotated[Fraction, BeforeValidator(rational), Field(gt=0, lt=1)] | None = None
    """The delta at which the loss is stated as an epsilon; without one it is stated as rho."""

    @classmethod
    def for_budget(cls, epsilon: Number, delta: Number, *, squared: Number = 1, grid: Number = 1) -> Self:
        """The noise under which a squared L2 sensitivity is (epsilon, delta)-private."""
        chance = rational(delta)
        return cls(
            variance=rational(squared) / squared_for(rational(epsilon), chance), grid=rational(grid), delta=chance
        )

    def loss_at(self, distance: Number) -> PrivacyLoss:
        """The loss for a squared L2 sensitivity."""
        return self._loss(sensitivity_of(distance) / self.variance)

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        # The rotation that takes the change to one axis leaves normal noise as it is: one shift in L2 norm.
        return self._loss(bounds.groups * (bounds.change**2 / self.variance))

    def _loss(self, squared: Fraction) -> PrivacyLoss:
        """The loss for a squared distance in units of the variance."""
        if not squared:
            return NOTHING
        if self.delta is None:
            return replace(concentrated(squared / 2), curve=gaussian_curve(squared))
        return replace(approximate(normal_epsilon(squared, self.delta), self.delta), curve=gaussian_curve(squared))

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        """The normal quantile plus half a grid step for rounding."""
        chance = float(tail(confidence, outputs))
        high = NormalDist().inv_cdf(1 - chance / 2) if chance > 10**-14 else sqrt(2 * log(2 / chance))
        return sqrt(self.variance) * high * (1 + 1e-9) + float(self.grid) / 2

    @classmethod
    def smallest(cls, squared: Fraction, *, rho: Fraction, grid: Fraction) -> Gaussian:
        """This noise at ``rho``, or discrete Gaussian noise of the same variance where that is below one grid step."""
        kind = cls if squared >= 2 * rho * grid**2 else Gaussian
        return kind.for_rho(rho, squared=squared, grid=grid)

    @classmethod
    def or_discrete(cls, epsilon: Number, delta: Number, *, squared: Number = 1, grid: Number = 1) -> Gaussian:
        """This noise, or discrete Gaussian noise where that is smaller (below one grid step, where rounding adds more
        than the exact trade-off saves) or where the exact trade-off cannot be computed."""
        try:
            normal = cls.for_budget(epsilon, delta, squared=squared, grid=grid)
        except BadParameter:
            return Gaussian.for_budget(epsilon, delta, squared=squared, grid=grid)
        if normal.variance >= normal.grid**2:
            return normal
        return Gaussian.for_budget(epsilon, delta, squared=squared, grid=grid)

    @property
    def mean_square(self) -> float:
        """The variance plus a twelfth of a squared grid step for rounding; approximate for noise of about one step."""
        return float(self.variance + self.grid**2 / 12)

    def steps(self) -> Fraction:
        steps = super().steps()
        if steps < SMALLEST_NORMAL:
            raise BadParameter("the noise would be smaller than half a grid step.", fix="Use a finer grid.")
        return steps

    def _draw(self, count: int) -> npt.NDArray[np.int64]:
        return rounded_normal(self.steps(), count)
