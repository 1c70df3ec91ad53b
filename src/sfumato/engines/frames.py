"""Data frames as engines read them: the type of a column never depends on a single row."""

from __future__ import annotations

from typing import Any

from sfumato.data.declared import frame_cells

__all__ = ["as_arrow"]


def as_arrow(source: Any) -> Any:
    """The frame as an Arrow table for DuckDB. Times with a zone become UTC, because DuckDB does not read every zone."""
    import pyarrow as pa

    table = source if isinstance(source, pa.Table) else frame_cells(source).to_arrow()
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None and field.type.unit in ("s", "ms"):
            plain = table.column(place).cast(pa.int64()).cast(pa.timestamp(field.type.unit))
            table = table.set_column(place, field.name, plain)
    return table
