"""Exact rational numbers: 0.05 is read as 1/20, and shares of rows are computed in integers."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sfumato.errors import BadParameter

Number = int | float | str | Decimal | Fraction
_MOST_DIGITS = 400
_WRITTEN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+|/\d+)?", re.ASCII | re.IGNORECASE)
"""Digits as everybody reads them: Python also takes ``1_0`` for 10, and the digits of all scripts."""


def rational(value: Number) -> Fraction:
    """The rational number as written in decimal, not the nearest binary float.

    >>> rational(0.05), rational("1/3"), rational(2)
    (Fraction(1, 20), Fraction(1, 3), Fraction(2, 1))
    """
    if isinstance(value, bool):
        raise BadParameter("a number is needed, not true or false.")
    try:
        if isinstance(value, str) and not _WRITTEN.fullmatch(value.strip()):
            raise ValueError
        if isinstance(value, Decimal) or (isinstance(value, str) and "e" in value.lower()):
            decimal = Decimal(value)
            if decimal and not -_MOST_DIGITS < decimal.adjusted() < _MOST_DIGITS:
                raise ValueError  # the fraction of 1e999999999 or 1e-999999999 would exhaust the memory
            return Fraction(decimal) if decimal else Fraction(0)
        return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError, InvalidOperation):
        raise BadParameter("a finite number is needed, such as 0.05 or 1/3.") from None


def floor_share(share: Number, total: int) -> int:
    """The largest whole number of ``total`` that does not exceed ``share`` of it.

    >>> floor_share(0.05, 30162), floor_share(0.1, 30), floor_share(1.0, 5)
    (1508, 3, 5)
    """
    part = rational(share) * total
    return part.numerator // part.denominator
