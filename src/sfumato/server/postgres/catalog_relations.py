"""System catalogs of PostgreSQL 15, filled from the public schema of a data set.

``catalog_relations.tsv`` lists the columns of every relation of ``pg_catalog`` and ``information_schema``, and
``catalog_types.tsv`` the built-in types, both as PostgreSQL 15 has them. Most relations stay empty. What is known of a
data set here is its :class:`~sfumato.query.plan.catalog.Catalog`, which its owner declared: no table is read. Numbers
that a database would measure (pages, rows) are those of a table that was never analyzed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from sfumato.query.plan.catalog import Catalog, PrivateTable, PublicTable
from sfumato.query.results.public_schema import describe_table, list_tables
from sfumato.server.postgres.type_mapping import BY_NAME, KIND_TYPES, PostgresType
from sfumato.server.postgres.views import VIEWS

OWNER = "sfumato"
_OWNER_OID, _USER_OID, _FIRST_OID = 10, 16_384, 16_400
_NAMESPACES = {"pg_catalog": 11, "pg_toast": 99, "public": 2200, "information_schema": 13_207, "sfumato": 16_385}
_KNOWN_OIDS = {
    "pg_type": 1247, "pg_attribute": 1249, "pg_proc": 1255, "pg_class": 1259, "pg_authid": 1260, "pg_database": 1262,
    "pg_tablespace": 1213, "pg_attrdef": 2604, "pg_constraint": 2606, "pg_namespace": 2615, "pg_description": 2609,
    "pg_extension": 3079, "pg_collation": 3456, "pg_index": 2610,
}  # fmt: skip

_DUCKDB = {
    "oid": "UINTEGER", "xid": "UINTEGER", "regtype": "UINTEGER", "int8": "BIGINT", "int4": "INTEGER",
    "cardinal_number": "INTEGER", "int2": "SMALLINT", "bool": "BOOLEAN", "float4": "FLOAT", "float8": "DOUBLE",
    "timestamptz": "TIMESTAMP", "time_stamp": "TIMESTAMP", "numeric": "DOUBLE", "int2vector": "SMALLINT[]",
    "_int2": "SMALLINT[]", "oidvector": "UINTEGER[]", "_oid": "UINTEGER[]", "_text": "VARCHAR[]",
    "_aclitem": "VARCHAR[]", "_name": "VARCHAR[]", "_char": "VARCHAR[]", "text": "VARCHAR", "date": "DATE",
    "timestamp": "TIMESTAMP",
}  # fmt: skip
DUCKDB_TYPES: Mapping[str, str] = _DUCKDB
"""DuckDB's type for a column of a catalog; all others are texts. Only identifiers are unsigned."""
_DEFAULTS = {"UINTEGER": 0, "BIGINT": 0, "INTEGER": 0, "SMALLINT": 0, "BOOLEAN": False, "FLOAT": 0.0, "DOUBLE": 0.0}

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A relation of a system schema: its columns with their PostgreSQL types."""

    schema: str
    name: str
    columns: Mapping[str, str]

    @property
    def definition(self) -> str:
        """The columns as DuckDB declares them."""
        return ", ".join(f'"{name}" {_DUCKDB.get(kind, "VARCHAR")}' for name, kind in self.columns.items())

    def filled(self, row: Row) -> tuple[object, ...]:
        """A row with the usual value of every column that is not given: 0, false, or NULL."""
        unknown = set(row) - set(self.columns)
        assert not unknown, f"{self.name} has no {unknown}"
        return tuple(
            row[name] if name in row else "" if kind == "char" else _DEFAULTS.get(_DUCKDB.get(kind, "VARCHAR"))
            for name, kind in self.columns.items()
        )


@cache
def relations() -> Mapping[tuple[str, str], Relation]:
    """All relations by schema and name."""
    found = {}
    text = files("sfumato.server.postgres").joinpath("catalog_relations.tsv").read_text("utf-8")
    for line in text.splitlines():
        schema, name, columns = line.split("\t")
        pairs = dict(pair.split(" ") for pair in columns.split(","))
        found[schema, name] = Relation(schema=schema, name=name, columns=pairs)
    return found


@dataclass(frozen=True, kw_only=True)
class _Column:
    name: str
    type: PostgresType
    about: str
    required: bool = False


@dataclass(frozen=True, kw_only=True)
class _Table:
    oid: int
    schema: str
    name: str
    kind: str
    columns: tuple[_Column, ...]
    key: tuple[str, ...] = ()
    about: str = ""

    @property
    def type_name(self) -> str:
        return "VIEW" if self.kind == "v" else "BASE TABLE"

    @property
    def key_numbers(self) -> list[int]:
        return [1 + [column.name for column in self.columns].index(name) for name in self.key]


def _tables(catalog: Catalog) -> list[_Table]:
    """Tables of the data set and the views of sfumato."""
    found, oid = [], _FIRST_OID
    about = {name: f"{access} table, unit of privacy: {unit}" if unit else f"{access} table"
             for name, access, unit in list_tables(catalog)[1]}  # fmt: skip
    tables: dict[str, PrivateTable | PublicTable] = {**catalog.private, **catalog.public}
    for name, table in tables.items():
        texts = {row[0]: row[2] for row in describe_table(catalog, name)[1]}
        if isinstance(table, PublicTable):
            kinds, key = {column: table.kind(column) for column in table.frame.columns}, table.key
        else:
            kinds, key = (
                {column: declared.kind for column, declared in table.schema.columns.items() if declared.kind},
                (),
            )
        columns = tuple(
            _Column(name=column, type=KIND_TYPES[kind], about=texts[column], required=column in key)
            for column, kind in kinds.items()
        )
        found.append(_Table(oid=oid, schema="public", name=name, kind="r", columns=columns, key=key, about=about[name]))
        oid += 10
    for view in VIEWS:
        columns = tuple(_Column(name=name, type=BY_NAME[kind], about="") for name, kind in view.columns.items())
        found.append(_Table(oid=oid, schema="sfumato", name=view.name, kind="v", columns=columns, about=view.about))
        oid += 10
    return found


def _system_tables() -> Iterator[_Table]:
    for number, relation in enumerate(relations().values()):
        columns = tuple(
            _Column(name=name, type=BY_NAME.get(kind, BY_NAME["text"]), about="")
            for name, kind in relation.columns.items()
        )
        oid = _KNOWN_OIDS.get(relation.name, 12_000 + number)
        yield _Table(oid=oid, schema=relation.schema, name=relation.name, kind="r", columns=columns)


def declared_relations(catalog: Catalog) -> dict[str, list[Row]]:
    """The rows of every catalog that is filled, the same for every analyst of a data set; by the relation's name."""
    tables, keyed = _tables(catalog), [table for table in _tables(catalog) if table.key]
    everything = [*tables, *_system_tables()]
    rows: dict[str, list[Row]] = {
        "pg_namespace": [{"oid": oid, "nspname": name, "nspowner": _OWNER_OID} for name, oid in _NAMESPACES.items()],
        "pg_am": [{"oid": 2, "amname": "heap", "amtype": "t"}, {"oid": 403, "amname": "btree", "amtype": "i"}],
        "pg_tablespace": [{"oid": 1663, "spcname": "pg_default", "spcowner": _OWNER_OID}],
        "pg_collation": [{"oid": 100, "collname": "default", "collnamespace": 11, "collprovider": "d",
        "collencoding": -1}],
        "pg_type": list(_type_rows()),
        "pg_class": [_class_row(table) for table in everything] + [_index_class(table) for table in keyed],
        "pg_attribute": [row for table in everything for row in _attribute_rows(table)]
        + [row for table in keyed for row in _index_attributes(table)],
        "pg_index": [_index_row(table) for table in keyed],
        "pg_constraint": [_constraint_row(table) for table in keyed],
        "pg_description": [row for table in tables for row in _description_rows(table)],
        "pg_tables": [{"schemaname": t.schema, "tablename": t.name, "tableowner": OWNER}
            for t in everything if t.kind == "r"],
        "pg_views": [{"schemaname": t.schema, "viewname": t.name, "viewowner": OWNER} for t in tables if t.kind == "v"],
        "pg_indexes": [{"schemaname": t.schema, "tablename": t.name, "indexname": f"{t.name}_pkey"} for t in keyed],
    }  # fmt: skip
    return rows | _information_schema(catalog.dataset, tables, keyed)


