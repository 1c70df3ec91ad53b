"""Spark: the active session on a cluster, or local mode on one machine."""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import AbstractContextManager, contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import Field

from sfumato.data.declared import frame_cells
from sfumato.engines.backends.spark.dialect import SparkGenerator
from sfumato.engines.backends.spark.session import isolated, spark_session, start_session
from sfumato.engines.backends.spark.workspace import open_workspace
from sfumato.engines.cancellation import interruptible
from sfumato.engines.engine import Engine, Running, failed
from sfumato.engines.generator import Columns
from sfumato.engines.statements import Query
from sfumato.engines.workspace import Workspace
from sfumato.errors import DatabaseFailed, FileMissing, UnknownFormat
from sfumato.progress import SILENT, Progress
from sfumato.secret import SecretValue

_KINDS = {
    "tinyint": "int", "smallint": "int", "int": "int", "bigint": "int", "float": "single", "double": "float",
    "string": "text", "date": "date", "timestamp_ntz": "time", "timestamp": "stored time", "boolean": "flag",
}  # fmt: skip
_MOMENTS = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
_CALENDAR = {"date": ("0001-01-01", "9999-12-31"), "timestamp": _MOMENTS, "timestamp_ntz": _MOMENTS}
"""First and last value of stored types that are read."""
_CANCELLATIONS = 50


class Spark(Engine):
    """Answer from Parquet files and frames, in the Spark session that is active or in a local one.

    Questions run in a session of their own with ANSI mode off, in which no value makes an expression raise, and with a
    time limit. Numbers equal those of the other engines to the last bit; what Spark cannot compute so (casts from
    floats to text, text columns that are declared to be something else, decimals of more than 18 digits) is refused
    before it costs anything. Sums of squares beyond 38 digits, which only norm clipping with extreme bounds can reach,
    leave their unit out.
    """

    suffixes = (".parquet",)
    writes = (".parquet", ".pq")
    examples = ({"threads": 1, "timeout": 120},)
    reference = "Armbrust et al. (2015), doi:10.1145/2723372.2742797"

    threads: Annotated[int, Field(ge=1)] | None = None
    """Number of cores that a local session may use; all if left out."""
    memory: str = "2g"
    """Memory of a local session, for example 4GB."""
    order: Literal["fast", "sha256"] = "fast"
    """How the groups of a unit that count are chosen: by the engine's own hash, or by the one that all engines share,
    which takes longer and gives the same numbers on each of them."""
    timeout: Annotated[float, Field(gt=0, le=86_400)] = 600
    """Seconds after which a statement is given up. That it was is visible and its cost stays charged."""

    def start(self, tables: Mapping[str, object]) -> Running:
        return _RunningSpark(self, tables)

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
            numbered=numbered,
            memory=self.memory,
            threads=self.threads,
            temporary=temporary,
        )

    def map_parquet(
        self, files: Sequence[Path], columns: Sequence[str], summarize: Callable[[Iterable[Any]], str]
    ) -> list[str]:
        def summarized(batches: Iterable[object]) -> Iterator[Any]:
            import pyarrow as pa

            yield pa.RecordBatch.from_pydict({"summary": [summarize(batches)]})

        with spark_session(memory=self.memory, threads=self.threads) as session:
            if session.sparkContext.master.startswith("local"):
                session.sparkContext.pythonExec = sys.executable  # workers of this machine need the same packages
            try:
                frame = session.read.parquet(*[file.as_uri() for file in files]).select(*columns)
                rows = frame.mapInArrow(summarized, "summary string").collect()
            except Exception as failure:
                raise DatabaseFailed(
                    f"Spark could not summarize the files ({type(failure).__name__}).",
                    fix="Its workers need sfumato and access to the files; without `engine`, `collect estimate` "
                    "names a report that is not well-formed.",
                    option="engine",
                ) from None
        return [row["summary"] for row in rows]

    @contextmanager
    def keep_open(self) -> Iterator[None]:
        with spark_session(memory=self.memory, threads=self.threads):
            yield


