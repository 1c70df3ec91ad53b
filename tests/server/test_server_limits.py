"""What one person may take of a server, at both doors: rates, computing time, lock-outs, credentials, logs."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `server` is not installed")
import psycopg
from argon2 import PasswordHasher
from starlette.testclient import TestClient
from test_server_rest import HOST, PASSWORD, Server

from postgres_sample import Served, serving
from server_sample import COUNT, token
from sfumato.errors import InvalidRecipe
from sfumato.query import session
from sfumato.server.postgres.endpoint import EndpointLimits
from sfumato.server.roles import Scope
from sfumato.server.settings import ServerSettings, load_settings
from sfumato.server.workers import Workers

VERBS = ("ask", "explain", "analyze")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_counts(tmp_path: Path, verb: str) -> None:
    server = Server(tmp_path, request_limit="3/minute")
    body = {"sql": "SELECT age FROM patients", "epsilon": "0.1"}
    with server.client:
        told = [server("POST", f"/api/v1/datasets/hospital/{verb}", json=body).status_code for _ in range(5)]
        assert told == [422, 422, 422, 429, 429]
        assert server.ask("bob").status_code == 200, "another person is not held up"


@pytest.mark.parametrize("verb", VERBS)
def test_computing_time_is_bounded_per_person(tmp_path: Path, verb: str) -> None:
    """A free question with thousands of conditions keeps a worker busy; it counts as what it takes."""
    server = Server(tmp_path, compute_seconds=0.01)
    chain = " OR ".join(f"age = {number % 90}" for number in range(300))
    body = {"sql": f"{COUNT} WHERE {chain}", "epsilon": "0.1"}
    with server.client:
        told = [server("POST", f"/api/v1/datasets/hospital/{verb}", json=body).status_code for _ in range(4)]
        assert told[-1] == 429
        assert server.ask("bob").status_code == 200


OTHERS = (
    ("GET", "/api/v1/questions"), ("POST", "/api/v1/questions/none/cancel"), ("GET", "/api/v1/me/tokens"),
    ("GET", "/api/v1/budget"), ("GET", "/api/v1/budget/requests"), ("GET", "/api/v1/datasets/hospital/schema"),
    ("GET", "/api/v1/datasets/hospital/catalog"), ("POST", "/api/v1/me/tokens"), ("POST", "/api/v1/budget/requests"),
)  # fmt: skip


def test_requests_other_than_questions_count_too(tmp_path: Path) -> None:
    server = Server(tmp_path, request_limit=f"{len(OTHERS)}/minute")
    bodies = {
        "/api/v1/me/tokens": {"scopes": ["ask"], "days": 1},
        "/api/v1/budget/requests": {"epsilon": 1, "why": "x"},
    }
    with server.client:
        for method, path in OTHERS:
            options = {"json": bodies[path]} if method == "POST" and path in bodies else {}
            assert server(method, path, **options).status_code in (200, 201, 404)
        assert {server(method, path).status_code for method, path in OTHERS} == {429}
        assert server.ask("bob").status_code == 200


def test_what_lists_take_to_compute_counts(tmp_path: Path) -> None:
    server = Server(tmp_path, compute_seconds=0.000001)
    with server.client:
        assert [server("GET", "/api/v1/questions").status_code for _ in range(2)] == [200, 429]
        assert server("POST", "/api/v1/questions/none/cancel").status_code == 404, "who may not compute may cancel"


def test_a_list_of_questions_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.question_log._MOST_LISTED", 50_000)
    server = Server(tmp_path)
    with server.client:
        for number in range(6):
            server.ask(sql=f"SELECT age + {number}{' ' * 15_000} FROM patients")
        listed = server("GET", "/api/v1/questions?most=1000").json()["questions"]
        assert [one["sql"][13] for one in listed] == ["5", "4", "3"], "the newest, in full"
        assert len(server("GET", "/api/v1/audit/questions", "audra").json()["questions"]) == 3


class Waiting:
    """Makes questions wait in the middle until they are let go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on = threading.Event()
        execute = session.execute_plan

        def waiting(*given: Any, **options: Any) -> Any:
            assert self.go_on.wait(60)
            return execute(*given, **options)

        monkeypatch.setattr(session, "execute_plan", waiting)


