"""What tools ask of a PostgreSQL server, by themselves, when they connect, list tables and open one.

Each statement has the shape that the tool sends. All of them are free, and none shows other data sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from postgres_sample import Served, serving

psycopg = pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("postgres")) as running:
        yield running


COLUMNS = ["name", "ward", "age", "flu", "bill", "born"]

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


SUPERSET = (
    "select pg_catalog.version()",
    "show standard_conforming_strings",
    "SELECT CAST('test plain returns' AS VARCHAR(60)) AS anon_1",
    "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' ORDER BY nspname",
    "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' "
    "AND c.relkind in ('r', 'p')",
    "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' "
    "AND c.relkind IN ('v', 'm')",
    "SELECT c.oid FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "WHERE (n.nspname = 'public') AND c.relname = 'patients' AND c.relkind in ('r', 'v', 'm', 'f', 'p')",
    "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), (SELECT pg_catalog.pg_get_expr(d.adbin, "
    "d.adrelid) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef) AS "
    "DEFAULT, a.attnotnull, a.attrelid as table_oid, pgd.description as comment, a.attgenerated as generated, "
    "(SELECT json_build_object('always', a.attidentity = 'a', 'start', s.seqstart, 'increment', s.seqincrement) "
    "FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_class c on s.seqrelid = c.\"oid\" WHERE c.relkind = 'S' AND "
    "a.attidentity != '' AND s.seqrelid = pg_catalog.pg_get_serial_sequence(a.attrelid::regclass::text, "
    "a.attname)::regclass::oid) as identity_options FROM pg_catalog.pg_attribute a LEFT JOIN "
    "pg_catalog.pg_description pgd ON (pgd.objoid = a.attrelid AND pgd.objsubid = a.attnum) WHERE a.attrelid = "
    "'patients'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
    'SELECT t.typname as "name", pg_catalog.pg_type_is_visible(t.oid) as "visible", n.nspname as "schema", '
    'e.enumlabel as "label" FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace '
    'LEFT JOIN pg_catalog.pg_enum e ON t.oid = e.enumtypid WHERE t.typtype = \'e\' ORDER BY "schema", "name", e.oid',
    "SELECT pgd.description as table_comment FROM pg_catalog.pg_description pgd WHERE pgd.objsubid = 0 AND "
    "pgd.objoid = 'patients'::regclass",
    "SELECT a.attname FROM pg_attribute a JOIN (SELECT unnest(ix.indkey) attnum, generate_subscripts(ix.indkey, 1) ord "
    "FROM pg_index ix WHERE ix.indrelid = 'sides'::regclass AND ix.indisprimary) k ON a.attnum = k.attnum WHERE "
    "a.attrelid = 'sides'::regclass ORDER BY k.ord",
)
"""Of the shape that Superset sends, through SQLAlchemy 1.4."""

_VISIBLE = (
    "quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '\"$user\"' THEN user ELSE trim(s[i]) END FROM "
    "generate_series(array_lower(string_to_array(current_setting('search_path'),','),1), "
    "array_upper(string_to_array(current_setting('search_path'),','),1)) as i, "
    "string_to_array(current_setting('search_path'),',') s)"
)
GRAFANA_TABLES = (
    f"SELECT CASE WHEN {_VISIBLE} THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || "
    'quote_ident(table_name) END AS "table" FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN '
    f"('information_schema', 'pg_catalog') ORDER BY CASE WHEN {_VISIBLE} THEN 0 ELSE 1 END, 1"
)
GRAFANA_COLUMNS = (
    'SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns WHERE CASE WHEN '
    "array_length(parse_ident('{0}'),1) = 2 THEN quote_ident(table_schema) = (parse_ident('{0}'))[1] AND "
    "quote_ident(table_name) = (parse_ident('{0}'))[2] ELSE quote_ident(table_name) = '{0}' AND " + _VISIBLE + " END"
)
GRAFANA = (
    "SELECT current_setting('server_version_num')::int/100 as version",
    "SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'",
    GRAFANA_TABLES,
    GRAFANA_COLUMNS.format("patients"),
)
"""Of the shape that Grafana's query editor sends."""

