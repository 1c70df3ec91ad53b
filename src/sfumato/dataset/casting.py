"""Cast a column to the type of its kind, and detect date formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from sfumato.data.declared import BOOLEANS
from sfumato.dataset.number_formats import read_numbers

if TYPE_CHECKING:
    from sfumato.dataset.column import Kind

_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y")
_CLOCKS = (" %H:%M:%S%.f", "T%H:%M:%S%.f", " %H:%M", "T%H:%M", "T%H:%M:%S%.fZ")
FORMATS = (*_DAYS, *(day + clock for day in _DAYS for clock in _CLOCKS))
"""Date and timestamp formats. Years have four digits; two-digit years are ambiguous."""


def read_dates(texts: pl.Series, written: str) -> pl.Series:
    """Parse texts in a format; null if a text does not match it."""
    if "%H" in written:
        moments = texts.str.to_datetime(written, strict=False, time_unit="us")
    else:
        moments = texts.str.to_date(written, strict=False).cast(pl.Datetime("us"))
    return moments.set(moments.dt.year() < 1000, None)


def date_format(texts: pl.Series, *, share: float = 1.0) -> str | None:
    """The format in which at least that share of the values are dates, or None.

    None also if day and month are ambiguous and no value decides it.

    >>> date_format(pl.Series(["31/07/1965", "01/02/1960"]))
    '%d/%m/%Y'
    >>> date_format(pl.Series(["01/02/1960"])) is None
    True
    """
    distinct = texts.drop_nulls().unique()
    if distinct.is_empty():
        return None
    most = (1 - share) * len(distinct)
    # every format has four digits in a row, and a few hundred values exclude most formats
    few = distinct.head(300)
    if few.str.contains(r"[0-9]{4}").sum() < len(few) * share / 2:
        return None
    likely = [f for f in FORMATS if read_dates(few, f).null_count() <= len(few) * (1 - share / 2)]
    read = {f: dates for f in likely if (dates := read_dates(distinct, f)).null_count() <= most}
    if not read:
        return None
    best = min(read, key=lambda f: read[f].null_count())
    rivals = [f for f in read if f != best and read[f].null_count() == read[best].null_count()]
    return best if all(read[f].equals(read[best]) for f in rivals) else None


def fit(series: pl.Series, kind: Kind) -> pl.Series:
    """Cast a column to a kind; null where a value does not fit. Nothing is rounded or truncated."""
    text = series.dtype in (pl.String, pl.Categorical) or isinstance(series.dtype, pl.Enum)
    match kind.value:
        case "category":
            return series.cast(pl.String)
        case "boolean":
            lower = series.cast(pl.String).str.to_lowercase()
            return lower.replace_strict(BOOLEANS, default=None, return_dtype=pl.Boolean)
        case "integer" if text or series.dtype.is_numeric() or series.dtype == pl.Boolean:
            if text:
                whole = series.cast(pl.String).str.strip_chars().cast(pl.Int64, strict=False)
                if whole.null_count() == series.null_count():
                    return whole
            numbers = read_numbers(series.cast(pl.String)) if text else series
            fitted = numbers.cast(pl.Int64, strict=False)
            # numbers with thousands separators are parsed as floats, which are exact for integers up to 2**53
            inexact = (numbers.abs() > 2**53) if text else pl.repeat(False, len(series), dtype=pl.Boolean, eager=True)
            return fitted.set((inexact | (fitted != numbers)).fill_null(True), None)
        case "number" if text or series.dtype.is_numeric() or series.dtype == pl.Boolean:
            return read_numbers(series.cast(pl.String).str.strip_chars()) if text else series.cast(pl.Float64)
        case "date" | "datetime":
            target = pl.Date() if kind.value == "date" else pl.Datetime("us")
            if series.dtype == pl.Datetime or series.dtype == pl.Date:
                if isinstance(series.dtype, pl.Datetime) and series.dtype.time_zone:
                    series = series.dt.replace_time_zone(None)  # keep the local date of the timestamp
                fitted = series.cast(target)
                return fitted.set((fitted != series).fill_null(True), None)
            texts = series.cast(pl.String)
            written = date_format(texts) or date_format(texts, share=0.5) if len(texts) else None
            moments = read_dates(texts, written) if written else pl.repeat(None, len(series), dtype=target, eager=True)
            fitted = moments.cast(target).alias(series.name)
            return fitted.set((fitted != moments).fill_null(True), None)
        case _:
            return pl.repeat(None, len(series), dtype=pl.Null, eager=True).alias(series.name)
