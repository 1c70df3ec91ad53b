"""Laplace noise on counts by private key; keys whose noisy count stays below a limit are not named."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import exp
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field

from sfumato.dp.loss import PrivacyLoss, approximate
from sfumato.dp.mechanism import Positive, as_integers, sensitivity_of
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.rational_bounds import exp_bracket
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import coarser, discrete_laplace
from sfumato.errors import BadParameter
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue

__all__ = ["ThresholdedLaplace"]

_TAILS: dict[int, tuple[tuple[int, ...], int]] = {
    1: ((1,), 2), 2: ((2, 1), 4), 3: ((8, 5, 1), 16), 4: ((48, 33, 9, 1), 96),
}  # fmt: skip
"""The chance that a sum of so many Laplace variables of scale 1 is above s: exp(-s) · polynomial(s) / divisor."""


class ThresholdedLaplace(Laplace):
    """Counts by key with Laplace noise, and the choice of the keys that may be named, for the price of the noise.

    Takes one whole number of grid steps per key, or ``parts`` of them whose sum is the count. Noise is added to every
    key that anybody has; where the noisy count is below ``limit`` the key is withheld (all its numbers are NaN). A key
    that one unit alone has counts ``reach`` at most and is named with a chance of at most ``chance``; one unit has up
    to ``keys`` keys. ``sensitivity`` is the L1 distance over all keys and parts. ``error`` bounds abs(noise) of one
    number.
    """

    examples = (
        {"scale": 1, "limit": 15, "reach": 1},
        {"scale": "5/2", "limit": 30, "reach": 2},
        {"scale": 2, "grid": "1/16", "parts": 2, "keys": 2, "limit": 40, "reach": 1},
    )
    reference = "Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson (2020), doi:10.2478/popets-2020-0025"
    proof = "Wilson et al. 2020, Theorem 2 (Korolova et al. 2009, doi:10.1145/1526709.1526733, Theorem 1)"
    specimen: ClassVar[Any] = np.array([1, 5, 80, 90])

    limit: Positive
    """Smallest noisy count that is named, in the answer's own unit."""
    reach: Positive
    """Most that one unit adds to one key's count."""
    keys: Annotated[int, Field(ge=1)] = 1
    """How many keys one unit can have."""
    parts: Annotated[int, Field(ge=1, le=4)] = 1
    """How many numbers per key add up to its count."""

    @classmethod
    def for_budget(
        cls, epsilon: Number, delta: Number, *, sensitivity: Number, reach: Number = 1, keys: int = 1, grid: Number = 1,
        parts: int = 1,
    ) -> Self:  # fmt: skip
        """The noise that costs ``epsilon`` and the least limit that costs ``delta``, to a thousandth of the scale."""
        scale, step, far = sensitivity_of(sensitivity) / rational(epsilon), rational(grid), rational(reach)
        limit = _limit(scale, step, far, parts, rational(delta) / keys)
        return cls(scale=scale, grid=step, limit=limit, reach=far, keys=keys, parts=parts)

    @property
    def chance(self) -> Fraction:
        """A bound on the chance that a key which one unit alone has is named."""
        return _chance(self.scale, self.grid, self.limit - self.reach, self.parts)

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        size = sensitivity_of(sensitivity) / self.scale
        return approximate(size, min(self.keys * self.chance, Fraction(1)) if size else 0)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Any:
        """Noisy numbers in the order given, as floats; NaN for the keys that are withheld."""
        opened = as_integers(self._open(value, receipt, self.loss(sensitivity)))
        if opened.size % self.parts:
            raise BadParameter(f"each key has {self.parts} numbers.")
        noisy = (opened + discrete_laplace(self.steps(), opened.size).reshape(opened.shape)).reshape(-1, self.parts)
        named = noisy.sum(axis=1) >= int((self.limit / self.grid).__ceil__())
        shown = noisy.astype(np.float64) * float(self.grid)
        shown[~named] = np.nan
        return shown.reshape(opened.shape)

    def named(self, count: Number) -> float:
        """About how likely a key with this count is named."""
        gap = float((self.limit - rational(count)) / self.scale)
        weights, divisor = _TAILS[self.parts]
        beyond = exp(-abs(gap)) * sum(w * abs(gap) ** k for k, w in enumerate(weights)) / divisor
        return beyond if gap > 0 else 1 - beyond


@lru_cache(maxsize=1024)
def _chance(scale: Fraction, grid: Fraction, beyond: Fraction, parts: int) -> Fraction:
    """A bound on the chance that the noise of ``parts`` numbers adds up to ``beyond`` or more."""
    # The sampler may round the scale up; the tail is that of what it draws.
    drawn, steps = coarser(scale / grid), (beyond / grid).__ceil__()
    if steps <= 0:
        return Fraction(1)
    if parts == 1:
        return exp_bracket(-steps / drawn)[1] / (1 + exp_bracket(-1 / drawn)[0])
    # Each number's noise is below that of a real Laplace variable plus one step.
    distance = (steps - parts) / drawn
    if distance < 0:
        return Fraction(1)
    weights, divisor = _TAILS[parts]
    grown = sum(weight * distance**power for power, weight in enumerate(weights))
    return min(Fraction(1), exp_bracket(-distance)[1] * grown / divisor)


@lru_cache(maxsize=256)
def _limit(scale: Fraction, grid: Fraction, reach: Fraction, parts: int, delta: Fraction) -> Fraction:
    """The smallest limit, to a thousandth of the scale, that a single unit passes with a chance of ``delta``."""
    low, high = Fraction(0), scale
    while _chance(scale, grid, high, parts) > delta:
        low, high = high, 2 * high
        if high > 10**6 * scale:
            raise BadParameter("delta is too small to name any key.", fix="Use a larger delta.")
    least = max(grid, scale / 1000)
    while high - low > least:
        middle = low + ((high - low) / (2 * grid)).__ceil__() * grid
        if middle >= high:
            break
        low, high = (low, middle) if _chance(scale, grid, middle, parts) <= delta else (middle, high)
    return reach + high