ODBC_KEYS = (
    "select ta.attname, ia.attnum, ic.relname from pg_catalog.pg_attribute ta, pg_catalog.pg_attribute ia, "
    "pg_catalog.pg_class tc, pg_catalog.pg_index i, pg_catalog.pg_namespace n, pg_catalog.pg_class ic where "
    "tc.relname = E'sides' AND n.nspname = E'public' AND tc.oid = i.indrelid AND n.oid = tc.relnamespace AND "
    "i.indisprimary = 't' AND ia.attrelid = i.indexrelid AND ta.attrelid = i.indrelid AND ta.attnum = "
    "i.indkey[ia.attnum-1] AND (NOT ta.attisdropped) AND (NOT ia.attisdropped) AND ic.oid = i.indexrelid "
    "order by ia.attnum"
)
ODBC = (
    "SET DateStyle = 'ISO';SET extra_float_digits = 2;show transaction_isolation",
    "select oid, typbasetype from pg_type where typname = 'lo'",
    "select relname, nspname, relkind from pg_catalog.pg_class c, pg_catalog.pg_namespace n where relkind in "
    "('r','v','m','f','p') and nspname not in ('pg_catalog','information_schema','pg_toast','pg_temp_1') and n.oid = "
    "relnamespace order by nspname, relname",
    "select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnum, a.attlen, a.atttypmod, a.attnotnull, "
    "c.relhasrules, c.relkind, c.oid, pg_get_expr(d.adbin, d.adrelid), case t.typtype when 'd' then t.typbasetype else "
    "0 end, t.typtypmod, 0, attidentity, c.relhassubclass from (((pg_catalog.pg_class c inner join "
    "pg_catalog.pg_namespace n on n.oid = c.relnamespace and c.relname = E'patients' and n.nspname = E'public') inner "
    "join pg_catalog.pg_attribute a on (not a.attisdropped) and a.attnum > 0 and a.attrelid = c.oid) inner join "
    "pg_catalog.pg_type t on t.oid = a.atttypid) left outer join pg_attrdef d on a.atthasdef and d.adrelid = "
    "a.attrelid and d.adnum = a.attnum order by n.nspname, c.relname, attnum",
    ODBC_KEYS,
    'SHOW "lc_collate"',
)
"""Of the shape that the ODBC driver sends, with which Tableau connects."""

R = (
    "SELECT oid, typname FROM pg_type",
    "SELECT table_name FROM INFORMATION_SCHEMA.tables WHERE (table_schema = ANY(current_schemas(true))) AND "
    "(table_schema <> 'pg_catalog')",
    "SELECT cl.relname AS name FROM pg_class AS cl JOIN pg_namespace AS n ON cl.relnamespace = n.oid WHERE (n.nspname "
    "= ANY (current_schemas(true))) AND (n.nspname <> 'pg_catalog') AND (cl.relkind IN ('r', 'v', 'f', 'm', 'p')) "
    "ORDER BY cl.relkind, cl.relname",
    'SELECT * FROM "patients" AS "q01" WHERE (0 = 1)',
)
"""Of the shape that RPostgres and dbplyr send."""


ADBC_TYPES = (
    "SELECT oid, typname, typreceive, typbasetype, typrelid, typarray FROM pg_catalog.pg_type WHERE (typreceive != 0 "
    "OR typsend != 0) AND typtype != 'r' AND typreceive::TEXT != 'array_recv'"
)
ADBC_TABLES = (
    "SELECT c.relname, CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' END AS reltype FROM "
    "pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND "
    "c.relkind = ANY($2)"
)
ADBC = (
    "SELECT attrelid, attname, atttypid FROM pg_catalog.pg_attribute ORDER BY attrelid, attnum",
    ADBC_TYPES,
    "SELECT nspname FROM pg_catalog.pg_namespace WHERE (nspname !~ '^pg_' OR oid = pg_my_temp_schema()) AND nspname <> "
    "'information_schema'",
    "SELECT con.conname, CASE con.contype WHEN 'p' THEN 'PRIMARY KEY' END AS contype, ARRAY_AGG(attr.attname) AS "
    "colnames FROM pg_catalog.pg_constraint AS con CROSS JOIN UNNEST(conkey) AS conkeys INNER JOIN pg_catalog.pg_class "
    "AS cls ON cls.oid = con.conrelid INNER JOIN pg_catalog.pg_attribute AS attr ON attr.attnum = conkeys AND cls.oid "
    "= attr.attrelid WHERE con.contype IN ('c', 'u', 'p') GROUP BY conname, contype",
)
"""Of the shape that the Arrow driver sends, with which Polars reads where it is told to."""


