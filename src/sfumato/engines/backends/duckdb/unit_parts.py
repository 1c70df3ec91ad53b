"""Rows of whole numbers, partitioned by unit into parts that fit the processor's cache, and stored in few bytes.

A number that fits 32 bits takes 4 bytes and any other 8; each batch decides by its own columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.kernels import kernel

_PARTS = 9
"""Rows are partitioned into two to the power of this number, unless the first batch shows that there are few."""
_SMALL_TABLE = 20_000
_MIX, _MIX_AGAIN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_LOW = np.int64((1 << 32) - 1)

_Whole = npt.NDArray[np.int64]
_Chunk = tuple[npt.NDArray[np.int32], _Whole, npt.NDArray[np.bool_]]


class UnitParts:
    """Rows by unit: the first column is the unit."""

    def __init__(self) -> None:
        self.rows = self.width = 0
        self._chunks: list[_Chunk] = []
        self._bits = 0

    def read(self, batches: Iterable[Any], most: int) -> bool:
        """Store the rows of Arrow batches. False: there are more than ``most``."""
        block = np.empty(0, np.int64)
        for batch in batches:
            self.rows += batch.num_rows
            if self.rows > most:
                return False
            self.width = batch.num_columns
            size = self.width * batch.num_rows
            block = block if block.size >= size else np.empty(size, np.int64)
            lying = block[:size].reshape(self.width, batch.num_rows)
            for into, column in zip(lying, batch.columns, strict=True):
                np.copyto(into, np.from_dlpack(column), casting="safe")  # to_numpy would load pandas
            self._bits = self._bits or (_PARTS if self.rows > _SMALL_TABLE else 1)
            short = np.array([_is_short(column) for column in lying])
            self._chunks.append((*_deal(lying, self._bits, short), short))
        return True

    def __iter__(self) -> Iterator[_Whole]:
        """The rows of each part. All rows of a unit are in one part."""
        for part in range(1 << self._bits if self._chunks else 0):
            rows = np.empty(
                (sum(int(ends[part + 1] - ends[part]) for _, ends, _ in self._chunks), self.width), np.int64
            )
            at = 0
            for words, ends, short in self._chunks:
                at = _widen(words, ends[part], ends[part + 1], short, rows, at)
            yield rows


def _is_short(column: _Whole) -> bool:
    return not len(column) or (int(column.min()) >= -(1 << 31) and int(column.max()) < 1 << 31)


@kernel()
def _deal(
    block: _Whole, bits: int, short: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int32], _Whole]:  # fmt: skip
    """Rows (the columns of ``block``) as words in the order of their units' parts, and where each part begins."""
    width, count = block.shape
    shift = np.uint64(64 - bits)
    starts = np.zeros((1 << bits) + 2, np.int64)
    for i in range(count):
        starts[np.int64((np.uint64(block[0, i]) * _MIX) >> shift) + 2] += 1
    for p in range(1 << bits):
        starts[p + 2] += starts[p + 1]
    words = np.empty((count, 2 * width - short.sum()), np.int32)
    for i in range(count):
        part = np.int64((np.uint64(block[0, i]) * _MIX) >> shift) + 1
        to = starts[part]
        starts[part] = to + 1
        at = 0
        for c in range(width):
            words[to, at] = np.int32(block[c, i])
            at += 1
            if not short[c]:
                words[to, at] = np.int32(block[c, i] >> 32)
                at += 1
    return words, starts


@kernel()
def _widen(
    words: npt.NDArray[np.int32], start: int, end: int, short: npt.NDArray[np.bool_], rows: _Whole, to: int
) -> int:  # fmt: skip
    """Write the rows ``start`` to ``end`` as whole numbers of 64 bits; returns where the next ones go."""
    for i in range(start, end):
        at = 0
        for c in range(len(short)):
            if short[c]:
                rows[to, c] = words[i, at]
                at += 1
            else:
                rows[to, c] = (np.int64(words[i, at + 1]) << 32) | (np.int64(words[i, at]) & _LOW)
                at += 2
        to += 1
    return to


@kernel()
def gather(rows: _Whole) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], int]:
    """The rows' numbers unit by unit, where each unit ends, and how many units there are."""
    count, size = len(rows), 2
    while size < 2 * count:
        size *= 2
    table = np.full(size, -1, np.int32)
    unit = np.empty(count, np.int32)
    shown = np.empty(count, np.int32)
    ends = np.zeros(count + 1, np.int32)
    units = 0
    for i in range(count):
        key = rows[i, 0]
        mixed = np.uint64(key) * _MIX_AGAIN
        slot = np.int64(mixed ^ (mixed >> _HALF)) & (size - 1)
        while table[slot] >= 0 and rows[shown[table[slot]], 0] != key:
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = units
            shown[units] = i
            units += 1
        unit[i] = table[slot]
        ends[unit[i] + 1] += 1
    for j in range(units):
        ends[j + 1] += ends[j]
    order = np.empty(count, np.int32)
    for i in range(count):
        order[ends[unit[i]]] = i
        ends[unit[i]] += 1
    return order, ends, units
