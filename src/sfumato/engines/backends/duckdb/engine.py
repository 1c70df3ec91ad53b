"""DuckDB: files and frames, in the same process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.data.declared import column_names, csv_lines_expression, frame_cells
from sfumato.data.formats.csv import Csv
from sfumato.data.in_process import open_duckdb
from sfumato.data.read_write import format_of
from sfumato.data.sql_quoting import quoted_name, quoted_text
from sfumato.data.url import file_and_options
from sfumato.engines.backends.duckdb.dialect import DuckdbGenerator
from sfumato.engines.backends.duckdb.text_tables import TextTable
from sfumato.engines.backends.duckdb.time_limit import TimeLimit
from sfumato.engines.backends.duckdb.workspace import FORMATS, open_workspace
from sfumato.engines.contribution_bounding import MOST_ROWS, Bounded, bounded_totals
from sfumato.engines.engine import Engine, Running, failed
from sfumato.engines.expressions import Modulo, ShiftRight, constant, equal
from sfumato.engines.functions import Hash
from sfumato.engines.generator import Columns
from sfumato.engines.memory import memory_bytes
from sfumato.engines.statements import Query, Select, Subquery
from sfumato.engines.workspace import Workspace
from sfumato.errors import DatabaseFailed, FileMissing, MetadataMissing, UnknownFormat
from sfumato.progress import SILENT, Progress
from sfumato.secret import SecretValue

_KINDS = {
    "TINYINT": "int", "SMALLINT": "int", "INTEGER": "int", "BIGINT": "int", "UTINYINT": "int", "USMALLINT": "int",
    "UINTEGER": "int", "HUGEINT": "huge", "DOUBLE": "float", "VARCHAR": "text", "DATE": "date", "TIMESTAMP": "time",
    "BOOLEAN": "flag",
}  # fmt: skip

_WHOLE = {name for name, kind in _KINDS.items() if kind == "int"}
_MOMENTS = "0001-01-01 00:00:00", "9999-12-31 23:59:59"
_CALENDAR = {
    "DATE": ("0001-01-01", "9999-12-31"), "TIME": ("00:00:00", "24:00:00"), "TIMESTAMP_S": _MOMENTS,
    "TIMESTAMP_MS": (_MOMENTS[0], f"{_MOMENTS[1]}.999"), "TIMESTAMP": (_MOMENTS[0], f"{_MOMENTS[1]}.999999"),
    "TIMESTAMP WITH TIME ZONE": (f"{_MOMENTS[0]}+00", f"{_MOMENTS[1]}.999999+00"),
}  # fmt: skip
"""First and last value of calendar types that are read, in the type itself: comparing in another type can fail."""
_BATCH = 122_880
"""Rows that are brought over at a time: one row group of DuckDB's, which with all its columns fits the cache."""
_SLICE = 1 << 27
"""Rows of a table that compiled code has in memory at a time, at 4 or 8 bytes a column. Each slice reads the table."""
MOST_FEW = 500
"""Largest number of rows that are bounded in Python: planning the statement takes DuckDB longer."""
_LINE = 40
"""Bytes of a line of text, about."""
_LISTS = "sfumato_lists"
"""The schema of public values that statements join with. No table of a question is in it."""
_FEW, _MANY = 16, 2_000_000
"""Shorter lists are written out, at 20 microseconds a value in DuckDB's parser; so many values are kept in all."""
_QUERY_MEMORY = 8_000_000_000
"""Bytes of memory for the queries of a data set, one at a time, when the engine has no limit of its own."""
_WORKSPACE_MEMORY = "4GB"
"""Memory limit of a workspace when the engine has none of its own."""


