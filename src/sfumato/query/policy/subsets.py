"""Many subsets of many people at once: one bit per person, eight to a byte, and sums read off tables.

A row of bits times a vector is a sum of one table entry per byte (the method of four Russians), so a matrix of 40,000
subsets of 10,000 people takes 50 MB and one product with it a tenth of a second.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.kernels import kernel

Bits = npt.NDArray[np.uint8]
"""Subsets by bytes; the first person is the lowest bit of the first byte."""
_ROWS = 64
"""Rows of subsets that share one sweep over the tables."""
_FEW = 8
"""So many subsets are not worth the tables, and are summed in double precision."""


def pack(masks: npt.ArrayLike) -> Bits:
    """Masks, one row per subset, as bits."""
    return np.packbits(np.atleast_2d(np.asarray(masks, np.bool_)), axis=1, bitorder="little")


def unpack(bits: Bits, people: int) -> npt.NDArray[np.bool_]:
    """Bits as masks."""
    return np.unpackbits(bits, axis=1, count=people, bitorder="little").astype(np.bool_)


def random_subsets(count: int, people: int, rng: np.random.Generator) -> Bits:
    """Subsets in which everybody is with chance one half, independently."""
    width = -(-people // 8)
    bits = np.frombuffer(rng.bytes(count * width), np.uint8).reshape(count, width).copy()
    if people % 8:
        bits[:, -1] &= np.uint8((1 << people % 8) - 1)
    return bits


@kernel()
def _tables(vector: npt.NDArray[np.float32], width: int) -> npt.NDArray[np.float32]:
    """For each byte of people and each of its 256 values, the sum of the people in it."""
    tables = np.zeros((width, 256), np.float32)
    for byte in range(width):
        for bit in range(8):
            person = byte * 8 + bit
            add = vector[person] if person < len(vector) else np.float32(0)
            for low in range(1 << bit):
                tables[byte, low | (1 << bit)] = tables[byte, low] + add
    return tables


@kernel(fastmath=True)
def _rows_times(bits: Bits, tables: npt.NDArray[np.float32], out: npt.NDArray[np.float32]) -> None:
    count, width = bits.shape
    for first in range(0, count, _ROWS):
        last = min(first + _ROWS, count)
        for byte in range(width):
            table = tables[byte]
            for row in range(first, last):
                out[row] += table[bits[row, byte]]


@kernel(fastmath=True)
def _columns_times(bits: Bits, weights: npt.NDArray[np.float32], tables: npt.NDArray[np.float32]) -> None:
    count, width = bits.shape
    for first in range(0, count, _ROWS):
        last = min(first + _ROWS, count)
        for byte in range(width):
            table = tables[byte]
            for row in range(first, last):
                table[bits[row, byte]] += weights[row]


@kernel()
def _untable(tables: npt.NDArray[np.float32], people: int) -> npt.NDArray[np.float32]:
    """For each person, the sum over all byte values that contain the person."""
    out = np.zeros(people, np.float32)
    for byte in range(tables.shape[0]):
        for bit in range(8):
            person = byte * 8 + bit
            if person < people:
                total = np.float32(0)
                for value in range(256):
                    if value >> bit & 1:
                        total += tables[byte, value]
                out[person] = total
    return out


def subset_sums(bits: Bits, vector: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The sum of the vector over each subset: exact for 0/1 vectors; else in double precision for up to eight subsets,
    in single precision for more."""
    given = np.asarray(vector)
    if given.dtype == np.bool_ or (given.dtype.kind in "iu" and given.min() >= 0 and given.max() <= 1):
        secret = pack(given.astype(np.bool_))[0]
        total = np.empty(len(bits))
        for first in range(0, len(bits), 4096):
            block = bits[first : first + 4096] & secret
            total[first : first + 4096] = np.bitwise_count(block).sum(axis=1, dtype=np.int64)
        return total
    if len(bits) <= _FEW:
        return np.asarray(unpack(bits, len(given)) @ given.astype(np.float64))
    out = np.zeros(len(bits), np.float32)
    _rows_times(bits, _tables(given.astype(np.float32), bits.shape[1]), out)
    return out.astype(np.float64)


def sum_over_subsets(bits: Bits, weights: npt.ArrayLike, people: int) -> npt.NDArray[np.float64]:
    """For each person, the sum of the weights of the subsets that contain the person, in single precision."""
    tables = np.zeros((bits.shape[1], 256), np.float32)
    _columns_times(bits, np.asarray(weights, np.float32), tables)
    return _untable(tables, people).astype(np.float64)
