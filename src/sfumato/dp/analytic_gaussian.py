"""The exact privacy of normal noise: which (epsilon, delta) a squared distance, in standard deviations, costs.

Normal noise of standard deviation s on a vector that one unit moves by at most D in L2 norm is (epsilon, delta)-private
if and only if P(m/2 - epsilon/m) - exp(epsilon) · P(-m/2 - epsilon/m) <= delta, where m = D/s and P is the normal
distribution function (Balle and Wang 2018, arXiv 1805.06530, Theorem 8). ``squared`` is m². Searches are made in
floats; what they find is then evaluated in decimals with far more digits than it needs and rounded up, so that a poor
search costs tightness and never truth.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from math import erfc, exp, inf, log, sqrt

from sfumato.dp.loss import epsilon_at
from sfumato.dp.rational_bounds import exp_bracket, sqrt_up
from sfumato.errors import BadParameter
from sfumato.rationals import rational

__all__ = ["normal_delta", "normal_epsilon", "squared_for"]

_DIGITS = Context(prec=150, rounding=ROUND_HALF_EVEN, Emax=10**9, Emin=-(10**9))
_FAR = 14
"""Beyond so many standard deviations lies less than 10**-44."""
_SURE = Fraction(1, 10**60)
"""More than all roundings together: at most 500 terms of less than 10**45, each off by less than 10**-147 of itself."""
_SMALLEST = Fraction(1, 10**30)
_STEP = 1 << 80


@cache
def _root_of_two_pi() -> Decimal:
    """By Machin's formula for pi."""

    def arctan(inverse: int) -> Decimal:
        term, total, n = _DIGITS.divide(Decimal(1), Decimal(inverse)), Decimal(0), 0
        while term > Decimal("1e-155"):
            part = _DIGITS.divide(term, Decimal(2 * n + 1))
            total = _DIGITS.add(total, part if n % 2 == 0 else part.copy_negate())
            term, n = _DIGITS.divide(term, Decimal(inverse * inverse)), n + 1
        return total

    pi = _DIGITS.subtract(_DIGITS.multiply(Decimal(16), arctan(5)), _DIGITS.multiply(Decimal(4), arctan(239)))
    return _DIGITS.sqrt(_DIGITS.multiply(Decimal(2), pi))


def _normal(x: Fraction) -> tuple[Fraction, Fraction]:
    """Two rationals around the normal distribution function at ``x``."""
    if abs(x) > _FAR:
        beyond = Fraction(1, 10**44)
        return (Fraction(0), beyond) if x < 0 else (1 - beyond, Fraction(1))
    # 1/2 + sum of (-1)**n x**(2n+1) / (2**n n! (2n+1)) / sqrt(2 pi): the terms alternate, and fall once n > x²/2.
    z = _DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))
    half = _DIGITS.divide(_DIGITS.multiply(z, z), Decimal(2))
    power, total, n = z, Decimal(0), 0
    while n <= half or power.copy_abs() > Decimal("1e-80"):
        part = _DIGITS.divide(power, Decimal(2 * n + 1))
        total = _DIGITS.add(total, part if n % 2 == 0 else part.copy_negate())
        n += 1
        power = _DIGITS.divide(_DIGITS.multiply(power, half), Decimal(n))
    middle = Fraction(1, 2) + Fraction(_DIGITS.divide(total, _root_of_two_pi()))
    return max(Fraction(0), middle - _SURE), min(Fraction(1), middle + _SURE)


def normal_delta(squared: Fraction, epsilon: Fraction) -> Fraction:
    """A rational at or just above the smallest delta at this epsilon."""
    if squared <= 0:
        return Fraction(0)
    m = sqrt_up(squared)  # delta grows with it
    here, there = _normal(m / 2 - epsilon / m), _normal(-m / 2 - epsilon / m)
    return min(Fraction(1), max(Fraction(0), here[1] - exp_bracket(epsilon, 60)[0] * there[0]))


def _rough_delta(m: float, epsilon: float) -> float:
    if epsilon > 700:
        return inf
    here, there = (0.5 * erfc(-(side * m / 2 - epsilon / m) / sqrt(2)) for side in (1, -1))
    return here - exp(epsilon) * there


@lru_cache(maxsize=1024)
def normal_epsilon(squared: Fraction, delta: Fraction) -> Fraction:
    """A rational epsilon, as small as found, that normal noise at this squared distance keeps with this delta."""
    if squared <= 0:
        return Fraction(0)
    m, wanted = sqrt(squared), float(delta)
    low, high = 0.0, m * m / 2 + m * sqrt(2 * log(1 / wanted))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _rough_delta(m, middle) <= wanted else (middle, high)
    for slack in (0, 10**-13, 10**-11, 10**-9, 10**-6):
        found = Fraction(high) * (1 + rational(slack))
        found = Fraction(-(-found.numerator * _STEP // found.denominator), _STEP)
        if normal_delta(squared, found) <= delta:
            return found
    return epsilon_at(squared / 2, delta)  # normal noise is concentrated, too


@lru_cache(maxsize=1024)
def squared_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A rational squared distance, as large as found, that normal noise hides at this epsilon and delta."""
    if epsilon <= 0 or not _SMALLEST <= delta < 1:
        raise BadParameter("epsilon must be above 0 and delta between 1e-30 and 1.")
    low, high = 0.0, 8 * (1 + sqrt(epsilon))  # at the end of it, delta is above 0.99
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _rough_delta(middle, float(epsilon)) <= float(delta) else (low, middle)
    for slack in (10**-13, 10**-11, 10**-9, 10**-6, 10**-3):
        found = Fraction(low) ** 2 * (1 - rational(slack))
        found = Fraction(found.numerator * _STEP // found.denominator, _STEP)
        if found > 0 and normal_epsilon(found, delta) <= epsilon:
            return found
    raise BadParameter("delta is too small for so small an epsilon.", fix="Use a larger epsilon or delta.")