def submitted(server: Server, number: int) -> Any:
    return server.ask(sql=f"{COUNT} WHERE age > {number}", epsilon="0.01", headers={"Prefer": "respond-async"})


def test_questions_in_the_background_are_bounded_and_hold_up_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.server.rest.context._MOST_WAITING", 5)
    waiting, server = Waiting(monkeypatch), Server(tmp_path)
    with server.client:
        places = [submitted(server, number).headers["location"] for number in range(5)]
        assert submitted(server, 5).status_code == 429
        assert server("GET", places[0]).json()["state"] == "running", "who waits can read"
        assert server("POST", f"{places[4]}/cancel").json()["state"] == "cancelled", "and cancel"
        waiting.go_on.set()
        ended = [server("GET", f"{place}/events").text.strip().rpartition("data: ")[2] for place in places]
        assert [json.loads(told)["state"] for told in ended] == ["done"] * 4 + ["cancelled"]


def test_no_question_is_left_running_where_computing_time_is_used_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, server = Waiting(monkeypatch), Server(tmp_path)
    with server.client:
        place = submitted(server, 1).headers["location"]
        server.client.app.state.context.workers._seconds = 0.000001  # type: ignore[attr-defined]
        waiting.go_on.set()
        assert '"done"' in server("GET", f"{place}/events").text
        assert submitted(server, 2).status_code == 429
    assert {one.state for one in server.service.log.latest()} == {"done"}


def test_questions_that_wait_when_the_server_stops_are_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, server = Waiting(monkeypatch), Server(tmp_path, workers=4)  # one at a time for each person
    with server.client:
        for number in range(3):
            assert submitted(server, number).status_code == 202
        threading.Timer(0.3, waiting.go_on.set).start()
    states = {one.sql[-1]: one.state for one in server.service.log.latest()}
    assert states == {"0": "done", "1": "cancelled", "2": "cancelled"}


def test_streams_of_events_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.rest.context._MOST_STREAMS", 2)
    waiting, server = Waiting(monkeypatch), Server(tmp_path)
    with server.client, ThreadPoolExecutor(2) as threads:
        place = submitted(server, 1).headers["location"]
        streams = [threads.submit(server, "GET", f"{place}/events") for _ in range(2)]
        context = server.client.app.state.context  # type: ignore[attr-defined]
        while context._streams["ada"] < 2:
            time.sleep(0.01)
        assert server("GET", f"{place}/events").status_code == 429
        waiting.go_on.set()
        assert {stream.result().status_code for stream in streams} == {200}
        assert server("GET", f"{place}/events").status_code == 200


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path, workers=Workers(ServerSettings(request_limit="5/day"))) as running:
        yield running


class SlowLog(logging.Filter):
    """A log that takes its time: a line written after the answer is not there when the client has the answer."""

    def filter(self, record: logging.LogRecord) -> bool:
        time.sleep(0.05)
        return True


