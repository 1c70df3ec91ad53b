"""Arithmetic modulo the prime 2**61 - 1, on NumPy arrays: the numbers that parties compute on in shares.

No operation branches on a value, so that running times do not depend on data.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Elements = npt.NDArray[np.uint64]
"""Numbers 0 .. 2**61 - 2."""
PRIME = (1 << 61) - 1
_P = np.uint64(PRIME)
_61, _32, _29, _3 = (np.uint64(shift) for shift in (61, 32, 29, 3))
_LOW32, _LOW29 = np.uint64((1 << 32) - 1), np.uint64((1 << 29) - 1)


def _reduced(values: Elements) -> Elements:
    """Any 64 bits as the element that they are modulo the prime."""
    # 2**61 is 1 modulo the prime. Below 2**64, folded <= P + 7 < 2 P, so that one subtraction is enough.
    folded = (values & _P) + (values >> _61)
    return np.minimum(folded, folded - _P)  # what is below the prime wraps around to a larger number


def add(one: Elements, other: Elements) -> Elements:
    # One is below P and the other at most P (subtract): the total is below 2 P, and at most one P is in it.
    total: Elements = one + other
    least: Elements = np.minimum(total, total - _P)
    return least


def subtract(one: Elements, other: Elements) -> Elements:
    return add(one, _P - other)


def multiply(one: Elements, other: Elements | np.uint64) -> Elements:
    """Products, from halves of 32 and 29 bits.

    >>> int(multiply(np.array([PRIME - 2], np.uint64), np.array([PRIME - 3], np.uint64))[0])
    6
    """
    # Elements are below 2**61: high < 2**29, low < 2**32, so middle < 2**62 and bottom < 2**64. The summands of the
    # result are below 2**61, 2**33, 2**61, 2**61 and 8, together below 2**63: nothing is lost.
    high, low = one >> _32, one & _LOW32
    high2, low2 = other >> _32, other & _LOW32
    middle = high * low2 + low * high2
    bottom = low * low2
    total = ((high * high2) << _3) + (middle >> _29) + ((middle & _LOW29) << _32)  # 2**64 is 8, and 2**61 is 1
    return _reduced(total + (bottom & _P) + (bottom >> _61))


def scaled(values: Elements, factor: int) -> Elements:
    """Products with one number; small ones and their negatives are cheaper."""
    if factor < 8:
        return values if factor == 1 else _reduced(values * np.uint64(factor))
    if PRIME - factor < 8:
        return _reduced(_P - scaled(values, PRIME - factor))
    return multiply(values, np.uint64(factor))


def from_bits(bits: Elements) -> Elements:
    """The sums over the last axis of elements times 1, 2, 4 and so on, up to 61 of them.

    >>> int(from_bits(np.array([[1, 0, 1]], np.uint64))[0])
    5
    """
    # Rotations need places below 61. The sums of up to 61 halves of 32 and 29 bits are below 2**38 and 2**35.
    places = np.arange(bits.shape[-1], dtype=np.uint64)
    turned = ((bits << places) & _P) | (bits >> (_61 - places))  # a product with a power of two is a rotation
    low, high = (turned & _LOW32).sum(axis=-1), (turned >> _32).sum(axis=-1)
    return add(_reduced(low), _reduced((high >> _29) + ((high & _LOW29) << _32)))


def uniform(*shape: int) -> Elements:
    """Uniform numbers from the operating system; the value 0 is likelier than others by 2**-61.

    The statistical distance of a number from a uniform one is below 2**-61. For uniform numbers, the view of any t
    parties is independent of the secrets (Ben-Or, Goldwasser and Wigderson 1988, doi:10.1145/62212.62213); for n
    numbers drawn here, it is so up to a statistical distance of n times 2**-61.
    """
    count = int(np.prod(shape))
    drawn = np.frombuffer(os.urandom(8 * count), np.uint64).reshape(shape) & _P
    return np.where(drawn == _P, np.uint64(0), drawn)


def from_signed(values: npt.ArrayLike) -> Elements:
    """Whole numbers between -2**60 + 1 and 2**60 - 1 as elements."""
    whole = np.asarray(values, np.int64)
    return np.where(whole < 0, whole + np.int64(PRIME), whole).astype(np.uint64)


def to_signed(values: Elements) -> npt.NDArray[np.int64]:
    """The inverse of :func:`from_signed`.

    >>> to_signed(from_signed([-7, 0, 5])).tolist()
    [-7, 0, 5]
    """
    whole = values.astype(np.int64)
    return np.where(whole >= 1 << 60, whole - np.int64(PRIME), whole)


def interpolation_weights(places: Sequence[int], at: int = 0) -> list[int]:
    """Lagrange weights: the value at ``at`` of a polynomial is the weighted sum of its values at ``places``."""
    weights = []
    for place in places:
        weight = 1
        for other in places:
            if other != place:
                weight = weight * (at - other) * pow(place - other, -1, PRIME) % PRIME
        weights.append(weight)
    return weights


def weighted_sum(weights: Sequence[int], parts: Sequence[Elements]) -> Elements:
    total = np.zeros_like(parts[0])
    for weight, part in zip(weights, parts, strict=True):
        total = add(total, scaled(part, weight))
    return total
