"""Releases as checks see them: tables in memory, and files in an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import Data
from sfumato.evaluation.check import Rows, Subject
from sfumato.masking.out_of_core.stored_table import ROW, StoredTable
from sfumato.release.class_counts import CannotCheck

__all__ = ["FileSubject", "TableSubject"]

_SAMPLED = 1_000_000
"""The most rows of a file of which all columns are loaded at once. A relation between columns that holds in all rows
holds in these, too."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TableSubject(Subject):
    """A release in memory."""

    table: Table
    original: Data | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.table.columns)

    @property
    def original_columns(self) -> tuple[str, ...] | None:
        return None if self.original is None else tuple(self.original.table.columns)

    def released(self, names: Sequence[str], rows: Rows | None = None) -> pl.DataFrame:
        return _some(self.table.frame, names, rows)

    def before(self, names: Sequence[str], rows: Rows | None = None) -> pl.DataFrame:
        assert self.original is not None
        return _some(self.original.table.frame, names, rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class FileSubject(Subject):
    """A released file of any size in an engine, with the file that it was made from. Both have numbered rows."""

    file: StoredTable
    source: StoredTable

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.file.cells)

    @property
    def original_columns(self) -> tuple[str, ...]:
        return tuple(self.source.cells)

    @cached_property
    def _rows_in_memory(self) -> int:
        width = sum(table.bytes_of(tuple(table.cells)) / max(table.rows, 1) for table in (self.file, self.source))
        return min(_SAMPLED, int(self.file.workspace.memory / 4 / max(width, 1.0)))

    @property
    def most_rows(self) -> int:
        return self._rows_in_memory

    def released(self, names: Sequence[str], rows: Rows | None = None) -> pl.DataFrame:
        return _loaded(self.file, names, rows)

    def before(self, names: Sequence[str], rows: Rows | None = None) -> pl.DataFrame:
        return _loaded(self.source, names, rows)


def _some(frame: pl.DataFrame, names: Sequence[str], rows: Rows | None) -> pl.DataFrame:
    """These columns. ``select`` would interpret a column name such as ``*`` as a pattern."""
    chosen = pl.DataFrame([frame.get_column(name) for name in names])
    return chosen if rows is None else chosen[rows]


def _loaded(table: StoredTable, names: Sequence[str], rows: Rows | None) -> pl.DataFrame:
    if rows is None:
        needed, limit = table.bytes_of(names), table.workspace.memory
        if needed > limit:
            raise CannotCheck(
                f"It needs {_some_names(names)} of all rows, about {needed / 2**30:.1f} GB, and the memory limit is "
                f"{limit / 2**30:.1f} GB: raise it with --memory."
            )
        return table.load(names).drop(ROW)
    chosen = table.put("chosen", pl.DataFrame({"row_number": rows}))
    part = table.with_expressions({}, joins=f"JOIN {chosen} AS s ON t.{ROW} = s.row_number").load(names)
    # rows in the order that was asked for; a row may be asked for twice
    found = pl.DataFrame({ROW: rows}).with_columns(pl.col(ROW).cast(part.schema[ROW]))
    return found.join(part.unique(ROW), on=ROW, how="left", maintain_order="left").drop(ROW)


def _some_names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
