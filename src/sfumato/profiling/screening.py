"""Estimates of unique rows for thousands of column combinations at once, on a sample of rows.

For each sampled row the whole table is searched for another row with the same values, so the result for that row is
exact; only the share over all rows is an estimate. Counting the unique rows *of a sample* would overestimate them.

A row is unique under a combination if no other row has the same values in all its columns. Such a row would also share
the rarest of these values, so only the rows with that value are compared, in growing blocks, as bit sets: one bit per
row and column. A combination is dropped at the first match, for most combinations in the first block.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sfumato.arrays import Ints
from sfumato.kernels import kernel
from sfumato.profiling.partitions import Encoded

_BLOCK = 2048
_PIECES = 40


class Screen:
    """A table with an index of the rows by column and value."""

    def __init__(self, data: Encoded) -> None:
        self.data = data
        self._by_row = np.ascontiguousarray(data.codes.T)
        # Rows by column and value: those with value v of column c are order[c, starts[c][v]:starts[c][v + 1]].
        self._offsets = np.concatenate(([0], np.cumsum(data.sizes + 1)))
        self._order = np.empty_like(data.codes)
        self._starts = np.empty(int(self._offsets[-1]), dtype=np.int64)
        for column in range(len(data.names)):
            own = self._starts[self._offsets[column] : self._offsets[column + 1]]
            _posting_lists(data.codes[column], own, self._order[column])

    def alone(self, combinations: Ints, rows: Ints) -> Ints:
        """For each combination (a line of column numbers), the number of these rows that are unique under it."""
        pieces = np.array_split(rows, min(_PIECES, len(rows)))
        total = np.zeros(len(combinations), dtype=np.int64)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for hits in pool.map(lambda piece: self._piece(combinations, piece), pieces):
                total += hits
        return total

    def _piece(self, combinations: Ints, rows: Ints) -> Ints:
        hits: Ints = _alone(
            self._by_row, self._order, self._starts, self._offsets, combinations.astype(np.int64), rows, _BLOCK
        )
        return hits


@kernel(nogil=True)
def _posting_lists(codes, starts, order):  # type: ignore[no-untyped-def]
    starts[:] = 0
    for code in codes:
        starts[code + 1] += 1
    for value in range(1, len(starts)):
        starts[value] += starts[value - 1]
    filled = starts.copy()
    for row in range(len(codes)):
        order[filled[codes[row]]] = row
        filled[codes[row]] += 1


@kernel(nogil=True)
def _alone(by_row, order, starts, offsets, combinations, rows, block):  # type: ignore[no-untyped-def]
    width = by_row.shape[1]
    count, size = combinations.shape
    hits = np.zeros(count, dtype=np.int64)
    bits = np.empty((width, block // 64), dtype=np.uint64)
    first, length = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)
    rarest = np.empty(count, dtype=np.int64)
    waiting = np.empty(count, dtype=np.int64)
    bucket = np.empty(width + 1, dtype=np.int64)
    for row in rows:
        own = by_row[row]
        for column in range(width):
            at = offsets[column] + own[column]
            first[column] = starts[at]
            length[column] = starts[at + 1] - starts[at]
        # Put the combinations in order of their rarest column.
        bucket[:] = 0
        for i in range(count):
            best = combinations[i, 0]
            for j in range(1, size):
                if length[combinations[i, j]] < length[best]:
                    best = combinations[i, j]
            rarest[i] = best
            bucket[best + 1] += 1
        for column in range(width):
            bucket[column + 1] += bucket[column]
        for i in range(count):
            waiting[bucket[rarest[i]]] = i
            bucket[rarest[i]] += 1
        for anchor in range(width):
            base = bucket[anchor - 1] if anchor > 0 else 0
            left = bucket[anchor] - base
            if left == 0:
                continue
            candidates = order[anchor, first[anchor] : first[anchor] + length[anchor]]
            total = len(candidates)
            # Neighbouring rows of a file tend to be similar: start at the row itself and wrap around.
            begin = np.searchsorted(candidates, row)
            done = 1
            step = 64
            while done < total and left > 0:
                take = min(step, total - done)
                step = min(2 * step, block)
                words = (take + 63) // 64
                bits[:, :words] = 0
                for k in range(take):
                    position = begin + done + k
                    other = by_row[candidates[position if position < total else position - total]]
                    flag = np.uint64(1) << np.uint64(k & 63)
                    word = k >> 6
                    for column in range(width):
                        if other[column] == own[column]:
                            bits[column, word] |= flag
                done += take
                kept = 0
                for w in range(left):
                    i = waiting[base + w]
                    agreed = False
                    for word in range(words):
                        common = bits[combinations[i, 0], word]
                        for j in range(1, size):
                            common &= bits[combinations[i, j], word]
                        if common != 0:
                            agreed = True
                            break
                    if not agreed:
                        waiting[base + kept] = i
                        kept += 1
                left = kept
            for w in range(left):
                hits[waiting[base + w]] += 1
    return hits
