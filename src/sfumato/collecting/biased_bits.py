"""Rows of independent biased bits, 64 at a time.

Each lane of a word compares a uniform number, bit by bit from the most significant one, with the probability. A word is
done when all its lanes are decided, after about eight random words instead of 32.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.collecting.random_source import RandomSource
from sfumato.kernels import kernel

Words = npt.NDArray[np.uint64]
_DIGITS = 32


@kernel(nogil=True)
def _fill(out: Words, start: int, chance: int, random: Words) -> int:
    """Fill words from ``start`` on until the random words may not suffice; returns the first word not filled."""
    used = 0
    position = start
    while position < len(out) and used + 32 <= len(random):
        below, open_lanes = np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)
        for digit in range(31, -1, -1):
            lanes = random[used]
            used += 1
            if (chance >> digit) & 1:
                below |= open_lanes & ~lanes
                open_lanes &= lanes
            else:
                open_lanes &= ~lanes
            if open_lanes == np.uint64(0):
                break
        out[position] = below
        position += 1
    return position


def biased_rows(chance: int, rows: int, bits: int, source: RandomSource) -> npt.NDArray[np.uint8]:
    """``rows`` packed rows of ``bits`` flags (the first flag is the lowest bit), each true with ``chance`` / 2**32."""
    words_per_row = -(-bits // 64)
    out = np.zeros(rows * words_per_row, dtype=np.uint64)
    filled = 0
    while filled < len(out):
        left = len(out) - filled
        random = np.frombuffer(source.take(8 * (_DIGITS + 9 * (left - 1))), dtype="<u8").astype(np.uint64, copy=False)
        filled = _fill(out, filled, chance, random)
    packed = out.astype("<u8", copy=False).view(np.uint8).reshape(rows, 8 * words_per_row)
    return _without_tail(packed, bits)


def _without_tail(packed: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.uint8]:
    kept = np.ascontiguousarray(packed[:, : -(-bits // 8)])
    if bits % 8:
        kept[:, -1] &= np.uint8((1 << bits % 8) - 1)
    return kept


@kernel(nogil=True)
def _column_sums(packed: npt.NDArray[np.uint8], bits: int) -> Ints:
    """Sum each bit position over at most 255 rows at a time: a byte spreads into the eight bytes of one word."""
    columns = packed.shape[1]
    spread = np.zeros(256, dtype=np.uint64)
    for byte in range(256):
        for bit in range(8):
            if (byte >> bit) & 1:
                spread[byte] |= np.uint64(1) << np.uint64(8 * bit)
    out = np.zeros(8 * columns, dtype=np.int64)
    lanes = np.zeros(columns, dtype=np.uint64)
    for first in range(0, packed.shape[0], 255):
        last = min(first + 255, packed.shape[0])
        lanes[:] = 0
        for i in range(first, last):
            for j in range(columns):
                lanes[j] += spread[packed[i, j]]
        for j in range(columns):
            for bit in range(8):
                out[8 * j + bit] += np.int64((lanes[j] >> np.uint64(8 * bit)) & np.uint64(255))
    return out[:bits]


def column_sums(packed: npt.NDArray[np.uint8], bits: int) -> Ints:
    """How many rows have each bit set."""
    sums: Ints = _column_sums(np.ascontiguousarray(packed), bits)
    return sums
