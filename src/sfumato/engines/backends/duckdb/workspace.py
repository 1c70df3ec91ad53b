"""Masking out of core in DuckDB: one process, any file size, within a memory limit."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from sfumato.data.scan import FileScan, scan
from sfumato.data.sql_quoting import quoted_name, quoted_text
from sfumato.engines.memory import memory_bytes
from sfumato.engines.workspace import Workspace
from sfumato.errors import DatabaseFailed, UnknownFormat, WriteFailed
from sfumato.progress import Progress

if TYPE_CHECKING:
    import duckdb

FORMATS = {
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
    ".pq": "FORMAT parquet, COMPRESSION zstd",
    ".csv": "FORMAT csv, HEADER true",
}
"""Options of COPY by the suffix of the file that is written."""
_POLL_SECONDS = 0.5
"""Seconds between two queries for progress."""


class DuckdbWorkspace(Workspace):
    """A locked-down DuckDB connection over one source."""

    order: ClassVar[str] = "MD5_NUMBER_UPPER({})"

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        source: str,
        *,
        row_number: str | None,
        folder: Path,
        memory: int,
        progress: Progress,
    ) -> None:
        self._connection, self.source, self.row_number = connection, source, row_number
        self._folder, self.memory, self._progress = folder, memory, progress

    def query(self, statement: str, title: str) -> pl.DataFrame:
        import duckdb

        with self._progress_of(title):
            try:
                table = self._connection.sql(statement).to_arrow_table()
            except duckdb.Error as failure:
                raise _translated(failure, title) from None
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def put(self, name: str, frame: pl.DataFrame) -> None:
        self._connection.register(name, frame.to_arrow())

    def store(self, name: str, frame: pl.DataFrame) -> None:
        path = self._folder / f"{name}.parquet"
        frame.write_parquet(path)
        self._connection.execute(
            f"CREATE OR REPLACE TEMPORARY VIEW {quoted_name(name)} AS FROM read_parquet({quoted_text(path)})"
        )

    def write(self, statement: str, path: Path, suffix: str) -> None:
        import duckdb

        if suffix not in FORMATS:
            raise UnknownFormat(
                f"A large release cannot be written as `{suffix}`.", fix="Name a target that ends in .parquet or .csv."
            )
        with self._progress_of("writing"):
            try:
                options = FORMATS[suffix] + (self._force_quote(statement) if suffix == ".csv" else "")
                self._connection.execute(f"COPY ({statement}) TO {quoted_text(path)} ({options}, USE_TMP_FILE false)")
            except duckdb.Error as failure:
                raise _translated(failure, "writing") from None

    def _force_quote(self, statement: str) -> str:
        """Quote all text columns: the text "NA" must not be read as a missing value, which is written unquoted."""
        relation = self._connection.sql(statement)
        texts = [
            quoted_name(name)
            for name, dtype in zip(relation.columns, relation.types, strict=True)
            if dtype == "VARCHAR"
        ]
        return f", FORCE_QUOTE ({', '.join(texts)})" if texts else ""

    @contextmanager
    def _progress_of(self, title: str) -> Iterator[None]:
        """Report the progress of a query. A second thread polls it, because this one waits for the result."""
        finished = threading.Event()
        with self._progress.task(title, 100) as tick:
            reported = 0.0

            def poll() -> None:
                nonlocal reported
                while not finished.wait(_POLL_SECONDS):
                    percent = self._connection.query_progress()
                    if percent > reported:
                        tick(percent - reported)
                        reported = percent

            watcher = threading.Thread(target=poll, daemon=True)
            watcher.start()
            try:
                yield
            finally:
                finished.set()
                watcher.join()
            tick(100 - reported)


def _translated(failure: duckdb.Error, title: str) -> DatabaseFailed | WriteFailed:
    """An error without DuckDB's own message, which may quote values of the data."""
    kind = type(failure).__name__
    if kind == "OutOfMemoryException":
        return DatabaseFailed(
            f"DuckDB ran out of its memory or its disk space while {title}.",
            fix="Raise `memory`, or name a larger disk with `temporary`.",
        )
    if kind == "IOException":
        return WriteFailed(f"DuckDB could not read or write while {title}.", fix="Check free space and permissions.")
    return DatabaseFailed(f"DuckDB failed while {title} ({kind}).", fix="Check that `sfumato init` reads the file.")


@contextmanager
def open_workspace(
    source: str | Path,
    *,
    options: Mapping[str, Any] | None,
    writes: Sequence[Path],
    numbered: bool,
    memory: str,
    threads: int | None,
    temporary: Path | None,
    progress: Progress,
) -> Iterator[Workspace]:
    """A locked-down DuckDB that reads the source, writes the named files and reaches nothing else."""
    file = scan(source, **(options or {}))
    limits: dict[str, Any] = {"memory": memory, "threads": threads, "temporary": temporary}
    with tempfile.TemporaryDirectory(prefix="sfumato-duckdb-", dir=temporary) as name:
        folder = Path(name).resolve()
        row_number = None
        if numbered:
            file, row_number = _numbered(file, folder / "source.parquet", limits)
        with file.connect(**limits, writes=writes, folder=folder, ordered=False) as connection:
            yield DuckdbWorkspace(
                connection,
                file.expression,
                row_number=row_number,
                folder=folder,
                memory=memory_bytes(memory),
                progress=progress,
            )


def _numbered(file: FileScan, staged: Path, limits: Mapping[str, Any]) -> tuple[FileScan, str]:
    """The source with a column that numbers its rows, and the name of that column.

    A Parquet file knows its row numbers. Other sources are copied to a Parquet file first, which also spares reading
    text again in every pass.
    """
    import duckdb

    names = {name.lower() for name in file.columns}
    if not file.attached and file.path.suffix.lower() in (".parquet", ".pq") and "file_row_number" not in names:
        expression = f"read_parquet({quoted_text(file.path)}, file_row_number = true)"
        return replace(file, expression=expression), "file_row_number"
    row_number = "row_number"
    while row_number in names:
        row_number += "_"
    statement = f"SELECT *, row_number() OVER () - 1 AS {row_number} FROM {file.expression}"
    with file.connect(**limits, writes=[staged]) as connection:
        try:
            connection.execute(f"COPY ({statement}) TO {quoted_text(staged)} (FORMAT parquet)")
        except duckdb.Error as failure:
            raise _translated(failure, "copying the source") from None
    return scan(staged), row_number
