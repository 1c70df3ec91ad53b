"""Questions over the PostgreSQL protocol: who pays what, when, and what is refused for free."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import sfumato
from postgres_sample import PEOPLE, WARDS, Served, register_hospital, serving
from server_sample import analyst, token
from sfumato.server.roles import Scope

psycopg = pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")

COUNT = "SELECT COUNT(*) AS n FROM patients"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("postgres")) as running:
        yield running


@pytest.fixture
def someone(served: Served, request: pytest.FixtureRequest) -> str:
    """An analyst of this test alone, with an epsilon of 100."""
    name = f"t{zlib.crc32(request.node.nodeid.encode())}"
    analyst(served.service, name, epsilon=100)
    return name


@pytest.fixture
def connection(served: Served, someone: str) -> Iterator[Any]:
    url = served.url(user=someone, password=token(served.service, someone))
    with psycopg.connect(url, autocommit=True) as open_connection:
        yield open_connection


def notices(connection: Any) -> list[str]:
    """Collects the notices of a connection."""
    heard: list[str] = []
    connection.add_notice_handler(lambda diagnostic: heard.append(diagnostic.message_primary))
    return heard


def test_an_answer_is_paid_and_told(served: Served, someone: str, connection: Any) -> None:
    heard = notices(connection)
    [(count,)] = connection.execute(COUNT).fetchall()
    assert isinstance(count, int)
    assert abs(count - PEOPLE) < 40
    assert served.spent(someone) == 1
    [notice] = heard
    assert "Cost ε = 1. Left: ε = 99." in notice
    assert "n: 95 % interval" in notice


def test_the_same_question_again_is_free_and_has_the_same_answer(served: Served, someone: str, connection: Any) -> None:
    answers = {connection.execute(COUNT).fetchone()[0] for _ in range(3)}
    assert len(answers) == 1
    assert served.spent(someone) == 1


def with_asyncpg(served: Served, user: str, work: Callable[[Any], Awaitable[Any]]) -> Any:
    """Do something with a connection of asyncpg, which prepares every statement."""
    asyncpg = pytest.importorskip("asyncpg", reason="asyncpg is not installed")

    async def run() -> Any:
        client = await asyncpg.connect(
            host="127.0.0.1", port=served.port, user=user, password=token(served.service, user), database="hospital",
            ssl=False, server_settings={"sfumato.epsilon": "1"},
        )  # fmt: skip
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(run())


def test_prepare_and_describe_neither_run_nor_charge(served: Served, someone: str) -> None:
    sql = "SELECT ward, COUNT(*) AS n, AVG(bill) AS mean FROM patients WHERE age > $1 AND born < $2 GROUP BY ward"

    async def work(client: Any) -> None:
        statement = await client.prepare(sql)
        assert [(one.name, one.type.name) for one in statement.get_attributes()] == [
            ("ward", "text"), ("n", "int8"), ("mean", "float8"),
        ]  # fmt: skip
        assert [one.name for one in statement.get_parameters()] == ["int8", "date"]
        assert served.spent(someone) == 0
        assert served.service.questions(served.service.users.get(someone).principal()) == ()
        assert len(await statement.fetch(20, date(1990, 1, 1))) == 4

    with_asyncpg(served, someone, work)
    assert served.spent(someone) == 1


def test_paging_a_portal_pays_once(served: Served, someone: str) -> None:
    async def work(client: Any) -> list[int]:
        async with client.transaction():
            cursor = await client.cursor("SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward")
            assert served.spent(someone) == 0
            return [len(await cursor.fetch(1)) for _ in range(6)]

    assert with_asyncpg(served, someone, work) == [1, 1, 1, 1, 0, 0]
    assert served.spent(someone) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM patients LIMIT 200",
        'SELECT * FROM "public"."patients" LIMIT 200',
        "SELECT name FROM patients",
        "SELECT p.ward, p.age FROM hospital.public.patients p LIMIT 1000",
        "SELECT ctid, * FROM patients",
        "TABLE patients",
        "SELECT COUNT(*) FROM patients, pg_class",
        "WITH x AS (SELECT * FROM patients) SELECT * FROM x",
    ],
)
def test_probes_are_refused_at_no_cost(served: Served, someone: str, connection: Any, sql: str) -> None:
    with pytest.raises(psycopg.Error) as refusal:
        connection.execute(sql)
    assert refusal.value.sqlstate == "0A000"
    assert "person" not in str(refusal.value).replace("about one person", "")
    assert served.spent(someone) == 0


def test_a_refused_probe_says_what_to_ask_and_where(connection: Any) -> None:
    with pytest.raises(psycopg.Error) as refusal:
        connection.execute("SELECT * FROM patients LIMIT 200")
    said = refusal.value.diag
    assert "SELECT COUNT(*), AVG(column)" in said.message_hint
    assert said.statement_position == "8"


def test_explain_is_free(served: Served, someone: str, connection: Any) -> None:
    lines = [row[0] for row in connection.execute(f"EXPLAIN {COUNT}")]
    assert lines[0] == "Costs ε = 1."
    assert any("95 %" in line for line in lines)
    with pytest.raises(psycopg.Error, match="would run"):
        connection.execute(f"EXPLAIN ANALYZE {COUNT}")
    assert served.spent(someone) == 0


def test_a_question_without_a_cost_is_refused(served: Served, someone: str) -> None:
    url = served.url(user=someone, password=token(served.service, someone), epsilon="")
    with psycopg.connect(url, autocommit=True) as plain:
        with pytest.raises(psycopg.Error) as refusal:
            plain.execute(COUNT)
        assert "SET sfumato.epsilon" in refusal.value.diag.message_hint
        plain.execute(f"{COUNT} ERROR 50")
        assert 0 < served.spent(someone) < 1
        plain.execute("SET sfumato.epsilon = 0.25")
        plain.execute(COUNT)


def test_max_epsilon_limits_a_connection(served: Served, someone: str, connection: Any) -> None:
    connection.execute("SET sfumato.epsilon = 0.4")
    connection.execute("SET sfumato.max_epsilon = 1")
    ages = [f"{COUNT} WHERE age > {age}" for age in (10, 20, 30)]
    connection.execute(ages[0])
    connection.execute(ages[1])
    with pytest.raises(psycopg.Error, match="limit") as refusal:
        connection.execute(ages[2])
    assert refusal.value.sqlstate == "53400"
    connection.execute(ages[0])  # paid before
    assert float(served.spent(someone)) == pytest.approx(0.8)
    connection.execute("SET sfumato.max_epsilon = 2")
    connection.execute(ages[2])
    assert float(served.spent(someone)) == pytest.approx(1.2)


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "'many'", "''", "1e400x"])
def test_a_wrong_epsilon_is_refused(connection: Any, value: str) -> None:
    with pytest.raises(psycopg.Error) as refusal:
        connection.execute(f"SET sfumato.epsilon = {value}")
    assert refusal.value.sqlstate in ("22023", "42601")
    assert connection.execute("SHOW sfumato.epsilon").fetchone() == ("1",)


def test_a_budget_that_is_spent_refuses(served: Served, someone: str, connection: Any) -> None:
    connection.execute("SET sfumato.epsilon = 101")
    with pytest.raises(psycopg.Error) as refusal:
        connection.execute(COUNT)
    assert refusal.value.sqlstate == "53400"
    assert served.spent(someone) == 0


def test_a_rollback_gives_no_budget_back(served: Served, someone: str, connection: Any) -> None:
    connection.autocommit = False
    connection.execute(COUNT)
    connection.rollback()
    assert served.spent(someone) == 1
    connection.execute("SET sfumato.epsilon = 7")
    connection.rollback()
    assert connection.execute("SHOW sfumato.epsilon").fetchone() == ("1",)


def test_settings_of_a_transaction_end_with_it(connection: Any) -> None:
    connection.execute("SET LOCAL sfumato.epsilon = 5")
    assert connection.execute("SHOW sfumato.epsilon").fetchone() == ("1",)
    with connection.transaction():
        connection.execute("SET LOCAL sfumato.epsilon = 5")
        assert connection.execute("SHOW sfumato.epsilon").fetchone() == ("5",)
    assert connection.execute("SHOW sfumato.epsilon").fetchone() == ("1",)
    with pytest.raises(psycopg.Error):
        connection.execute("SET ROLE bob")


def test_one_user_does_not_take_all_threads(served: Served, someone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight slow statements of one user leave threads for another, who is answered at once."""
    from sfumato.server.postgres.backend import Backend

    gate, answer = threading.Event(), Backend.catalog_answer

    def slow(self: Backend, *arguments: Any) -> Any:
        if self.user == someone:
            gate.wait(20)
        return answer(self, *arguments)

    monkeypatch.setattr(Backend, "catalog_answer", slow)
    secret = token(served.service, someone)

    def work() -> None:
        with psycopg.connect(served.url(user=someone, password=secret), autocommit=True) as client:
            client.execute("SELECT 1")

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    try:
        with psycopg.connect(served.url(), autocommit=True) as other:
            assert other.execute("SELECT 2").fetchone() == (2,)
        assert not gate.is_set()
    finally:
        gate.set()
        for thread in threads:
            thread.join(20)


