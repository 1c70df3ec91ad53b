"""Codes that mean "no answer": they are values in the file, and missing to an analysis."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import polars as pl

from tacit.data.table import ColumnLabels, Table

__all__ = ["blank_missing", "is_missing"]


def is_missing(column: pl.Series, codes: tuple[Any, ...]) -> pl.Series:
    """Which values are one of the codes; a pair is a range with both ends."""
    found = pl.repeat(False, column.len(), dtype=pl.Boolean, eager=True)
    for code in codes:
        low, high = code if isinstance(code, tuple) else (code, code)
        if isinstance(low, str) == (column.dtype == pl.String) and not column.dtype.is_temporal():
            found |= column.is_between(low, high).fill_null(False)
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
