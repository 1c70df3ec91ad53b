"""What a query makes an engine compute is bounded by its text alone, so that no person decides whether it fails.

Texts that double in nested subqueries failed where a certain person had a diagnosis, and were answered otherwise.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

pytest.importorskip("fastapi", reason="the extra `server` is not installed")
import psycopg
from starlette.testclient import TestClient

import sfumato
from postgres_sample import running as endpoint_of
from server_sample import COUNT, analyst, hospital_service, token
from sfumato.cli import main
from sfumato.dp.loss import pure
from sfumato.engines.backends.duckdb.dialect import DuckdbGenerator
from sfumato.engines.backends.postgres.dialect import PostgresGenerator
from sfumato.engines.backends.postgres.engine import Postgres
from sfumato.engines.cancellation import Cancellation, cancellable
from sfumato.engines.expressions import STORED_TEXT
from sfumato.errors import AnswerFailed, Cancelled, QueryRefused
from sfumato.ledger.ledger import Ledger
from sfumato.query.session import Session
from sfumato.secret import Permit
from sfumato.server.rest.application import create_application
from sfumato.server.service import QueryService
from sfumato.server.settings import ServerSettings

METADATA: dict[str, Any] = {
    "sfumato": 1, "dataset": "clinic", "ledger": "ledger.db", "person": "person",
    "tables": {
        "visits": {
            "data": "visits.csv", "bounds": {"rows": 2, "groups": 2},
            "columns": {
                "person": {"kind": "integer"},
                "ill": {"kind": "category", "domain": {"values": ["flu", "none"]}},
                "bill": {"kind": "number", "domain": {"low": 0, "high": 99}},
            },
        }
    },
}  # fmt: skip


def nested(innermost: str, items: str, levels: int) -> str:
    sql = innermost
    for _ in range(levels):
        sql = f"SELECT {items} FROM ({sql}) x"
    return sql


def visits(*, ill: bool) -> pl.DataFrame:
    """Two data sets that differ in whether one person is ill."""
    return pl.DataFrame(
        {"person": [1, 1, 2, 3], "ill": ["flu" if ill else "none", *["none"] * 3], "bill": [1.5, 2.0, 3.0, 4.0]}
    )


ROWS = "SELECT person, CASE WHEN ill = 'flu' THEN ill ELSE '' END AS t, bill AS x FROM visits"
DOUBLED = nested(ROWS, "person, t || t AS t", 31)
WINDOWED = f"SELECT person, ROW_NUMBER() OVER (PARTITION BY person ORDER BY t) AS r FROM ({DOUBLED}) w"
TOO_MUCH = {
    "doubled texts": f"SELECT COUNT(*) FROM ({DOUBLED}) y WHERE t < 'z'",
    "doubled texts in a window": f"SELECT COUNT(*) FROM ({WINDOWED}) y WHERE r = 1",
    "doubled by CONCAT": f"SELECT COUNT(*) FROM ({nested(ROWS, 'person, CONCAT(t, t) AS t', 31)}) y WHERE t < 'z'",
    "doubled constants": f"SELECT COUNT(*) FROM ({DOUBLED}) y WHERE t < 'z'".replace("THEN ill", "THEN 'a'"),
    "doubled in WITH": "WITH a AS (SELECT person, ill || ill AS t FROM visits), "
    + ", ".join(f"{b} AS (SELECT person, t || t AS t FROM {a})" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + " SELECT COUNT(*) FROM i WHERE t < 'z'",
    "one long expression": f"SELECT COUNT(*) FROM visits WHERE {' || '.join(['ill'] * 11)} < 'z'",
    "many long texts": "SELECT COUNT(*) FROM (SELECT person, "
    + ", ".join(f"{' || '.join(['ill'] * 9)} || '{i}' AS t{i}" for i in range(30)) + " FROM visits) x WHERE t1 < t2",
    "texts of joined rows": "SELECT COUNT(*) FROM (SELECT person, ill || ill || ill AS a FROM visits) v "
    "JOIN (SELECT person, ill || ill || ill AS b FROM visits) w ON v.person = w.person WHERE a || b < 'z'",
    "lists of values that double": "SELECT COUNT(*) FROM ("
    + nested(ROWS, "person, CASE WHEN t < 'b' THEN t ELSE t || 'y' END AS t", 20) + ") y WHERE t < 'z'",
    "cubes of cubes": f"SELECT SUM(CLIP(x, 0, 1)) FROM ({nested(ROWS, 'person, POWER(x, 3) AS x', 40)}) y",
    "shares of shares": f"SELECT SUM(CLIP(x, 0, 1)) FROM ({nested(ROWS, 'person, x * x / 7 AS x', 40)}) y",
    "conditions that double": "SELECT COUNT(*) FROM ("
    + nested(ROWS, "person, CASE WHEN x > 1 THEN x + x ELSE x - x END AS x", 20) + ") y WHERE x > 0",
    "squares of noisy numbers": nested("SELECT COUNT(*) AS n FROM visits", "n * n AS n", 40),
    "noisy texts that double": nested("SELECT CAST(COUNT(*) AS VARCHAR) AS n FROM visits", "n || n AS n", 40),
    "subqueries without end": f"SELECT COUNT(*) FROM ({nested(ROWS, 'person', 250)}) y",
}  # fmt: skip


@pytest.fixture(scope="module", params=[True, False], ids=["ill", "healthy"])
def session(request: pytest.FixtureRequest) -> Session:
    return sfumato.session(METADATA | {"ledger": ":memory:"}, {"visits": visits(ill=request.param)}, epsilon=10)


@pytest.mark.parametrize("what", TOO_MUCH)
def test_growth_is_refused_before_any_cost_whoever_is_in_the_data(what: str, session: Session) -> None:
    before = session.remaining()
    with pytest.raises(QueryRefused):
        session.ask(TOO_MUCH[what], epsilon="1e-9")
    assert session.remaining() == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits WHERE UPPER(ill) || '-' || LOWER(ill) || CAST(bill AS VARCHAR) < 'z'",
        "SELECT COUNT(*) FROM visits WHERE UPPER(ill) IN (" + ", ".join(f"'{i}'" for i in range(500)) + ")",
        "SELECT COUNT(*) FROM visits WHERE "
        + " OR ".join(f"LOWER(ill) LIKE '%{i}%' AND bill > {i}" for i in range(200)),
        "SELECT COUNT(*) FROM (SELECT person, ill || ill AS a FROM visits) v JOIN visits w ON v.person = w.person",
        f"SELECT COUNT(*) FROM ({nested(ROWS, 'person, t || t AS t', 3)}) y WHERE t < 'z'",
        f"SELECT SUM(CLIP(x, 0, 9)) FROM ({nested(ROWS, 'person, x + 1 AS x', 30)}) y",
    ],
)
def test_ordinary_texts_are_answered(sql: str, session: Session) -> None:
    assert session.ask(sql, epsilon="0.1").rows


def test_a_long_cell_is_cut_and_fails_nothing() -> None:
    """A million characters of one person count as the first thousand, wherever they are used."""
    for cell in ("ß" * 1_000_000, "none"):
        frame = visits(ill=False).with_columns(ill=pl.Series([cell, "none", "none", "none"]))
        asked = sfumato.session(METADATA | {"ledger": ":memory:"}, {"visits": frame}, epsilon=10**9)
        sql = "SELECT COUNT(*) FROM visits WHERE LENGTH(UPPER(ill || ill)) > {}"
        longer, longest = (asked.ask(sql.format(n), epsilon=10**6).value for n in (8, 2 * STORED_TEXT))
        assert (longer, longest) == (int(cell != "none"), 0)


@pytest.mark.parametrize("failing", ["run", "fold", "whole_columns", "_noise"])
def test_every_failure_after_the_charge_reads_the_same(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of memory in the engine or in what comes after it: the reason could depend on the data."""
    asked = sfumato.session(METADATA | {"ledger": ":memory:"}, {"visits": visits(ill=True)}, epsilon=10)
    keys = "SELECT ill, COUNT(*) AS n FROM visits GROUP BY"
    told = set()

    def out_of_memory(*_: Any, **__: Any) -> Any:
        raise MemoryError("17 people")

    if failing == "_noise":
        monkeypatch.setattr("sfumato.query.execute.executor._noisy", out_of_memory)
    else:
        monkeypatch.setattr(asked.running, failing, out_of_memory)
    for sql in (
        "SELECT COUNT(*) FROM visits",
        f"{keys} ill",
        f"{keys} ROLLUP (ill)",
        "SELECT MEDIAN(bill) FROM visits",
    ):
        try:
            asked.ask(sql, epsilon=1)
        except AnswerFailed as failure:
            told.add(str(failure))
    assert len(told) == 1
    assert "17" not in told.pop()