def test_the_postgresql_endpoint_obeys_the_limit_and_writes_logs(
    limited: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sfumato.server")
    states = []
    with caplog.filtering(SlowLog()), psycopg.connect(limited.url(), autocommit=True) as client:
        for sql in ("SELECT age FROM patients", f"EXPLAIN {COUNT}", COUNT, "SELECT 1", "SHOW TABLES"):
            for _ in range(2):
                try:
                    client.execute(sql)
                    states.append("00000")
                except psycopg.Error as refusal:
                    states.append(refusal.sqlstate)
    assert states == ["0A000", "0A000", "00000", "00000", "00000", "53300", "00000", "00000", "00000", "00000"]
    lines = [record.facts for record in caplog.records if record.msg == "statement"]  # type: ignore[attr-defined]
    assert [line["code"] for line in lines] == states
    assert {line["user"] for line in lines} == {"alice"}
    assert "QuestionStatement" in {line["operation"] for line in lines}
    assert "patients" not in str(lines)


def refused(place: str) -> bool:
    """Whether a connection is refused."""
    try:
        psycopg.connect(place).close()
    except psycopg.OperationalError:
        return True
    return False


def test_nobody_takes_all_connections(tmp_path: Path) -> None:
    with serving(tmp_path, limits=EndpointLimits(connections=8)) as served:
        alice, bob = served.url(), served.url(user="bob", password=token(served.service, "bob"))
        with psycopg.connect(alice), psycopg.connect(alice):
            with pytest.raises(psycopg.OperationalError, match="too many connections of this account"):
                psycopg.connect(alice)
            assert not refused(bob)
        place = "127.0.0.1", served.port
        with socket.create_connection(place) as one, socket.create_connection(place) as two:
            one.sendall(b"\0")
            two.sendall(b"\0")  # who has not signed in keeps others of the address out, and nobody else
            context = served.endpoint._open
            while len(context) < 2:
                time.sleep(0.01)
            assert refused(alice)
            assert not served.endpoint._full(lambda one: one.stranger_at == "192.0.2.1")
        assert within(lambda: not refused(alice))


def within(true: Callable[[], bool], seconds: float = 20) -> bool:
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


# Sign-in


def signed_in(server: Server, name: str) -> tuple[Any, dict[str, str]]:
    """A browser that signed in with the password."""
    browser = TestClient(server.client.app, base_url=HOST)
    told = browser.post("/api/v1/sign-in", json={"user": name, "password": PASSWORD})
    assert told.status_code == 200, told.text
    return browser, {"X-CSRF-Token": told.json()["csrf"]}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path, failures=3, sign_in_limit="5/minute", behind_proxy=False, proxies=("10.0.0.0/8",))
    passwords = made.client.app.state.context.passwords  # type: ignore[attr-defined]
    passwords.__dict__["_hasher"] = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    passwords.set("ada", PASSWORD)
    with made.client:
        yield made


def attempt(server: Server, password: str, *, peer: str, forwarded: str = "") -> int:
    client = TestClient(server.client.app, base_url=HOST, client=(peer, 1))
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    told = client.post("/api/v1/sign-in", json={"user": "ada", "password": password}, headers=headers)
    return int(told.status_code)


def test_nobody_locks_somebody_else_out(server: Server) -> None:
    assert [attempt(server, "wrong", peer="192.0.2.1") for _ in range(4)] == [401, 401, 401, 429]
    assert attempt(server, PASSWORD, peer="192.0.2.1") == 429
    assert attempt(server, PASSWORD, peer="192.0.2.2") == 200


def test_users_behind_a_declared_proxy_have_limits_of_their_own(server: Server) -> None:
    told = [attempt(server, PASSWORD, peer="10.0.0.1", forwarded=f"6.6.6.6, 192.0.2.{n}") for n in range(8)]
    assert told == [200] * 8
    told = [attempt(server, PASSWORD, peer="192.0.2.77", forwarded=f"192.0.2.{n}") for n in range(8)]
    assert told[-1] == 429, "others may not say where they come from"


def test_addresses_of_one_network_count_as_one(server: Server) -> None:
    told = [attempt(server, "wrong", peer=f"2001:db8::{n}") for n in range(1, 5)]
    assert told == [401, 401, 401, 429]
    assert attempt(server, PASSWORD, peer="2001:db8:0:1::1") == 200, "a neighbour"
    told = [attempt(server, "wrong", peer=peer) for peer in ("192.0.2.1", "::ffff:192.0.2.1") * 2]
    assert told == [401, 401, 401, 429]


def test_passwords_are_checked_a_few_at_a_time(server: Server) -> None:
    """Each takes 64 MiB: attempts from many addresses at once would take all memory."""
    passwords = server.client.app.state.context.passwords  # type: ignore[attr-defined]
    hasher, now, most = passwords.__dict__["_hasher"], [0], [0]

    class Slow:
        def verify(self, stored: str, given: bytes) -> bool:
            now[0] += 1
            most[0] = max(most[0], now[0])
            time.sleep(0.02)
            now[0] -= 1
            return bool(hasher.verify(stored, given))

        def hash(self, secret: bytes) -> str:
            return str(hasher.hash(secret))

    passwords.__dict__["_hasher"] = Slow()
    with ThreadPoolExecutor(12) as threads:
        told = list(threads.map(lambda n: attempt(server, PASSWORD, peer=f"192.0.2.{n}"), range(12)))
    assert told == [200] * 12
    assert most[0] <= 2


