"""StoredTable: a table that lies in an engine, as masking steps, checks and attacks see it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.data.missing import plain_numbers
from sfumato.data.table import Table, refuse_duplicates, refuse_no_header
from sfumato.dataset import Data, Kind, Schema
from sfumato.dataset.rows import RowGroups, row_groups
from sfumato.engines import stored_sql
from sfumato.engines.workspace import Workspace
from sfumato.errors import NotApplicable, UnknownColumn, WrongKind
from sfumato.wording import did_you_mean

ROW = "rn"
"""Name of the column that holds the row number of the original."""
COMBINATIONS = 30_000_000
"""Distinct combinations of quasi-identifiers that are searched at once by default: about 3 GB."""

_NUMBERS = count()
_SAMPLED = 1_000_000
"""The most rows of which all columns are loaded at once. A relation between columns that holds in all rows holds in
these, too."""


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
        cls,
        workspace: Workspace,
        schema: Schema,
        *,
        original: bool,
        whole: bool = True,
        combinations: int = COMBINATIONS,
    ) -> StoredTable:
        """The source of a workspace. An ``original`` is checked and cast to the kinds that the schema declares; a
        release may lack columns and holds labels of other kinds. ``whole`` says that an original must have all declared
        columns."""
        sample = workspace.query(f"SELECT * FROM {workspace.source} AS t LIMIT 0", "reading the columns")
        kinds = {name: Kind.of(dtype) for name, dtype in sample.schema.items() if name != workspace.row_number}
        refuse_duplicates(list(kinds))
        if original and whole:
            refuse_no_header(tuple(kinds), tuple(schema.columns))
        missing = [name for name in schema.columns if name not in kinds] if original and whole else []
        if missing:
            raise UnknownColumn(
                f"The source has no column `{missing[0]}`.", fix=did_you_mean(missing[0], kinds), columns=tuple(missing)
            )
        casts = {
            name: column.kind
            for name, column in schema.columns.items()
            if original and name in kinds and column.kind is not None and column.kind is not kinds[name]
        }
        codes = {n: c.missing_codes for n, c in schema.columns.items() if original and n in kinds and c.missing_codes}
        source = stored_sql.blanked(workspace.source, kinds, codes, row_number=workspace.row_number)
        _check_casts(workspace, source, casts)
        floats = {n for n in kinds if (casts[n] is Kind.NUMBER if n in casts else sample.schema[n].is_float())}
        base = stored_sql.base(source, tuple(kinds), casts, floats, row_number=workspace.row_number)
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

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.cells)

    @cached_property
    def most_rows(self) -> int:
        """The largest number of rows of which all columns may be loaded at once: an eighth of the memory limit."""
        width = self.bytes_of(self.columns) / max(self.rows, 1)
        return min(_SAMPLED, int(self.workspace.memory / 8 / max(width, 1.0)))

    def group(self, names: Sequence[str], people: pl.Series | None = None) -> RowGroups:
        """The combinations of values of some columns, by one GROUP BY of the engine."""
        cells = [self.cells[name] for name in names]
        if len(names) > 1 or people is not None:
            self._check_combinations(names)
        keys = ", ".join(f"t.{cell}" for cell in cells)
        if people is None:
            figures, joined = "COUNT(*) AS rows, COUNT(*) AS of_people, COUNT(*) AS people, -1 AS person", ""
        else:
            figures = (
                "COUNT(*) AS rows, COUNT(p.person) AS of_people, COUNT(DISTINCT p.person) AS people, "
                "MIN(p.person) AS person"
            )
            joined = f"JOIN {self.with_people(people)} AS p ON t.{ROW} = p.{ROW}"
        statement = f"SELECT {keys}, {figures} FROM ({self.sql}) AS t {joined} GROUP BY {keys}"
        return row_groups(self.workspace.query(statement, "counting classes"), cells, names)

    def with_people(self, people: pl.Series) -> str:
        """Name of a table with the number of a person (``person``) for each row number, null for nobody."""
        if not any(known is people for known, _ in self._people):
            name = unique_name("people")
            frame = pl.DataFrame({ROW: pl.int_range(len(people), eager=True), "person": people})
            self.workspace.store(name, frame)
            self._people.append((people, name))
        return next(name for known, name in self._people if known is people)

    @cached_property
    def _people(self) -> list[tuple[pl.Series, str]]:
        return []

    def _check_combinations(self, names: Sequence[str]) -> None:
        """Refuse a count whose result does not fit into memory."""
        width, limit = self.bytes_of(names) / max(self.rows, 1) + 32, self.workspace.memory
        if width * self.rows <= limit / 2:
            return
        key = f"CONCAT_WS('-', {', '.join(f'CAST(t.{self.cells[name]} AS VARCHAR)' for name in names)})"
        statement = f"SELECT APPROX_COUNT_DISTINCT({key}) AS n FROM ({self.sql}) AS t"
        needed = self.workspace.query(statement, "estimating classes").item() * width
        if needed > limit / 2:
            raise _too_large(f"The combinations of {_listed(names)} need", needed, limit / 2)

    def load(self, names: Sequence[str], rows: npt.NDArray[np.int64] | None = None) -> pl.DataFrame:
        """Some columns in memory, of all rows or of these, in that order; a row may be asked for twice."""
        if rows is None:
            needed, limit = self.bytes_of(names), self.workspace.memory
            if needed > limit:
                raise _too_large(f"All rows of {_listed(names)} need", needed, limit)
            return self.numbered(names).drop(ROW)
        chosen = self.put("chosen", pl.DataFrame({"row_number": rows}))
        part = self.with_expressions({}, joins=f"JOIN {chosen} AS s ON t.{ROW} = s.row_number").numbered(names)
        found = pl.DataFrame({ROW: rows}).with_columns(pl.col(ROW).cast(part.schema[ROW]))
        return found.join(part.unique(ROW), on=ROW, how="left", maintain_order="left").drop(ROW)

    def numbered(self, names: Sequence[str]) -> pl.DataFrame:
        """Some columns in memory, with the row number, in the order of the original."""
        columns = ", ".join(f"t.{self.cells[name]}" for name in names)
        statement = f"SELECT t.{ROW}, {columns} FROM ({self.sql}) AS t ORDER BY t.{ROW}"
        return self._named(self.workspace.query(statement, "loading columns"))

    def bytes_of(self, names: Sequence[str]) -> int:
        """About how much memory :meth:`numbered` takes."""
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
        """The rows whose numbers stand in ``frame``, with its columns in place of those of the same names.

        A number has one form (:func:`sfumato.data.missing.plain_numbers`).
        """
        frame = plain_numbers(frame)
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


def _check_casts(workspace: Workspace, source: str, casts: Mapping[str, Kind]) -> None:
    if not casts:
        return
    failed = workspace.query(stored_sql.failed_casts(source, casts), "checking the kinds").row(0)
    for name, bad in zip(casts, failed, strict=True):
        if bad:
            raise WrongKind(
                f"Column `{name}` is declared {casts[name]}, but {bad} of its values are not.",
                fix="Change its kind in the recipe, or clean the file.",
                column=name,
            )


def _too_large(what: str, needed: float, limit: float) -> NotApplicable:
    return NotApplicable(
        f"{what} about {needed / 2**30:.1f} GB, and {limit / 2**30:.1f} GB may be used.",
        fix="Raise `memory`.",
        option="memory",
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
