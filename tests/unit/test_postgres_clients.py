"""Real clients on the PostgreSQL endpoint: psql, SQLAlchemy, pandas, polars, JDBC; and what DBeaver and Metabase ask.

A client that is not installed is skipped, and the skip says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
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
    program = shutil.which("psql")
    if program is None:
        pytest.skip("psql is not installed")
    arguments = [part for command in commands for part in ("-c", command)]
    done = subprocess.run(
        [program, "-X", served.url(), *arguments], capture_output=True, text=True, timeout=60, check=False
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
    assert " sfumato | last_answer | view | sfumato" in said
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
    assert set(inspector.get_view_names("sfumato")) == {"budget", "questions", "last_answer", "columns"}
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
import java.sql.*;
public class Client {
  static void show(String what, ResultSet rows) throws Exception {
    int width = rows.getMetaData().getColumnCount();
    while (rows.next()) {
      StringBuilder line = new StringBuilder(what);
      for (int i = 1; i <= width; i++) line.append('|').append(rows.getString(i));
      System.out.println(line);
    }
  }
  public static void main(String[] given) throws Exception {
    try (Connection c = DriverManager.getConnection(given[0], given[1], given[2])) {
      DatabaseMetaData d = c.getMetaData();
      show("catalog", d.getCatalogs()); show("schema", d.getSchemas());
      show("table", d.getTables(null, null, "%", new String[] {"TABLE", "VIEW"}));
      show("column", d.getColumns(null, "public", "patients", "%"));
      show("key", d.getPrimaryKeys(null, "public", "sides"));
      show("index", d.getIndexInfo(null, "public", "sides", false, true));
      show("foreign", d.getImportedKeys(null, "public", "patients")); d.getTypeInfo().close(); d.getSQLKeywords();
      PreparedStatement p = c.prepareStatement(
          "select ward, count(*) as n from patients where age >= ? and bill < ? group by ward");
      for (int k = 0; k < 7; k++) { p.setInt(1, 40); p.setDouble(2, 900.5); show("answer" + k, p.executeQuery()); }
      c.setAutoCommit(false); p.setFetchSize(1); show("page", p.executeQuery()); c.commit();
      try { c.createStatement().executeQuery("select * from patients limit 200"); }
      catch (SQLException e) { System.out.println("refused|" + e.getSQLState()); }
      c.rollback(); System.out.println("valid|" + c.isValid(5));
    }
  }
}
"""


def _driver() -> Path | None:
    """The JDBC driver: the one that SFUMATO_PGJDBC names, Debian's, or one in a Maven repository."""
    named = os.environ.get("SFUMATO_PGJDBC")
    places = [Path(named)] if named else [Path("/usr/share/java/postgresql.jar")]
    places += sorted(
        (Path.home() / ".m2" / "repository" / "org" / "postgresql" / "postgresql").glob("*/postgresql-*.jar")
    )
    return next((place for place in places if place.is_file()), None)


def test_jdbc_reads_metadata_and_asks(served: Served, tmp_path: Path) -> None:
    java, driver = shutil.which("java"), _driver()
    if java is None or shutil.which("javac") is None:
        pytest.skip("a Java development kit is not installed")
    if driver is None:
        pytest.skip("the JDBC driver is not installed (Debian: libpostgresql-jdbc-java)")
    before = served.spent()
    program = tmp_path / "Client.java"
    program.write_text(JDBC)
    url = f"jdbc:postgresql://127.0.0.1:{served.port}/hospital?sslmode=disable&options=-c%20sfumato.epsilon=1"
    done = subprocess.run(
        [java, "-XX:TieredStopAtLevel=1", "-cp", str(driver), str(program), url, "alice", served.token],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert "catalog|hospital" in lines
    assert any(line.startswith("table|hospital|public|patients|TABLE|") for line in lines)
    assert [line.split("|")[4] for line in lines if line.startswith("column|")] == [
        "name", "ward", "age", "flu", "bill", "born",
    ]  # fmt: skip
    assert "key|hospital|public|sides|ward|1|sides_pkey" in lines
    answers = {tuple(line.split("|")[1:]) for line in lines if line.startswith(("answer", "page"))}
    assert len(answers) == 4  # text and binary results, whole and page by page, are the same
    assert "refused|0A000" in lines
    assert "valid|true" in lines
    assert served.spent() - before == 1
