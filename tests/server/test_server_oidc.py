"""Sign-in at an OpenID Connect provider: a real provider process of a package, and answers of a dishonest one."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `server` is not installed")
pytest.importorskip("oidc_provider_mock", reason="the OpenID Connect provider oidc-provider-mock is not installed")
import httpx
from starlette.testclient import TestClient

from server_sample import analyst, hospital_service
from sfumato.server.rest.application import create_application
from sfumato.server.settings import ServerSettings

HOST = "http://127.0.0.1:8642"


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--user-claims", '{"sub": "ada"}']
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            address = f"http://localhost:{port}"
            for _ in range(200):
                try:
                    httpx.get(f"{address}/.well-known/openid-configuration").raise_for_status()
                    break
                except httpx.HTTPError:
                    time.sleep(0.1)
            yield address
        finally:
            process.kill()


@pytest.fixture
def browser(issuer: str, tmp_path: Path) -> Iterator[TestClient]:
    service = hospital_service(tmp_path)
    analyst(service, "ada")
    oidc = {"issuer": issuer, "client_id": "sfumato", "client_secret": "s", "user_claim": "sub"}
    settings = ServerSettings.model_validate({"oidc": oidc})
    app = create_application(service, settings)
    with TestClient(app, base_url=HOST, follow_redirects=False, raise_server_exceptions=False) as client:
        yield client


def authorized(browser: TestClient, subject: str) -> str:
    """Start at the server, sign in at the provider as somebody, and return where it sends the browser."""
    start = browser.get("/oidc/start")
    assert start.status_code == 303
    place = start.headers["location"]
    assert "code_challenge_method=S256" in place
    response = httpx.post(place, data={"sub": subject})
    assert response.status_code in (302, 303), response.text[:300]
    return response.headers["location"]


def test_a_user_of_the_provider_signs_in(browser: TestClient) -> None:
    place = authorized(browser, "ada")
    done = browser.get(place.removeprefix(HOST))
    assert done.status_code == 200, done.text
    assert browser.get("/api/v1/me").json()["name"] == "ada"


def test_a_user_who_does_not_exist_here_is_refused(browser: TestClient) -> None:
    place = authorized(browser, "mallory")
    assert browser.get(place.removeprefix(HOST)).status_code == 404
    assert browser.get("/api/v1/me").status_code == 401


@pytest.mark.parametrize("change", ["state", "code", "cookie", "nonce"])
def test_answers_that_do_not_belong_to_the_sign_in_are_refused(
    browser: TestClient, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = authorized(browser, "ada").removeprefix(HOST)
    if change == "cookie":
        browser.cookies.clear()
    elif change == "nonce":
        import sfumato.server.rest.oidc as module

        checked = module._claims

        def other_nonce(*given: Any, nonce: str) -> Any:
            return checked(*given, nonce="another")

        monkeypatch.setattr(module, "_claims", other_nonce)
    else:
        place = re.sub(rf"{change}=[^&]+", f"{change}=wrong", place)
    assert browser.get(place).status_code == 401
    assert browser.get("/api/v1/me").status_code == 401
