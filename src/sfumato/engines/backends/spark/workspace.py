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
from sfumato.engines.memory import memory_bytes
from sfumato.engines.workspace import Workspace
from sfumato.errors import DatabaseFailed, FileMissing, NotApplicable, SfumatoError, UnknownFormat


class SparkWorkspace(Workspace):
    """An isolated Spark session over one Parquet file or folder."""

    order: ClassVar[str] = "MD5({})"
    source = "sfumato_source"

    def __init__(self, session: Any, folder: Path, memory: int) -> None:
        self._session, self._folder, self.memory = session, folder, memory
        self._views: list[str] = [self.source]

    def _frame(self, statement: str) -> Any:
        import sqlglot

        [translated] = sqlglot.transpile(statement, read="duckdb", write="spark")
        return self._session.sql(translated)

    def open(self, path: Path, *, numbered: bool) -> None:
        """Register the source, with row numbers if wanted: those of a folder run through its files in order of name."""
        with _translated_errors("opening the source"):
            frame = self._session.read.parquet(path.resolve().as_uri())
            if numbered:
                frame, self.row_number = self._numbered(frame, path)
            frame.createOrReplaceTempView(self.source)

    def _numbered(self, frame: Any, path: Path) -> tuple[Any, str]:
        from pyarrow.parquet import read_metadata
        from pyspark.sql import functions

        row_number = "row_number"
        while row_number in {name.lower() for name in frame.columns}:
            row_number += "_"
        titles = [functions.col("`" + name.replace("`", "``") + "`") for name in frame.columns]
        within = functions.col("_metadata.row_index").alias(row_number)
        if path.is_file():
            return frame.select(*titles, within), row_number
        files = sorted(file for file in path.rglob("*") if file.is_file() and file.name[0] not in "._")
        if len({file.name for file in files}) < len(files):
            raise NotApplicable("Two files of the folder have the same name.", fix="Rename one, or write one file.")
        first, starts = 0, []
        for file in files:
            starts.append((file.name, first))
            first += read_metadata(file).num_rows
        offsets = self._session.createDataFrame(starts, ["sfumato_file", "sfumato_first"])
        named = frame.select(*titles, functions.col("_metadata.file_name").alias("sfumato_name"), within)
        joined = named.join(functions.broadcast(offsets), functions.expr("sfumato_name = sfumato_file"))
        number = functions.expr(f"sfumato_first + {row_number}").alias(row_number)
        return joined.select(*titles, number), row_number

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

    def store(self, name: str, frame: pl.DataFrame) -> None:
        path = self._folder / f"{name}.parquet"
        frame.write_parquet(path)
        self._session.read.parquet(path.as_uri()).createOrReplaceTempView(name)
        self._views.append(name)

    def write(self, statement: str, path: Path, suffix: str) -> None:
        if suffix not in (".parquet", ".pq"):
            raise UnknownFormat("Spark writes Parquet here.", fix="Name a target that ends in .parquet.")
        with tempfile.TemporaryDirectory(prefix="sfumato-spark-", dir=path.parent) as folder:
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
    except SfumatoError:
        raise
    except Exception as failure:
        raise DatabaseFailed(
            f"Spark failed while {title} ({type(failure).__name__}).", fix="Spark's own log says more."
        ) from None


@contextmanager
def open_workspace(
    source: str | Path,
    *,
    options: Mapping[str, Any] | None,
    numbered: bool,
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
    with (
        tempfile.TemporaryDirectory(prefix="sfumato-spark-", dir=temporary) as folder,
        spark_session(memory=memory, threads=threads, temporary=temporary) as session,
    ):
        workspace = SparkWorkspace(isolated(session), Path(folder).resolve(), memory_bytes(memory))
        try:
            workspace.open(path, numbered=numbered)
            yield workspace
        finally:
            workspace.close()
