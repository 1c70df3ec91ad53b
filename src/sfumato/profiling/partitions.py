"""Partition of the rows by a set of columns: exact counts of groups and of unique rows.

Columns are numbered densely first; a combination of columns is then one whole number per row, counted in a table
where that is small and by sorting where it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Ints
from sfumato.data.row_codes import row_keys, value_codes
from sfumato.kernels import kernel

CAP = 2048
"""Groups of this many rows or more are counted together; their exact size does not matter for singling out."""

_CELLS_PER_ROW = 4


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """Columns as dense whole numbers."""

    names: tuple[str, ...]
    codes: npt.NDArray[np.int32]
    """One line per column, one entry per row: the code of its value from 0. Missing is a value."""
    sizes: Ints
    """Number of distinct values of each column."""

    @property
    def rows(self) -> int:
        return int(self.codes.shape[1])


@dataclass(frozen=True, kw_only=True)
class Partition:
    """The groups that a combination of columns makes of the rows."""

    groups: int
    histogram: npt.NDArray[np.int32]
    """Number of groups by size; the last entry holds all of size :data:`CAP` and more."""

    @property
    def unique(self) -> int:
        """Rows that share their combination of values with no other row."""
        return int(self.histogram[1])

    def at_most(self) -> Ints:
        """For each g, the most groups that remain when every group is cut into no more than g: sum of min(size, g).

        Rows that are alone after adding columns with g distinct combinations cannot be more than this.
        """
        # Groups of size g or more, for g = 1, 2, ...; their running sum is the sum of min(size, g).
        at_least = self.histogram[:0:-1].cumsum()[::-1]
        return np.concatenate(([0], at_least.cumsum()))


def encode(frame: pl.DataFrame) -> Encoded:
    """Number the values of every column."""
    codes = np.empty((frame.width, frame.height), dtype=np.int32)
    sizes = np.empty(frame.width, dtype=np.int64)
    for line, series in enumerate(frame.iter_columns()):
        codes[line], distinct = value_codes(series)
        sizes[line] = len(distinct)
    return Encoded(names=tuple(frame.columns), codes=codes, sizes=sizes)


def divide(data: Encoded, columns: Sequence[int]) -> Partition:
    """The exact partition of the rows by these columns."""
    chosen = np.asarray(columns, dtype=np.int64)
    sizes = data.sizes[chosen]
    cells = 1
    for size in sizes.tolist():
        cells *= size
    if cells <= max(_CELLS_PER_ROW * data.rows, 1 << 16):
        groups, histogram = _count_in_table(data.codes, chosen, sizes, cells, CAP)
    else:
        groups, histogram = _count_in_order(np.sort(row_keys(list(data.codes[chosen]), sizes.tolist())[0]), CAP)
    return Partition(groups=int(groups), histogram=histogram.astype(np.int32))


@kernel(nogil=True)
def _count_in_table(codes, chosen, sizes, cells, cap):  # type: ignore[no-untyped-def]
    table = np.zeros(cells, dtype=np.int32)
    for row in range(codes.shape[1]):
        key = 0
        for j in range(len(chosen)):
            key = key * sizes[j] + codes[chosen[j], row]
        table[key] += 1
    histogram = np.zeros(cap + 1, dtype=np.int64)
    groups = 0
    for count in table:
        if count > 0:
            groups += 1
            histogram[min(count, cap)] += 1
    return groups, histogram


@kernel(nogil=True)
def _count_in_order(keys, cap):  # type: ignore[no-untyped-def]
    histogram = np.zeros(cap + 1, dtype=np.int64)
    groups = 0
    start = 0
    for row in range(1, len(keys) + 1):
        if row == len(keys) or keys[row] != keys[start]:
            groups += 1
            histogram[min(row - start, cap)] += 1
            start = row
    return groups, histogram
