"""Normalization of values: one spelling for 7, 7.0 and "7", and text without case, accents and punctuation."""

from __future__ import annotations

import polars as pl

__all__ = ["canonical", "folded"]


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


def folded(text: pl.Series) -> pl.Series:
    """Text without case, accents and punctuation, one space between words; missing values stay missing.

    >>> folded(pl.Series(["  Müller-Lüdenscheidt, H. "])).to_list()
    ['muller ludenscheidt h']
    """
    plain = text.str.normalize("NFKD").str.replace_all(r"\p{M}", "").str.to_lowercase()
    return plain.str.replace_all(r"[^\p{L}\p{N}]+", " ").str.strip_chars()
