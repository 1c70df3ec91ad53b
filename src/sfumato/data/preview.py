"""A part of a large table for a first look: its first rows, and others spread evenly over the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.arrays import Array
from sfumato.data.format import format_for
from sfumato.data.formats.csv import Csv
from sfumato.data.formats.database import Database
from sfumato.data.formats.parquet import Parquet
from sfumato.data.label_metadata import labels_from_json
from sfumato.data.read_write import read, require_file
from sfumato.data.scan import FileScan, scan, size_hint
from sfumato.data.table import Table
from sfumato.data.url import file_and_options, is_url
from sfumato.errors import NotThatFormat


@dataclass(frozen=True, kw_only=True)
class Preview:
    """A table, or some rows of it."""

    table: Table
    rows: int
    """Rows of the whole table."""

    @property
    def partial(self) -> bool:
        return self.table.rows < self.rows


def preview(source: object, *, most: int, whole: bool | None = None, **options: Any) -> Preview:
    """At most about ``most`` rows of a table; all of them if it has no more.

    Half are the first rows, in which those that belong together (a household, a stay) still stand together. The others
    are every n-th of the rest. A file that does not fit into memory (or any, if not ``whole``) is passed through piece
    by piece and never held; CSV, Parquet and DuckDB files can be, and kinds of CSV columns are still those of all rows.
    ``options`` are those of the format, a delimiter for example.
    """
    found = _scanned(source, whole, options) if isinstance(source, str | Path) else None
    if found is not None:
        rows = found.count()
        if rows > most:
            return Preview(table=_read_part(found, rows, most), rows=rows)
    table = read(source, **options)
    if table.rows <= most:
        return Preview(table=table, rows=table.rows)
    return Preview(table=table.with_frame(table.frame[_chosen(table.rows, most)]), rows=table.rows)


def _chosen(rows: int, most: int) -> Array:
    """Numbers of the rows to look at."""
    first, step = _plan(rows, most)
    return np.concatenate([np.arange(first), np.arange(first, rows, step)])


def _plan(rows: int, most: int) -> tuple[int, int]:
    """How many first rows, and the distance between the others."""
    first = most // 2
    return first, -(-(rows - first) // (most - first))


def _scanned(source: str | Path, whole: bool | None, options: Mapping[str, Any]) -> FileScan | None:
    """The file ready to be passed through, if it must be and can be."""
    if is_url(str(source)) or str(source) == "-":
        return None
    name, own = file_and_options(source)
    path = Path(name)
    if path.is_dir():
        return None  # a folder of texts, or none: reading it tells
    require_file(path)
    if format_for(path) not in (Csv, Parquet, Database) or (size_hint(path).fits if whole is None else whole):
        return None
    try:
        return scan(path, **{**own, **options})
    except NotThatFormat:
        return None  # reading it whole either works or says what is wrong


def _read_part(found: FileScan, whole: int, most: int) -> Table:
    first, step = _plan(whole, most)
    number, taken = "row_number", {name.lower() for name in found.columns}  # DuckDB's names have no case
    while number in taken:
        number += "_"
    statement = (
        f"SELECT * EXCLUDE ({number}) FROM (SELECT *, row_number() OVER () AS {number} FROM {found.expression}) "
        f"WHERE {number} <= {first} OR ({number} - {first} - 1) % {step} = 0"
    )
    with found.connect() as connection:
        frame = pl.DataFrame(connection.sql(statement).to_arrow_table())
    frame = frame.with_columns(pl.selectors.datetime(time_zone="*").dt.convert_time_zone("UTC"))
    labels = {}
    if found.path.suffix.lower() in Parquet.suffixes:
        labels = labels_from_json(pl.read_parquet_metadata(found.path).get("sfumato"))
    return Table(frame=frame, labels=labels, origin=format_for(found.path).part_name())
