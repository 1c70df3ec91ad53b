"""Strongly universal hashing by multiply-shift, and Walsh-Hadamard transforms, compiled."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.kernels import kernel

Words = npt.NDArray[np.uint64]


def salted_functions(salt: str, count: int) -> tuple[Words, Words]:
    """Multipliers and offsets of ``count`` public hash functions, the same for every device that knows the salt."""
    drawn = hashlib.shake_256(salt.encode()).digest(16 * count)
    words = np.frombuffer(drawn, dtype="<u8").astype(np.uint64)
    return words[:count], words[count:]


@kernel(nogil=True)
def buckets_of(multipliers: Words, offsets: Words, keys: Words, buckets: int) -> Ints:
    """Bucket of each key under the function of the same position.

    (a x + b mod 2**64) >> 32 is strongly universal for 32-bit keys (Dietzfelbinger 1996); it is scaled to the buckets.
    """
    out = np.empty(len(keys), dtype=np.int64)
    for i in range(len(keys)):
        high = (multipliers[i] * keys[i] + offsets[i]) >> np.uint64(32)
        out[i] = np.int64((high * np.uint64(buckets)) >> np.uint64(32))
    return out


@kernel(nogil=True)
def count_matches(multipliers: Words, offsets: Words, reported: Ints, keys: Words, buckets: int) -> Ints:
    """For each key, how many reports name the bucket that their own hash function gives the key."""
    out = np.zeros(len(keys), dtype=np.int64)
    for i in range(len(reported)):
        a, b, bucket = multipliers[i], offsets[i], np.uint64(reported[i])
        for j in range(len(keys)):
            high = (a * keys[j] + b) >> np.uint64(32)
            out[j] += np.int64(((high * np.uint64(buckets)) >> np.uint64(32)) == bucket)
    return out


def hadamard_sign(rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> Ints:
    """0 where the Hadamard matrix holds +1, 1 where it holds -1: the parity of the common bits."""
    parity: Ints = (np.bitwise_count((rows & columns).astype(np.uint64)) & 1).astype(np.int64)
    return parity


@kernel(nogil=True)
def walsh_hadamard(values: npt.NDArray[np.float64]) -> None:
    """Multiply by the Hadamard matrix in place; the length is a power of two."""
    size, half = len(values), 1
    while half < size:
        for start in range(0, size, 2 * half):
            for i in range(start, start + half):
                a, b = values[i], values[i + half]
                values[i], values[i + half] = a + b, a - b
        half *= 2
