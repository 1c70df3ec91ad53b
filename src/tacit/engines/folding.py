"""Every unit's rows brought together and its part bounded, in one sweep of compiled code.

A statement does the same with hash tables over all pairs of unit and group, which are nearly as many as there are rows.
Here rows are dealt out by unit into parts that fit the processor's cache; within a part the rows of a unit are put side
by side, its groups are added up, bounded as the statement would bound them, and added to the totals.

All sums are of 64-bit integers, and only what surely fits them is taken on (``Bounded.fits``); the one operation in
floating point, scaling down to a norm, is that of the statement. So the totals are the statement's, to the last bit.
What a unit adds to them depends on its own rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from tacit.engines.bounded import CODE_BITS, SAFE, Bounded, Cut

__all__ = ["MOST_ROWS", "fold"]

MOST_ROWS = 1 << 26
"""So many rows are taken on at most: all of them are held in memory, at 8 bytes a column."""
_PARTS = 9
"""Rows are dealt out into two to the power of so many parts."""
_NUMBER = np.int64((1 << CODE_BITS) - 1)
_UNIT, _PLACE = 0, 1
_MIX, _MIX_AGAIN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_CLIP, _MEAN = int(Cut.CLIP), int(Cut.MEAN)

_Whole = npt.NDArray[np.int64]


def fold(batches: Iterable[Any], bounded: Bounded) -> list[tuple[int, ...]] | None:
    """Group, totals and units: the statement's rows, from Arrow batches of the source. None: there are too many."""
    terms = bounded.terms
    chunks: list[tuple[_Whole, _Whole]] = []
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        if rows > MOST_ROWS:
            return None
        block = np.stack([column.to_numpy().astype(np.int64, casting="safe", copy=False) for column in batch.columns])
        chunks.append(_deal(block, _PARTS))
    column, columns = _PLACE, []
    for term in terms:
        for _ in range(term.shares):
            column += not term.every
            columns.append(-1 if term.every else column)
    limits = np.array(
        [(t.shares, t.cut, t.low, t.high, t.times, t.bound, t.rows, t.reach) for t in terms], np.int64
    ).reshape(-1, 8)  # fmt: skip
    totals = np.zeros((bounded.groups, len(columns) + 1), np.int64)
    sums = np.zeros((bounded.groups, len(columns)), np.int64)
    marks = np.zeros((3, bounded.groups), np.int64)
    first, last = bounded.ends or (-1, -1)
    units = 0
    for part in range(1 << _PARTS if rows else 0):
        own = np.concatenate([chunk[ends[part] : ends[part + 1]] for chunk, ends in chunks])
        units = _bound(own, np.array(columns, np.int64), limits, first, last, sums, marks, units, totals)
    return [(group, *totals[group].tolist()) for group in np.flatnonzero(totals[:, -1]).tolist()]


@njit(cache=True)
def _deal(block: _Whole, bits: int) -> tuple[_Whole, _Whole]:
    """Rows (the columns of ``block``) in the order of their units' parts, and where each part begins."""
    width, count = block.shape
    shift = np.uint64(64 - bits)
    starts = np.zeros((1 << bits) + 2, np.int64)
    for i in range(count):
        starts[np.int64((np.uint64(block[_UNIT, i]) * _MIX) >> shift) + 2] += 1
    for p in range(1 << bits):
        starts[p + 2] += starts[p + 1]
    dealt = np.empty((count, width), np.int64)
    for i in range(count):
        part = np.int64((np.uint64(block[_UNIT, i]) * _MIX) >> shift) + 1
        to = starts[part]
        starts[part] = to + 1
        for c in range(width):
            dealt[to, c] = block[c, i]
    return dealt, starts


@njit(cache=True)
def _gather(rows: _Whole) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], int]:
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
        key = rows[i, _UNIT]
        mixed = np.uint64(key) * _MIX_AGAIN
        slot = np.int64(mixed ^ (mixed >> _HALF)) & (size - 1)
        while table[slot] >= 0 and rows[shown[table[slot]], _UNIT] != key:
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


@njit(cache=True)
def _bound(
    rows: _Whole, columns: _Whole, limits: _Whole, first: int, last: int, sums: _Whole, marks: _Whole, before: int,
    totals: _Whole,
) -> int:  # fmt: skip
    """Add the bounded parts of all units in ``rows`` to the totals; gives how many units there have been by now."""
    order, ends, units = _gather(rows)
    owner, seen, places = marks[0], marks[1], marks[2]
    terms = len(columns)
    begin = 0
    for j in range(units):
        me = before + j + 1
        groups = 0
        for at in range(begin, ends[j]):
            i = order[at]
            g = rows[i, _PLACE] & _NUMBER
            if owner[g] != me:
                owner[g] = me
                seen[groups] = g
                places[groups] = rows[i, _PLACE]
                groups += 1
                sums[g, :] = 0
            for k in range(terms):
                sums[g, k] += 1 if columns[k] < 0 else rows[i, columns[k]]
        begin = ends[j]
        if first >= 0 and groups > first + last:
            ordered = np.sort(places[:groups])
            kept = 0
            for t in range(groups):
                if places[t] <= ordered[first - 1] or (last > 0 and places[t] >= ordered[groups - last]):
                    seen[kept] = seen[t]
                    kept += 1
            groups = kept
        for t in range(groups):
            totals[seen[t], terms] += 1
        k = 0
        for term in range(len(limits)):
            shares, times, bound = limits[term, 0], limits[term, 4], limits[term, 5]
            square = np.int64(0)
            for t in range(groups):
                _cut(sums[seen[t], k : k + shares], limits[term])
                for c in range(k, k + shares):
                    sums[seen[t], c] *= times
                    square += sums[seen[t], c] * sums[seen[t], c] if first < 0 else 0
            factor = 0.0
            if square > bound:
                factor = np.sqrt(np.float64(bound) / np.float64(square)) * SAFE
            for t in range(groups):
                for c in range(k, k + shares):
                    part = sums[seen[t], c]
                    if factor:
                        part = np.int64(np.trunc(np.float64(part) * factor))
                    totals[seen[t], c] += part
            k += shares
    return before + units


@njit(cache=True)
def _cut(own: _Whole, limit: _Whole) -> None:
    """One unit's sums of one term within one group, made to stay within what counts of it."""
    cut, low, high, rows, whole = limit[1], limit[2], limit[3], limit[6], limit[7]
    if cut == _CLIP:
        own[0] = max(min(own[0], high), low)
        return
    total = own.sum()
    if cut == _MEAN:
        if total > rows * whole:
            count = max(total // whole, 1)
            for share in range(len(own)):
                own[share] = own[share] * rows // count
        return
    kept = max(min(own[1] + low * (total // whole), rows * high), rows * low)
    own[1] = kept - low * min(total // whole, rows)
    own[0] = min(total, rows * whole) - own[1]
