"""Vectors of integers modulo 2**128, in which masked numbers are added.

No total can leave the range -2**127 .. 2**127 - 1, so that none wraps around and no check depends on the data: a row
contributes less than 2**42 steps (:mod:`sfumato.query.plan.aggregates`), a table has less than 2**63 rows, a noise
share is below 2**64, and there are fewer than 2**16 parties, which makes less than 2**122.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from sfumato.errors import BadParameter

Residues = npt.NDArray[np.uint64]
"""Shape (n, 2): the low and the high word of each number."""
BYTES = 16
MOST_PARTIES = (1 << 16) - 1


def from_integers(values: Iterable[int]) -> Residues:
    """Integers as residues.

    >>> to_integers(from_integers([-5, 1 << 100])) == [-5, 1 << 100]
    True
    """
    return from_bytes(b"".join([(value % (1 << 128)).to_bytes(BYTES, "little") for value in values]))


def from_bytes(data: bytes) -> Residues:
    """Residues from 16 bytes each, little-endian."""
    if len(data) % BYTES:
        raise BadParameter("masked numbers have 16 bytes each.")
    return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(-1, 2)


def to_integers(values: Residues) -> list[int]:
    """The numbers between -2**127 and 2**127 - 1."""
    whole = [(int(high) << 64) | int(low) for low, high in values]
    return [value - (1 << 128) if value >> 127 else value for value in whole]


def add(one: Residues, other: Residues) -> Residues:
    total = one + other
    total[:, 1] += (total[:, 0] < one[:, 0]).astype(np.uint64)
    return total


def subtract(one: Residues, other: Residues) -> Residues:
    rest = one - other
    rest[:, 1] -= (one[:, 0] < other[:, 0]).astype(np.uint64)
    return rest