@pytest.mark.parametrize(
    ("tool", "sql"),
    [
        (tool, sql)
        for tool, statements in {
            "DBeaver": DBEAVER, "Metabase": METABASE, "Superset": SUPERSET, "Grafana": GRAFANA, "ODBC": ODBC, "R": R,
            "ADBC": ADBC,
        }.items()
        for sql in statements
    ],
)  # fmt: skip
def test_what_tools_ask_by_themselves_is_answered_for_free(served: Served, tool: str, sql: str) -> None:
    before = served.spent()
    with psycopg.connect(served.url(), autocommit=True) as connection:
        cursor = connection.execute(sql)
        rows = cursor.fetchall() if cursor.description else []
    assert "secret-study" not in str(rows)
    assert served.spent() == before


def rows(served: Served, *statements: str) -> list[Any]:
    """The rows of the last of some statements."""
    with psycopg.connect(served.url(), autocommit=True) as connection:
        for sql in statements[:-1]:
            connection.execute(sql)
        return list(connection.execute(statements[-1]).fetchall())


def test_tools_find_the_tables_and_columns(served: Served) -> None:
    assert [name for (name,) in rows(served, GRAFANA_TABLES)][:3] == ["patients", "sides", "sfumato.budget"]
    for name in ("patients", "public.patients"):
        assert [column for column, _ in rows(served, GRAFANA_COLUMNS.format(name))] == COLUMNS
    assert rows(served, ODBC_KEYS) == [("ward", 1, "sides_pkey")]
    assert [row[2] for row in rows(served, ODBC[3])] == COLUMNS
    assert [row[0] for row in rows(served, SUPERSET[7])] == COLUMNS
    assert rows(served, SUPERSET[-1]) == [("ward",)]


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ('SELECT * FROM "patients" AS "q01" WHERE (0 = 1)', COLUMNS),
        ('SELECT * FROM "public"."patients" LIMIT 0', COLUMNS),
        ('SELECT TRUE AS "_" FROM "public"."patients" WHERE 1 <> 1 LIMIT 0', ["_"]),
        ("SELECT p.age, s.side FROM patients p JOIN sides s ON p.ward = s.ward WHERE p.age > 3 AND 1 = 0",
         ["age", "side"]),
    ],
)  # fmt: skip
def test_a_query_without_rows_tells_the_columns_for_free(served: Served, sql: str, columns: list[str]) -> None:
    """Tools learn the columns of a table so. No row is read: the engine that answers holds none."""
    before = served.spent()
    with psycopg.connect(served.url(), autocommit=True) as connection:
        cursor = connection.execute(sql)
        assert [column.name for column in cursor.description or ()] == columns
        assert cursor.fetchall() == []
    assert served.spent() == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM patients LIMIT 1",
        "SELECT * FROM patients WHERE 1 = 1",
        "SELECT * FROM patients WHERE age < 0",
        "SELECT * FROM patients WHERE 1 = 0 UNION ALL SELECT * FROM patients",
        "SELECT * FROM (SELECT * FROM patients LIMIT 0) p",
        "SELECT (SELECT MAX(age) FROM patients) AS m FROM sides",
    ],
)
def test_what_is_not_certainly_without_rows_is_no_such_query(served: Served, sql: str) -> None:
    with psycopg.connect(served.url(), autocommit=True) as connection, pytest.raises(psycopg.Error):
        connection.execute(sql)


