"""Aggregate reports from many Parquet files with an engine: DuckDB on one machine, Spark on many.

Both return tallies, the counts that :class:`~sfumato.collecting.collector.Collection` merges. DuckDB reads the
files in parallel and in batches, so that memory does not grow with their number. Spark computes one tally per partition
where the data is; only tallies reach the driver. Files of another survey are refused before any report is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sfumato.collecting.collector import Collection
from sfumato.collecting.survey import Survey
from sfumato.data.in_process import open_duckdb
from sfumato.engines.choice import masking_engine
from sfumato.errors import BadParameter, FileMissing

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
            raise BadParameter(f"{path} is no Parquet file.", fix="Count JSON lines without `engine`.", option="engine")
        files |= dict.fromkeys(file.resolve() for file in found)
    return list(files)


def tally_with_duckdb(survey: Survey, files: Sequence[Path], *, memory: str = _MEMORY) -> Collection:
    """Count all reports with DuckDB."""
    collection = _checked(survey, files)
    with open_duckdb(memory=memory, files=files, ordered=False) as connection:
        relation = connection.sql(
            "SELECT question, report FROM read_parquet(?)", params=[[str(file) for file in files]]
        )
        for batch in relation.to_arrow_reader(_ROWS):
            collection.add_batch(batch)
    return collection


def tally_with_engine(name: str, survey: Survey, files: Sequence[Path], *, memory: str = _MEMORY) -> Collection:
    """Count all reports with the engine of that name, which computes one tally per part where the part is."""
    engine = masking_engine(name, memory=memory)
    collection = _checked(survey, files)
    for tally in engine.map_parquet(files, ("question", "report"), _partial_tally(survey)):
        collection.merge(json.loads(tally))
    return collection


def _checked(survey: Survey, files: Sequence[Path]) -> Collection:
    collection = Collection(survey)
    for file in files:
        collection.check_file(file)
    return collection


def _partial_tally(survey: Survey) -> Callable[[Iterable[object]], str]:
    """The tally of one part, as text."""

    def tallied(batches: Iterable[object]) -> str:
        part = Collection(survey)
        for batch in batches:
            part.add_batch(batch)
        return json.dumps(part.to_dict())

    return tallied


def tally_reports(engine: str, survey: Survey, files: Sequence[Path]) -> Collection:
    """Count all reports with DuckDB, batch by batch, or with another engine, part by part."""
    return tally_with_duckdb(survey, files) if engine == "duckdb" else tally_with_engine(engine, survey, files)
