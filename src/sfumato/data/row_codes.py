"""Integer codes for values and for combinations of values: the one coding that equivalence classes are built on.

Masking, measures, profiling and attacks group rows by these functions. Only :mod:`sfumato.evaluation.counts` does
not: the independent check groups rows by SQL and must share no code with what it checks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Array, Integers, Ints

Rows = npt.NDArray[np.intp]

_LARGEST_KEY = 1 << 62
_CHUNK = 1 << 22
"""Rows that are looked up at a time, which bounds the memory for intermediate results."""


def value_codes(values: pl.Series) -> tuple[Ints, pl.Series]:
    """Number the distinct values in order of first appearance: the code of each value, and the distinct values.

    A missing value is a value of its own.

    >>> codes, distinct = value_codes(pl.Series(["b", None, "a", "b"]))
    >>> codes.tolist(), distinct.to_list()
    ([0, 1, 2, 0], ['b', None, 'a'])
    """
    distinct = values.unique(maintain_order=True)
    return positions(values, distinct).to_numpy().astype(np.int64, copy=False), distinct


def sorted_codes(values: pl.Series) -> tuple[Ints, pl.Series]:
    """Number the distinct values in ascending order: the code of each value, -1 if it is missing, and the values.

    >>> codes, distinct = sorted_codes(pl.Series(["b", None, "a", "b"]))
    >>> codes.tolist(), distinct.to_list()
    ([1, -1, 0, 1], ['a', 'b'])
    """
    distinct = values.drop_nulls().unique().sort()
    return positions(values, distinct).fill_null(-1).to_numpy().astype(np.int64, copy=False), distinct


def positions(values: pl.Series, index: pl.Series) -> pl.Series:
    """The position of each value in ``index``, whose values are distinct; null if it is not there.

    >>> positions(pl.Series([5, 7, 6]), pl.Series([7, 5])).to_list()
    [1, 0, None]
    """
    if values.dtype == index.dtype and not index.null_count():
        # quicker than a join: texts by the codes of an enumeration, whole numbers of a small range by a table
        if index.dtype == pl.String:
            return values.cast(pl.Enum(index), strict=False).to_physical().cast(pl.Int64)
        whole = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
        if index.dtype in whole and len(index) and not values.null_count():
            low, high = int(index.min()), int(index.max())  # type: ignore[arg-type]
            if high - low <= 4 * (len(values) + len(index)):
                return _looked_up(values, index, low, high)
    table = pl.DataFrame({"value": index, "code": np.arange(len(index), dtype=np.int64)})
    return (
        values.alias("value")
        .to_frame()
        .join(table, on="value", how="left", nulls_equal=True, maintain_order="left")
        .get_column("code")
    )


def _looked_up(values: pl.Series, index: pl.Series, low: int, high: int) -> pl.Series:
    codes = np.full(high - low + 2, -1, dtype=np.int64)
    codes[index.to_numpy().astype(np.int64) - low] = np.arange(len(index))
    numbers, found = values.to_numpy(), np.empty(len(values), dtype=np.int64)
    for start in range(0, len(numbers), _CHUNK):
        place = numbers[start : start + _CHUNK].astype(np.int64)
        # the last place stands for all values outside the range
        place = np.where((place >= low) & (place <= high), place - low, high - low + 1)
        found[start : start + _CHUNK] = codes[place]
    series = pl.Series(found)
    return series if series.is_empty() or series.min() != -1 else series.replace(-1, None)


def row_keys(columns: Sequence[Array], sizes: Sequence[int]) -> tuple[Ints, int]:
    """One integer per row, equal for two rows exactly if all their codes are equal, and a bound above all keys.

    ``columns`` are code columns and ``sizes`` their numbers of codes. Keys are packed in mixed radix and ordered like
    the code combinations. Where the next column would exceed 64 bits, the keys so far are numbered densely first.
    """
    key = np.zeros(len(columns[0]), dtype=np.int64)
    span = 1
    for codes, size in zip(columns, sizes, strict=True):
        if span > _LARGEST_KEY // max(size, 1):
            distinct, key = np.unique(key, return_inverse=True)
            span = max(len(distinct), 1)
        key = key * size + codes
        span *= max(size, 1)
    return key, span


def number_rows(columns: Sequence[Array], sizes: Sequence[int] | None = None) -> tuple[Rows, int]:
    """Number the distinct combinations of codes in lexicographic order: the number of each row, and how many.

    >>> number, count = number_rows([np.array([1, 0, 1]), np.array([0, 5, 0])])
    >>> number.tolist(), count
    ([1, 0, 1], 2)
    """
    widths = [int(codes.max(initial=0)) + 1 for codes in columns] if sizes is None else sizes
    key, span = row_keys(columns, widths)
    if span <= 4 * len(key) + 1024:
        occurs = np.bincount(key, minlength=span) > 0
        return (np.cumsum(occurs) - 1)[key], int(occurs.sum())
    distinct, number = np.unique(key, return_inverse=True)
    return number, len(distinct)


def first_rows(number: Integers, count: int) -> Rows:
    """The first row of each number.

    >>> first_rows(np.array([1, 0, 1, 0]), 2).tolist()
    [1, 0]
    """
    first = np.zeros(count, dtype=np.intp)
    first[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    return first
