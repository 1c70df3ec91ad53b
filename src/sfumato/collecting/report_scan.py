"""Aggregate reports from many Parquet files with an engine: DuckDB on one machine, Spark on many.

Both return tallies, the counts that :class:`~sfumato.collecting.collector.Collection` merges. DuckDB reads the
files in parallel and in batches, so that memory does not grow with their number. Spark computes one tally per partition
where the data is; only tallies reach the driver. Files of another survey are refused before any report is read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sfumato.collecting.collector import Collection
from sfumato.collecting.survey import Survey
from sfumato.engines.backends.spark.session import spark_session
from sfumato.errors import BadParameter, DatabaseFailed, FileMissing

__all__ = ["SCANS", "parquet_files", "tally_with_duckdb", "tally_with_spark"]

_ROWS = 1 << 18
_MEMORY = "1GB"


def parquet_files(paths: Sequence[Path]) -> list[Path]:
    """The Parquet files of paths, folders and patterns such as `reports/*.parquet`, each once.

    A folder stands for all Parquet files below it.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found = sorted(path.rglob("*.parquet"))
        elif path.exists() or "*" not in path.name:
            found = [path]
        else:
            found = sorted(path.parent.glob(path.name))
        if not found:
            raise FileMissing(f"{path} has no Parquet files.", path=str(path))
        if any(file.suffix != ".parquet" for file in found):
            raise BadParameter(f"{path} is no Parquet file.", fix="Count JSON lines without --engine.")
        files |= dict.fromkeys(file.resolve() for file in found)
    return list(files)


def tally_with_duckdb(survey: Survey, files: Sequence[Path], *, memory: str = _MEMORY) -> Collection:
    """Count all reports with DuckDB."""
    import duckdb

    collection = _checked(survey, files)
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET memory_limit = ?", [memory])
        connection.execute("SET preserve_insertion_order = false")
        relation = connection.sql(
            "SELECT question, report FROM read_parquet(?)", params=[[str(file) for file in files]]
        )
        for batch in relation.to_arrow_reader(_ROWS):
            collection.add_batch(batch)
    return collection


def tally_with_spark(survey: Survey, files: Sequence[Path], *, memory: str = _MEMORY) -> Collection:
    """Count all reports with Spark: the active session, or a local one."""
    collection = _checked(survey, files)
    with spark_session(memory=memory) as session:
        if session.sparkContext.master.startswith("local"):
            session.sparkContext.pythonExec = sys.executable  # workers of this machine need the same packages
        try:
            frame = session.read.parquet(*[file.as_uri() for file in files]).select("question", "report")
            rows = frame.mapInArrow(_partial_tallies(survey), "tally string").collect()
        except Exception as failure:
            raise DatabaseFailed(
                f"Spark could not count the reports ({type(failure).__name__}).",
                fix="Its workers need sfumato and access to the files; `collect estimate` without --engine names a "
                "report that is not well-formed.",
            ) from None
    for row in rows:
        collection.merge(json.loads(row["tally"]))
    return collection


def _checked(survey: Survey, files: Sequence[Path]) -> Collection:
    collection = Collection(survey)
    for file in files:
        collection.check_file(file)
    return collection


def _partial_tallies(survey: Survey) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The tally of one partition, as one row of text."""

    def tallied(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        part = Collection(survey)
        for batch in batches:
            part.add_batch(batch)
        yield pa.RecordBatch.from_pydict({"tally": [json.dumps(part.to_dict())]})

    return tallied


SCANS: dict[str, Callable[..., Collection]] = {"duckdb": tally_with_duckdb, "spark": tally_with_spark}
