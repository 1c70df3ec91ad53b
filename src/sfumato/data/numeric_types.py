"""Files that know one kind of number (Excel, SPSS, SAS): whole numbers and plain dates are found again by looking."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

import polars as pl

from sfumato.data.format import refuse_nested
from sfumato.data.table import Table
from sfumato.errors import WrongKind

_EXACT = 2**53
"""Beyond this a 64-bit float no longer holds every whole number."""


def as_floats(table: Table, package: str) -> pl.DataFrame:
    """The frame for a package whose numbers are all 64-bit floats; whole numbers that these would round are refused.

    NaN becomes null, moments lose their time zone (and are in UTC then), categories become text.
    """
    refuse_nested(table, package)
    changed = []
    for column in table.frame.iter_columns():
        kind = column.dtype
        if kind.is_integer():
            known = column.drop_nulls().cast(pl.Int128)
            if known.len() and bool((known.abs() > _EXACT).any()):
                raise WrongKind(
                    f"Column `{column.name}` holds whole numbers beyond 2^53, which {package} would round.",
                    fix="Make it text, or write another format.",
                    column=column.name,
                )
            changed.append(column.cast(pl.Int64))
        elif kind.is_numeric():
            changed.append(column.cast(pl.Float64).fill_nan(None))
        elif isinstance(kind, pl.Datetime) and kind.time_zone:
            changed.append(column.dt.convert_time_zone("UTC").dt.replace_time_zone(None))
        elif isinstance(kind, pl.Categorical | pl.Enum):
            changed.append(column.cast(pl.String))
    return table.frame.with_columns(changed)


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
