"""Directed rounding: rational upper and lower bounds of logarithms, exponentials and square roots.

Privacy losses are rounded up and probabilities down, never to the nearest. Python's ``decimal`` rounds ``exp`` and
``ln`` correctly, so the true value lies within one unit in the last place.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import isqrt

from sfumato.errors import BadParameter


def _context(digits: int, rounding: str) -> Context:
    return Context(prec=digits, rounding=rounding, Emax=10**12, Emin=-(10**12))


def _contexts(digits: int) -> tuple[Context, Context]:
    return _context(digits, ROUND_FLOOR), _context(digits, ROUND_CEILING)


def exp_bracket(power: Fraction, digits: int = 40) -> tuple[Fraction, Fraction]:
    """A lower and an upper bound of exp(power).

    >>> low, high = exp_bracket(Fraction(1))
    >>> low < high, round(float(low), 6)
    (True, 2.718282)
    """
    down, up = _contexts(digits)
    low = down.divide(Decimal(power.numerator), Decimal(power.denominator)).exp(down)
    high = up.divide(Decimal(power.numerator), Decimal(power.denominator)).exp(up)
    return Fraction(low.next_minus(down)), Fraction(high.next_plus(up))


_SHORT = 1 << 4096


def short_up(value: Fraction) -> Fraction:
    """An upper bound with a short denominator: a chance far below all that matters has a million digits.

    >>> short_up(Fraction(1, 3)), short_up(Fraction(1, 10**2000)) == Fraction(1, 1 << 4096)
    (Fraction(1, 3), True)
    """
    if value.denominator <= _SHORT:
        return value
    return Fraction(-(-value.numerator * _SHORT // value.denominator), _SHORT)


def ln_bracket(value: Fraction, digits: int = 40) -> tuple[Fraction, Fraction]:
    """A lower and an upper bound of the natural logarithm of ``value``."""
    if value <= 0:
        raise BadParameter("a logarithm needs a number above 0.")
    if value == 1:
        return Fraction(0), Fraction(0)
    down, up = _contexts(digits)
    low = down.divide(Decimal(value.numerator), Decimal(value.denominator)).ln(down)
    high = up.divide(Decimal(value.numerator), Decimal(value.denominator)).ln(up)
    return Fraction(low.next_minus(down)), Fraction(high.next_plus(up))


def ln_up(value: Fraction) -> Fraction:
    """An upper bound of ln(value), to 30 digits."""
    return ln_bracket(value, 30)[1]


def sqrt_up(value: Fraction) -> Fraction:
    """An upper bound of the square root; exact for squares of rationals.

    >>> sqrt_up(Fraction(9, 4)), sqrt_up(Fraction(2)) ** 2 >= 2
    (Fraction(3, 2), True)
    """
    if value < 0:
        raise BadParameter("a square root needs a number of at least 0.")
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    scale = 1 << 96
    root = isqrt(value.numerator * scale * scale // value.denominator) + 1
    return Fraction(root, scale)
