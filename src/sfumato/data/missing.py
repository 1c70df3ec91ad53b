"""Codes that mean "no answer": they are values in the file, and missing to an analysis."""

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
