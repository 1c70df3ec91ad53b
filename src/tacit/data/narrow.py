"""Files that know one kind of number (Excel, SPSS, SAS): whole numbers and plain dates are found again by looking."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

import polars as pl

__all__ = ["dates_from_midnights", "integers_from_floats"]

_EXACT = 2**53
"""Beyond this a 64-bit float no longer holds every whole number."""


def integers_from_floats(frame: pl.DataFrame, columns: Collection[str] | None = None) -> pl.DataFrame:
    """Float columns (all, or those named) that hold whole numbers only, as integers; NaN becomes null."""
    changed = []
    for column in frame.iter_columns():
        if not column.dtype.is_float() or (columns is not None and column.name not in columns):
            continue
        values = column.fill_nan(None)
        known = values.drop_nulls()
        if known.len() and bool(((known.floor() == known) & (known.abs() < _EXACT)).all()):
            values = values.cast(pl.Int64)
        changed.append(values)
    return frame.with_columns(changed)


def dates_from_midnights(frame: pl.DataFrame) -> pl.DataFrame:
    """Datetime columns that are midnight throughout, as dates; those on Excel's day zero, as times of day."""
    changed = []
    for column in frame.iter_columns():
        if not isinstance(column.dtype, pl.Datetime):
            continue
        known = column.drop_nulls()
        if known.len() and bool((known.dt.truncate("1d") == known).all()):
            changed.append(column.dt.date())
        elif known.len() and bool((known.dt.date() == date(1899, 12, 31)).all()):
            changed.append(column.dt.time())
        else:
            changed.append(column.cast(pl.Datetime("us", column.dtype.time_zone)))
    return frame.with_columns(changed)