def declared_columns(catalog: Catalog) -> list[Row]:
    """The rows of ``sfumato.columns``."""
    return [
        {"table_name": table, "column_name": column, "kind": kind, "declared_values": values}
        for table, *_ in list_tables(catalog)[1]
        for column, kind, values in describe_table(catalog, table)[1]
    ]


def user_relations(*, user: str, datasets: tuple[str, ...], settings: Mapping[str, str]) -> dict[str, list[Row]]:
    """The rows that depend on who asks: their own account, the data sets they may see, and their settings."""
    return {
        "pg_database": [
            {"oid": _USER_OID + 1 + number, "datname": name, "datdba": _OWNER_OID, "encoding": 6,
             "datcollate": "C.UTF-8",
             "datctype": "C.UTF-8", "datlocprovider": "c", "datallowconn": True, "datconnlimit": -1,
             "dattablespace": 1663}
            for number, name in enumerate(datasets)
        ],
        "pg_roles": [
            {"oid": oid, "rolname": name, "rolinherit": True, "rolcanlogin": oid == _USER_OID, "rolconnlimit": -1}
            for name, oid in {OWNER: _OWNER_OID, user: _USER_OID}.items()
        ],
        "pg_user": [{"usename": user, "usesysid": _USER_OID}],
        "pg_settings": [{"name": name, "setting": value, "context": "user", "vartype": "string", "source": "default"}
                        for name, value in settings.items()],
    }  # fmt: skip


