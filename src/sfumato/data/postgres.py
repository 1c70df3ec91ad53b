"""Tables and queries of PostgreSQL, streamed by COPY into Arrow."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import polars as pl

from sfumato.data.format import library
from sfumato.data.table import Table, refuse_duplicates
from sfumato.data.url import Address
from sfumato.errors import DatabaseFailed

if TYPE_CHECKING:
    import pyarrow as pa

_WHOLE, _FLOAT, _NUMERIC, _BOOLEAN = {20, 21, 23}, {700, 701}, 1700, 16
_DATE, _TIME, _MOMENT, _ZONED = 1082, 1083, 1114, 1184
"""Numbers of PostgreSQL's types (the OIDs in its catalogue pg_type)."""


class _Stream(io.RawIOBase):
    """The bytes of a COPY as a file that is read once, so that the server sends while we parse."""

    def __init__(self, pieces: Iterator[Any]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def read_postgres(address: Address) -> Table:
    """Read what the address names, in a read-only transaction.

    Whole numbers of any width become 64-bit integers, ``numeric`` becomes whole numbers where its scale is 0 and it
    has at most 18 digits, else floats; types without a counterpart (json, arrays, uuid, ...) come as their text.
    """
    psycopg = library("psycopg", extra="postgres", why="Reading PostgreSQL")
    try:
        with psycopg.connect(address.location, connect_timeout=10) as connection:
            connection.read_only = True
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL TIME ZONE 'UTC'")
                cursor.execute("SET LOCAL datestyle = 'ISO'")
                cursor.execute("SET LOCAL client_encoding = 'UTF8'")
                if address.table is not None:
                    name = psycopg.sql.Identifier(*address.table.split("."))
                    statement = psycopg.sql.SQL("SELECT * FROM {}").format(name).as_string(connection)
                else:
                    statement = (address.query or "").strip().rstrip(";")
                # The binary flag makes it one prepared statement: a second one after a semicolon is refused.
                cursor.execute(f"SELECT * FROM ({statement}) AS source LIMIT 0", binary=True)
                columns = list(cursor.description)
                refuse_duplicates([column.name for column in columns])
                with cursor.copy(f"COPY ({statement}) TO STDOUT (FORMAT csv)") as copy:
                    return Table(frame=_parse(iter(copy), columns, address), origin="database")
    except psycopg.Error as failure:
        raise _refused(failure, address) from None


def _parse(pieces: Iterator[Any], columns: list[Any], address: Address) -> pl.DataFrame:
    import pyarrow as pa
    from pyarrow import csv

    names = [column.name for column in columns]
    types = {column.name: _arrow_type(column) for column in columns}
    first = next(pieces, None)
    if first is None:
        return pl.DataFrame(pa.schema(types.items()).empty_table())

    def again() -> Iterator[Any]:
        yield first
        yield from pieces

    try:
        with csv.open_csv(
            pa.PythonFile(io.BufferedReader(_Stream(again()), 1 << 20), mode="r"),
            read_options=csv.ReadOptions(column_names=names, block_size=1 << 23),
            parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=["t"],
                false_values=["f"],
            ),
        ) as reader:
            return pl.DataFrame(reader.read_all())
    except pa.ArrowInvalid:
        raise DatabaseFailed(
            f"{address.name}: a value has no counterpart here, for example a date before Christ or infinity.",
            fix="Cast the column in a ?query=.",
        ) from None


def _arrow_type(column: Any) -> pa.DataType:
    import pyarrow as pa

    match column.type_code:
        case code if code in _WHOLE:
            return pa.int64()
        case code if code in _FLOAT:
            return pa.float64()
        case code if code == _NUMERIC:
            whole = column.scale == 0 and column.precision is not None and column.precision <= 18
            return pa.int64() if whole else pa.float64()
        case code if code == _BOOLEAN:
            return pa.bool_()
        case code if code == _DATE:
            return pa.date32()
        case code if code == _TIME:
            return pa.time64("us")
        case code if code == _MOMENT:
            return pa.timestamp("us")
        case code if code == _ZONED:
            return pa.timestamp("us", tz="UTC")
        case _:
            return pa.large_string()


def _refused(failure: Any, address: Address) -> DatabaseFailed:
    """PostgreSQL's own words only where they speak of the SQL (class 42): others may quote data."""
    state = failure.sqlstate or ""
    if not state:
        return DatabaseFailed(
            f"PostgreSQL at {address.name} cannot be reached, or refuses the login.",
            fix="Check host, port, user and password, and that the server runs.",
            database=address.name,
        )
    words = failure.diag.message_primary if state.startswith("42") else f"error {state}"
    return DatabaseFailed(
        f"{address.name}: {words}", fix="Check the table or query.", database=address.name, sqlstate=state
    )
