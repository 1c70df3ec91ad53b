"""StoredTable: a table that lies in an engine, as masking steps see it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any

import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import Data, Kind, Schema
from sfumato.engines.workspace import Workspace
from sfumato.errors import UnknownColumn, WrongKind
from sfumato.masking.out_of_core import sqlgen
from sfumato.wording import did_you_mean

__all__ = ["COMBINATIONS", "ROW", "StoredChange", "StoredTable", "unique_name"]

ROW = "rn"
"""Name of the column that holds the row number of the original."""
COMBINATIONS = 30_000_000
"""Distinct combinations of quasi-identifiers that are searched at once by default: about 3 GB."""

_NUMBERS = count()


def unique_name(prefix: str) -> str:
    """A name for a table that statements join. Statements run late, so no name is used twice."""
    return f"{prefix}_{next(_NUMBERS)}"


@dataclass(frozen=True, kw_only=True)
class StoredTable:
    """A table in an engine: a SELECT with column number i of the source as ``c{i}`` and the row number as ``rn``.

    The internal names cannot clash with names in the file. A masking step returns a new stored table; nothing is
    computed before the result is queried or written.
    """

    workspace: Workspace
    schema: Schema
    cells: Mapping[str, str]
    """Columns of the table, and their names in the statement."""
    sql: str
    combinations: int = COMBINATIONS
    """Distinct combinations of quasi-identifiers that a search takes on. With more, it starts at coarser levels."""

    @classmethod
    def open(
        cls, workspace: Workspace, schema: Schema, *, original: bool, combinations: int = COMBINATIONS
    ) -> StoredTable:
        """The source of a workspace. An ``original`` is checked and cast to the kinds that the schema declares; a
        release may lack columns and holds labels of other kinds."""
        sample = workspace.query(f"SELECT * FROM {workspace.source} AS t LIMIT 0", "reading the columns")
        kinds = {name: Kind.of(dtype) for name, dtype in sample.schema.items() if name != workspace.row_number}
        missing = [name for name in schema.columns if name not in kinds] if original else []
        if missing:
            raise UnknownColumn(
                f"The source has no column `{missing[0]}`.", fix=did_you_mean(missing[0], kinds), columns=tuple(missing)
            )
        casts = {
            name: column.kind
            for name, column in schema.columns.items()
            if original and column.kind is not None and column.kind is not kinds[name]
        }
        codes = {n: c.missing_codes for n, c in schema.columns.items() if original and c.missing_codes}
        source = sqlgen.blanked(workspace.source, kinds, codes, row_number=workspace.row_number)
        _check_casts(workspace, source, casts)
        floats = {name for name, kind in kinds.items() if casts.get(name, kind) is Kind.NUMBER}
        base = sqlgen.base(source, tuple(kinds), casts, floats, row_number=workspace.row_number)
        cells = {name: f"c{i}" for i, name in enumerate(kinds)}
        return cls(workspace=workspace, schema=schema, cells=cells, sql=base, combinations=combinations)

    @cached_property
    def rows(self) -> int:
        return int(self.workspace.query(f"SELECT COUNT(*) AS n FROM ({self.sql}) AS t", "counting rows").item())

    @cached_property
    def empty(self) -> Data:
        """Columns and types without rows, for questions about columns."""
        columns = ", ".join(f"t.{cell}" for cell in self.cells.values())
        frame = self.workspace.query(f"SELECT {columns} FROM ({self.sql}) AS t LIMIT 0", "reading the columns")
        return Data(table=Table(frame=self._named(frame)), schema=self.schema)

    def values(self, name: str) -> pl.DataFrame:
        """The distinct values of a column (``value``) and how many rows hold each (``n``)."""
        cell = self.cells[name]
        statement = f"SELECT t.{cell} AS value, COUNT(*) AS n FROM ({self.sql}) AS t GROUP BY t.{cell}"
        return self.workspace.query(statement, "listing values")

    def load(self, names: Sequence[str]) -> pl.DataFrame:
        """Some columns in memory, with the row number, in the order of the original."""
        columns = ", ".join(f"t.{self.cells[name]}" for name in names)
        statement = f"SELECT t.{ROW}, {columns} FROM ({self.sql}) AS t ORDER BY t.{ROW}"
        return self._named(self.workspace.query(statement, "loading columns"))

    def bytes_of(self, names: Sequence[str]) -> int:
        """About how much memory :meth:`load` takes."""
        schema = self.empty.table.frame.schema
        texts = [name for name in names if schema[name] in (pl.String, pl.Categorical, pl.Enum)]
        width = 8.0 * (1 + len(names) - len(texts)) + 16.0 * len(texts)
        if texts:
            lengths = ", ".join(f"AVG(LENGTH(t.{self.cells[name]})) AS a{i}" for i, name in enumerate(texts))
            row = self.workspace.query(f"SELECT {lengths} FROM ({self.sql}) AS t", "measuring texts").row(0)
            width += sum(length or 0.0 for length in row)
        return int(width * self.rows)

    def without(self, names: Collection[str]) -> StoredTable:
        """The table without some columns."""
        return replace(self, cells={name: cell for name, cell in self.cells.items() if name not in names})

    def with_expressions(self, expressions: Mapping[str, str], joins: str = "", where: str = "") -> StoredTable:
        """The table with some columns replaced by SQL expressions over ``t``, and joined tables."""
        columns = [f"{expressions.get(name, f't.{cell}')} AS {cell}" for name, cell in self.cells.items()]
        statement = f"SELECT {', '.join([*columns, f't.{ROW}'])} FROM ({self.sql}) AS t {joins} {where}"
        return replace(self, sql=statement.strip())

    def with_columns(self, frame: pl.DataFrame) -> StoredTable:
        """The rows whose numbers stand in ``frame``, with its columns in place of those of the same names."""
        cells = {name: self.cells[name] for name in frame.columns if name != ROW}
        name = unique_name("stage")
        self.workspace.store(name, frame.rename(cells))
        expressions = {name: f"m.{cell}" for name, cell in cells.items()}
        return self.with_expressions(expressions, joins=f"JOIN {name} AS m ON t.{ROW} = m.{ROW}")

    def put(self, prefix: str, frame: pl.DataFrame) -> str:
        """Register a small table that statements join; returns its name."""
        name = unique_name(prefix)
        self.workspace.put(name, frame)
        return name

    def _named(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.rename({cell: name for name, cell in self.cells.items() if cell in frame.columns})


@dataclass(frozen=True, kw_only=True)
class StoredChange:
    """What one step did to a stored table; the counterpart of :class:`~sfumato.release.Change`."""

    table: StoredTable
    public: Mapping[str, Any] = field(default_factory=dict)
    """Outcome that the release may publish."""
    private: Mapping[str, Any] = field(default_factory=dict)
    """Outcome for the owner only."""
    touched: frozenset[str] = frozenset()
    """Columns whose values this step made safe to keep, for example pseudonymized identifiers."""


def _check_casts(workspace: Workspace, source: str, casts: Mapping[str, Kind]) -> None:
    if not casts:
        return
    failed = workspace.query(sqlgen.failed_casts(source, casts), "checking the kinds").row(0)
    for name, bad in zip(casts, failed, strict=True):
        if bad:
            raise WrongKind(
                f"Column `{name}` is declared {casts[name]}, but {bad} of its values are not.",
                fix="Change its kind in the recipe, or clean the file.",
                column=name,
            )
