"""The catalog engine: answers queries on the system catalogs, sfumato's views and public tables.

It is an in-memory DuckDB that holds the public schema of one data set and its public tables, and no private data: it
has no access to files, its configuration is locked, and it is given rewritten syntax trees only
(:mod:`~sfumato.server.postgres.catalog_sql`). Its answers cost nothing.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from sfumato.data.in_process import open_duckdb
from sfumato.data.sql_quoting import quoted_name
from sfumato.errors import QueryRefused
from sfumato.query.plan.catalog import Catalog
from sfumato.server.postgres.catalog_functions import HELPERS, MACROS
from sfumato.server.postgres.catalog_relations import DUCKDB_TYPES, Relation, declared_relations, relations
from sfumato.server.postgres.catalog_sql import CatalogQuery
from sfumato.server.postgres.type_mapping import BY_NAME, KIND_TYPES, TEXT, PostgresType, array_of
from sfumato.server.postgres.views import VIEWS

_PUBLIC, _COLUMNS = "pub", "col"
SECONDS = 5.0
"""How long a query may run."""
_MOST_ROWS = 100_000
_TYPES = {
    "BOOLEAN": "bool", "TINYINT": "int2", "SMALLINT": "int2", "INTEGER": "int4", "BIGINT": "int8", "HUGEINT": "int8",
    "UINTEGER": "oid", "UBIGINT": "int8", "FLOAT": "float4", "DOUBLE": "float8", "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
}  # fmt: skip

UserRows = Callable[[str], Iterable[Mapping[str, Any]]]
"""Gives the rows of a table that depends on who asks."""


@dataclass(frozen=True, kw_only=True)
class CatalogResult:
    """The rows of a query, or its columns alone."""

    names: tuple[str, ...]
    types: tuple[PostgresType, ...]
    rows: Sequence[tuple[Any, ...]]


def catalog_schemas(catalog: Catalog, *, columns_only: bool) -> dict[str, str]:
    """The tables that a query may name, with their schemas here. Private tables have their columns and no rows."""
    private = dict.fromkeys(catalog.private, _COLUMNS) if columns_only else {}
    return {**private, **dict.fromkeys(catalog.public, _PUBLIC)}


class CatalogEngine:
    """Answers catalog queries about one data set."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._stack = ExitStack()
        self._database = self._stack.enter_context(open_duckdb(threads=1, memory="256MB", spills=False, locked=False))
        self._lock = threading.Lock()
        run = self._database.execute
        for schema in ("cat", "inf", _PUBLIC, _COLUMNS):
            run(f"CREATE SCHEMA {schema}")
        filled = declared_relations(catalog)
        for (schema, name), relation in relations().items():
            place = f"{'cat' if schema == 'pg_catalog' else 'inf'}.{quoted_name(name)}"
            self._fill(self._database, place, relation, filled.get(name, ()))
        for name, table in catalog.public.items():
            self._database.register("public_frame", table.frame.to_arrow())
            run(f"CREATE TABLE {_PUBLIC}.{quoted_name(name)} AS SELECT * FROM public_frame")
            self._database.unregister("public_frame")
        for name, private in catalog.private.items():
            kinds = {column: KIND_TYPES[one.kind].name for column, one in private.schema.columns.items() if one.kind}
            columns = ", ".join(f"{quoted_name(column)} {DUCKDB_TYPES[kind]}" for column, kind in kinds.items())
            run(f"CREATE TABLE {_COLUMNS}.{quoted_name(name)} ({columns})")
        for macro in (*HELPERS, *MACROS):
            run(f"CREATE MACRO {macro}")
        run("SET lock_configuration = true")

    @staticmethod
    def _fill(
        database: Any, place: str, relation: Relation, rows: Iterable[Mapping[str, Any]], kind: str = "TABLE"
    ) -> None:
        database.execute(f"CREATE {kind} {place} ({relation.definition})")
        values = [relation.filled(dict(row)) for row in rows]
        if not values:
            return
        columns = dict(zip(relation.columns, zip(*values, strict=True), strict=True))
        frame = pa.table({name: _arrow(cells) for name, cells in columns.items()})
        database.register("catalog_rows", frame)
        database.execute(f"INSERT INTO {place} SELECT * FROM catalog_rows")
        database.unregister("catalog_rows")

    def columns(self, query: CatalogQuery) -> CatalogResult:
        """The columns of a query, without running it."""
        rows = self._run(CatalogQuery(sql=f"DESCRIBE {query.sql}", needs=query.needs), lambda _: ()).rows
        return CatalogResult(
            names=tuple(str(row[0]) for row in rows), types=tuple(_type(str(row[1])) for row in rows), rows=()
        )

    def answer(self, query: CatalogQuery, user_rows: UserRows) -> CatalogResult:
        """The rows of a query."""
        return self._run(query, user_rows)

    def _run(self, query: CatalogQuery, user_rows: UserRows) -> CatalogResult:
        cursor = self._database.cursor()
        timer = threading.Timer(SECONDS, cursor.interrupt)
        try:
            for name in sorted(query.needs):
                self._fill(cursor, f"temp.{quoted_name(name)}", _USER_RELATIONS[name], user_rows(name), "TEMP TABLE")
            timer.start()
            cursor.execute(query.sql)
            described = cursor.description or []
            if any(str(item[1]) == "TIMESTAMP WITH TIME ZONE" for item in described):
                # DuckDB makes such values only with another library; Arrow does without.
                table: Any = cursor.to_arrow_table()
                rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
            else:
                rows = cursor.fetchmany(_MOST_ROWS + 1)
        except duckdb.InterruptException:
            raise QueryRefused(f"The query on the catalogs took longer than {SECONDS:g} seconds.") from None
        except duckdb.Error as failure:
            reason = re.sub(r"\s+", " ", str(failure).split("\n", 1)[0])[:200]
            raise QueryRefused(f"The catalogs cannot answer this query: {reason}") from None
        finally:
            timer.cancel()
            cursor.close()
        if len(rows) > _MOST_ROWS:
            raise QueryRefused(f"The result has more than {_MOST_ROWS:,} rows.", fix="Add a condition or a LIMIT.")
        return CatalogResult(
            names=tuple(item[0] for item in described),
            types=tuple(_type(str(item[1])) for item in described),
            rows=rows,
        )


_USER_RELATIONS = {name: relation for (schema, name), relation in relations().items() if schema == "pg_catalog"} | {
    f"sfumato_{view.name}": Relation(schema="sfumato", name=view.name, columns=view.columns) for view in VIEWS
}


def _arrow(cells: tuple[object, ...]) -> object:
    """A column; one that holds nothing is text, which any type is read from."""
    return pa.array(cells, pa.string()) if all(cell is None for cell in cells) else pa.array(cells)


def _type(name: str) -> PostgresType:
    """The PostgreSQL type of a column of DuckDB."""
    if name.endswith("[]"):
        return array_of(_type(name[:-2]))
    if name.startswith("DECIMAL"):
        return BY_NAME["numeric"]
    return BY_NAME.get(_TYPES.get(name, ""), TEXT)
