"""DuckDB database files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from sfumato.data.format import Format, what_it_is
from sfumato.data.in_process import open_duckdb
from sfumato.data.sql_quoting import quoted_name
from sfumato.data.table import Table, refuse_duplicates
from sfumato.errors import DatabaseFailed, NotThatFormat
from sfumato.wording import did_you_mean

if TYPE_CHECKING:
    import duckdb


class Database(Format):
    """A table or a query of a DuckDB file (.duckdb), read-only and with no access to other files or the network.

    The same by URL: ``duckdb:///people.duckdb?table=people``; two slashes more for an absolute path. PostgreSQL is
    read by URL only: ``postgresql://host/db?table=people`` or ``?query=SELECT ...``. Writing makes a new DuckDB file
    with one table.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".duckdb",)
    typed: ClassVar[bool] = True
    main: ClassVar[str | None] = "table"
    examples = ({}, {"table": "people"})

    table: str | None = None
    """The table to read, or to make (``data`` when not given). Not needed to read a file that has one table only."""
    query: str | None = None
    """A SELECT to read instead of a table."""

    def check(self, path: Path) -> None:
        with path.open("rb") as file:
            head = file.read(16)
        if head and head[8:12] != b"DUCK":
            raise NotThatFormat(
                f"{path.name} is not a DuckDB file: {what_it_is(head)}.",
                fix="Name it by its real format.",
                path=str(path),
            )

    def read(self, path: Path) -> Table:
        import duckdb

        with self.opened(path) as (connection, statement):
            try:
                asked = connection.sql(statement)
                refuse_duplicates(asked.columns)
                result: Any = connection.sql(_plain(statement, asked)).to_arrow_table()
            except duckdb.Error as failure:
                raise refused(path.name, failure) from None
        frame = pl.DataFrame(result)
        # DuckDB names the zone of the machine it runs on; the moment is the same, and so should be the table.
        frame = frame.with_columns(pl.selectors.datetime(time_zone="*").dt.convert_time_zone("UTC"))
        return Table(frame=frame, origin="database")

    @contextmanager
    def opened(self, path: Path) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
        """A locked-down connection with the file attached read-only as ``source``, and the SELECT to run."""
        import duckdb

        with ExitStack() as stack:
            try:
                connection = stack.enter_context(open_duckdb(attached=path))
            except duckdb.Error:
                raise DatabaseFailed(
                    f"{path.name} cannot be opened: it is damaged, newer than this DuckDB, or in use.",
                    fix="Close the program that writes to it.",
                    path=str(path),
                ) from None
            yield connection, self._statement(connection, path)

    def _statement(self, connection: duckdb.DuckDBPyConnection, path: Path) -> str:
        if self.query is not None:
            return single_select(connection, self.query)
        places = _places(connection)
        name = (self.table or (next(iter(places), "") if len(places) == 1 else "")).removeprefix("main.")
        if name not in places:
            said = f"has no table `{name}`" if name else f"has {len(places)} tables"
            raise DatabaseFailed(
                f"{path.name} {said}.", fix="Name one with ?table=. " + did_you_mean(name, places), path=str(path)
            )
        return f"SELECT * FROM {places[name]}"

    def write(self, table: Table, path: Path) -> None:
        import duckdb

        try:
            with open_duckdb(attached=path, writable=True) as connection:
                connection.register("incoming", table.frame.to_arrow())
                connection.execute(f"CREATE TABLE {identifier(self.table or 'data')} AS SELECT * FROM incoming")
        except duckdb.IOException as failure:
            raise OSError(0, "the database file could not be written") from failure


def _places(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The tables of ``source`` by name (with their schema, unless that is the main one), as SQL writes them."""
    found = connection.execute(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'source' ORDER BY ALL"
    ).fetchall()
    return {
        table if schema == "main" else f"{schema}.{table}": f"{quoted_name(schema)}.{quoted_name(table)}"
        for schema, table in found
    }


def _plain(statement: str, asked: Any) -> str:
    """The same rows with intervals and the like as text, and whole numbers of 128 bits as floats."""
    chosen = []
    for name, kind in zip(asked.columns, map(str, asked.types), strict=True):
        column = quoted_name(name)
        if kind in {"INTERVAL", "BIT", "TIME WITH TIME ZONE", "UUID"}:
            column = f"CAST({column} AS VARCHAR) AS {column}"
        elif kind in {"HUGEINT", "UHUGEINT", "BIGNUM"}:
            column = f"CAST({column} AS DOUBLE) AS {column}"
        chosen.append(column)
    return f"SELECT {', '.join(chosen)} FROM ({statement})"


def identifier(name: str) -> str:
    """A table name quoted for SQL; a dot separates schema and table.

    >>> identifier('main.my "table"')
    '"main"."my ""table\"""'
    """
    return ".".join(map(quoted_name, name.split(".")))


def single_select(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """The query, if it is one SELECT."""
    import duckdb

    try:
        statements = connection.extract_statements(query)
    except duckdb.Error as failure:
        raise refused("The query", failure) from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise DatabaseFailed("The query must be one SELECT statement.", fix="Use one SELECT.")
    return query.strip().rstrip(";")


def refused(name: str, failure: Exception) -> DatabaseFailed:
    """What DuckDB refused; its words are repeated only where they speak of the SQL and not of the data."""
    about_sql = type(failure).__name__ in {
        "ParserException",
        "BinderException",
        "CatalogException",
        "PermissionException",
    }
    words = str(failure).partition("\n")[0] if about_sql else type(failure).__name__
    return DatabaseFailed(f"{name}: {words}", fix="Check the query.")
