"""Conversions between zero-concentrated and (epsilon, delta)-differential privacy, with directed rounding."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import log, log1p

from sfumato.dp.rational_bounds import ln_bracket, ln_up, sqrt_up
from sfumato.errors import BadParameter
from sfumato.rationals import Number, rational


def _delta_exponent(rho: float, epsilon: float, order: float) -> float:
    """ln of the delta that order ``order`` proves for rho-zCDP at epsilon."""
    return (order - 1) * (order * rho - epsilon) + (order - 1) * log1p(-1 / order) - log(order)


def _best_order(rho: float, epsilon: float) -> float:
    """The order with the smallest delta, by Newton's method on the derivative, (2a - 1)·rho - epsilon + ln(1 - 1/a).

    The derivative is increasing and concave, so that steps from below do not overshoot.
    """
    order = max((epsilon / rho + 1) / 2, 1 + 1e-9)
    for _ in range(70):
        left = epsilon - (2 * order - 1) * rho - log1p(-1 / order)
        step = left / (2 * rho + 1 / (order * (order - 1)))
        if step <= 1e-13 * order:
            break
        order += step
    return order


@lru_cache(maxsize=1024)
def epsilon_at(rho: Fraction, delta: Fraction) -> Fraction:
    """A rational epsilon such that rho-zCDP implies (epsilon, delta)-DP.

    Any order a > 1 proves epsilon = a·rho + ln((a-1)/a) + (ln(1/delta) - ln a)/(a-1) (Canonne, Kamath and Steinke 2020,
    Proposition 12). The order is searched in floats; the bound at that order is evaluated with directed rounding, so
    that an inaccurate search makes the bound looser but never wrong.

    >>> float(epsilon_at(Fraction(1, 2), Fraction(1, 10**6))) < 5.3
    True
    """
    if rho == 0:
        return Fraction(0)
    r, d = float(rho), float(delta)
    classic = rho + 2 * sqrt_up(rho * ln_up(1 / delta))
    low, high = 0.0, float(classic)
    for _ in range(60):
        middle = (low + high) / 2
        if _delta_exponent(r, middle, _best_order(r, middle)) <= log(d):
            high = middle
        else:
            low = middle
    order = Fraction(round(_best_order(r, high) * 2**20), 2**20)
    if order <= 1:
        return classic
    ratio = (order - 1) / order
    sharp = order * rho + ln_up(ratio) + (ln_up(1 / delta) - ln_bracket(order, 30)[0]) / (order - 1)
    return _round_up(max(Fraction(0), min(classic, sharp)))


def _round_up(value: Fraction, step: int = 10**15) -> Fraction:
    return Fraction(-(-value.numerator * step // value.denominator), step)


@lru_cache(maxsize=1024)
def rho_for(epsilon: Number, delta: Number) -> Fraction:
    """A rational rho, close to the largest, such that rho-zCDP implies (epsilon, delta)-DP."""
    limit, chance = rational(epsilon), rational(delta)
    if limit <= 0 or not 0 < chance < 1:
        raise BadParameter("epsilon must be above 0 and delta between 0 and 1.")
    low, high, target = 0.0, 4 * max(float(limit), 1.0), log(float(chance))
    for _ in range(60):
        middle = (low + high) / 2
        if middle > 0 and _delta_exponent(middle, float(limit), _best_order(middle, float(limit))) <= target:
            low = middle
        else:
            high = middle
    for slack in (0, 10**-12, 10**-9, 10**-6, 10**-3):
        rho = Fraction(low) * (1 - rational(slack))
        rho = Fraction(rho.numerator * 2**80 // rho.denominator, 2**80)
        if rho > 0 and epsilon_at(rho, chance) <= limit:
            return rho
    raise BadParameter("delta is too small for so small an epsilon.", fix="Use a larger epsilon or delta.")
