"""Questions to PostgreSQL and Spark: by address or file, read-only, in time, and with one message."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sfumato.cli import main
from sfumato.dataset import Column, Kind, RangeDomain, Role, Schema, ValuesDomain
from sfumato.dp.loss import pure
from sfumato.engines.aggregation import CountRows
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.backends.postgres.engine import Postgres
from sfumato.engines.backends.spark.engine import Spark
from sfumato.engines.choice import choose_engine
from sfumato.engines.expressions import ColumnRef as Named
from sfumato.engines.expressions import Compare
from sfumato.engines.statements import Join, Stored, Subquery
from sfumato.errors import AnswerFailed, DatabaseFailed, QueryRefused, UnknownPart
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.secret import Permit
from sfumato.testing.engines import _select

COLUMNS = {
    "id": Column(role=Role.PLAIN, kind=Kind.INTEGER),
    "ward": Column(role=Role.PLAIN, kind=Kind.CATEGORY, domain=ValuesDomain(values=("east", "west"))),
    "bill": Column(role=Role.PLAIN, kind=Kind.NUMBER, domain=RangeDomain(low=0, high=100)),
    "code": Column(role=Role.PLAIN, kind=Kind.INTEGER, domain=RangeDomain(low=0, high=9)),
}


@pytest.fixture(scope="module")
def visits(postgresql: str) -> Iterator[str]:
    """A table in a schema of its own: decimals for money, and a code that is text."""
    import psycopg

    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute('CREATE SCHEMA "Clinic"')
        connection.execute('CREATE TABLE "Clinic".visits (id integer, ward varchar, bill numeric, code text)')
        connection.execute(
            """INSERT INTO "Clinic".visits SELECT i, CASE WHEN i % 3 = 0 THEN 'east' ELSE 'west' END, i / 4.0,
               'zanzibar' FROM generate_series(0, 399) AS i"""
        )
        connection.execute("""INSERT INTO "Clinic".visits VALUES (1, 'east', 'NaN', ''), (2, 'east', 1e400, '7')""")
        yield f"{postgresql}#Clinic.visits"
        connection.execute('DROP SCHEMA "Clinic" CASCADE')


def session(source: Any, **options: Any) -> Session:
    book = options.pop("ledger", None) or Ledger.open(":memory:")
    book.set_cap(pure(10**9), dataset="d")
    table = PrivateTable(name="visits", schema=Schema(columns=COLUMNS))
    return Session(
        Catalog(dataset="d", private={"visits": table}), {"visits": source}, ledger=book, analyst="ana", **options
    )


def test_an_address_is_asked_where_it_is(visits: str) -> None:
    asked = session(visits)
    answer = asked.ask("SELECT ward, COUNT(*) AS n, SUM(bill) AS s FROM visits GROUP BY ward", epsilon=10**6)
    assert answer.frame["n"].to_list() == [136, 266]
    assert answer.frame["s"].to_list() == pytest.approx(
        [sum(i / 4 for i in range(0, 400, 3)), sum(i / 4 for i in range(400) if i % 3)], abs=0.1
    )
    workload = asked.workload(["SELECT COUNT(*) FROM visits WHERE ward = 'east'"], epsilon=10**6)
    assert round(workload.values[0].value) == 136


def test_the_address_is_found_without_its_schema_where_the_search_path_leads(postgresql: str) -> None:
    import psycopg

    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS id, 'east' AS ward, 1.0 AS bill, 3 AS code")
        try:
            assert round(session(postgresql).ask("SELECT COUNT(*) FROM visits", epsilon=10**6).value) == 1
        finally:
            connection.execute("DROP TABLE visits")


def test_the_connection_cannot_write_and_gives_up_in_time(visits: str) -> None:
    server = visits.partition("#")[0]
    running: Any = Postgres(timeout=0.2).start({"visits": visits})
    import psycopg

    for sql in ("CREATE TABLE public.x (i int)", 'DELETE FROM "Clinic".visits', "SELECT pg_sleep(5)"):
        with pytest.raises(psycopg.Error):
            running._connection.execute(sql)
    tables = [Subquery(_select(Named("id", "int"), source=Stored("visits")), name) for name in "abc"]
    a, b, c = (Named("v0", "int", name) for name in "abc")
    triples = Join(Join(tables[0], tables[1], Compare(">=", a, b)), tables[2], Compare(">=", a, c))
    with pytest.raises(AnswerFailed) as failure:
        running.run(_select(CountRows(), source=triples))
    assert "Its cost stays charged" in str(failure.value)
    assert failure.value.__suppress_context__
    assert running.run(_select(CountRows(), source=Stored("visits"))).open(Permit("a test")) == [(402,)]
    assert server not in repr(Postgres(url=server))


def test_what_the_engine_cannot_do_costs_nothing(visits: str) -> None:
    asked = session(visits)
    before = asked.remaining()
    for sql in ("SELECT SUM(code) FROM visits", "SELECT COUNT(*) FROM visits WHERE CAST(bill AS VARCHAR) = '1'"):
        with pytest.raises(QueryRefused, match="PostgreSQL cannot compute"):
            asked.ask(sql, epsilon=1)
    with pytest.raises(QueryRefused, match="PostgreSQL cannot compute"):
        asked.workload(["SELECT COUNT(*) FROM visits WHERE code = 3"], epsilon=1)
    assert asked.remaining() == before


def test_failures_say_nothing_and_are_charged(visits: str) -> None:
    asked: Any = session(visits)
    before = asked.remaining()
    asked._engine.connect = lambda: None  # lost after the check, while the query runs
    asked._engine._connection.close()
    with pytest.raises(AnswerFailed) as failure:
        asked.ask("SELECT COUNT(*) FROM visits WHERE ward = 'east'", epsilon=1)
    assert "zanzibar" not in str(failure.value)
    assert "connection" not in str(failure.value)
    assert asked.remaining().size < before.size


def test_answers_are_kept_until_the_owner_names_a_new_version(visits: str) -> None:
    book = Ledger.open(":memory:")
    sql = "SELECT COUNT(*) FROM visits"
    assert not session(visits, ledger=book).ask(sql, epsilon=1).cached
    assert session(visits, ledger=book).ask(sql, epsilon=1).cached
    assert not session(visits, ledger=book, version="2025-02").ask(sql, epsilon=1).cached


def test_engines_by_name_and_by_data() -> None:
    assert choose_engine(None, ["postgresql://host/base#t"]) == Postgres()
    assert choose_engine(None, [Path("t.csv")]) == Duckdb()
    assert choose_engine("postgres", []) == Postgres()
    assert choose_engine("spark", [Path("t.parquet")]) == Spark()
    assert choose_engine(Duckdb(threads=1), ["postgresql://host/base"]) == Duckdb(threads=1)
    with pytest.raises(UnknownPart):
        choose_engine("oracle", [])


@pytest.mark.slow
def test_spark_answers_from_parquet_and_refuses_for_free(java: str, tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"id": range(90), "ward": ["east", "west", "west"] * 30, "bill": [1.5] * 90, "code": ["x"] * 90}
    )
    frame.write_parquet(tmp_path / "visits.parquet")
    asked = session(tmp_path / "visits.parquet", engine=Spark(threads=2))
    answer = asked.ask("SELECT ward, COUNT(*) AS n, SUM(bill) AS s FROM visits GROUP BY ward", epsilon=10**6)
    assert answer.frame["n"].to_list() == [30, 60]
    assert answer.frame["s"].to_list() == pytest.approx([45, 90], abs=0.1)
    before = asked.remaining()
    with pytest.raises(QueryRefused, match="Spark cannot compute"):
        asked.ask("SELECT SUM(code) FROM visits", epsilon=1)
    assert asked.remaining() == before


@pytest.mark.parametrize("wrong", ["#nowhere.visits", "#Clinic.none"])
def test_what_cannot_be_reached_is_told_without_secrets(visits: str, wrong: str) -> None:
    with pytest.raises(DatabaseFailed, match="cannot be read"):
        session(visits.partition("#")[0] + wrong)
    with pytest.raises(DatabaseFailed) as failure:
        session("postgresql://ana:secret@127.0.0.1:1/base#t")
    assert "secret" not in str(failure.value)
    with pytest.raises(DatabaseFailed, match="one is needed"):
        session(pl.DataFrame({"id": [1]}), engine="postgres")


def test_the_command_asks_the_server(visits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "clinic.yaml"
    file.write_text(
        f"""
sfumato: 1
dataset: clinic
ledger: ledger.db
version: first
person: row
tables:
  visits:
    data: {visits}
    columns:
      ward: {{kind: category, domain: {{values: [east, west]}}}}
"""
    )
    Ledger.open(tmp_path / "ledger.db").set_cap(pure(10**7), dataset="clinic")
    arguments = ["query", str(file), "SELECT COUNT(*) AS n FROM visits", "--epsilon", "1000000"]
    assert main([*arguments, "--json"]) == 0
    assert '"value": 402' in capsys.readouterr().out
    assert main([*arguments, "--engine", "postgres"]) == 0
    assert "free" in "".join(capsys.readouterr())
    assert main([*arguments, "--engine", "oracle"]) != 0
    assert "oracle" in "".join(capsys.readouterr())
