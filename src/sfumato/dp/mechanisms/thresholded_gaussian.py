"""Gaussian thresholding: noisy counts by private key; keys whose noisy count is below a limit are withheld."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from statistics import NormalDist
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from sfumato.dp.analytic_gaussian import normal_tail
from sfumato.dp.loss import PrivacyLoss
from sfumato.dp.mechanism import ContributionBounds, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.dp.rational_bounds import sqrt_up
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter
from sfumato.rationals import Number
from sfumato.secret import SecretValue


class ThresholdedGaussian(RoundedGaussian):
    """Add Gaussian noise to counts by key and withhold the keys whose noisy count is below ``limit``.

    The input is that of ``ThresholdedLaplace``: one whole number of grid steps per key that occurs in the data, or
    ``parts`` numbers whose sum is the count. All numbers of a withheld key are NaN. A key that occurs for one unit only
    has a count of at most ``max_contribution`` and is reported with probability at most ``chance``; one unit has up to
    ``keys`` keys. ``sensitivity`` is the L2 distance over all keys and parts. The noise grows with the square root of
    ``keys``, so that units with many keys are served better than by Laplace noise. ``error`` bounds abs(noise) of one
    number.

    >>> noise = RoundedGaussian(variance=400)
    >>> ThresholdedGaussian.around(noise, delta="1e-6", max_contribution=1, keys=20).key_threshold("0.5")
    109.0
    """

    main = "variance"
    examples = (
        {"variance": 4, "limit": 15, "max_contribution": 1},
        {"variance": "9/2", "delta": "1e-3", "limit": 30, "max_contribution": 2},
        {"variance": 6.25, "grid": "1/16", "delta": "1e-6", "parts": 2, "limit": 40, "max_contribution": 1},
    )
    reference = "Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson (2020), doi:10.2478/popets-2020-0025"
    proof = (
        "Balle, Wang 2018, Theorem 8 for keys that others have; for keys of one unit alone, the union bound of Wilson "
        "et al. 2020, Theorem 2, with the tail of normal noise"
    )
    specimen = np.array([1, 5, 80, 90])

    limit: Positive
    """Smallest noisy count that is reported, in the answer's own unit."""
    max_contribution: Positive
    """Largest contribution of one unit to one key's count."""
    keys: Annotated[int, Field(ge=1)] = 1
    """Number of keys of one unit, at most."""
    parts: Annotated[int, Field(ge=1, le=4)] = 1
    """Number of values per key; their sum is the count."""

    @classmethod
    def around(
        cls, noise: RoundedGaussian, *, delta: Number, max_contribution: Number, keys: int = 1, parts: int = 1
    ) -> ThresholdedGaussian:
        """This noise with the smallest limit for ``delta``, to a thousandth of its deviation."""
        far, chance = sensitivity_of(max_contribution), sensitivity_of(delta) / keys
        limit = far + _least(noise.variance, noise.grid, parts, chance)
        return cls(
            variance=noise.variance,
            grid=noise.grid,
            delta=noise.delta,
            limit=limit,
            max_contribution=far,
            keys=keys,
            parts=parts,
        )

    @property
    def chance(self) -> Fraction:
        """Upper bound on the probability that a key of a single unit is reported."""
        return _chance(self.variance, self.grid, self.limit - self.max_contribution, self.parts)

    def loss_at(self, distance: Number) -> PrivacyLoss:
        """The loss for a squared L2 sensitivity."""
        return _selecting(super().loss_at(distance), self.keys * self.chance)

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        if bounds.parts != self.parts:
            raise BadParameter("the number of values per key is not that of the plan.")
        passed = _chance(self.variance, self.grid, self.limit - bounds.change, bounds.parts)
        return _selecting(super().loss_from_bounds(bounds), bounds.groups * passed)

    def key_threshold(self, confidence: Number) -> float:
        """The limit plus the quantile of the noise of one key."""
        above = float(tail(confidence, 1))
        if above >= 0.5:
            return float(self.limit)
        wide = NormalDist().inv_cdf(1 - above) * sqrt(self.variance * self.parts)
        return float(self.limit) + wide + float(self.grid) * self.parts / 2

    def release_at(self, value: SecretValue[Any], *, receipt: Receipt, distance: Number) -> Any:
        """Noisy numbers in input order, as floats; NaN for withheld keys."""
        opened = as_integers(self._open(value, receipt, distance))
        if opened.size % self.parts:
            raise BadParameter(f"the input must hold {self.parts} numbers per key.")
        noisy = (opened + self._draw(opened.size).reshape(opened.shape)).reshape(-1, self.parts)
        reported = noisy.sum(axis=1) >= int((self.limit / self.grid).__ceil__())
        values = noisy.astype(np.float64) * float(self.grid)
        values[~reported] = np.nan
        return values.reshape(opened.shape)


def _selecting(loss: PrivacyLoss, chance: Fraction) -> PrivacyLoss:
    """A loss that in addition fails with a probability."""
    if not loss.size:
        return loss
    curve = loss.composable()
    return replace(
        loss,
        delta=min(loss.delta + chance, Fraction(1)),
        curve=replace(curve, delta=min(curve.delta + chance, Fraction(1))),
    )


@lru_cache(maxsize=1024)
def _chance(variance: Fraction, grid: Fraction, beyond: Fraction, parts: int) -> Fraction:
    """Upper bound on the probability that the noise of ``parts`` numbers adds up to ``beyond`` or more."""
    # Each number's noise is rounded by half a step at most, and the sum is a whole number of steps.
    distance = (beyond / grid).__ceil__() * grid - parts * grid / 2
    return Fraction(1) if distance <= 0 else normal_tail(distance / sqrt_up(variance * parts))


@lru_cache(maxsize=256)
def _least(variance: Fraction, grid: Fraction, parts: int, delta: Fraction) -> Fraction:
    """The smallest distance, to a thousandth of the deviation, that noise reaches with probability at most delta."""
    deviation = sqrt_up(variance)
    low, high = Fraction(0), deviation
    while _chance(variance, grid, high, parts) > delta:
        low, high = high, 2 * high
        if high > 30 * parts * (deviation + grid):
            raise BadParameter("delta is too small to report any key.", fix="Use a larger delta.")
    least = max(grid, deviation / 1000)
    while high - low > least:
        middle = low + ((high - low) / (2 * grid)).__ceil__() * grid
        if middle >= high:
            break
        low, high = (low, middle) if _chance(variance, grid, middle, parts) <= delta else (middle, high)
    return (high / grid).__ceil__() * grid
