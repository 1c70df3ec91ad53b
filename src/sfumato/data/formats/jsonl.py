"""JSON lines: one object per line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import polars as pl

from sfumato.data.format import Format, refuse_nested
from sfumato.data.formats.csv import load, refuse_foreign
from sfumato.data.table import Table
from sfumato.data.type_inference import infer
from sfumato.errors import EmptyTable, NotThatFormat


class Jsonl(Format):
    """JSON lines (.jsonl, .ndjson): one flat object per line; a key that is absent is a missing value.

    Numbers, text and true/false keep their type; columns of ISO dates and times become dates and times.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")

    def read(self, path: Path) -> Table:
        data = load(path)
        refuse_foreign(data, path.name)
        try:
            frame = pl.read_ndjson(data, infer_schema_length=None)
        except pl.exceptions.PolarsError:
            raise NotThatFormat(
                f"{path.name} is not JSON lines: each line must be one JSON object.",
                fix="Export it again.",
                path=str(path),
            ) from None
        if frame.height == 0:
            raise EmptyTable(f"{path.name} has no rows.", path=str(path))
        nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
        if nested:
            raise NotThatFormat(
                f"{path.name}: `{nested[0]}` holds lists or objects; a table has one value per cell.",
                fix="Flatten it first.",
                path=str(path),
                column=nested[0],
            )
        return Table(
            frame=infer(
                frame.with_columns(pl.col(pl.Null).cast(pl.String)), only=frozenset({"date", "datetime", "time"})
            ),
            origin="jsonl",
        )

    def cells(self, path: Path, names: Sequence[str]) -> pl.DataFrame:
        """A row per line; a line that is no object has missing cells, and a list or an object is a missing cell."""
        lines = [_object(line) for line in load(path).split(b"\n") if line.strip()]
        return pl.DataFrame(
            {name: pl.Series([_text(line.get(name)) for line in lines], dtype=pl.String) for name in names}
        )

    def write(self, table: Table, path: Path) -> None:
        refuse_nested(table, "a line of JSON")
        numbers = pl.selectors.float() | pl.selectors.decimal()
        table.frame.with_columns(numbers.cast(pl.Float64).fill_nan(None)).write_ndjson(path)


def _object(line: bytes) -> dict[str, object]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None
