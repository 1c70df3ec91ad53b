"""Analytic Gaussian mechanism: the exact trade-off between epsilon and delta of normal noise.

Normal noise of standard deviation s on a vector with L2 sensitivity D is (epsilon, delta)-private if and only if
P(m/2 - epsilon/m) - exp(epsilon) · P(-m/2 - epsilon/m) <= delta, where m = D/s and P is the normal distribution
function (Balle and Wang 2018, arXiv 1805.06530, Theorem 8). ``squared`` is m². Searches run in floats; their result is
verified in high-precision decimals and rounded up, so that an inaccurate search makes a bound looser but never wrong.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from math import atanh, erf, erfc, exp, inf, log, sqrt
from statistics import NormalDist

from sfumato.dp.rational_bounds import exp_bracket, sqrt_up
from sfumato.dp.zcdp import epsilon_at, rho_for
from sfumato.errors import BadParameter
from sfumato.rationals import rational

_DIGITS = Context(prec=150, rounding=ROUND_HALF_EVEN, Emax=10**9, Emin=-(10**9))
_FAR = 14
"""The tail beyond this many standard deviations is below 10**-44."""
_SURE = Fraction(1, 10**60)
"""Bound on the total rounding error: at most 500 terms below 10**45 with a relative error below 10**-147 each."""
_LARGE = 90
"""From this epsilon on the trade-off of zCDP is used: floats and the tails above do not reach further."""
SMALLEST_DELTA = Fraction(1, 10**30)
"""The exact trade-off is computed for no smaller delta."""
_STEP = 1 << 80


@cache
def _root_of_two_pi() -> Decimal:
    """sqrt(2·pi), with pi by Machin's formula."""

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
    """A lower and an upper bound of the normal distribution function at ``x``."""
    if abs(x) > _FAR:
        beyond = Fraction(1, 10**44)
        return (Fraction(0), beyond) if x < 0 else (1 - beyond, Fraction(1))
    # 1/2 + sum of (-1)**n x**(2n+1) / (2**n n! (2n+1)) / sqrt(2 pi): an alternating series, decreasing for n > x²/2.
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


def normal_tail(distance: Fraction) -> Fraction:
    """An upper bound of the probability that a standard normal variable exceeds ``distance``."""
    return _normal(-distance)[1]


def normal_delta(squared: Fraction, epsilon: Fraction) -> Fraction:
    """An upper bound of the smallest delta at this epsilon."""
    if squared <= 0:
        return Fraction(0)
    m = sqrt_up(squared)  # delta increases with m
    here, there = _normal(m / 2 - epsilon / m), _normal(-m / 2 - epsilon / m)
    return min(Fraction(1), max(Fraction(0), here[1] - exp_bracket(epsilon, 60)[0] * there[0]))


def _rough_delta(m: float, epsilon: float) -> float:
    if epsilon > 700:
        return inf
    here, there = (0.5 * erfc(-(side * m / 2 - epsilon / m) / sqrt(2)) for side in (1, -1))
    return here - exp(epsilon) * there


@lru_cache(maxsize=1024)
def normal_epsilon(squared: Fraction, delta: Fraction) -> Fraction:
    """A rational epsilon, close to the smallest, at which normal noise is (epsilon, delta)-DP at a squared distance."""
    if squared <= 0:
        return Fraction(0)
    m, target = sqrt(squared), float(delta)
    low, high = 0.0, m * m / 2 + m * sqrt(2 * log(1 / target))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _rough_delta(m, middle) <= target else (middle, high)
    for slack in (0, 10**-13, 10**-11, 10**-9, 10**-6):
        epsilon = Fraction(high) * (1 + rational(slack))
        epsilon = Fraction(-(-epsilon.numerator * _STEP // epsilon.denominator), _STEP)
        if epsilon < _LARGE and normal_delta(squared, epsilon) <= delta:
            return epsilon
    return epsilon_at(squared / 2, delta)  # normal noise also satisfies zCDP


@lru_cache(maxsize=1024)
def squared_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A rational squared distance, close to the largest, at which normal noise is (epsilon, delta)-DP."""
    if epsilon <= 0 or not SMALLEST_DELTA <= delta < 1:
        raise BadParameter("epsilon must be above 0 and delta between 1e-30 and 1.")
    low, high = 0.0, 8 * (1 + sqrt(epsilon))  # at the upper end, delta is above 0.99
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _rough_delta(middle, float(epsilon)) <= float(delta) else (low, middle)
    for slack in (10**-13, 10**-11, 10**-9, 10**-6, 10**-3):
        squared = Fraction(low) ** 2 * (1 - rational(slack))
        squared = Fraction(squared.numerator * _STEP // squared.denominator, _STEP)
        if squared > 0 and normal_epsilon(squared, delta) <= epsilon:
            return squared
    return 2 * rho_for(epsilon, delta)  # normal noise also satisfies zCDP; close to exact for an epsilon above 90


@lru_cache(maxsize=4096)
def squared_of_pure(epsilon: Fraction) -> Fraction | None:
    """A squared distance, close to the smallest, at which normal noise is easier to tell apart than any pure epsilon.

    Of all epsilon-private pairs, randomized response is the easiest to tell apart. Its trade-off function has the
    corners (0, 1), (c, c) and (1, 0) with c = 1/(1 + exp(epsilon)); that of normal noise is convex and lies below it if
    it passes below the middle corner: P(-m/2) <= c (Dong, Roth, Su 2022, doi:10.1111/rssb.12454). None where epsilon is
    so large that the normal distribution function is not known that far out.

    >>> round(float(squared_of_pure(Fraction(1))), 3)
    1.518
    """
    if epsilon == 0:
        return Fraction(0)
    if epsilon > 90:
        return None
    corner = 1 / (1 + exp_bracket(epsilon, 60)[1])
    m = -2 * NormalDist().inv_cdf(float(corner))
    for slack in (10**-12, 10**-9, 10**-6, 10**-3):
        near = Fraction(m) * (1 + rational(slack)) + Fraction(1, _STEP)
        if _normal(-near / 2)[1] <= corner:
            return Fraction(-(-(near**2).numerator * _STEP // (near**2).denominator), _STEP)
    return None


def pure_within(squared: Fraction) -> Fraction:
    """An epsilon, close to the largest, for which :func:`squared_of_pure` is at most ``squared``.

    >>> round(float(pure_within(Fraction(3, 2))), 3)
    0.994
    """
    if squared <= 0:
        return Fraction(0)
    m = sqrt(squared)
    share = erf(m / sqrt(8))  # x = 2·P(m/2) - 1; epsilon is ln((1 + x) / (1 - x))
    size = 2 * atanh(share) if share < 1 else inf
    for slack in (10**-9, 10**-6, 10**-3):
        near = Fraction(size) * (1 - rational(slack)) if size < inf else Fraction(0)
        curve = squared_of_pure(near)
        if curve is not None and curve <= squared:
            return near
    return Fraction(0)
