"""Conformance of drivers on the PostgreSQL endpoint: asyncpg, psycopg 2 and 3, pg8000, SQLAlchemy."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from postgres_sample import Served, serving

psycopg = pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")
asyncpg = pytest.importorskip("asyncpg", reason="asyncpg is not installed")
psycopg2 = pytest.importorskip("psycopg2", reason="psycopg2 is not installed")
pg8000 = pytest.importorskip("pg8000.dbapi", reason="pg8000 is not installed")

COUNT = "SELECT COUNT(*) AS n FROM patients"
GROUPS = "SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward ORDER BY ward"
WARDS = ["east", "north", "south", "west"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("postgres")) as running:
        yield running


def address(served: Served) -> dict[str, Any]:
    return {"host": "127.0.0.1", "port": served.port, "user": "alice", "password": served.token}


def with_pool(served: Served, work: Callable[[Any], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        settings = {"sfumato.epsilon": "1"}
        pool = asyncpg.create_pool(
            **address(served), database="hospital", ssl=False, min_size=1, max_size=2, server_settings=settings
        )
        async with pool:
            return await asyncio.wait_for(work(pool), 20)

    return asyncio.run(run())


@pytest.fixture
def client(served: Served) -> Iterator[Any]:
    with psycopg.connect(served.url(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def older(served: Served) -> Iterator[Any]:
    connection = psycopg2.connect(served.url())
    yield connection
    connection.close()


# asyncpg


def test_asyncpg_is_told_of_a_refused_statement(served: Served) -> None:
    """It waits for the error before it sends Sync."""

    async def work(pool: Any) -> Any:
        async with pool.acquire() as connection:
            for sql in ("SELECT * FROM patients", "DELETE FROM patients", "SELECT name FROM nowhere", "SELECT FROM ("):
                with pytest.raises(asyncpg.PostgresError):
                    await connection.fetch(sql)
            return await connection.fetchval("SELECT 1")

    assert with_pool(served, work) == 1


def test_asyncpg_pools_keep_the_cost_of_the_start(served: Served) -> None:
    """A released connection is reset: locks, cursors, listeners and settings, which go back to those of the start."""

    async def work(pool: Any) -> Any:
        async with pool.acquire() as connection:
            await connection.execute("SET sfumato.epsilon = 0.5")
        async with pool.acquire() as connection:
            return await connection.fetchval("SHOW sfumato.epsilon"), await connection.fetchval(COUNT)

    epsilon, answer = with_pool(served, work)
    assert epsilon == "1"
    assert 300 < answer < 500


def test_asyncpg_streams_and_lists(served: Served) -> None:
    async def work(pool: Any) -> Any:
        async with pool.acquire() as connection, connection.transaction():
            rows = [row["ward"] async for row in connection.cursor(GROUPS, prefetch=2)]
            listed = await connection.fetchval(f"{COUNT} WHERE ward = ANY($1)", ["east", "west"])
            two = await connection.fetchval(f"{COUNT} WHERE age IN ($1,$2)", 4, 5)
            return rows, listed, two

    rows, listed, two = with_pool(served, work)
    assert rows == WARDS
    assert 150 < listed < 250
    assert -20 < two < 40


def test_asyncpg_copies(served: Served) -> None:
    async def work(pool: Any) -> Any:
        async with pool.acquire() as connection:
            sink = io.BytesIO()
            await connection.copy_from_query("SELECT ward, side FROM sides ORDER BY ward", output=sink, format="csv")
            return sink.getvalue()

    assert with_pool(served, work) == b"east,sunny\nnorth,shady\nsouth,sunny\nwest,shady\n"


# psycopg 3


@pytest.mark.parametrize("sql", ["now()", "CURRENT_TIMESTAMP", "transaction_timestamp()", "statement_timestamp()",
                                 "clock_timestamp()", "LOCALTIMESTAMP"])  # fmt: skip
def test_times_of_the_connection(client: Any, sql: str) -> None:
    found = client.execute(f"SELECT {sql}").fetchone()[0]
    told = found if found.tzinfo else found.replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - told) < timedelta(minutes=5)
    assert (found.tzinfo is None) == (sql == "LOCALTIMESTAMP")


def test_the_date_of_today(client: Any) -> None:
    assert abs(client.execute("SELECT current_date").fetchone()[0] - datetime.now(UTC).date()) <= timedelta(days=1)


def test_set_config_sets_or_refuses(client: Any) -> None:
    assert client.execute("SELECT set_config('sfumato.epsilon', '0.25', false)").fetchone() == ("0.25",)
    assert client.execute("SHOW sfumato.epsilon").fetchone() == ("0.25",)
    assert client.execute("SELECT pg_catalog.set_config('search_path', '', false)").fetchone() == ("",)
    for sql in ("SELECT set_config('sfumato.epsilon', '-1', false)", "SELECT set_config('nonsense', '1', false)",
                "SELECT set_config(ward, '1', false) FROM sides"):  # fmt: skip
        with pytest.raises(psycopg.Error):
            client.execute(sql)
    with client.transaction():
        client.execute("SELECT set_config('sfumato.epsilon', '0.5', true)")
        assert client.execute("SHOW sfumato.epsilon").fetchone() == ("0.5",)
    assert client.execute("SHOW sfumato.epsilon").fetchone() == ("0.25",)


@pytest.mark.parametrize("sql", ["RESET ALL", "DISCARD ALL", "RESET sfumato.epsilon", "SET sfumato.epsilon TO DEFAULT"])
def test_a_reset_goes_back_to_the_start(client: Any, sql: str) -> None:
    client.execute("SET sfumato.epsilon = 0.5")
    client.execute(sql)
    assert client.execute("SHOW sfumato.epsilon").fetchone() == ("1",)


def test_lists_of_values(client: Any) -> None:
    everybody = client.execute(f"{COUNT} WHERE ward = ANY(%s)", [WARDS]).fetchone()[0]
    assert 350 < everybody < 450
    assert -30 < client.execute(f"{COUNT} WHERE age IN (%s, %s)", [1, 2]).fetchone()[0] < 50
    assert 350 < client.execute(f"{COUNT} WHERE ward <> ALL(%s)", [["nowhere"]]).fetchone()[0] < 450
    assert client.execute("SELECT ward FROM sides WHERE ward = ANY(%s) ORDER BY 1", [["west", "east"]]).fetchall() == [
        ("east",), ("west",),
    ]  # fmt: skip


def test_prepare_and_execute(client: Any) -> None:
    client.execute(f"PREPARE older (int) AS {COUNT} WHERE age >= $1")
    assert -30 < client.execute("EXECUTE older(89)").fetchone()[0] < 50
    client.execute("DEALLOCATE older")
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        client.execute("EXECUTE older(89)")
    client.execute("PREPARE side AS SELECT side FROM sides WHERE ward = $1")
    assert client.execute("EXECUTE side('it''s')").fetchall() == []
    assert client.execute("EXECUTE side('east')").fetchall() == [("sunny",)]
    with pytest.raises(psycopg.Error):
        client.execute("EXECUTE side('east', 'west')")


def test_named_cursors_pay_once(served: Served, client: Any) -> None:
    before = served.spent()
    own = GROUPS.replace("GROUP BY", "WHERE age > 31 GROUP BY")
    with client.transaction(), client.cursor(name="wards") as cursor:
        cursor.execute(own)
        assert [row[0] for row in cursor.fetchmany(3)] == WARDS[:3]
        assert [row[0] for row in cursor] == WARDS[3:]
    assert served.spent() - before == 1
    with pytest.raises(psycopg.Error), client.transaction():
        client.execute("FETCH ALL FROM wards")
    with pytest.raises(psycopg.Error):
        client.execute(f"DECLARE c CURSOR FOR {own}")  # outside of a transaction it would end at once


@pytest.mark.parametrize("written", ["(FORMAT binary)", "WITH BINARY", "BINARY"])
def test_copy_binary(client: Any, written: str) -> None:
    """As of today and, as connectorx writes it, of old."""
    sql = f"COPY (SELECT ward, 1 AS n FROM sides ORDER BY ward) TO STDOUT {written}"
    with client.cursor() as cursor, cursor.copy(sql) as copy:
        copy.set_types(["text", "int4"])
        assert list(copy.rows()) == [(ward, 1) for ward in WARDS]


def test_parameters_of_every_kind(client: Any) -> None:
    born = f"{COUNT} WHERE born >= %s"
    assert -30 < client.execute(born, [date(1999, 1, 1)]).fetchone()[0] < 50
    assert -30 < client.execute(born, ["1999-01-01"]).fetchone()[0] < 50
    assert -30 < client.execute(born, [datetime(1999, 1, 1, 12)]).fetchone()[0] < 50
    assert 0 < client.execute(f"{COUNT} WHERE flu = %s", [True]).fetchone()[0] < 150


# psycopg 2


def test_psycopg2_server_side_cursors(older: Any) -> None:
    with older.cursor(name="page") as cursor:
        cursor.itersize = 2
        cursor.execute(GROUPS)
        assert [row[0] for row in cursor] == WARDS
    older.commit()


def test_psycopg2_lists_errors_and_copies(older: Any) -> None:
    with older.cursor() as cursor:
        cursor.execute(f"{COUNT} WHERE age = ANY(%s)", ([1, 2, 3],))
        assert -20 < cursor.fetchone()[0] < 60
        cursor.execute(f"{COUNT} WHERE ward IN %s", (("east", "west"),))
        assert 150 < cursor.fetchone()[0] < 250
        with pytest.raises(psycopg2.Error):
            cursor.execute("SELECT * FROM patients")
        older.rollback()
        sink = io.StringIO()
        cursor.copy_expert("COPY (SELECT ward FROM sides ORDER BY ward) TO STDOUT WITH CSV HEADER", sink)
        assert sink.getvalue().split() == ["ward", *WARDS]


# pg8000


def test_pg8000_asks_and_is_refused(served: Served) -> None:
    connection = pg8000.connect(**address(served), database="hospital", ssl_context=False)
    cursor = connection.cursor()
    cursor.execute("SET sfumato.epsilon = 1")
    cursor.execute(f"{COUNT} WHERE age > %s AND ward = ANY(%s)", (20, ["east", "west"]))
    assert 100 < cursor.fetchone()[0] < 250
    with pytest.raises(pg8000.DatabaseError):
        cursor.execute("SELECT * FROM patients")
    connection.rollback()
    cursor.execute("SELECT ward FROM sides WHERE ward = %s", ("east",))
    assert [list(row) for row in cursor.fetchall()] == [["east"]]
    connection.close()


# SQLAlchemy


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "asyncpg", "pg8000"])
def test_sqlalchemy_inspects_streams_and_pools(served: Served, driver: str) -> None:
    import sqlalchemy

    start = "SET sfumato.epsilon = 1"
    url = f"postgresql+{driver}://alice:{served.token}@127.0.0.1:{served.port}/hospital"
    if driver == "asyncpg":
        from sqlalchemy.ext.asyncio import create_async_engine

        async def work() -> tuple[Any, Any]:
            engine = create_async_engine(url, connect_args={"ssl": False})
            async with engine.connect() as connection:
                names = await connection.run_sync(lambda one: sqlalchemy.inspect(one).get_table_names())
                await connection.execute(sqlalchemy.text(start))
                result = await connection.stream(sqlalchemy.text(GROUPS))
                rows = [row[0] async for row in result]
            await engine.dispose()
            return names, rows

        names, rows = asyncio.run(work())
    else:
        engine = sqlalchemy.create_engine(url)
        names = sqlalchemy.inspect(engine).get_table_names()
        rows = []
        for _ in range(2):  # a pooled connection is used again
            with engine.connect() as connection:
                connection.execute(sqlalchemy.text(start))
                streamed = connection.execution_options(stream_results=True).execute(sqlalchemy.text(GROUPS))
                rows = [row[0] for row in streamed]
        engine.dispose()
    assert names == ["patients", "sides"]
    assert rows == WARDS


@pytest.mark.parametrize("written", ["1999-01-31", "1999-01-31 +01", "1999-01-31 -05:30", "1999-01-31 00:00:00"])
def test_dates_as_jdbc_writes_them(written: str) -> None:
    """``setDate`` sends the zone of the client behind the date, without a type."""
    from sfumato.server.postgres.type_mapping import BY_NAME, decode

    assert decode(written.encode(), BY_NAME["date"], binary=False) == date(1999, 1, 31)


def test_texts_of_any_size_are_not_made(client: Any) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="repeat"):
        client.execute("SELECT repeat('x', 2000000000)")
