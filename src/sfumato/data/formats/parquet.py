"""Apache Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from sfumato.data.format import Format
from sfumato.data.label_metadata import labels_from_json, labels_to_json
from sfumato.data.sql_quoting import quoted_text
from sfumato.data.table import Table, refuse_duplicates
from sfumato.errors import NotThatFormat


class Parquet(Format):
    """Apache Parquet: every type exact, and column labels, value labels and missing codes in its metadata.

    Files larger than memory are scanned by DuckDB. Labels are stored under the key ``sfumato`` of the file's metadata;
    other readers ignore them.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".parquet", ".pq")
    keeps: ClassVar[frozenset[str]] = frozenset({"types", "labels", "value labels", "missing codes"})
    typed: ClassVar[bool] = True
    magic: ClassVar[tuple[bytes, ...]] = (b"PAR1",)

    level: Annotated[int, Field(ge=1, le=22)] = 3
    """How hard zstd compresses: 1 is fast, 22 small."""

    def read(self, path: Path) -> Table:
        try:
            frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
            metadata = pl.read_parquet_metadata(path)
        except (pl.exceptions.PolarsError, OSError):
            raise NotThatFormat(
                f"{path.name} is a damaged or encrypted Parquet file.", fix="Export it again.", path=str(path)
            ) from None
        return Table(frame=frame, labels=labels_from_json(metadata.get("sfumato")), origin="parquet")

    def write(self, table: Table, path: Path) -> None:
        metadata = {"sfumato": labels_to_json(table.labels)} if table.labels else None
        table.frame.write_parquet(path, compression="zstd", compression_level=self.level, metadata=metadata)

    def scan(self, path: Path) -> str | None:
        refuse_duplicates(list(pl.read_parquet_schema(path)), path.name)  # DuckDB would rename one of them
        return f"read_parquet({quoted_text(path)})"