def test_a_failed_transaction_answers_nothing_until_it_ends(served: Served, someone: str, connection: Any) -> None:
    connection.autocommit = False
    with pytest.raises(psycopg.Error):
        connection.execute("SELECT * FROM patients")
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        connection.execute(COUNT)
    assert served.spent(someone) == 0
    connection.rollback()
    with connection.transaction():
        connection.execute("SELECT 1")
        with pytest.raises(psycopg.Error), connection.transaction():
            connection.execute("SELECT * FROM patients")
        assert connection.execute("SELECT 2").fetchone() == (2,)


@pytest.mark.parametrize("binary", [False, True])
def test_types_of_results_and_parameters(connection: Any, binary: bool) -> None:
    cursor = connection.cursor(binary=binary)
    sql = (
        "SELECT ward, flu, COUNT(*) AS n, SUM(bill) AS total FROM patients WHERE age >= %s AND ward <> %s GROUP BY 1, 2"
    )
    rows = cursor.execute(sql, (10, "east")).fetchall()
    assert {(ward, flu) for ward, flu, _, _ in rows} == {(ward, flu) for ward in WARDS[1:] for flu in (False, True)}
    assert all(type(n) is int and type(total) is float for _, _, n, total in rows)
    for value in (Decimal("12.5"), 12.5, 12):
        [(count,)] = cursor.execute("SELECT COUNT(*) FROM patients WHERE bill < %s", (value,)).fetchall()
        assert abs(count - 13) < 30
    [(count,)] = cursor.execute("SELECT COUNT(*) FROM patients WHERE born < %s AND flu = %s", (date(1950, 1, 1), True))
    assert abs(count - 38) < 30


