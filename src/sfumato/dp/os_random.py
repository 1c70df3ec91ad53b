"""Random numbers from the operating system. There is no seed: noise that can be repeated can be subtracted."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints

Words = npt.NDArray[np.uint64]


def words(count: int) -> Words:
    """Independent, uniform 64-bit words."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def bits(count: int) -> npt.NDArray[np.bool_]:
    """Independent fair coin flips."""
    packed = np.frombuffer(os.urandom((count + 7) // 8), dtype=np.uint8)
    return np.unpackbits(packed, count=count).view(np.bool_)


def below(bound: int, count: int) -> Ints:
    """Uniform integers in 0 .. bound - 1 (bound at most 2**62), by rejection sampling."""
    if not 1 <= bound <= 1 << 62:
        raise ValueError("the bound must lie in 1 .. 2**62")
    if bound & (bound - 1) == 0:
        return (words(count) & np.uint64(bound - 1)).astype(np.int64)
    fair = np.uint64((1 << 64) // bound * bound - 1)
    accepted = words(count)
    accepted = accepted[accepted <= fair]
    while len(accepted) < count:
        more = words(count - len(accepted) + 16)
        accepted = np.concatenate([accepted, more[more <= fair]])
    return (accepted[:count] % np.uint64(bound)).astype(np.int64)


def below_each(bounds: Ints) -> Ints:
    """One uniform integer in 0 .. bound - 1 for each bound (1 .. 2**63 - 1), by rejection sampling."""
    if len(bounds) and int(bounds.min()) < 1:
        raise ValueError("a bound must be at least 1")
    sizes = bounds.astype(np.uint64)
    top = np.uint64(2**64 - 1)
    fair = top - (top % sizes + np.uint64(1)) % sizes
    drawn = words(len(sizes)).copy()
    unfair = np.flatnonzero(drawn > fair)
    while len(unfair):
        drawn[unfair] = words(len(unfair))
        unfair = unfair[drawn[unfair] > fair[unfair]]
    return (drawn % sizes).astype(np.int64)


def below_big(bound: int) -> int:
    """One uniform integer in 0 .. bound - 1 for a bound of any size."""
    width = bound.bit_length()
    while True:
        drawn = int.from_bytes(os.urandom((width + 7) // 8), "little") & ((1 << width) - 1)
        if drawn < bound:
            return drawn
