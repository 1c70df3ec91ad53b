"""Large releases in Spark: a cluster, or local mode on one machine."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from sfumato.errors import DatabaseFailed, ExtraMissing, FileMissing, NotApplicable, UnknownFormat, missing_extra
from sfumato.masking.out_of_core.engine import LargeFileEngine

__all__ = ["on_spark", "spark_session"]

_SOURCE = "sfumato_source"


class _Spark(LargeFileEngine):
    order: ClassVar[str] = "MD5({})"
    source = _SOURCE

    def __init__(self, session: Any, temporary: Path | None) -> None:
        self._session, self._temporary = session, temporary
        self._views: list[str] = [_SOURCE]

    def _frame(self, statement: str) -> Any:
        import sqlglot

        [spoken] = sqlglot.transpile(statement, read="duckdb", write="spark")
        return self._session.sql(spoken)

    def query(self, statement: str, title: str) -> pl.DataFrame:
        with _plain_words(title):
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
            parts = Path(folder, "parts")
            with _plain_words("writing"):
                frame = self._frame(statement)
                frame.coalesce(1).write.option("compression", "zstd").parquet(parts.as_uri())
            [written] = parts.glob("part-*.parquet")
            os.replace(written, path)

    def forget(self) -> None:
        for name in self._views:
            self._session.catalog.dropTempView(name)


@contextmanager
def _plain_words(title: str) -> Iterator[None]:
    """Spark's own words may quote values of the data, so only the kind of failure is told."""
    try:
        yield
    except Exception as failure:
        raise DatabaseFailed(
            f"Spark failed while {title} ({type(failure).__name__}).", fix="Spark's own log says more."
        ) from None


@contextmanager
def spark_session(session: Any, *, memory: str, threads: int | None, temporary: Path | None) -> Iterator[Any]:
    """The given session, the one that is active, or a local one of our own that ends here."""
    _need_spark()
    from pyspark.sql import SparkSession

    found = session if session is not None else SparkSession.getActiveSession()
    if found is not None:
        yield found
        return
    own = _local(memory, threads, temporary)
    try:
        yield own
    finally:
        own.stop()


@contextmanager
def on_spark(
    source: str | Path,
    *,
    options: Mapping[str, Any] | None = None,
    memory: str,
    threads: int | None,
    temporary: Path | None,
    session: Any = None,
) -> Iterator[LargeFileEngine]:
    """Spark over a Parquet file or folder."""
    _need_spark()
    if options:
        raise NotApplicable(
            f"Spark reads Parquet as it is, without the option `{next(iter(options))}`.", fix="Leave it out."
        )
    place = Path(source)
    if not place.exists():
        raise FileMissing(f"There is no file {place}.", fix="Check the path.", path=str(place))
    if place.is_file() and place.suffix.lower() not in (".parquet", ".pq"):
        raise UnknownFormat(
            f"Spark reads Parquet here, not `{place.suffix}`.", fix="Convert the file to Parquet, or use DuckDB."
        )
    with spark_session(session, memory=memory, threads=threads, temporary=temporary) as found:
        engine = _Spark(found, temporary)
        try:
            with _plain_words("opening the source"):
                found.read.parquet(place.resolve().as_uri()).createOrReplaceTempView(_SOURCE)
            yield engine
        finally:
            engine.forget()


def _local(memory: str, threads: int | None, temporary: Path | None) -> Any:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(f"local[{threads or '*'}]")
        .appName("sfumato")
        .config("spark.driver.memory", memory.lower().replace("ib", "").replace("b", ""))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(2 * (threads or os.cpu_count() or 2)))
        .config("spark.log.level", "ERROR")
    )
    if temporary is not None:
        builder = builder.config("spark.local.dir", str(temporary))
    return builder.getOrCreate()


def _need_spark() -> None:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise missing_extra("spark", "pyspark", needed_by="Spark") from None
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and Path(home, "bin", "java").exists()):
        raise ExtraMissing(
            "Spark needs Java 17 or 21, and none was found.",
            fix="Install one (Debian, Ubuntu: `apt install openjdk-17-jre-headless`; macOS: `brew install openjdk@17`; "
            "conda: `conda install openjdk=17`) and put it on PATH or set JAVA_HOME.",
        )