def test_a_parameter_is_never_sql(served: Served, someone: str, connection: Any) -> None:
    """Each would change the question, or add one, if it were spliced into the text."""
    for text in ("east' OR '1'='1", "'; SELECT * FROM patients; --", "$1", "\\' OR 1=1 --", "east\n--", "E'x'", "''"):
        answer = connection.execute("SELECT COUNT(*) AS n FROM patients WHERE ward = %s", (text,)).fetchall()
        assert len(answer) == 1
        assert abs(answer[0][0]) < 30
        asked = served.service.questions(served.service.users.get(someone).principal(), most=1)[0]
        assert asked.sql == "SELECT COUNT(*) AS n FROM patients WHERE ward =  '" + text.replace("'", "''") + "' "


def test_wrong_parameters_are_told_without_their_value(connection: Any) -> None:
    with pytest.raises(psycopg.Error) as refusal:
        connection.execute("SELECT COUNT(*) FROM patients WHERE age > %s", ("seventy",))
    assert refusal.value.sqlstate == "22P02"
    assert "seventy" not in str(refusal.value)


def test_views_tell_budget_questions_and_intervals(served: Served, connection: Any) -> None:
    assert connection.execute("SELECT * FROM sfumato.last_answer").fetchall() == []
    count = connection.execute(COUNT).fetchone()[0]
    [(value, low, high)] = connection.execute("SELECT value, low, high FROM sfumato.last_answer").fetchall()
    assert float(value) == count
    assert low < count < high
    [(left,)] = connection.execute("SELECT remaining FROM sfumato.budget WHERE dataset = 'hospital'").fetchall()
    assert left == "ε = 99"
    asked = connection.execute("SELECT question, status, charged FROM sfumato.questions").fetchall()
    assert asked == [(COUNT, "done", True)]
    kinds = connection.execute("SELECT kind FROM sfumato.columns WHERE column_name = 'age'").fetchall()
    assert kinds == [("integer",)]


def test_psql_reads_the_certificate_of_the_last_answer(served: Served, connection: Any) -> None:
    assert connection.execute("SELECT * FROM sfumato.last_certificate").fetchall() == []
    connection.execute(COUNT).fetchone()
    [(text,)] = connection.execute("SELECT certificate FROM sfumato.last_certificate").fetchall()
    certificate = json.loads(text)
    assert set(certificate["charges"][0]["entry"]) == {"hash"}
    assert sfumato.verify(certificate, ledger=served.service.state.ledger).ledger == "holds"
    connection.execute(COUNT.replace("*", "age"), ()).fetchone()
    [(other,)] = connection.execute("SELECT certificate FROM sfumato.last_certificate").fetchall()
    assert json.loads(other)["sha256"] != certificate["sha256"]