def _type_rows() -> Iterator[Row]:
    text = files("sfumato.server.postgres").joinpath("catalog_types.tsv").read_text("utf-8")
    for line in text.splitlines():
        oid, name, length, by_value, kind, category, preferred, delimiter, element, array, collation, read = line.split(
            "\t"
        )
        yield {
            "oid": int(oid), "typname": name, "typnamespace": 11, "typowner": _OWNER_OID, "typlen": int(length),
            "typbyval": by_value == "t", "typtype": kind, "typcategory": category, "typispreferred": preferred == "t",
            "typisdefined": True, "typdelim": delimiter, "typelem": int(element), "typarray": int(array),
            "typinput": read, "typoutput": read[:-2] + "out", "typreceive": read[:-2] + "recv",
            "typsend": read[:-2] + "send", "typtypmod": -1, "typcollation": int(collation),
        }  # fmt: skip


def _class_row(table: _Table) -> Row:
    return {
        "oid": table.oid, "relname": table.name, "relnamespace": _NAMESPACES[table.schema], "relowner": _OWNER_OID,
        "relam": 2 if table.kind == "r" else 0, "reltuples": -1.0, "relhasindex": bool(table.key),
        "relpersistence": "p", "relkind": table.kind, "relnatts": len(table.columns), "relispopulated": True,
        "relreplident": "d", "relacl": [f"=r/{OWNER}"],
    }  # fmt: skip


def _index_class(table: _Table) -> Row:
    return {
        "oid": table.oid + 1, "relname": f"{table.name}_pkey", "relnamespace": _NAMESPACES[table.schema],
        "relowner": _OWNER_OID, "relam": 403, "relpersistence": "p", "relkind": "i", "relnatts": len(table.key),
        "relispopulated": True, "relreplident": "n",
    }  # fmt: skip


