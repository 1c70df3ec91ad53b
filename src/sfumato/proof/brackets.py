"""Rational lower and upper bounds of exp, ln, square roots and the normal distribution function.

Numbers are whole multiples of 2**-320. Every function returns (low, high) with the true value between them.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt, log

_ONE = 1 << 320
_NEAR = Fraction(1, 1 << 240)
"""Relative error of exp and absolute error of the normal distribution function, at most: see the functions."""
_FAR = 18
"""1 - Phi(18) is below 10**-72."""


def sqrt(value: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of the square root, 2**-320 apart.

    >>> low, high = sqrt(Fraction(2))
    >>> low**2 <= 2 <= high**2
    True
    """
    root = isqrt(value.numerator * _ONE * _ONE // value.denominator)
    return Fraction(root, _ONE), Fraction(root + 1, _ONE)


@lru_cache(maxsize=4096)
def exp(power: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of e**power, for powers up to 100,000 in size.

    The series runs at power / 2**k below 2**-10: 32 terms leave less than 2**-320, and each of them is cut by less than
    2**-320. Squaring k < 28 times doubles the relative error each time: it stays below 2**-280.
    """
    if abs(power) > 100_000:
        raise OverflowError("exp of so large a number is not computed")
    if power < 0:
        low, high = exp(-power)
        return 1 / high, 1 / low
    halvings = max(0, int(power).bit_length() + 10)
    x = power.numerator * _ONE // (power.denominator << halvings)
    term, total = _ONE, _ONE
    for n in range(1, 33):
        term = term * x // (n * _ONE)
        total += term
    for _ in range(halvings):
        total = total * total // _ONE
    value = Fraction(total, _ONE)
    return value * (1 - _NEAR), value * (1 + _NEAR)


@lru_cache(maxsize=4096)
def ln(value: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of the natural logarithm: Halley's steps from a float, verified by :func:`exp`."""
    if value <= 0:
        raise ValueError("a logarithm needs a number above 0")
    near = Fraction(log(value.numerator) - log(value.denominator))
    for _ in range(3):
        there = exp(near)[0]
        near = Fraction(int((near + 2 * (value - there) / (value + there)) * _ONE), _ONE)
    margin = Fraction(1, 1 << 200)
    low, high = near - margin, near + margin
    if not exp(low)[1] <= value <= exp(high)[0]:
        raise ArithmeticError("a logarithm was not computed")
    return low, high


def _arctan(inverse: int) -> int:
    """arctan(1 / inverse) in multiples of 2**-320, by its series."""
    term, total, n = _ONE // inverse, 0, 0
    while term:
        total += term // (2 * n + 1) * (-1) ** n
        term, n = term // (inverse * inverse), n + 1
    return total


_PI = Fraction(16 * _arctan(5) - 4 * _arctan(239), _ONE)
"""Machin's formula; off by less than 2**-300."""


@lru_cache(maxsize=4096)
def normal(x: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of the distribution function Phi of the standard normal distribution.

    Phi(x) = 1/2 + phi(x) · (x + x³/3 + x⁵/(3·5) + x⁷/(3·5·7) + ...) for x > 0, whose terms are all positive. Each of
    at most 2,000 terms is cut by less than 2**-320; phi(x) < 1 and its factors are known to 2**-240.
    """
    if x < 0:
        low, high = normal(-x)
        return 1 - high, 1 - low
    if x > _FAR:
        return 1 - Fraction(1, 10**72), Fraction(1)
    z = x.numerator * _ONE // x.denominator
    square = z * z // _ONE
    term, total, n = z, 0, 0
    while term:
        total += term
        n += 1
        term = term * square // ((2 * n + 1) * _ONE)
    density = exp(-(x * x) / 2)[0] / sqrt(2 * _PI)[1]
    value = Fraction(1, 2) + density * Fraction(total, _ONE)
    margin = 8 * _NEAR
    return max(Fraction(0), value - margin), min(Fraction(1), value + margin)
