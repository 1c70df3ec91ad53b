"""Masking out of core in Spark: on a cluster, or in local mode on one machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from sfumato.engines.backends.spark.session import isolated, require_spark, spark_session
from sfumato.engines.workspace import Workspace
from sfumato.errors import DatabaseFailed, FileMissing, NotApplicable, UnknownFormat

__all__ = ["open_workspace"]


class SparkWorkspace(Workspace):
    """An isolated Spark session over one Parquet file or folder."""

    order: ClassVar[str] = "MD5({})"
    source = "sfumato_source"

    def __init__(self, session: Any, temporary: Path | None) -> None:
        self._session, self._temporary = session, temporary
        self._views: list[str] = [self.source]

    def _frame(self, statement: str) -> Any:
        import sqlglot

        [translated] = sqlglot.transpile(statement, read="duckdb", write="spark")
        return self._session.sql(translated)

    def open(self, path: Path) -> None:
        """Register the source."""
        with _translated_errors("opening the source"):
            self._session.read.parquet(path.resolve().as_uri()).createOrReplaceTempView(self.source)

    def query(self, statement: str, title: str) -> pl.DataFrame:
        with _translated_errors(title):
            frame = pl.from_arrow(self._frame(statement).toArrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def put(self, name: str, frame: pl.DataFrame) -> None:
        # Spark has no large_string, no unsigned numbers and no categories
        arrow = frame.with_columns(pl.col(pl.Categorical).cast(pl.String)).to_arrow(
            compat_level=pl.CompatLevel.oldest()
        )
        self._session.createDataFrame(arrow).createOrReplaceTempView(name)
        self._views.append(name)

    def write(self, statement: str, path: Path, suffix: str) -> None:
        if suffix not in (".parquet", ".pq"):
            raise UnknownFormat("Spark writes Parquet here.", fix="Name a target that ends in .parquet.")
        with tempfile.TemporaryDirectory(prefix="sfumato-spark-", dir=self._temporary or path.parent) as folder:
            parts = Path(folder, "parts").resolve()
            with _translated_errors("writing"):
                frame = self._frame(statement)
                frame.coalesce(1).write.option("compression", "zstd").parquet(parts.as_uri())
            [written] = parts.glob("part-*.parquet")
            os.replace(written, path)

    def close(self) -> None:
        """Drop the views. The session may live on."""
        for name in self._views:
            self._session.catalog.dropTempView(name)


@contextmanager
def _translated_errors(title: str) -> Iterator[None]:
    """Raise errors without Spark's own message, which may quote values of the data."""
    try:
        yield
    except Exception as failure:
        raise DatabaseFailed(
            f"Spark failed while {title} ({type(failure).__name__}).", fix="Spark's own log says more."
        ) from None


@contextmanager
def open_workspace(
    source: str | Path,
    *,
    options: Mapping[str, Any] | None,
    memory: str,
    threads: int | None,
    temporary: Path | None,
) -> Iterator[Workspace]:
    """Spark over a Parquet file or folder."""
    require_spark()
    if options:
        raise NotApplicable(
            f"Spark reads Parquet as it is, without the option `{next(iter(options))}`.", fix="Leave it out."
        )
    path = Path(source)
    if not path.exists():
        raise FileMissing(f"There is no file {path}.", fix="Check the path.", path=str(path))
    if path.is_file() and path.suffix.lower() not in (".parquet", ".pq"):
        raise UnknownFormat(
            f"Spark reads Parquet here, not `{path.suffix}`.", fix="Convert the file to Parquet, or use DuckDB."
        )
    with spark_session(memory=memory, threads=threads, temporary=temporary) as session:
        workspace = SparkWorkspace(isolated(session), temporary)
        try:
            workspace.open(path)
            yield workspace
        finally:
            workspace.close()
