"""PostgreSQL: queries tables of a server over a read-only connection."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import polars as pl
from pydantic import Field

from sfumato.data.declared import frame_cells
from sfumato.data.sql_quoting import quoted_name
from sfumato.engines.backends.postgres.dialect import PostgresGenerator
from sfumato.engines.cancellation import interruptible
from sfumato.engines.engine import Engine, Running, failed
from sfumato.engines.generator import Columns
from sfumato.engines.statements import Query
from sfumato.errors import DatabaseFailed, UnknownFormat
from sfumato.extras import missing_extra
from sfumato.secret import SecretValue

_KINDS = {
    "int2": "int", "int4": "int", "int8": "int", "float4": "single", "float8": "float", "numeric": "decimal",
    "text": "text", "varchar": "text", "bpchar": "stored text", "name": "stored text", "uuid": "stored text",
    "date": "stored date", "timestamp": "stored time", "timestamptz": "stored time", "bool": "flag",
}  # fmt: skip
_SETTINGS = (
    "SET TimeZone = 'UTC'", "SET DateStyle = 'ISO'", "SET standard_conforming_strings = on",
    "SET extra_float_digits = 3",  # else two keys can look alike, and one takes the other's place
    "SET IntervalStyle = 'postgres'", "SET bytea_output = 'hex'",
    "SET client_min_messages = 'error'", "SET search_path = pg_catalog, pg_temp", "SET jit = off",
    "SET work_mem = '64MB'", "SET max_parallel_workers_per_gather = 2",
    "SET default_transaction_read_only = on",
)  # fmt: skip
_CANCEL_SECONDS = 10


class Postgres(Engine):
    """Answer from tables of a PostgreSQL server; only bounded sums and counts leave it.

    A table is named by the server's address and its own name: ``postgresql://user@host/base#schema.table``. Every
    statement runs in a read-only transaction with a time limit. Frames, such as public tables, are copied into
    temporary tables of the connection. Numbers equal those of the other engines to the last bit; what PostgreSQL cannot
    compute so (casts from floats to text, text columns that are declared to be something else) is refused before it
    costs anything. Dates outside the years 1 to 9999, and decimals outside the range of floats, are read as missing.

    Give the connection a user that may only SELECT from the tables in question.
    """

    examples = ({"url": "postgresql://sfumato@localhost/hospital"}, {"timeout": 30})
    reference = "Stonebraker, Rowe (1986), doi:10.1145/16894.16888"

    url: str | None = Field(default=None, repr=False)
    """Address of the server; taken from the tables' own addresses when left out."""
    order: Literal["fast", "sha256"] = "fast"
    """How the groups of a unit that count are chosen: by the engine's own hash, or by the one that all engines share,
    which takes longer and gives the same numbers on each of them."""
    timeout: Annotated[float, Field(gt=0, le=86_400)] = 600
    """Seconds after which a statement is given up. That it was is visible and its cost stays charged."""

    def start(self, tables: Mapping[str, object]) -> Running:
        return _RunningPostgres(self, tables)


class _RunningPostgres(Running):
    def __init__(self, setup: Postgres, tables: Mapping[str, object]) -> None:
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise missing_extra("postgres", "psycopg", needed_by="PostgreSQL") from None
        self._lock = threading.Lock()
        self._tables, self._timeout, self._own_hash = tables, setup.timeout, setup.order == "fast"
        places = {name: _place(name, source) for name, source in tables.items() if isinstance(source, str)}
        servers = {server for server, _ in places.values()} | ({setup.url} if setup.url else set())
        if len(servers) != 1:
            raise DatabaseFailed(
                f"the tables are at {len(servers)} addresses; one is needed.",
                fix="Give the engine its url, and name tables as postgresql://user@host/base#schema.table.",
            )
        self._places, self._server = {name: place for name, (_, place) in places.items()}, servers.pop()
        self._open()

    def _open(self) -> None:
        """Connect, find the tables and copy the frames."""
        import psycopg

        columns: dict[str, Columns] = {}
        names: dict[str, str] = {}
        try:
            self._connection = psycopg.connect(self._server, autocommit=True, connect_timeout=10)
        except psycopg.Error:
            raise _unreachable() from None
        try:
            run = self._connection.execute
            if self._connection.info.parameter_status("server_encoding") != "UTF8":
                raise DatabaseFailed(
                    "The database is not encoded in UTF-8.", fix="Texts cannot be read alike otherwise."
                )
            run("SET client_encoding = 'UTF8'")
            for place, (name, source) in enumerate(self._tables.items()):
                if name in self._places:
                    names[name] = _found(self._connection, self._places[name])
                else:
                    names[name] = f'pg_temp."sfumato_{place}"'
                    _load(self._connection, f"sfumato_{place}", source)
                columns[name] = _columns(self._connection, names[name])
            for setting in _SETTINGS:
                run(setting.encode())
            run(f"SET statement_timeout = {int(self._timeout * 1000)}".encode())
            run(f"SET lock_timeout = {int(self._timeout * 1000)}".encode())
        except psycopg.Error:
            self._connection.close()
            raise _unreachable() from None
        except BaseException:
            self._connection.close()
            raise
        self._generator = PostgresGenerator(columns, names, own_hash=self._own_hash)

    def connect(self) -> None:
        import psycopg

        with self._lock:
            try:
                self._connection.execute(b"SELECT 1", prepare=False)
            except psycopg.Error:
                self._connection.close()
                self._open()

    def check(self, query: Query) -> None:
        self._generator.write(query)

    def run(self, query: Query) -> SecretValue[list[tuple[Any, ...]]]:
        try:
            with self._lock, interruptible(self._interrupt):
                cursor = self._connection.execute(self._generator.write(query).encode(), prepare=False)
                return SecretValue([tuple(_plain(value) for value in row) for row in cursor.fetchall()])
        except Exception:
            raise failed() from None

    def _interrupt(self) -> None:
        """Ask the server to end the statement that runs."""
        with suppress(Exception):  # a server that does not reply ends it by its own time limit
            self._connection.cancel_safe(timeout=_CANCEL_SECONDS)

    def close(self) -> None:
        self._connection.close()


