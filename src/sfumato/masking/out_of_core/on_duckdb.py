"""Large releases in DuckDB: one process, any file size, within a memory limit."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from sfumato.data.scan import scan
from sfumato.data.sql_quoting import quoted_name, quoted_path
from sfumato.errors import DatabaseFailed, UnknownFormat, WriteFailed
from sfumato.masking.out_of_core.engine import LargeFileEngine
from sfumato.progress import Progress

if TYPE_CHECKING:
    import duckdb

__all__ = ["on_duckdb"]

_FORMATS = {
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
    ".pq": "FORMAT parquet, COMPRESSION zstd",
    ".csv": "FORMAT csv, HEADER true",
}
_GLANCE = 0.5
"""Seconds between two looks at how far a query is."""


class _DuckDB(LargeFileEngine):
    order: ClassVar[str] = "MD5_NUMBER_UPPER({})"

    def __init__(self, connection: duckdb.DuckDBPyConnection, source: str, progress: Progress) -> None:
        self._connection, self.source, self._progress = connection, source, progress

    def query(self, statement: str, title: str) -> pl.DataFrame:
        import duckdb

        with self._watched(title):
            try:
                found = self._connection.sql(statement).to_arrow_table()
            except duckdb.Error as failure:
                raise _refusal(failure, title) from None
        frame = pl.from_arrow(found)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def put(self, name: str, frame: pl.DataFrame) -> None:
        self._connection.register(name, frame.to_arrow())

    def write(self, statement: str, path: Path, suffix: str) -> None:
        import duckdb

        if suffix not in _FORMATS:
            raise UnknownFormat(
                f"A large release cannot be written as `{suffix}`.", fix="Name a target that ends in .parquet or .csv."
            )
        with self._watched("writing"):
            try:
                options = _FORMATS[suffix] + (self._quotes(statement) if suffix == ".csv" else "")
                self._connection.execute(f"COPY ({statement}) TO {quoted_path(path)} ({options})")
            except duckdb.Error as failure:
                raise _refusal(failure, "writing") from None

    def _quotes(self, statement: str) -> str:
        """Quotes around all text, so that the word NA is not taken for a gap, which stands without."""
        shown = self._connection.sql(statement)
        texts = [quoted_name(name) for name, kind in zip(shown.columns, shown.types, strict=True) if kind == "VARCHAR"]
        return f", FORCE_QUOTE ({', '.join(texts)})" if texts else ""

    @contextmanager
    def _watched(self, title: str) -> Iterator[None]:
        """Show how far the query is; another thread asks, because this one waits for the answer."""
        finished = threading.Event()
        with self._progress.task(title, 100) as tick:
            seen = 0.0

            def look() -> None:
                nonlocal seen
                while not finished.wait(_GLANCE):
                    percent = self._connection.query_progress()
                    if percent > seen:
                        tick(percent - seen)
                        seen = percent

            watcher = threading.Thread(target=look, daemon=True)
            watcher.start()
            try:
                yield
            finally:
                finished.set()
                watcher.join()
            tick(100 - seen)


def _refusal(failure: duckdb.Error, title: str) -> DatabaseFailed | WriteFailed:
    """What to say instead of DuckDB's own words, which may quote values of the data."""
    kind = type(failure).__name__
    if kind == "OutOfMemoryException":
        return DatabaseFailed(
            f"DuckDB ran out of its memory or its disk space while {title}.",
            fix="Raise `memory`, or name a larger disk with `temporary`.",
        )
    if kind == "IOException":
        return WriteFailed(f"DuckDB could not read or write while {title}.", fix="Check free space and permissions.")
    return DatabaseFailed(f"DuckDB failed while {title} ({kind}).", fix="Check the file with `sfumato profile`.")


@contextmanager
def on_duckdb(
    source: str | Path,
    *,
    options: Mapping[str, Any] | None = None,
    writes: Path | None,
    memory: str,
    threads: int | None,
    temporary: Path | None,
    progress: Progress,
) -> Iterator[LargeFileEngine]:
    """A locked-down DuckDB that reads the source, writes one file and reaches nothing else."""
    found = scan(source, **(options or {}))
    with found.connect(memory=memory, threads=threads, temporary=temporary, writes=writes, ordered=False) as connection:
        yield _DuckDB(connection, found.expression, progress)