class _RunningSpark(Running):
    def __init__(self, setup: Spark, tables: Mapping[str, object]) -> None:
        self._lock = threading.Lock()
        self._timeout = setup.timeout
        self._tables = tuple(tables)
        for source in tables.values():
            _check(source)
        self._session: Any = isolated(start_session(memory=setup.memory, threads=setup.threads))
        columns: dict[str, Columns] = {}
        try:
            for name, source in tables.items():
                frame = _within(self._frame(source))
                frame.createOrReplaceTempView(SparkGenerator({}).name(name))
                columns[name] = {title: _kind(kind) for title, kind in frame.dtypes}
        except Exception as failure:
            # Spark's own words may quote values.
            raise DatabaseFailed(f"Spark cannot read the tables ({type(failure).__name__}).") from None
        self._generator = SparkGenerator(columns, own_hash=setup.order == "fast")

    def _frame(self, source: Any) -> Any:
        if isinstance(source, str | Path):
            return self._session.read.parquet(Path(source).resolve().as_uri())
        frame = frame_cells(source)
        wide = [name for name, dtype in frame.schema.items() if dtype in (pl.UInt64, pl.Int128)]
        small = [name for name, dtype in frame.schema.items() if dtype.is_unsigned_integer() and name not in wide]
        named = frame.with_columns(
            pl.col(small).cast(pl.Int64),
            pl.col(wide).cast(pl.Decimal(38, 0), strict=False),
            pl.col(pl.Categorical, pl.Enum).cast(pl.String),
        )
        return self._session.createDataFrame(named.to_arrow(compat_level=pl.CompatLevel.oldest()))

    def check(self, query: Query) -> None:
        self._generator.write(query)

    def run(self, query: Query) -> SecretValue[list[tuple[Any, ...]]]:
        try:
            with self._lock:
                return SecretValue(
                    [tuple(_plain(value) for value in row) for row in self._rows(self._generator.write(query))]
                )
        except Exception:
            raise failed() from None

    def _rows(self, sql: str) -> list[Any]:
        """The rows, computed in a separate thread, so that the time limit covers planning as well as running."""
        session, group = self._session, f"sfumato {uuid.uuid4().hex}"
        context, result = session.sparkContext, Future[list[Any]]()

        def work() -> None:
            try:
                context.setJobGroup(group, "sfumato", interruptOnCancel=True)
                rows = session.sql(sql).collect()
                with suppress(InvalidStateError):
                    result.set_result(rows)
            except BaseException as failure:
                with suppress(InvalidStateError):
                    result.set_exception(failure)

        def interrupt() -> None:
            with suppress(InvalidStateError):
                result.set_exception(TimeoutError())

        thread = threading.Thread(target=work, name=group, daemon=True)
        thread.start()
        try:
            with interruptible(interrupt):
                return result.result(self._timeout)
        except TimeoutError:
            # A statement that is still being planned has no job to cancel yet, so cancelling is repeated.
            for _ in range(_CANCELLATIONS):
                context.cancelJobGroup(group)
                thread.join(0.1)
                if not thread.is_alive():
                    break
            raise

    def close(self) -> None:
        """Forget the tables; the Spark session itself belongs to the process."""
        if self._session is not None:
            for name in self._tables:
                self._session.catalog.dropTempView(name)
        self._session = None


def _within(frame: Any) -> Any:
    """Dates and times outside the calendar are missing: to convert one, or to take its week, can fail. Bytes that are
    no text are, too: two such keys would look alike here, and one take the other's place."""
    from pyspark.sql import functions

    kept = []
    for title, kind in frame.dtypes:
        x = functions.col(SparkGenerator({}).name(title))
        if kind in _CALENDAR:
            low, high = (functions.lit(end).cast(kind) for end in _CALENDAR[kind])
            x = functions.when((x >= low) & (x <= high), x).alias(title)
        elif kind == "string":
            x = functions.try_validate_utf8(x).alias(title)
        kept.append(x)
    return frame.select(kept)


def _check(source: Any) -> None:
    if isinstance(source, str | Path):
        path = Path(source)
        if not path.exists():
            raise FileMissing(f"There is no file `{path}`.", fix="Check the path in the metadata.")
        if path.suffix.lower() != ".parquet":
            raise UnknownFormat(
                f"Spark answers from Parquet files and frames, not from `{path.name}`.", fix="Use DuckDB, or Parquet."
            )


def _kind(name: str) -> str:
    if not name.startswith("decimal("):
        return _KINDS.get(name, "other")
    digits, places = map(int, name[8:-1].split(","))
    plain = places <= 6  # with more, text may come out in scientific notation
    return ("decimal" if plain else "fine decimal") if digits <= 18 else "wide decimal" if plain else "other"


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value