def _unreachable() -> DatabaseFailed:
    return DatabaseFailed(
        "The PostgreSQL server or one of the tables cannot be read. Nothing was charged.",
        fix="Check that the server runs, the address, the table's name and the rights of the user.",
    )


def _place(name: str, source: str) -> tuple[str, str]:
    """The server's address and the table's quoted name."""
    parts = urlsplit(source)
    if parts.scheme not in ("postgresql", "postgres"):
        raise UnknownFormat(
            "PostgreSQL answers from its own tables and from frames, not from files.",
            fix="Name the table as postgresql://user@host/base#schema.table, or use DuckDB.",
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    path = options.pop("table", "") or unquote(parts.fragment) or name
    server = parts._replace(fragment="", query=urlencode(options, quote_via=quote))
    return urlunsplit(server), ".".join(quoted_name(part) for part in path.split("."))


def _found(connection: Any, place: str) -> str:
    """The name with its schema: later statements look nowhere else."""
    query = "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    row = connection.execute(f"{query} WHERE c.oid = %s::regclass".encode(), [place]).fetchone()
    return ".".join(quoted_name(part) for part in row)


def _columns(connection: Any, place: str) -> Columns:
    """The kind of every column, from the declaration and no row."""
    description = connection.execute(f"SELECT * FROM {place} LIMIT 0".encode()).description or []
    registry = connection.adapters.types
    known = {column.name: registry.get(column.type_code) for column in description}
    # An array is registered with the type of what is in it.
    plain = {column.name for column in description if known[column.name] and known[column.name].oid == column.type_code}
    return {name: _KINDS.get(info.name, "other") if name in plain else "other" for name, info in known.items()}


def _load(connection: Any, name: str, source: Any) -> None:
    if not isinstance(source, pl.DataFrame) and not hasattr(source, "__arrow_c_stream__"):
        raise UnknownFormat(
            "PostgreSQL answers from its own tables and from frames, not from files.",
            fix="Name the table as postgresql://user@host/base#schema.table, or use DuckDB.",
        )
    frame = frame_cells(source)
    types = [_stored(dtype) for dtype in frame.dtypes]
    columns = ", ".join(f"{quoted_name(column)} {kind}" for column, kind in zip(frame.columns, types, strict=True))
    connection.execute(f"CREATE TEMPORARY TABLE {quoted_name(name)} ({columns})".encode())
    with connection.cursor().copy(f"COPY {quoted_name(name)} FROM STDIN".encode()) as copy:
        for row in frame.iter_rows():
            copy.write_row(row)


def _stored(dtype: pl.DataType) -> str:
    if dtype.is_integer():
        return "numeric" if dtype == pl.UInt64 or dtype == pl.Int128 else "bigint"
    if dtype.is_float():
        return "double precision"
    match dtype.base_type():
        case pl.Boolean:
            return "boolean"
        case pl.Date:
            return "date"
        case pl.Datetime:
            return "timestamp"
        case pl.Decimal:
            return "numeric"
        case pl.String | pl.Categorical | pl.Enum | pl.Null:
            return "text"
    raise UnknownFormat("A column of this frame has a type that PostgreSQL does not know.", fix="Leave it out.")


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value