def test_questions_to_disjoint_parts_cost_one(served: Served, tmp_path: Path) -> None:
    register_hospital(served.service, tmp_path, "wards", "differential-privacy, parts: [ward]")
    analyst(served.service, "dora", epsilon=2, dataset="wards")
    with psycopg.connect(
        served.url(user="dora", password=token(served.service, "dora"), dataset="wards"), autocommit=True
    ) as connection:
        heard = notices(connection)
        for ward in WARDS:
            connection.execute(f"{COUNT} WHERE ward = '{ward}'").fetchone()
            [(text,)] = connection.execute("SELECT certificate FROM sfumato.last_certificate").fetchall()
            assert json.loads(text)["charges"][0]["part"]["name"] == ward
            assert sfumato.verify(json.loads(text), ledger=served.service.state.ledger).ledger == "holds"
        assert "Left: ε = 1." in heard[-1]
        connection.execute(COUNT).fetchone()
    assert served.spent("dora", "wards") == 2
    served.service.state.ledger.verify()


def test_copy_writes_text_and_csv(served: Served, someone: str, connection: Any) -> None:
    with connection.cursor().copy("COPY (SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward) TO STDOUT") as copy:
        lines = b"".join(copy).decode().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["east", "north", "south", "west"]
    inner = "SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward"
    with connection.cursor().copy(f"COPY ({inner}) TO STDOUT WITH (FORMAT csv, HEADER, DELIMITER ';')") as copy:
        assert b"".join(copy).decode().splitlines()[0] == "ward;n"
    assert served.spent(someone) == 1
    for sql in ("COPY patients TO STDOUT", "COPY (SELECT * FROM patients) TO STDOUT", "COPY patients FROM STDIN"):
        with pytest.raises(psycopg.Error):
            connection.execute(sql)


def test_public_tables_are_read_free_of_charge(served: Served, someone: str, connection: Any) -> None:
    assert connection.execute("SELECT side FROM sides WHERE ward = %s", ("east",)).fetchall() == [("sunny",)]
    assert len(connection.execute("SELECT * FROM public.sides LIMIT 200").fetchall()) == 4
    assert served.spent(someone) == 0


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO patients VALUES (1)",
        "CREATE TABLE x (a int)",
        "DROP TABLE patients",
        "SELECT 1 INTO x",
        "DELETE FROM sides",
        "SELECT read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT getenv('HOME')",
        "SELECT * FROM duckdb_settings()",
        "PRAGMA version",
        "ATTACH 'x.db'",
        "SELECT pg_sleep(10)",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT * FROM temp.pg_roles",
        "SELECT * FROM cat.pg_class",
        "SET role = 'root'; DROP TABLE x",
        "SELECT * FROM pg_authid; LOAD 'x'",
        "WITH x AS (DELETE FROM sides RETURNING *) SELECT * FROM x",
        "EXECUTE x",
        "DO $$ $$",
    ],
)
def test_nothing_is_written_and_no_file_is_read(connection: Any, sql: str) -> None:
    with pytest.raises(psycopg.Error):
        connection.execute(sql)
    assert connection.execute("SELECT COUNT(*) FROM sides").fetchone() == (4,)


@pytest.mark.parametrize(
    ("sql", "seconds", "said"),
    [
        ("SELECT * FROM generate_series(1, 100000000000)", 60, "more than 100,000 rows"),
        ("WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT COUNT(*) FROM x", 0.5, "longer than"),
    ],
)
def test_an_endless_catalog_query_ends(
    connection: Any, monkeypatch: pytest.MonkeyPatch, sql: str, seconds: float, said: str
) -> None:
    monkeypatch.setattr("sfumato.server.postgres.catalog.SECONDS", seconds)
    with pytest.raises(psycopg.Error, match=said):
        connection.execute(sql)
    assert connection.execute("SELECT 1").fetchone() == (1,)


