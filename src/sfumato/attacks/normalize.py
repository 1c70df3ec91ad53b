"""Normalization of values: one spelling for 7, 7.0 and "7", and text without case, accents and punctuation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.data.row_codes import sorted_codes, value_codes


def canonical(series: pl.Series) -> pl.Series:
    """The values as text in a canonical spelling; missing values stay missing.

    >>> canonical(pl.Series([7.0, 7.5])).to_list()
    ['7', '7.5']
    """
    dtype = series.dtype
    if dtype.is_float():
        whole = series.is_not_null() & (series == series.round()) & (series.abs() < 2**53)
        text = series.cast(pl.String)
        short = series.cast(pl.Int64, strict=False).cast(pl.String)
        return pl.select(pl.when(whole).then(short).otherwise(text)).to_series().alias(series.name)
    if dtype == pl.Date or dtype == pl.String:
        return series.cast(pl.String)
    if isinstance(dtype, pl.Datetime):
        day = series.dt.strftime("%Y-%m-%d")
        full = series.dt.strftime("%Y-%m-%dT%H:%M:%S%.f")
        midnight = series.dt.time() == pl.Series([0]).cast(pl.Time)[0]
        return pl.select(pl.when(midnight).then(day).otherwise(full)).to_series().alias(series.name)
    return series.cast(pl.String)


def canonical_codes(series: pl.Series) -> tuple[npt.NDArray[np.int64], pl.Series]:
    """The canonical values in ascending order, and the number of each row's value, -1 if it is missing.

    Only the distinct values are converted to text, so that millions of rows with few values need little memory.

    >>> codes, values = canonical_codes(pl.Series([7.5, None, 7.0]))
    >>> codes.tolist(), values.to_list()
    ([1, -1, 0], ['7', '7.5'])
    """
    codes, distinct = value_codes(series)
    numbers, values = sorted_codes(canonical(distinct))
    return numbers[codes], values


def folded(text: pl.Series) -> pl.Series:
    """Text without case, accents and punctuation, one space between words; missing values stay missing.

    >>> folded(pl.Series(["  Müller-Lüdenscheidt, H. "])).to_list()
    ['muller ludenscheidt h']
    """
    plain = text.str.normalize("NFKD").str.replace_all(r"\p{M}", "").str.to_lowercase()
    return plain.str.replace_all(r"[^\p{L}\p{N}]+", " ").str.strip_chars()
