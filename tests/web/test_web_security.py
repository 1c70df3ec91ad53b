"""Security of HTTP services: hosts, headers, sign-in tokens, sessions, CSRF, body limits and static files."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from sfumato.web import (
    BodyLimit,
    BrowserSessions,
    CsrfCheck,
    HostCheck,
    OneTimeTokens,
    SecurityHeaders,
    StaticBundle,
    local_hosts,
    session_cookie,
)

ORIGIN = "http://127.0.0.1:8000"


async def echo(request: Request) -> Response:
    return JSONResponse({"bytes": len(await request.body())})


def client(app: object) -> TestClient:
    return TestClient(app, base_url=ORIGIN)  # type: ignore[arg-type]


@pytest.fixture
def service() -> Starlette:
    return Starlette(routes=[Route("/echo", echo, methods=["GET", "POST"])])


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200), ("LOCALHOST:8000", 200), ("[::1]:8000", 200), ("evil.example:8000", 421),
        ("127.0.0.1:8001", 421), ("127.0.0.1", 421), ("127.0.0.1:8000.evil.example", 421), ("", 421),
    ],
)  # fmt: skip
def test_only_own_hosts_are_served(service: Starlette, host: str, status: int) -> None:
    checked = client(HostCheck(service, hosts=local_hosts(8000)))
    assert checked.get("/echo", headers={"host": host}).status_code == status


def test_two_host_headers_are_refused(service: Starlette) -> None:
    checked = client(HostCheck(service, hosts=local_hosts(8000)))
    assert checked.get("/echo", headers=[("host", "127.0.0.1:8000"), ("host", "evil.example")]).status_code == 421


def test_every_response_has_the_security_headers(service: Starlette) -> None:
    protected = client(SecurityHeaders(service))
    for path in ("/echo", "/missing"):
        headers = protected.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert not [name for name in headers if name.startswith("access-control")]


def test_tokens_work_once_and_not_after_their_time() -> None:
    now = [0.0]
    tokens = OneTimeTokens(seconds=10, clock=lambda: now[0])
    first, second = tokens.issue(), tokens.issue()
    assert len(first) >= 43
    assert first != second
    assert not tokens.redeem("guess")
    assert tokens.redeem(first)
    assert not tokens.redeem(first)
    now[0] = 10.0
    assert not tokens.redeem(second)


def test_sessions_end_by_time_and_by_sign_out() -> None:
    now = [0.0]
    sessions = BrowserSessions(seconds=10, clock=lambda: now[0])
    identifier, session = sessions.open(holder="ann")
    assert sessions.get(identifier) is session
    assert sessions.get(None) is None
    assert sessions.get("guess") is None
    other, _ = sessions.open()
    sessions.close(other)
    assert sessions.get(other) is None
    now[0] = 10.0
    assert sessions.get(identifier) is None
    assert session_cookie()["httponly"]
    assert session_cookie()["samesite"] == "strict"


def test_changes_need_the_token_of_the_session_and_the_own_origin(service: Starlette) -> None:
    sessions = BrowserSessions()
    identifier, session = sessions.open()
    checked = client(CsrfCheck(service, origins=[ORIGIN], cookie="sid", session=sessions.get))
    cookie = {"cookie": f"sid={identifier}"}
    token = {"x-csrf-token": session.csrf}

    def status(method: str, headers: dict[str, str]) -> int:
        return checked.request(method, "/echo", headers=headers).status_code

    assert status("GET", cookie) == 200
    assert status("POST", cookie) == 403
    assert status("POST", {**cookie, "x-csrf-token": "guess"}) == 403
    assert status("POST", {**cookie, **token}) == 200
    assert status("POST", {**cookie, **token, "origin": ORIGIN}) == 200
    assert status("POST", {**cookie, **token, "origin": "http://evil.example"}) == 403
    assert status("POST", {**cookie, **token, "origin": "null"}) == 403
    assert status("POST", {**cookie, **token, "sec-fetch-site": "cross-site"}) == 403
    assert status("POST", {**cookie, **token, "sec-fetch-site": "same-site"}) == 403
    assert status("POST", {"origin": "http://evil.example"}) == 403
    assert status("POST", {}) == 200  # no cookie, so nothing is done in anybody's name


def test_large_bodies_are_refused_with_and_without_a_length(service: Starlette) -> None:
    limited = TestClient(BodyLimit(service, most=1000), base_url=ORIGIN, raise_server_exceptions=False)
    assert limited.post("/echo", content=b"x" * 1000).json() == {"bytes": 1000}
    assert limited.post("/echo", content=b"x" * 1001).status_code == 413
    assert limited.post("/echo", content=iter([b"x" * 600, b"x" * 600])).status_code == 413


def test_static_files_are_compressed_cached_and_confined(tmp_path: Path) -> None:
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<p>page</p>")
    (folder / "assets" / "main-0A1B2C3D.js").write_text("run();" * 100)
    (tmp_path / "secret.txt").write_text("secret")
    static = client(StaticBundle(folder))
    script = static.get("/assets/main-0A1B2C3D.js", headers={"accept-encoding": "gzip"})
    assert script.text == "run();" * 100
    assert script.headers["content-encoding"] == "gzip"
    assert "immutable" in script.headers["cache-control"]
    assert script.headers["content-type"].startswith("text/javascript")
    page = static.get("/roles")
    assert page.text == "<p>page</p>"
    assert page.headers["cache-control"] == "no-cache"
    assert static.get("/", headers={"if-none-match": page.headers["etag"]}).status_code == 304
    for path in ("/../secret.txt", "/%2e%2e/secret.txt", "/assets/../../secret.txt", "/missing.js"):
        assert static.get(path).status_code == 404, path
    assert static.post("/").status_code == 404