class Duckdb(Engine):
    """Query Parquet and CSV files or any frame that supports Arrow, and mask files out of core.

    The connection is locked before the first query: no other file can be opened, no extension loaded, no setting
    changed. Files are read in place; the rows of a small text file are kept in memory once it is asked again.
    """

    suffixes = (".parquet", ".csv", ".tsv")
    writes = tuple(FORMATS)
    examples = ({}, {"threads": 1}, {"order": "sha256"}, {"compiled": 0})
    reference = "Raasveldt, Mühleisen (2019), doi:10.1145/3299869.3320212"

    threads: Annotated[int, Field(ge=1)] | None = None
    """Number of cores that a query may use; all if left out."""
    memory: str | None = None
    """Memory limit, for example 4GB; what does not fit it is written to a temporary folder. If left out, queries use
    8GB (four fifths of the machine's memory where that is less) and masking uses 4GB."""

    order: Literal["fast", "sha256"] = "fast"
    """How the groups of a unit that count are chosen: by DuckDB's own hash, or by the one that all engines share, which
    takes longer and gives the numbers that PostgreSQL and Spark give."""

    compiled: Annotated[int, Field(ge=0)] = 2_000_000
    """From so many rows on, what counts of each unit is worked out by compiled code and not by SQL: several times
    faster, once the compiler is loaded (about a second). The numbers are the same. Units need whole numbers as ids."""

    timeout: Annotated[float, Field(gt=0, le=86_400)] = 600
    """Seconds after which a statement is given up. That it was is visible and its cost stays charged."""

    def start(self, tables: Mapping[str, object]) -> Running:
        return _RunningDuckdb(self, tables)

    def workspace(
        self,
        source: str | Path,
        *,
        options: Mapping[str, object] | None = None,
        writes: Sequence[Path] = (),
        numbered: bool = False,
        temporary: Path | None = None,
        progress: Progress = SILENT,
    ) -> AbstractContextManager[Workspace]:
        return open_workspace(
            source,
            options=options,
            writes=writes,
            numbered=numbered,
            memory=self.memory or _WORKSPACE_MEMORY,
            threads=self.threads,
            temporary=temporary,
            progress=progress,
        )


