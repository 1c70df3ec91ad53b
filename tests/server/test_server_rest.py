"""REST interface: formats, jobs, idempotency, sign-in, sessions, CSRF, limits, roles, and what is not told."""

from __future__ import annotations

import io
import json
import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sfumato

pytest.importorskip("fastapi", reason="the extra `server` is not installed")
from argon2 import PasswordHasher
from starlette.testclient import TestClient

from server_sample import COUNT, analyst, hospital_service, staff, token, write_hospital
from sfumato.errors import SfumatoError
from sfumato.proof.signature import public_key
from sfumato.server.rest.application import create_application
from sfumato.server.roles import AccountRole, Scope
from sfumato.server.service import QueryService
from sfumato.server.settings import ServerSettings

HOST = "http://127.0.0.1:8642"
PASSWORD = "correct horse battery staple"


class Server:
    """A service with its application and one token per role."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.service: QueryService = hospital_service(folder)
        analyst(self.service, "ada", epsilon=2)
        analyst(self.service, "bob", epsilon=2)
        for name, role in (("root", AccountRole.ADMINISTRATOR), ("owner", AccountRole.OWNER),
                           ("otto", AccountRole.OWNER), ("audra", AccountRole.AUDITOR)):  # fmt: skip
            staff(self.service, name, role)
        self.tokens = {name: token(self.service, name) for name in ("ada", "bob", "root", "owner", "otto", "audra")}
        self.settings = ServerSettings(data=folder / "data", **settings)
        self.client = TestClient(
            create_application(self.service, self.settings), base_url=HOST, raise_server_exceptions=False
        )

    def add(self, name: str, role: str) -> None:
        staff(self.service, name, AccountRole(role))
        self.tokens[name] = token(self.service, name)

    def __call__(self, method: str, path: str, who: str | None = "ada", **options: Any) -> Any:
        headers = options.pop("headers", {})
        if who is not None:
            headers = {"Authorization": f"Bearer {self.tokens.get(who, who)}", **headers}
        return self.client.request(method, path, headers=headers, **options)

    def ask(self, who: str = "ada", sql: str = COUNT, epsilon: str = "0.1", **options: Any) -> Any:
        body = {"sql": sql, "epsilon": epsilon}
        return self("POST", "/api/v1/datasets/hospital/ask", who, json=body, **options)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("server"))
    with made.client:
        yield made


def test_an_answer_in_three_formats(server: Server) -> None:
    sql = "SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward"
    plain = server.ask(sql=sql)
    assert plain.status_code == 200, plain.text
    body = plain.json()
    assert body["columns"] == ["ward", "n"]
    assert body["remaining"]["epsilon"]
    csv = server.ask(sql=sql, headers={"Accept": "text/csv"})
    assert csv.headers["content-type"].startswith("text/csv")
    arrow = server.ask(sql=sql, headers={"Accept": "application/vnd.apache.arrow.stream"})
    numbers = [row["n"]["value"] for row in body["rows"]]
    assert pl.read_csv(io.StringIO(csv.text))["n"].to_list() == numbers
    assert pl.read_ipc_stream(io.BytesIO(arrow.content))["n"].to_list() == numbers
    assert pl.read_csv(io.StringIO(csv.text)).columns == ["ward", "n", "n_low", "n_high"]


def test_explain_is_free_and_a_repeated_request_pays_once(server: Server) -> None:
    before = server.service.state.ledger.head()
    body = {"sql": f"{COUNT} WHERE age > 7", "epsilon": 0.1}
    explained = server("POST", "/api/v1/datasets/hospital/explain", json=body)
    assert explained.json()["explanation"]["cost"] == "ε = 0.1"
    assert server.service.state.ledger.head() == before
    first, again = (server.ask(sql=body["sql"], headers={"Idempotency-Key": "one"}) for _ in range(2))
    assert first.json()["question"] == again.json()["question"]
    assert first.json()["rows"] == again.json()["rows"]
    assert server.service.state.ledger.head()[0] == before[0] + 1


def test_a_workload_in_three_formats_and_as_a_job(server: Server) -> None:
    queries = [f"{COUNT} WHERE age < {age}" for age in (20, 40, 60)]

    def ask(**headers: str) -> Any:
        body = {"queries": queries, "epsilon": 0.1}
        return server("POST", "/api/v1/datasets/hospital/workload", json=body, headers=headers)

    before = server.service.state.ledger.head()[0]
    plain = ask()
    assert plain.status_code == 200, plain.text
    numbers = [cell["value"] for cell in plain.json()["values"]]
    csv, arrow = ask(Accept="text/csv"), ask(Accept="application/vnd.apache.arrow.stream")
    assert pl.read_csv(io.StringIO(csv.text))["value"].to_list() == numbers
    assert pl.read_ipc_stream(io.BytesIO(arrow.content)).columns == ["value", "low", "high"]
    job = ask(Prefer="respond-async")
    place = job.headers["location"]
    assert json.loads(server("GET", f"{place}/events").text.strip().rpartition("data: ")[2])["state"] == "done"
    assert [cell["value"] for cell in server("GET", f"{place}/result").json()["values"]] == numbers
    assert server("GET", f"{place}/result", "bob").status_code == 404
    assert server.service.state.ledger.head()[0] == before + 1, "paid once"


def test_the_analysis_is_free_and_the_catalog_names_no_place(server: Server) -> None:
    before = server.service.state.ledger.head()
    body = {"sql": f"{COUNT} WHERE age > 7", "epsilon": "0.1"}
    analysis = server("POST", "/api/v1/datasets/hospital/analyze", json=body).json()["analysis"]
    assert "Scan patients" in analysis
    catalog = server("GET", "/api/v1/datasets/hospital/catalog")
    [table] = catalog.json()["private"]
    assert set(table) == {"name", "unit", "rows", "groups", "typical_groups", "columns"}
    assert [set(column) for column in table["columns"]] == [{"name", "role", "kind", "domain"}] * 2
    assert "csv" not in catalog.text
    assert str(server.folder) not in catalog.text
    assert server.service.state.ledger.head() == before


def test_a_job_with_events_and_result(server: Server) -> None:
    started = server.ask(sql=f"{COUNT} WHERE age > 8", headers={"Prefer": "respond-async"})
    assert started.status_code == 202
    place = started.headers["location"]
    events = server("GET", f"{place}/events").text
    assert json.loads(events.strip().rpartition("data: ")[2])["state"] == "done"
    assert server("GET", place).json()["state"] == "done"
    result = server("GET", f"{place}/result")
    assert result.json()["cached"] is True
    for other in ("bob", "root"):
        for path in (place, f"{place}/result", f"{place}/events"):
            assert server("GET", path, other).status_code in (403, 404)
        assert server("POST", f"{place}/cancel", other).status_code in (403, 404)
    assert server("GET", place, "audra").json()["sql"].endswith("age > 8")
    assert server("GET", place, "owner").status_code == 200
    assert server("GET", place, "otto").status_code == 404, "another owner's data set"


def test_cancel(server: Server) -> None:
    ada = server.service.users.get("ada").principal()
    begun = server.service.begin(ada, "hospital", f"{COUNT} WHERE age > 9", epsilon="0.1")
    assert server("POST", f"/api/v1/questions/{begun.id}/cancel").json()["state"] == "cancelled"
    assert server("GET", f"/api/v1/questions/{begun.id}/result").status_code == 409


def test_budgets_are_requested_and_approved_by_two(server: Server) -> None:
    wish = {"dataset": "hospital", "epsilon": "3", "why": "the second survey"}
    made = server("POST", "/api/v1/budget/requests", json=wish)
    assert made.status_code == 201
    place = f"/api/v1/budget/requests/{made.json()['id']}/approve"
    assert server("POST", place, "ada").status_code == 403
    assert server("POST", place, "owner").json()["state"] == "open"
    assert server("POST", place, "owner").json()["state"] == "open"
    assert server("POST", place, "root").json()["state"] == "approved"
    own = server("GET", "/api/v1/budget").json()["budgets"]
    assert {budget["holder"] for budget in own} == {"ada"}
    assert any(budget["cap"] == {"epsilon": "3", "delta": "0"} for budget in own)
    assert all("since_beginning" in budget for budget in own)
    too_much = {"dataset": "hospital", "holder": "ada", "epsilon": "9", "why": "because"}
    assert server("PUT", "/api/v1/budgets", "owner", json=too_much).status_code == 409
    assert server("PUT", "/api/v1/budgets", "otto", json=too_much).status_code == 403


def test_the_loss_over_time_is_for_auditors_and_the_owner(tmp_path: Path) -> None:
    server = Server(tmp_path)
    with server.client:
        for epsilon in ("0.5", "0.25"):
            assert server.ask(epsilon=epsilon).status_code == 200
        path = "/api/v1/datasets/hospital/loss"
        points = server("GET", path, "audra").json()["points"]
        assert [point["spent"]["epsilon"] for point in points] == ["0", "1/2", "3/4"]
        assert {point["cap"]["epsilon"] for point in points} == {"10"}
        assert server("GET", path, "owner").json()["points"] == points
        assert server("GET", path, "otto").status_code == 404, "the data set of another owner"
        assert server("GET", path, "ada").status_code == 403


def test_owners_register_files_of_the_data_folder_only(server: Server) -> None:
    path = write_hospital(server.folder / "data", dataset="clinic")
    text = path.read_text().replace("ledger: unused.db\n", "")
    assert server("POST", "/api/v1/datasets", "ada", json={"metadata": text}).status_code == 403
    made = server("POST", "/api/v1/datasets", "otto", json={"metadata": text})
    assert (made.status_code, made.json()["version"]) == (201, 1)
    outside = text.replace("data: patients.csv", "data: /etc/passwd")
    assert server("POST", "/api/v1/datasets", "otto", json={"metadata": outside}).status_code == 422
    assert server("POST", "/api/v1/datasets", "owner", json={"metadata": text + "\n"}).status_code == 409
    assert [d["name"] for d in server("GET", "/api/v1/datasets").json()["datasets"]] == ["hospital"]
    missing = server("GET", "/api/v1/datasets/clinic/schema")
    assert missing.json() == server("GET", "/api/v1/datasets/nothing/schema").json()
    assert missing.status_code == 404


def test_sign_in_with_a_link_and_with_a_password(server: Server) -> None:
    made = server("POST", "/api/v1/users", "root", json={"name": "eve", "roles": ["auditor"]})
    browser = TestClient(server.client.app, base_url=HOST, follow_redirects=False)
    link = made.json()["link"]
    assert browser.get(link).status_code == 200
    assert browser.get("/api/v1/me").status_code == 401, "showing the page does not sign in"
    signed = browser.post(link, headers={"Origin": HOST})
    cookie = signed.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
    me = browser.get("/api/v1/me").json()
    assert browser.post(link, headers={"Origin": HOST}).status_code == 401, "a link works once"
    assert browser.put("/api/v1/me/password", json={"password": PASSWORD}).status_code == 403, "no CSRF token"
    good = {"X-CSRF-Token": me["csrf"]}
    assert browser.put("/api/v1/me/password", json={"password": "short"}, headers=good).status_code == 422
    assert browser.put("/api/v1/me/password", json={"password": PASSWORD}, headers=good).status_code == 204
    assert browser.get("/api/v1/me").status_code == 401, "a new password ends all sessions"
    browser.cookies.clear()
    credentials = {"user": "eve", "password": PASSWORD}
    evil = browser.post("/api/v1/sign-in", json=credentials, headers={"Origin": "http://evil.example"})
    assert evil.status_code == 403
    assert browser.post("/api/v1/sign-in", json=credentials).status_code == 200
    page = browser.get("/ledger").text
    assert "/assets/server-" in page
    assert "eve" not in page, "pages hold no data; they ask for it"
    assert browser.get("/api/v1/nonsense").status_code == 404, "an operation that does not exist is no page"
    csrf = browser.get("/api/v1/me").json()["csrf"]
    assert browser.post("/api/v1/sign-out", headers={"X-CSRF-Token": csrf}).status_code == 204
    assert browser.get("/api/v1/me").status_code == 401


def test_names_are_locked_and_cannot_be_enumerated(tmp_path: Path) -> None:
    server = Server(tmp_path, failures=3)
    context = server.client.app.state.context  # type: ignore[attr-defined]
    hasher = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    context.passwords.__dict__["_hasher"] = hasher
    context.passwords.set("ada", PASSWORD)
    calls: list[str] = []

    class Counting:
        def verify(self, stored: str, given: bytes) -> bool:
            calls.append(stored.split("$")[1] + stored.split("$")[3])
            return bool(hasher.verify(stored, given))

        def hash(self, secret: bytes) -> str:
            return str(hasher.hash(secret))

    context.passwords.__dict__["_hasher"] = Counting()
    with server.client:
        told = {}
        for name in ("ada", "root", "nobody"):
            told[name] = [
                (r.status_code, r.text)
                for r in (server("POST", "/api/v1/sign-in", None, json={"user": name, "password": "wrong"})
                          for _ in range(4))
            ]  # fmt: skip
        assert told["ada"] == told["root"] == told["nobody"]
        assert [status for status, _ in told["ada"]] == [401, 401, 401, 429]
        assert len(calls) == 9, "the same hash is computed whether or not the name exists"
        assert len(set(calls)) == 1
        right = {"user": "ada", "password": PASSWORD}
        assert server("POST", "/api/v1/sign-in", None, json=right).status_code == 429, "locked, even if it is right"


def test_rate_limits(tmp_path: Path) -> None:
    server = Server(tmp_path, request_limit="3/minute", sign_in_limit="2/minute")
    with server.client:
        assert [server.ask().status_code for _ in range(4)] == [200, 200, 200, 429]
        assert server.ask("bob").status_code == 200, "others are not disturbed"
        wrong = {"user": "x", "password": "y"}
        found = [server("POST", "/api/v1/sign-in", None, json=wrong).status_code for _ in range(3)]
        assert found == [401, 401, 429]


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Host": "127.0.0.1:8642.evil.example"}, {"Host": "127.0.0.1:1"}]
)
def test_other_host_names_are_refused(server: Server, headers: dict[str, str]) -> None:
    assert server("GET", "/healthz", None, headers=headers).status_code == 421


def test_headers_and_credentials(server: Server) -> None:
    response = server("GET", "/api/v1/budget", headers={"Origin": "http://evil.example"})
    assert "access-control-allow-origin" not in response.headers
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert response.headers["cache-control"] == "no-store"
    secret = server.tokens["ada"]
    for path in (f"/api/v1/me?token={secret}", f"/api/v1/me?access_token={secret}"):
        assert server("GET", path, None).status_code == 401
    for given in ("", "Bearer", f"Basic {secret}", f"Bearer {secret}x", "Bearer sfu_"):
        assert server("GET", "/api/v1/me", None, headers={"Authorization": given}).status_code == 401


def test_a_token_cannot_make_a_stronger_one(server: Server) -> None:
    weak = token(server.service, "ada", [Scope.MANAGE])
    body = {"scopes": ["ask"], "days": 1}
    assert server("POST", "/api/v1/me/tokens", weak, json=body).status_code == 403
    assert server.ask(weak).status_code == 403
    made = server("POST", "/api/v1/me/tokens", "ada", json={"scopes": ["ask"], "days": 1}).json()
    assert server.ask(made["secret"]).status_code == 200
    assert server("DELETE", f"/api/v1/me/tokens/{made['id']}", "bob").status_code == 404
    assert server("DELETE", f"/api/v1/me/tokens/{made['id']}", "ada").status_code == 200
    assert server.ask(made["secret"]).status_code == 401


def test_logs_and_metrics_hold_no_value(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    from sfumato.server.logs import _JsonFormatter

    secret, literal = server.tokens["ada"], "a literal that nobody logs"
    with caplog.at_level(logging.DEBUG):
        server.ask(sql=f"{COUNT} WHERE ward = '{literal}'")
        server.ask(sql=f"SELECT nonsense('{literal}')")
        server("GET", f"/api/v1/questions/{literal}?x={literal}")
        server("POST", f"/sign-in/{literal}", None)
    shown = "\n".join(_JsonFormatter().format(record) for record in caplog.records)
    assert '"operation": "ask"' in shown
    assert '"user": "ada"' in shown
    metrics = server("GET", "/metrics", "root").text
    assert 'sfumato_requests_total{door="rest",operation="ask"}' in metrics
    for text in (shown, metrics):
        assert literal not in text
        assert secret not in text
        assert COUNT not in text
    names = {line.split("{")[0].split(" ")[0] for line in metrics.splitlines() if not line.startswith("#")}
    assert names == {
        "sfumato_requests_total", "sfumato_requests_created", "sfumato_ledger_entries", "sfumato_build",
        "sfumato_postgres_connections", "sfumato_ready",
    }  # fmt: skip


def test_an_internal_error_shows_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the value 4711")

    monkeypatch.setattr(server.service, "budget", broken)
    response = server("GET", "/api/v1/budget")
    assert response.status_code == 500
    assert "4711" not in response.text + caplog.text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{" * 100_000, 422),
        (b'{"sql": "' + b"x" * 1_200_000 + b'"}', 413),
        (b'{"sql": "SELECT ' + b"(" * 10_000 + b'"}', 422),
        (b'{"sql": "SELECT 1", "epsilon": 1e400}', 422),
        (b'{"sql": "SELECT 1", "epsilon": -1}', 422),
        (b'{"sql": "SELECT 1", "epsilon": "1/0"}', 422),
        (b'{"sql": "\\ud800"}', 422),
        (b'{"sql": "SELECT 1", "unknown": 1}', 422),
    ],
)
def test_hostile_bodies(server: Server, body: bytes, status: int) -> None:
    before = server.service.state.ledger.head()
    response = server(
        "POST", "/api/v1/datasets/hospital/ask", content=body, headers={"Content-Type": "application/json"}
    )
    assert response.status_code == status, response.text[:300]
    assert set(response.json()) == {"error"}
    assert server.service.state.ledger.head() == before


def test_a_full_disk_is_not_ready_and_answers_nothing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    store = server.service.state.store
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]  # type: ignore[attr-defined]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")  # type: ignore[attr-defined]
    try:
        seen = {server.ask(sql=f"{COUNT} WHERE age > {age} AND ward <> '{'x' * 5000}'").status_code for age in range(9)}
        assert 503 in seen
        assert seen <= {200, 503}
    finally:
        store._connection.execute("PRAGMA max_page_count = 1073741823")  # type: ignore[attr-defined]
    assert isinstance(store._connection, sqlite3.Connection)  # type: ignore[attr-defined]
    assert server.ask(sql=f"{COUNT} WHERE age > 3").status_code == 200
    server.service.state.ledger.verify()


def test_pace_hides_how_long_an_answer_took(tmp_path: Path) -> None:
    service = QueryService.open(tmp_path / "state", response_interval=0.3)
    service.registered.register_file(write_hospital(tmp_path / "data"), by="owner")
    ada = replace(analyst(service, "ada"), groups=())
    for sql in (COUNT, "SELECT nonsense"):
        started = time.monotonic()
        with pytest.raises(SfumatoError):  # the data set has no budget, the query no sense
            service.ask(ada, "hospital", sql, epsilon="0.1")
        spent = time.monotonic() - started
        assert spent >= 0.29


def test_small_numbers_are_taken_as_written() -> None:
    from sfumato.server.rest.models import QuestionBody

    body = QuestionBody.model_validate_json('{"sql": "x", "epsilon": 0.1, "delta": 1e-9}')
    assert (body.epsilon, body.delta) == ("0.1", "0.000000001")


def test_an_answer_carries_a_certificate_that_tells_nothing_about_others(server: Server) -> None:
    """The hash of the own entry ties it to the ledger; numbers and predecessors would count the questions of others."""
    asked = [server.ask(who, epsilon="0.1").json() for who in ("ada", "bob", "ada")]
    first, other, again = (answer["certificate"] for answer in asked)
    assert first == again
    for certificate in (first, other):
        [charge] = certificate["charges"]
        assert set(charge["entry"]) == {"hash"}
        key = public_key(server.service.state.ledger.signing_key()).hex()
        assert sfumato.verify(certificate, key=key).signed_by == key
        assert sfumato.verify(certificate, ledger=server.service.state.ledger).ledger == "holds"
    assert first["charges"][0]["entry"] != other["charges"][0]["entry"]
    stored = server("GET", f"/api/v1/questions/{asked[0]['question']}/result").json()
    assert stored["certificate"] == first