def test_cursors_that_outlive_their_transaction(served: Served) -> None:
    """As Tableau opens them: the query is paid for once, and a rollback ends the cursor."""
    before = served.spent()
    declared = (
        'declare "SQL_CUR0x1" cursor with hold for SELECT ward, COUNT(1) AS n FROM patients WHERE age > 77 GROUP BY 1'
    )
    with psycopg.connect(served.url(), autocommit=True) as connection:
        connection.execute(f"BEGIN;{declared}")
        first = connection.execute('fetch 3 in "SQL_CUR0x1"').fetchall()
        connection.execute("COMMIT")
        assert [row[0] for row in [*first, *connection.execute('fetch 3 in "SQL_CUR0x1"')]] == [
            "east", "north", "south", "west",
        ]  # fmt: skip
        connection.execute("BEGIN;ROLLBACK")  # of another transaction
        assert connection.execute('fetch 3 in "SQL_CUR0x1"').fetchall() == []
        connection.execute('close "SQL_CUR0x1"')
        connection.execute(f"BEGIN;{declared};ROLLBACK")
        with pytest.raises(psycopg.errors.InvalidCursorName):
            connection.execute('fetch 3 in "SQL_CUR0x1"')
    assert served.spent() - before == 1


def test_the_arrow_driver_finds_types_and_tables(served: Served) -> None:
    types = {name: receive for _, name, receive, *_ in rows(served, ADBC_TYPES)}
    assert {"int8": "int8recv", "text": "textrecv", "date": "date_recv", "bool": "boolrecv"}.items() <= types.items()
    assert "_int8" not in types
    with psycopg.connect(served.url(), autocommit=True) as connection:
        given = [b"public", b'{"p", "f", "t", "m", "v", "r"}']  # with spaces, as it writes lists
        found = connection.pgconn.exec_params(ADBC_TABLES.encode(), given)
        assert {found.get_value(i, 0): found.get_value(i, 1) for i in range(found.ntuples)} == {
            b"patients": b"table", b"sides": b"table",
        }  # fmt: skip


def test_what_was_opened_and_set_since_a_savepoint_goes_with_it(served: Served) -> None:
    """As the ODBC driver fetches: a refused query leaves no cursor behind, and the name is used again."""
    before = served.spent()
    with psycopg.connect(served.url(), autocommit=True) as connection:
        run = connection.execute
        run("BEGIN;DECLARE first CURSOR FOR SELECT 1;SAVEPOINT _EXEC_SVP_1")
        run("SET sfumato.epsilon = 3")
        run('declare "SQL_CUR0x1" cursor for SELECT age FROM patients')
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            run('fetch 3 in "SQL_CUR0x1"')
        run("ROLLBACK TO _EXEC_SVP_1")
        run('declare "SQL_CUR0x1" cursor for SELECT 2')
        assert run('fetch 3 in "SQL_CUR0x1"').fetchall() == [(2,)]
        assert run("SHOW sfumato.epsilon").fetchall() == [("1",)]
        assert run("FETCH ALL FROM first").fetchall() == [(1,)], "opened before"
        run("COMMIT")
    assert served.spent() == before


def test_cursors_of_a_connection_are_bounded(served: Served) -> None:
    """Each keeps its rows."""
    with psycopg.connect(served.url(), autocommit=True) as connection, connection.transaction():
        for number in range(200):
            connection.execute(f"DECLARE c{number} CURSOR FOR SELECT 1")
        with pytest.raises(psycopg.Error, match="at most 200 open portals"):
            connection.execute("DECLARE one_more CURSOR FOR SELECT 1")
        raise psycopg.Rollback


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