class _RunningDuckdb(Running):
    passes = True

    def __init__(self, setup: Duckdb, tables: Mapping[str, object]) -> None:
        self._lock = threading.Lock()
        files = [_place(source) for source in tables.values() if isinstance(source, str | Path)]
        for path in files:
            if not path.is_file():
                raise FileMissing(f"There is no file `{path}`.", fix="Check the path in the metadata.")
        self._stack = ExitStack()
        self._connection = self._stack.enter_context(
            open_duckdb(
                memory=setup.memory,
                threads=setup.threads,
                files=[path.resolve() for path in files],
                locked=False,
            )
        )
        self._limit = TimeLimit(setup.timeout, self._connection.interrupt)
        run = self._connection.execute
        if setup.memory is None:
            [(own,)] = run("SELECT current_setting('memory_limit')").fetchall()
            run("SET memory_limit = ?", [f"{min(_QUERY_MEMORY, memory_bytes(own))}B"])
        self._texts: list[TextTable] = []
        for place, (name, source) in enumerate(tables.items()):
            self._open(name, source, f"sfumato stored {place}")
        run(f"CREATE SCHEMA {_LISTS}")
        run("SET lock_configuration = true")
        self._lists: dict[tuple[object, ...], str] = {}
        most = self._most = max((self._rows(name, tables[name]) for name in tables), default=0)
        self._few = most < setup.compiled and most <= MOST_FEW
        self.folds = setup.order == "fast" and (self._few or (most >= setup.compiled and setup.memory is None))
        shared = setup.order == "sha256"
        self._generator = DuckdbGenerator({name: self._columns(name) for name in tables} if shared else None)
        self._lists_values = not shared

    def _open(self, name: str, source: object, aside: str) -> None:
        import duckdb

        try:
            if isinstance(source, str | Path):
                stored, names = _reader(source), _names(source)
            else:
                table = as_arrow(source)
                self._connection.register(aside, table)
                stored, names = quoted_name(aside), table.schema.names
            if len({name.lower() for name in names}) < len(names):
                raise MetadataMissing(
                    f"Columns of `{name}` differ in upper and lower case alone, which DuckDB does not tell apart.",
                    fix="Rename them in the data.",
                )
            self._connection.execute(f"CREATE VIEW {quoted_name(name)} AS SELECT *{self._within(stored)} FROM {stored}")
            self._rows(name, source)
            if isinstance(source, str | Path) and _place(source).suffix.lower() != ".parquet":
                self._texts.append(TextTable(view=name, reader=stored, path=_place(source)))
        except (duckdb.Error, pl.exceptions.PolarsError) as failure:
            # DuckDB's own words may quote values.
            raise DatabaseFailed(f"DuckDB cannot read table `{name}` ({type(failure).__name__}).") from None

    def _within(self, stored: str) -> str:
        """Dates and times outside the calendar are missing: to convert one, or to take its week, can fail."""
        kept = []
        for name, kind, *_ in self._connection.execute(f"DESCRIBE SELECT * FROM {stored}").fetchall():
            x = quoted_name(name)
            if kind in _CALENDAR:
                low, high = (f"CAST('{end}' AS {kind})" for end in _CALENDAR[kind])
                inside = f"CASE WHEN {x} >= {low} AND {x} <= {high} THEN "
                # Put together anew: filters are computed within a file's reader, and see what a CASE leaves out.
                anew = f"make_timestamp({inside}epoch_us({x}) END)" if kind == "TIMESTAMP" else f"{inside}{x} END"
                kept.append(f"{anew} AS {x}")
            elif kind == "TIMESTAMP_NS":
                kept.append(f"CASE WHEN isfinite({x}) THEN {x} END AS {x}")
        return f" REPLACE ({', '.join(kept)})" if kept else ""

    def _columns(self, name: str) -> Columns:
        described = self._connection.execute(f"DESCRIBE {quoted_name(name)}").fetchall()
        return {row[0]: _KINDS.get(row[1], "other") for row in described}

    def _rows(self, name: str, source: object) -> int:
        """About how many rows a table has; only speed depends on it."""
        if isinstance(source, str | Path) and _place(source).suffix.lower() != ".parquet":
            return _place(source).stat().st_size // _LINE
        [(rows,)] = self._connection.execute(f"SELECT COUNT(*) FROM {quoted_name(name)}").fetchall()
        return int(rows)

    def listed(self, values: tuple[object, ...]) -> str | None:
        kind = _listable(values)
        if kind is None or not self._lists_values:
            return None
        with self._lock:
            table = self._lists.get(values)
            if table is None and sum(map(len, self._lists)) + len(values) <= _MANY:
                name = f"{_LISTS}.k{len(self._lists)}"
                create = (
                    f"CREATE TABLE {name} AS SELECT CAST(unnest($1) AS {kind}) AS name, unnest(range({len(values)}))"
                )
                self._connection.execute(f"{create} AS code", [list(values)])
                table = self._lists[values] = name
            return table

    def fold(self, bounded: Bounded) -> SecretValue[list[tuple[Any, ...]]] | None:
        if self._few:
            return self._fold_few(bounded)
        slices = -(-self._most // _SLICE)
        most = max(MOST_ROWS, 2 * self._most)
        if not bounded.fits(most):
            return None
        try:
            with self._statement():
                if str(self._connection.sql(self._generator.write(bounded.source)).types[0]) not in _WHOLE:
                    return None
                from sfumato.engines.backends.duckdb.bounding_kernel import fold

                totals = fold(map(self._batches, _sliced(bounded.source, slices)), bounded, most)
                return None if totals is None else SecretValue(totals)
        except Exception:
            raise failed() from None

    @contextmanager
    def _statement(self) -> Iterator[None]:
        """One statement at a time, within the time limit, on the files as they are now."""
        with self._lock, self._limit.watch():
            for text in self._texts:
                text.refresh(self._connection)
            yield

    def _batches(self, source: Query) -> Any:
        return self._connection.sql(self._generator.write(source)).to_arrow_reader(_BATCH)

    def _fold_few(self, bounded: Bounded) -> SecretValue[list[tuple[object, ...]]] | None:
        """The definition itself. Not for a file that has grown, nor for units that are neither whole numbers nor text,
        which could be equal here without being so there, or the other way round."""
        if not bounded.fits(MOST_FEW):
            return None
        try:
            with self._statement():
                rows = self._connection.execute(self._generator.write(bounded.source)).fetchmany(MOST_FEW + 1)
                if len(rows) > MOST_FEW or any(type(row[0]) not in (int, str) for row in rows):
                    return None
                return SecretValue(bounded_totals(rows, bounded))
        except Exception:
            raise failed() from None

    def check(self, query: Query) -> None:
        if not self._lists_values:
            self._generator.write(query)

    def run(self, query: Query) -> SecretValue[list[tuple[Any, ...]]]:
        try:
            with self._statement():
                return SecretValue(self._connection.execute(self._generator.write(query)).fetchall())
        except Exception:
            raise failed() from None

    def row_numbers(self, query: Query) -> SecretValue[npt.NDArray[np.int64]]:
        try:
            with self._statement():
                [column] = self._connection.execute(self._generator.write(query)).fetchnumpy().values()
                return SecretValue(np.asarray(column, np.int64))
        except Exception:
            raise failed() from None

    def whole_columns(self, query: Query) -> SecretValue[list[npt.NDArray[np.int64]]]:
        try:
            with self._statement():
                columns = self._connection.execute(self._generator.write(query)).fetchnumpy().values()
                return SecretValue([np.asarray(column, np.int64) for column in columns])
        except Exception:
            raise failed() from None

    def close(self) -> None:
        self._stack.close()


def _sliced(source: Query, slices: int) -> list[Query]:
    """The rows of a source in so many parts, all rows of a unit in one of them. The first column is the unit."""
    assert isinstance(source, Select)
    if slices <= 1:
        return [source]
    number = Modulo(ShiftRight(Hash((source.items[0][1],)), 32), constant(slices))
    return [Select((), Subquery(source), where=equal(number, constant(place)), star=True) for place in range(slices)]


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half a letter
        return False
    return True


def _listable(values: tuple[Any, ...]) -> str | None:
    """The type of a list that is worth a table and surely fits one."""
    kinds = {type(value) for value in values}
    if len(values) < _FEW or len(kinds) > 1:
        return None
    if kinds == {str}:
        return "VARCHAR" if all(_encodable(value) for value in values) else None
    return "BIGINT" if kinds == {int} and max(abs(value) for value in values) < 1 << 63 else None


def _place(source: str | Path) -> Path:
    return Path(file_and_options(source)[0])


def _names(source: str | Path) -> Sequence[str]:
    """The columns as the file names them: DuckDB gives another name to one that is there twice but for its case."""
    path = _place(source)
    return list(pl.read_parquet_schema(path)) if path.suffix.lower() == ".parquet" else column_names(source)


def _reader(source: str | Path) -> str:
    """How a file is read. Nothing about it is guessed from its rows: one person's row must not change how others are
    read. Columns of text files are text, in the order of the header, a line is a row, and every value is turned into
    its declared kind by itself."""
    path, options = file_and_options(source)
    match Path(path).suffix.lower():
        case ".parquet":
            return f"read_parquet({quoted_text(str(Path(path).resolve()))})"
        case ".csv" | ".tsv":
            part = format_of(Path(path), None, options)
            assert isinstance(part, Csv)
            return csv_lines_expression(part, Path(path))
        case _:
            raise UnknownFormat(
                f"Questions cannot be asked of `{Path(path).name}`.", fix="Use a Parquet or CSV file, or pass a frame."
            )


def as_arrow(source: object) -> Any:
    """The frame as an Arrow table for DuckDB. Times with a zone become UTC, because DuckDB does not read every zone."""
    import pyarrow as pa

    table = source if isinstance(source, pa.Table) else frame_cells(source).to_arrow()
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None and field.type.unit in ("s", "ms"):
            plain = table.column(place).cast(pa.int64()).cast(pa.timestamp(field.type.unit))
            table = table.set_column(place, field.name, plain)
    return table