# --- through the doors ------------------------------------------------------------------------------------------------


def test_the_command_line_refuses_and_charges_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for ill in (True, False):
        folder = tmp_path / str(ill)
        folder.mkdir()
        visits(ill=ill).write_csv(folder / "visits.csv")
        (folder / "query.yaml").write_text(json.dumps(METADATA))
        book = Ledger.open(folder / "ledger.db")
        book.set_cap(pure(1), dataset="clinic")
        sql = TOO_MUCH["doubled texts in a window"]
        status = main(["query", str(folder / "query.yaml"), sql, "--epsilon", "0.001"])
        told.append((status, capsys.readouterr()))
        assert not [entry for entry in book.entries() if entry.kind == "spend"]
    assert told[0] == told[1]
    assert told[0][0] == 2


@pytest.fixture
def service(tmp_path: Path) -> QueryService:
    made = hospital_service(tmp_path)
    analyst(made, "ada", epsilon=5)
    return made


GROWING = f"SELECT COUNT(*) AS n FROM ({nested('SELECT ward AS t FROM patients', 't || t AS t', 31)}) y WHERE t < 'z'"


def _charged(service: QueryService) -> Any:
    return service.state.ledger.balance(dataset="hospital", analyst="ada").spent.size


def test_the_server_refuses_and_charges_nothing(service: QueryService) -> None:
    secret = token(service, "ada")
    with TestClient(create_application(service, ServerSettings()), base_url="http://127.0.0.1:8642") as client:
        reply = client.post(
            "/api/v1/datasets/hospital/ask", json={"sql": GROWING, "epsilon": "0.001"},
            headers={"Authorization": f"Bearer {secret}"},
        )  # fmt: skip
    assert reply.status_code == 422, reply.text
    with endpoint_of(service) as endpoint:
        address = f"postgresql://ada:{secret}@127.0.0.1:{endpoint.port}/hospital?options=-c%20sfumato.epsilon%3D1"
        with psycopg.connect(address) as wire, pytest.raises(psycopg.Error, match="characters"):
            wire.execute(GROWING.encode())
    assert _charged(service) == 0


