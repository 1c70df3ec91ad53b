"""How the values of a whole column are written, judged at once and not one by one.

Each function takes a column of text and what it was converted to without failure. True means that every value is
written in the usual way; False means that somebody must look closer.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
import polars as pl

_TOO_LONG = 10**18
"""At most 18 digits fit 64 bits; longer ones are card numbers and the like."""


def are_whole(column: pl.Series, values: pl.Series) -> bool:
    """No spelling of a whole number is as short as the plain one, so equal sums of lengths mean equal spellings."""
    low, high = cast(int | None, values.min()), cast(int | None, values.max())
    if low is None or high is None or not -_TOO_LONG < low <= high < _TOO_LONG:
        return False
    size = values.abs() if low < 0 else values
    length = len(values) - values.null_count() + int((values < 0).sum())
    length += sum(int((size >= 10**digits).sum()) for digits in range(1, len(str(max(-low, high)))))
    return bool(column.str.len_bytes().sum() == length)


def are_numbers(column: pl.Series, values: pl.Series) -> bool:
    """Digits, signs, points and exponents as programs write them, and after a zero in front no other digit."""
    if not cast(float, values.abs().max() or 0.0) < _TOO_LONG:
        return False
    for part in column.get_chunks():
        stored = part.to_arrow()
        _, offsets, text = stored.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[stored.offset : stored.offset + len(stored) + 1]
        filled = ends[1:] > ends[:-1]
        if filled.any() and not _plainly_written(np.frombuffer(text, np.uint8), ends[:-1][filled], ends[1:][filled]):
            return False
    return True


def _plainly_written(text: npt.NDArray[np.uint8], begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> bool:
    def point_or_power(place: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        return np.asarray((text[place] == ord(".")) | (text[place] == ord("e")))

    used = text[begin[0] : end[-1]]
    first = begin + (text[begin] == ord("-"))
    if used.min() < ord("-") or used.max() > ord("9"):
        power = begin[0] + np.flatnonzero(used > ord("9"))
        if not power.size or (text[power] != ord("e")).any():
            return False
        value = np.searchsorted(end, power, side="right")
        sign = text[power + 1]
        digits = end[value] - power - 1 - ((sign == ord("+")) | (sign == ord("-")))
        # 1.5e-07: one digit before the point, an exponent of one to three digits, and no plus sign anywhere else
        usual = (digits >= 1) & (digits <= 3) & point_or_power(first[value] + 1)
        if not usual.all() or np.count_nonzero(used < ord("-")) != np.count_nonzero(sign == ord("+")):
            return False
    longer = (text[first] == ord("0")) & (first + 1 < end)
    return bool(point_or_power(first[longer] + 1).all())


def are_days(column: pl.Series, values: pl.Series) -> bool:
    """Ten characters, and none of them a sign in front."""
    length = column.str.len_bytes()
    signed = column.str.starts_with("+").any() or column.str.starts_with("-").any()
    return length.min() == length.max() == 10 and not signed
