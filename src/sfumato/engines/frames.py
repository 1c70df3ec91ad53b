"""Data frames as engines read them: the type of a column never depends on a single row."""

from __future__ import annotations

from typing import Any

import polars as pl

from sfumato.errors import BadParameter

__all__ = ["as_arrow", "typed"]


def typed(source: Any) -> pl.DataFrame:
    """Any frame that supports Arrow as a Polars frame.

    Columns of Python objects, which pandas has, become text value by value, as if they came from a CSV file: a type
    guessed from all values would let one person's row change how everybody's are read.
    """
    if isinstance(source, pl.DataFrame):
        return source
    if not type(source).__module__.startswith("pandas"):
        return pl.DataFrame(source)
    columns: dict[str, pl.Series] = {}
    for place, name in enumerate(source.columns):
        if str(name) in columns:
            raise BadParameter("two columns of a frame have the same name.", fix="Rename one.")
        column = source.iloc[:, place]
        if str(column.dtype) == "object":
            texts = [None if value is None or value != value else str(value) for value in column]
            columns[str(name)] = pl.Series(texts, dtype=pl.String)
        else:
            columns[str(name)] = pl.Series(pl.from_pandas(column))
    return pl.DataFrame(columns)


def as_arrow(source: Any) -> Any:
    """The frame as an Arrow table for DuckDB. Times with a zone become UTC, because DuckDB does not read every zone."""
    import pyarrow as pa

    table = source if isinstance(source, pa.Table) else typed(source).to_arrow()
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None and field.type.unit in ("s", "ms"):
            plain = table.column(place).cast(pa.int64()).cast(pa.timestamp(field.type.unit))
            table = table.set_column(place, field.name, plain)
    return table