# --- questions that nobody waits for ----------------------------------------------------------------------------------

ENDLESS = "SELECT COUNT(*) FROM range(10000000) a, range(10000000) b WHERE hash(a.range, b.range) = 1"


@pytest.fixture
def endless(service: QueryService, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Every statement of a question runs until it is interrupted; the event is set when one begins."""
    begun = threading.Event()

    def write(self: DuckdbGenerator, query: object) -> str:
        begun.set()
        return ENDLESS

    service.registered.session(service.registered.get("hospital"))
    monkeypatch.setattr(DuckdbGenerator, "write", write)
    return begun


def _ended(service: QueryService) -> bool:
    """Whether no question runs, within a minute."""
    for _ in range(600):
        if not service._running:
            return True
        time.sleep(0.1)
    return False


def test_cancel_interrupts_the_engine_and_the_charge_stays(service: QueryService, endless: threading.Event) -> None:
    ada = service.users.get("ada").principal()
    question = service.begin(ada, "hospital", COUNT, epsilon="0.5")
    seen: list[BaseException] = []

    def ask() -> None:
        try:
            service.run(ada, question)
        except BaseException as failure:
            seen.append(failure)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    assert endless.wait(60)
    assert service.cancel(ada, question.id).state == "cancelled"
    thread.join(60)
    assert [type(failure) for failure in seen] == [Cancelled]
    assert _charged(service) == pytest.approx(0.5)
    assert service.question(ada, question.id).state == "cancelled"


@pytest.mark.parametrize("key", [None, "first"])
def test_a_client_that_has_gone_ends_its_question(
    key: str | None, service: QueryService, endless: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an idempotency key the question can be asked again, at no further cost."""
    secret = token(service, "ada")
    application = create_application(service, ServerSettings())
    headers = [(b"host", b"127.0.0.1:8642"), (b"content-type", b"application/json"),
               (b"authorization", f"Bearer {secret}".encode())]  # fmt: skip
    headers += [(b"idempotency-key", key.encode())] if key else []
    scope = {"type": "http", "method": "POST", "path": "/api/v1/datasets/hospital/ask", "query_string": b"",
             "headers": headers, "http_version": "1.1", "scheme": "http", "root_path": "", "asgi": {"version": "3.0"},
             "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8642), "raw_path": b""}  # fmt: skip
    body = json.dumps({"sql": COUNT, "epsilon": "0.5"}).encode()
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        for message in messages:
            return message
        while not endless.is_set():
            await asyncio.sleep(0.01)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        """Nobody is there."""

    async def whole() -> None:
        async with application.router.lifespan_context(application):
            await asyncio.wait_for(application(scope, receive, send), 60)  # type: ignore[arg-type]

    asyncio.run(whole())
    assert _ended(service)
    assert _charged(service) == pytest.approx(0.5)
    monkeypatch.undo()
    if key:
        ada = service.users.get("ada").principal()
        assert service.ask(ada, "hospital", COUNT, epsilon="0.5", idempotency_key=key).rows
        assert _charged(service) == pytest.approx(0.5)


@pytest.mark.parametrize("how", ["cancels", "leaves"])
def test_a_postgresql_client_that_cancels_or_leaves_ends_its_question(
    how: str, service: QueryService, endless: threading.Event
) -> None:
    secret = token(service, "ada")
    with endpoint_of(service) as endpoint:
        address = f"postgresql://ada:{secret}@127.0.0.1:{endpoint.port}/hospital?options=-c%20sfumato.epsilon%3D1"
        wire = psycopg.connect(address)
        end: Callable[[], None] = wire.cancel_safe if how == "cancels" else lambda: _hang_up(wire)
        later = threading.Thread(target=lambda: (endless.wait(60), end()), daemon=True)
        later.start()
        with pytest.raises(psycopg.Error):
            wire.execute(COUNT.encode())
        later.join(60)
        assert _ended(service)
    assert _charged(service) == 1


def test_a_statement_of_postgresql_is_interrupted_and_the_next_one_runs(
    postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Postgres(url=postgresql).start({"t": pl.DataFrame({"a": [1]})})
    begun, cancellation = threading.Event(), Cancellation()

    def write(self: PostgresGenerator, query: object) -> str:
        begun.set()
        return "SELECT pg_sleep(3600)"

    nothing: Any = None
    monkeypatch.setattr(PostgresGenerator, "write", write)
    threading.Thread(target=lambda: (begun.wait(60), time.sleep(0.5), cancellation.cancel()), daemon=True).start()
    with cancellable(cancellation), pytest.raises(AnswerFailed):
        tables.run(nothing)
    monkeypatch.setattr(PostgresGenerator, "write", lambda *_: "SELECT 1")
    with cancellable(cancellation), pytest.raises(AnswerFailed):
        tables.run(nothing)  # of the same question, no further statement begins
    assert tables.run(nothing).open(Permit("a test")) == [(1,)]


def _hang_up(wire: psycopg.Connection[Any]) -> None:
    import os
    import socket

    with socket.socket(fileno=os.dup(wire.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