def test_networks_of_proxies_are_checked() -> None:
    with pytest.raises(InvalidRecipe, match="proxies"):
        load_settings(None, given={}, environment={"SFUMATO_SERVER_PROXIES": "10.0.0.0/8, nonsense"})


# Credentials


def test_a_password_is_changed_in_the_browser_and_with_the_old_one(server: Server) -> None:
    new = "another horse battery staple"
    path, body = "/api/v1/me/password", {"password": new, "current": PASSWORD}
    assert server("PUT", path, "ada", json=body).status_code == 403, "a token does not"
    browser, headers = signed_in(server, "ada")
    assert browser.put(path, json={"password": new}, headers=headers).status_code == 401
    assert browser.put(path, json={**body, "current": "wrong"}, headers=headers).status_code == 401
    assert browser.put(path, json=body, headers=headers).status_code == 204


def test_a_link_sets_a_forgotten_password(server: Server) -> None:
    link = server("POST", "/api/v1/users/ada/link", "root").json()["link"]
    browser = TestClient(server.client.app, base_url=HOST, follow_redirects=False)
    assert browser.post(link, headers={"Origin": HOST}).status_code == 303
    headers = {"X-CSRF-Token": browser.get("/api/v1/me").json()["csrf"]}
    body = {"password": "another horse battery staple"}
    assert browser.put("/api/v1/me/password", json=body, headers=headers).status_code == 204


def test_a_token_makes_none_that_outlives_it(server: Server) -> None:
    tokens = server.service.tokens
    parent = tokens.create("ada", scopes=[Scope.MANAGE, Scope.ASK], days=1)
    body = {"scopes": ["manage", "ask"], "days": 300}
    child = server("POST", "/api/v1/me/tokens", parent.secret, json=body).json()
    assert child["expires"] == parent.token.expires
    grandchild = server("POST", "/api/v1/me/tokens", child["secret"], json=body).json()
    tokens.revoke(parent.token.id)
    for made in (child, grandchild):
        assert server("GET", "/api/v1/me", made["secret"]).status_code == 401
    browser, headers = signed_in(server, "ada")
    made = browser.post("/api/v1/me/tokens", json=body, headers=headers).json()
    assert made["expires"] > parent.token.expires


def test_who_has_computed_for_long_gives_way_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.workers._FREE_SECONDS", 0.02)
    workers = Workers(ServerSettings(compute_seconds=6))

    def compute() -> None:
        until = time.thread_time() + 0.05
        while time.thread_time() < until:
            pass

    async def measured(person: str) -> float:
        began = time.monotonic()
        async with workers.turn(person):
            return time.monotonic() - began

    async def work() -> None:
        await workers.run("eve", compute)
        assert await measured("eve") < 0.2, "nobody else is there"
        await workers.run("bob", lambda: None)
        waited = await asyncio.gather(*(measured("eve") for _ in range(workers.each)), measured("bob"))
        assert min(waited[:-1]) >= 0.05 * (4 * workers.each - 1), "a quarter of the time on all threads together"
        assert waited[-1] < 0.2

    asyncio.run(work())
    workers.close()


def test_people_who_compute_alike_do_not_give_way_to_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.server.workers._FREE_SECONDS", 0.02)
    workers = Workers()
    for person, lately in {"ann": 3.0, "ben": 2.9, "cem": 0.1}.items():
        workers._recent[person] = lately, time.monotonic()
        workers._used[person] = lately, time.monotonic(), 0.01
    assert (workers._pause("ann") > 0, workers._pause("ben") > 0, workers._pause("cem")) == (True, True, 0.0)
    for person in ("cem", "dan"):
        workers._recent[person] = 3.0, time.monotonic()
        workers._used[person] = 3.0, time.monotonic(), 0.01
    assert {workers._pause(person) for person in ("ann", "ben", "cem", "dan")} == {0.0}
    workers.close()