_LONG = "x" * 100_000
_DOUBLED = "SELECT 'xxxxxxxx' AS t"
for _ in range(32):
    _DOUBLED = f"SELECT t || t AS t FROM ({_DOUBLED}) s"


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is limited")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT printf('%2000000000d', 1)",
        "SELECT generate_series(1, 2000000000)",
        f"SELECT length(replace('{_LONG}', 'x', '{_LONG}'))",
        f"SELECT length(t) FROM ({_DOUBLED}) s",
    ],
    ids=["width", "list", "replace", "doubled"],
)
def test_a_catalog_query_that_grows_ends_alone(connection: Any, sql: str) -> None:
    """It is free, so it must cost nobody else anything: the server's memory does not grow, and it goes on."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(psycopg.Error, match="SFU-702"):
        connection.execute(sql)
    assert connection.execute("SELECT COUNT(*) FROM sides").fetchone() == (4,)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "KiB"


def test_outer_queries_have_columns(served: Served, someone: str, connection: Any) -> None:
    inner = "SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward"
    [(mean,)] = connection.execute(f"SELECT AVG(n) AS mean FROM ({inner}) AS t").fetchall()
    assert abs(mean - 100) < 30
    ranks = connection.execute(f"SELECT ward, n, RANK() OVER (ORDER BY n DESC) AS place FROM ({inner}) AS t").fetchall()
    assert sorted(place for _, _, place in ranks)[0] == 1
    assert served.spent(someone) == 1  # one question, looked at twice


def test_other_policies_answer_without_a_cost(served: Served, someone: str, tmp_path: Path) -> None:
    register_hospital(served.service, tmp_path, f"sized-{someone}", policy="{size-control: 5}")
    served.service.registered.set_grant(f"sized-{someone}", someone, True, by="owner")
    url = served.url(user=someone, password=token(served.service, someone), dataset=f"sized-{someone}", epsilon="")
    with psycopg.connect(url, autocommit=True) as client:
        heard = notices(client)
        [(count,)] = client.execute("SELECT COUNT(*) FROM patients WHERE age > %s", (30,)).fetchall()
        assert type(count) is int
        assert count > 5
        assert "does not provide differential privacy" in heard[0]
        assert client.execute("EXPLAIN SELECT COUNT(*) FROM patients").fetchone() == ("Costs no budget.",)
        with pytest.raises(psycopg.Error, match="GROUP BY"):
            client.execute("SELECT ward, COUNT(*) FROM patients GROUP BY ward")


def test_other_data_sets_do_not_exist(served: Served, connection: Any) -> None:
    assert connection.execute("SELECT datname FROM pg_database").fetchall() == [("hospital",)]
    failures = []
    for dataset in ("secret-study", "no-such-study"):
        with pytest.raises(psycopg.OperationalError) as refusal:
            psycopg.connect(served.url(dataset=dataset))
        failures.append(str(refusal.value).replace(dataset, "X"))
    assert failures[0] == failures[1]
    assert "does not exist" in failures[0]


def test_wrong_credentials_fail_alike(served: Served) -> None:
    revoked = served.service.tokens.create("bob", scopes=[Scope.ASK], days=1)
    served.service.tokens.revoke(revoked.token.id)
    of_bob = token(served.service, "bob")
    failures = set()
    for user, password in (("alice", "sfu_wrong"), ("nobody", "sfu_wrong"), ("bob", revoked.secret), ("alice", of_bob)):
        with pytest.raises(psycopg.OperationalError) as refusal:
            psycopg.connect(served.url(user=user, password=password))
        failures.add(str(refusal.value).replace(user, "X"))
    assert len(failures) == 1
    with psycopg.connect(served.url(user="bob", password=of_bob)):
        pass


def test_a_revoked_token_ends_an_open_connection(served: Served, someone: str) -> None:
    made = served.service.tokens.create(someone, scopes=[Scope.ASK], days=1)
    with psycopg.connect(served.url(user=someone, password=made.secret), autocommit=True) as client:
        client.execute("SELECT 1")
        served.service.tokens.revoke(made.token.id)
        with pytest.raises(psycopg.OperationalError, match="no longer valid"):
            client.execute(COUNT)
        assert client.closed
    assert served.spent(someone) == 0


def test_a_token_without_the_scope_cannot_ask(served: Served, someone: str) -> None:
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(served.url(user=someone, password=token(served.service, someone, [Scope.READ])))


def test_cancel_ends_a_question_and_keeps_what_was_charged(
    served: Served, someone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.query.session import Session

    ask = Session.ask

    def slow(self: Session, sql: str, **options: Any) -> Any:
        answer = ask(self, sql, **options)
        time.sleep(1.0)
        return answer

    monkeypatch.setattr(Session, "ask", slow)

    async def work(client: Any) -> str:
        with pytest.raises(TimeoutError):
            await client.fetch(COUNT, timeout=0.4)  # asyncpg sends a cancel request
        assert served.spent(someone) == 1
        assert await client.fetchval("SELECT 1") == 1
        for _ in range(50):
            status = str(await client.fetchval("SELECT status FROM sfumato.questions"))
            if status == "cancelled":
                break
            await asyncio.sleep(0.1)
        await client.fetch(COUNT)  # asked again, it is not charged twice
        return status

    assert with_asyncpg(served, someone, work) == "cancelled"
    assert served.spent(someone) == 1
