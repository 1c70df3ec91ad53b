"""Laplace thresholding: noisy counts by private key; keys whose noisy count is below a limit are withheld."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import exp, factorial, lcm
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field

from sfumato.dp.curve import epsilon_curve
from sfumato.dp.loss import PrivacyLoss, approximate
from sfumato.dp.mechanism import ContributionBounds, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.noise_sums import combined_error
from sfumato.dp.rational_bounds import exp_bracket, short_up
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import discrete_laplace, round_scale_up
from sfumato.errors import BadParameter
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue


class ThresholdedLaplace(Laplace):
    """Add Laplace noise to counts by key and withhold the keys whose noisy count is below ``limit``.

    The input is one whole number of grid steps per key that occurs in the data, or ``parts`` numbers whose sum is the
    count. All numbers of a withheld key are NaN. A key that occurs for one unit only has a count of at most
    ``max_contribution`` and is reported with probability at most ``chance``; one unit has up to ``keys`` keys.
    ``sensitivity`` is the L1 distance over all keys and parts. ``error`` bounds abs(noise) of one number.
    """

    examples = (
        {"scale": 1, "limit": 15, "max_contribution": 1},
        {"scale": "5/2", "limit": 30, "max_contribution": 2},
        {"scale": 2, "grid": "1/16", "parts": 2, "keys": 2, "limit": 40, "max_contribution": 1},
    )
    reference = "Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson (2020), doi:10.2478/popets-2020-0025"
    proof = "Wilson et al. 2020, Theorem 2 (Korolova et al. 2009, doi:10.1145/1526709.1526733, Theorem 1)"
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
    def for_budget(
        cls, epsilon: Number, delta: Number, *, sensitivity: Number, max_contribution: Number = 1, keys: int = 1,
        grid: Number = 1, parts: int = 1,
    ) -> Self:  # fmt: skip
        """The noise for ``epsilon`` and the smallest limit for ``delta``, to a thousandth of the scale."""
        scale, step, far = sensitivity_of(sensitivity) / rational(epsilon), rational(grid), rational(max_contribution)
        limit = _limit(scale, step, far, parts, rational(delta) / keys)
        return cls(scale=scale, grid=step, limit=limit, max_contribution=far, keys=keys, parts=parts)

    def limited_for(self, noises: int, delta: Number) -> Self:
        """The same noise with a limit that keeps to ``delta`` even if each number has the noise of several draws."""
        limit = _limit(self.scale, self.grid, self.max_contribution, self.parts * noises, rational(delta) / self.keys)
        return self.model_copy(update={"limit": max(limit, self.limit)})

    @property
    def chance(self) -> Fraction:
        """Upper bound on the probability that a key of a single unit is reported."""
        return _chance(self.scale, self.grid, self.limit - self.max_contribution, self.parts)

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        size = sensitivity_of(sensitivity) / self.scale
        loss = approximate(size, min(self.keys * self.chance, Fraction(1)) if size else 0)
        if size * self.scale != self.keys * self.max_contribution:
            return loss
        # The keys have independent noise, and each moves by ``max_contribution`` at most: a loss for each key.
        return replace(loss, curve=epsilon_curve(size / self.keys, loss.delta / self.keys).times(self.keys))

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        if bounds.parts != self.parts:
            raise BadParameter("the number of values per key is not that of the plan.")
        # Log-ratios add up over the keys of a unit; a union bound over the keys that only this unit has gives delta.
        passed = _chance(self.scale, self.grid, self.limit - bounds.change, bounds.parts)
        loss = approximate(bounds.groups * (bounds.change / self.scale), min(bounds.groups * passed, Fraction(1)))
        each = epsilon_curve(bounds.change / self.scale)
        return replace(loss, curve=replace(each.times(bounds.groups), delta=loss.delta))

    def key_threshold(self, confidence: Number) -> float:
        """The limit plus the quantile of the noise of one key."""
        above = tail(confidence, 1)
        if above >= Fraction(1, 2):
            return float(self.limit)
        return float(self.limit) + combined_error([(1, self)] * self.parts, confidence=1 - 2 * above)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Any:
        """Noisy numbers in input order, as floats; NaN for withheld keys."""
        opened = as_integers(self._open(value, receipt, sensitivity))
        if opened.size % self.parts:
            raise BadParameter(f"the input must hold {self.parts} numbers per key.")
        noisy = (opened + discrete_laplace(self.steps(), opened.size).reshape(opened.shape)).reshape(-1, self.parts)
        reported = noisy.sum(axis=1) >= int((self.limit / self.grid).__ceil__())
        values = noisy.astype(np.float64) * float(self.grid)
        values[~reported] = np.nan
        return values.reshape(opened.shape)

    def named(self, count: Number) -> float:
        """Approximate probability that a key with this count is reported."""
        gap = float((self.limit - rational(count)) / self.scale)
        weights, divisor = _tail(self.parts)
        beyond = exp(-abs(gap)) * sum(w * abs(gap) ** k for k, w in enumerate(weights)) / divisor
        return beyond if gap > 0 else 1 - beyond


@lru_cache
def _tail(parts: int) -> tuple[tuple[int, ...], int]:
    """Upper tail of a sum of that many Laplace variables of scale 1: P(sum > s) = exp(-s) · polynomial(s) / divisor.

    >>> _tail(1), _tail(2), _tail(3)
    (((1,), 2), ((2, 1), 4), ((8, 5, 1), 16))
    """
    top = parts - 1
    # the density at x > 0 is exp(-x) times the sum over k of these numbers times x^(top - k)
    density = [
        Fraction(factorial(top + k), factorial(top - k) * factorial(k) * 2**k * factorial(top) * 2**parts)
        for k in range(parts)
    ]
    weights = [
        sum((density[top - j] * Fraction(factorial(j), factorial(i)) for j in range(i, parts)), Fraction(0))
        for i in range(parts)
    ]
    divisor = lcm(*(weight.denominator for weight in weights))
    return tuple(int(weight * divisor) for weight in weights), divisor


@lru_cache(maxsize=1024)
def _chance(scale: Fraction, grid: Fraction, beyond: Fraction, parts: int) -> Fraction:
    """Upper bound on the probability that the noise of ``parts`` numbers adds up to ``beyond`` or more."""
    # The sampler may round the scale up; the tail is that of what it draws.
    drawn, steps = round_scale_up(scale / grid), (beyond / grid).__ceil__()
    if steps <= 0:
        return Fraction(1)
    if parts == 1:
        return short_up(exp_bracket(-steps / drawn)[1] / (1 + exp_bracket(-1 / drawn)[0]))
    # Each number's noise is below that of a real Laplace variable plus one step.
    distance = (steps - parts) / drawn
    if distance < 0:
        return Fraction(1)
    weights, divisor = _tail(parts)
    grown = sum(weight * distance**power for power, weight in enumerate(weights))
    return short_up(min(Fraction(1), exp_bracket(-distance)[1] * grown / divisor))


@lru_cache(maxsize=256)
def _limit(scale: Fraction, grid: Fraction, max_contribution: Fraction, parts: int, delta: Fraction) -> Fraction:
    """The smallest limit, to a thousandth of the scale, that a single unit passes with probability at most delta."""
    low, high = Fraction(0), scale
    while _chance(scale, grid, high, parts) > delta:
        low, high = high, 2 * high
        if high > 10**6 * scale:
            raise BadParameter("delta is too small to report any key.", fix="Use a larger delta.")
    least = max(grid, scale / 1000)
    while high - low > least:
        middle = low + ((high - low) / (2 * grid)).__ceil__() * grid
        if middle >= high:
            break
        low, high = (low, middle) if _chance(scale, grid, middle, parts) <= delta else (middle, high)
    return max_contribution + high
