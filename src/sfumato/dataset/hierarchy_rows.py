"""Helpers for hierarchies that list their leaves: convert written values to the type of a column."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from sfumato.dataset.bound_hierarchy import ROOT, BoundHierarchy
from sfumato.errors import HierarchyNotNested

Scalar = bool | int | float | str | None
"""A YAML scalar; None and "" both mean missing."""


def as_text(value: Scalar) -> str | None:
    """The text form of a written value, equal to the text form of the column's value.

    >>> as_text(True), as_text(2.0), as_text("02141"), as_text("")
    ('true', '2.0', '02141', None)
    """
    if value is None or value == "":
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def typed_leaves(texts: Sequence[str | None], dtype: pl.DataType) -> pl.Series:
    """The leaves in the column's type, or as text if some leaf cannot be converted.

    >>> typed_leaves(["1", "2"], pl.Int64()).to_list(), typed_leaves(["1", "?"], pl.Int64()).to_list()
    ([1, 2], ['1', '?'])
    """
    text = pl.Series(texts, dtype=pl.String)
    if dtype == pl.String or dtype == pl.Null:
        return text
    if dtype == pl.Boolean:
        typed = text.str.to_lowercase().replace_strict({"true": True, "false": False}, default=None)
    elif dtype == pl.Date:
        typed = text.str.to_date("%Y-%m-%d", strict=False)
    elif dtype == pl.Datetime:
        moment = text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False, time_unit="us")
        typed = moment.fill_null(text.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us"))).cast(dtype)
    elif dtype.is_integer():
        typed = text.cast(pl.Int64, strict=False).cast(dtype, strict=False)
    else:
        typed = text.cast(dtype, strict=False)
    return typed if typed.null_count() == text.null_count() else text


def bound_from_rows(column: str, values: pl.Series, rows: Sequence[Sequence[str | None]]) -> BoundHierarchy:
    """Build a hierarchy from lines (leaf, then a label per level); a root is added if the last level is not one."""
    widths = {len(row) for row in rows}
    if len(widths) != 1:
        first = next((i for i, row in enumerate(rows) if len(row) != len(rows[0])), 0)
        raise HierarchyNotNested(
            f"The hierarchy of `{column}` has "
            + (f"lines of different length (see line {first + 1})." if rows else "no lines."),
            fix="Each line holds a value and then its label at every level.",
            column=column,
            lines=(first + 1,),
        )
    leaves, *labels = (list(cells) for cells in zip(*rows, strict=True))
    if not labels or len(set(labels[-1])) > 1:
        labels.append([ROOT] * len(leaves))
    return BoundHierarchy.from_labels(column, typed_leaves(leaves, values.dtype), labels)