TABLEAU = (
    ('SELECT CAST("patients"."ward" AS TEXT) AS "ward", COUNT(1) AS "cnt:patients:ok" FROM "public"."patients" '
     '"patients" GROUP BY 1', 4),
    ('SELECT COUNT(1) AS "cnt:patients:ok" FROM "public"."patients" "patients" HAVING (COUNT(1) > 0)', 1),
    ('SELECT SUM(1) AS "sum:Number of Records:ok" FROM "public"."patients" "patients" HAVING (COUNT(1) > 0)', 1),
    ('SELECT AVG(CAST("patients"."bill" AS DOUBLE PRECISION)) AS "avg:bill:ok", "patients"."ward" AS "ward" FROM '
     '"public"."patients" "patients" GROUP BY 2', 4),
    ('SELECT COUNT(DISTINCT "patients"."ward") AS "ctd:ward:ok" FROM "public"."patients" "patients" HAVING '
     '(COUNT(1) > 0)', 1),
    ('SELECT "patients"."ward" AS "ward", COUNT(1) AS "n" FROM "public"."patients" "patients" WHERE '
     "((\"patients\".\"ward\" IN ('east', 'west')) AND (\"patients\".\"age\" >= 18)) GROUP BY 1", 2),
)  # fmt: skip
METABASE_QUESTIONS = (
    ('SELECT "source"."ward" AS "ward", COUNT(*) AS "count" FROM (SELECT "public"."patients"."ward" AS "ward", '
     '"public"."patients"."age" AS "age" FROM "public"."patients" WHERE "public"."patients"."age" > 30) AS "source" '
     'GROUP BY "source"."ward" ORDER BY "source"."ward" ASC', 4),
)  # fmt: skip
SUPERSET_QUESTIONS = (
    ("SELECT ward AS ward, COUNT(*) AS count FROM public.patients GROUP BY ward ORDER BY count DESC LIMIT 1000", 4),
    ("SELECT count(*) AS count FROM public.patients WHERE born >= TO_DATE('1920-01-01', 'YYYY-MM-DD') AND born < "
     "TO_TIMESTAMP('1960-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') LIMIT 50000", 1),
)  # fmt: skip
GRAFANA_QUESTIONS = (
    ("SELECT ward AS metric, count(*) AS value FROM patients WHERE born BETWEEN '1920-01-01T00:00:00Z' AND "
     "'1960-01-01T00:00:00.5Z' GROUP BY ward ORDER BY 1", 4),
    ("SELECT count(*) FROM patients LIMIT 50", 1),
)  # fmt: skip
DBEAVER_QUESTIONS = (("SELECT count(*) FROM (SELECT ward FROM patients WHERE age > 3) dbvrcnt", 1),)


@pytest.mark.parametrize(
    ("sql", "count"),
    [*TABLEAU, *METABASE_QUESTIONS, *SUPERSET_QUESTIONS, *GRAFANA_QUESTIONS, *DBEAVER_QUESTIONS],
)
def test_questions_that_tools_write_are_answered(served: Served, sql: str, count: int) -> None:
    assert len(rows(served, sql)) == count


def test_dates_that_tools_write_are_read_as_postgresql_reads_them(served: Served) -> None:
    """Born on the first of a January in 1910 to 1999: of 90 years, 40 lie in these bounds."""
    own = [rows(served, "SET sfumato.epsilon = 5", sql.replace("ward AS metric, ", "").split(" GROUP BY")[0])
           for sql, _ in (SUPERSET_QUESTIONS[1], GRAFANA_QUESTIONS[0])]  # fmt: skip
    years = [1910 + number % 90 for number in range(400)]
    assert abs(own[0][0][0] - sum(1920 <= year < 1960 for year in years)) < 20
    assert abs(own[1][0][0] - sum(1920 <= year <= 1960 for year in years)) < 20
    with psycopg.connect(served.url(), autocommit=True) as connection:
        for wrong in ("TO_DATE('1999-99-99', 'YYYY-MM-DD')", "TO_DATE(ward, 'YYYY-MM-DD')", "TO_DATE('1999', 'YYYY')",
                      "'1999-01-01T00:00:00+02'"):  # fmt: skip
            with pytest.raises(psycopg.Error):
                connection.execute(f"SELECT count(*) FROM patients WHERE born > {wrong}")