def _attribute_rows(table: _Table) -> Iterator[Row]:
    for number, column in enumerate(table.columns, start=1):
        yield {
            "attrelid": table.oid, "attname": column.name, "atttypid": column.type.oid, "attlen": column.type.size,
            "attnum": number, "atttypmod": -1, "attnotnull": column.required, "attislocal": True, "attstattarget": -1,
            "attcollation": 100 if column.type.name in ("text", "varchar") else 0, "attstorage": "p",
        }  # fmt: skip


def _index_attributes(table: _Table) -> Iterator[Row]:
    rows = {row["attname"]: row for row in _attribute_rows(table)}
    for number, name in enumerate(table.key, start=1):
        yield {**rows[name], "attrelid": table.oid + 1, "attnum": number}


def _index_row(table: _Table) -> Row:
    keys = table.key_numbers
    return {
        "indexrelid": table.oid + 1, "indrelid": table.oid, "indnatts": len(keys), "indnkeyatts": len(keys),
        "indisunique": True, "indisprimary": True, "indimmediate": True, "indisvalid": True, "indisready": True,
        "indislive": True, "indkey": keys, "indoption": [0] * len(keys), "indcollation": [0] * len(keys),
        "indclass": [0] * len(keys),
    }  # fmt: skip


def _constraint_row(table: _Table) -> Row:
    return {
        "oid": table.oid + 2, "conname": f"{table.name}_pkey", "connamespace": _NAMESPACES[table.schema],
        "contype": "p",
        "convalidated": True, "conrelid": table.oid, "conindid": table.oid + 1, "conislocal": True,
        "connoinherit": True, "conkey": table.key_numbers,
    }  # fmt: skip


def _description_rows(table: _Table) -> Iterator[Row]:
    texts = {0: table.about} | {number: column.about for number, column in enumerate(table.columns, start=1)}
    for number, text in texts.items():
        if text:
            yield {"objoid": table.oid, "classoid": _KNOWN_OIDS["pg_class"], "objsubid": number, "description": text}


def _information_schema(dataset: str, tables: list[_Table], keyed: list[_Table]) -> dict[str, list[Row]]:
    def place(table: _Table) -> Row:
        return {"table_catalog": dataset, "table_schema": table.schema, "table_name": table.name}

    def constraint(table: _Table) -> Row:
        return {
            "constraint_catalog": dataset,
            "constraint_schema": table.schema,
            "constraint_name": f"{table.name}_pkey",
        }

    return {
        "schemata": [{"catalog_name": dataset, "schema_name": name, "schema_owner": OWNER} for name in _NAMESPACES],
        "tables": [
            {**place(t), "table_type": t.type_name, "is_insertable_into": "NO", "is_typed": "NO"} for t in tables
        ],
        "views": [{**place(t), "check_option": "NONE", "is_updatable": "NO"} for t in tables if t.kind == "v"],
        "columns": [
            {**place(t), "column_name": c.name, "ordinal_position": number,
             "is_nullable": "NO" if c.required else "YES",
             "data_type": _LONG.get(c.type.name, c.type.name), "udt_catalog": dataset, "udt_schema": "pg_catalog",
             "udt_name": c.type.name, "numeric_precision": _PRECISION.get(c.type.name), "is_identity": "NO",
             "is_generated": "NEVER", "is_updatable": "NO", "dtd_identifier": str(number)}
            for t in tables for number, c in enumerate(t.columns, start=1)
        ],
        "table_constraints": [{**place(t), **constraint(t), "constraint_type": "PRIMARY KEY", "is_deferrable": "NO",
                               "initially_deferred": "NO", "enforced": "YES"} for t in keyed],
        "key_column_usage": [{**place(t), **constraint(t), "column_name": name, "ordinal_position": number}
                             for t in keyed for number, name in enumerate(t.key, start=1)],
        "constraint_column_usage": [{**place(t), **constraint(t), "column_name": name}
            for t in keyed for name in t.key],
    }  # fmt: skip


_LONG = {"int8": "bigint", "float8": "double precision", "bool": "boolean", "timestamp": "timestamp without time zone"}
_PRECISION = {"int8": 64, "float8": 53}
