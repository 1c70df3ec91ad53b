"""Random numbers of the randomizers: exact probabilities in units of 2**-32 from the operating system's entropy.

Large batches use AES-256 in counter mode with a fresh key from the operating system, as a cryptographic generator does,
if the library `cryptography` is installed.
A test may pass bytes recorded beforehand, so that the client in another language can be compared byte by byte.
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.dp.rational_bounds import exp_bracket

ONE = 1 << 32
"""Probabilities are whole numbers of 1 / ONE."""

Flags = npt.NDArray[np.bool_]

_SMALL = 1 << 16


class RandomSource(Protocol):
    """Where random bytes come from."""

    def take(self, size: int) -> bytes:
        """The next ``size`` random bytes."""


class _OsEntropy:
    """The operating system; for large draws a keyed cipher stream, which is faster, where the library for it is."""

    def take(self, size: int) -> bytes:
        if size <= _SMALL:
            return os.urandom(size)
        try:
            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
        except ImportError:
            return os.urandom(size)
        stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
        return stream.update(bytes(size))


OS_ENTROPY: RandomSource = _OsEntropy()


def chosen(chance: int, count: int, source: RandomSource) -> Flags:
    """Independent flags, each true with probability exactly ``chance`` / ONE."""
    return np.frombuffer(source.take(4 * count), dtype="<u4").astype(np.int64) < chance


def below(bound: int, count: int, source: RandomSource) -> Ints:
    """Uniform whole numbers in 0 .. bound - 1 (bound at most ONE), by rejection sampling."""
    fair = ONE // bound * bound
    accepted = np.frombuffer(source.take(4 * count), dtype="<u4").astype(np.int64)
    accepted = accepted[accepted < fair]
    while len(accepted) < count:
        more = np.frombuffer(source.take(4 * (count - len(accepted))), dtype="<u4").astype(np.int64)
        accepted = np.concatenate([accepted, more[more < fair]])
    drawn: Ints = accepted % bound
    return drawn


def exp_share(epsilon: Fraction, others: Fraction) -> int:
    """The largest chance c / ONE with c / ONE <= e**epsilon / (e**epsilon + others).

    >>> exp_share(Fraction(0), Fraction(1)) / ONE <= 0.5
    True
    """
    grown = exp_bracket(epsilon, 30)[0]
    share = grown / (grown + others)
    return min(ONE - 1, int(share * ONE))


def chance_below(chances: Ints, source: RandomSource) -> Flags:
    """One flag for each chance, in units of 1 / ONE."""
    return np.frombuffer(source.take(4 * len(chances)), dtype="<u4").astype(np.int64) < chances
