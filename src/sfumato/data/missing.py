"""Missing values: codes that mean "no answer", which are values in the file and missing to an analysis, and NaN."""

from __future__ import annotations

from types import MappingProxyType

import polars as pl

from sfumato.data.table import ColumnLabels, Table


def is_missing(column: pl.Series, codes: tuple[object, ...]) -> pl.Series:
    """Which values are one of the codes; a pair is a range with both ends.

    A code is compared as the column is stored. In a column of text a number is its digits, and outer spaces do not
    count; in one of dates or moments a text is a day, ``2024-12-31``. A word in a column of numbers is no value of it.

    >>> is_missing(pl.Series([7, -9, 998, None]), (-9, (997, 999))).to_list()
    [False, True, True, False]
    >>> is_missing(pl.Series(["12", " -9", "n/a"]), (-9, "n/a")).to_list()
    [False, True, True]
    """
    found = pl.repeat(False, column.len(), dtype=pl.Boolean, eager=True)
    number = column.dtype.is_numeric()
    days = column.dt.date() if isinstance(column.dtype, pl.Datetime) else column
    stored = column if number else days.cast(pl.String).str.strip_chars(" ")
    for code in codes:
        low, high = code if isinstance(code, tuple) else (code, code)
        word = isinstance(low, str)
        if number and word:
            continue
        if not number and (word or low == high):
            hit = stored == str(low).strip(" ")
        else:
            hit = (stored if number else stored.cast(pl.Float64, strict=False)).is_between(low, high)
        found |= hit.fill_null(False)
    return found


def plain_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with NaN as a missing value and -0.0 as 0.0, in every column of floats.

    Two numbers that a model takes for one must not differ in the file, and what a file cannot tell from a missing value
    must not count as one more value of a class. So this is applied wherever a table is opened and to the result of
    every masking step, before anything is judged.

    >>> plain_numbers(pl.DataFrame({"x": [-0.0, float("nan"), 1.5, None]}))["x"].to_list()
    [0.0, None, 1.5, None]
    """
    floats = [column for column in frame if column.dtype.is_float()]
    odd = [one for one in floats if one.is_nan().any() or ((one == 0) & (1.0 / one < 0)).any()]
    if not odd:
        return frame
    return frame.with_columns(one.set((one == 0).fill_null(value=False), 0.0).fill_nan(None) for one in odd)


def blank_missing(table: Table) -> Table:
    """The table with every user-defined missing code replaced by null, and the codes' declaration dropped.

    Reading keeps the codes, so that writing gives the same file; statistics over a column want them gone.
    """
    changed, labels = [], dict(table.labels)
    for name, entry in table.labels.items():
        if entry.missing:
            column = table.column(name)
            changed.append(column.set(is_missing(column, entry.missing), None))
            labels[name] = ColumnLabels(label=entry.label, value_labels=entry.value_labels, display=entry.display)
    return Table(frame=table.frame.with_columns(changed), labels=MappingProxyType(labels), origin=table.origin)
