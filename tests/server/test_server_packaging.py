"""The image and the unit: their settings and commands run here as they stand, in folders of the test."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi", reason="the extra `server` is not installed")
pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")
import postgres
from server_sample import self_signed, write_hospital
from sfumato.cli.serve import _state_options
from sfumato.server.metrics import Metrics
from sfumato.server.service import QueryService

PACKAGING = Path(__file__).parents[2] / "packaging"
UNIT = (PACKAGING / "sfumato.service").read_text()
CONTAINER = (PACKAGING / "Containerfile").read_text()


def of_unit() -> tuple[list[str], dict[str, str]]:
    """The command and the variables of the systemd unit."""
    variables = re.findall(r"^Environment=(\w+)=(.*)$", UNIT, flags=re.MULTILINE)
    [command] = re.findall(r"^ExecStart=(.*)$", UNIT, flags=re.MULTILINE)
    return shlex.split(command), dict(variables)


def of_container() -> tuple[list[str], dict[str, str]]:
    """The command and the variables of the image."""
    [entry] = re.findall(r"^ENTRYPOINT (.*)$", CONTAINER, flags=re.MULTILINE)
    [variables] = re.findall(r"^ENV (.*)$", CONTAINER, flags=re.MULTILINE)
    return json.loads(entry), dict(one.split("=", 1) for one in variables.split())


@pytest.fixture(params=[of_unit, of_container], ids=["unit", "image"])
def started(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """The server as packaged, with a certificate. All of its folders are below one of the test."""
    command, variables = request.param()
    certificate, key = self_signed(tmp_path)
    settings = tmp_path / "etc" / "sfumato" / "server.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"certificate: {certificate}\nkey: {key}\nport: 0\npostgres_port: 0\n")
    inside = {name: f"{tmp_path}{value}" for name, value in variables.items() if value.startswith("/")}
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sfumato").write_text(f'#!/bin/sh\nexec {sys.executable} -m sfumato "$@"\n')
    (tools / "sfumato").chmod(0o755)
    environment = {
        **os.environ, **variables, **inside,
        "PATH": os.pathsep.join([str(tools), str(Path(postgres.psql()).parent), os.environ["PATH"]]),
    }  # fmt: skip
    assert command[1:] == ["serve", "--config", "/etc/sfumato/server.yaml"]
    line = ["sfumato", "serve", "--config", str(settings), str(write_hospital(tmp_path / "data")), "--epsilon", "5"]
    with subprocess.Popen(
        [shutil.which(line[0], path=environment["PATH"]) or "", *line[1:]], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said: dict[str, str] = {}
        while "Add an analyst" not in said:
            told = process.stdout.readline()
            assert told, process.communicate()[1]
            name, _, rest = told.partition(":")
            said[name] = rest.strip()
        yield {"process": process, "said": said, "environment": environment, "certificate": certificate}
        process.kill()


def printed(started: dict[str, Any], command: str, **more: str) -> str:
    """What a printed command says, run in a shell with a name in it."""
    done = subprocess.run(
        command.replace("NAME", "ada"), shell=True, capture_output=True, text=True, timeout=120, check=False,
        env={**started["environment"], **more},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a shell")
def test_what_is_printed_works_and_a_signal_ends_it_in_order(started: dict[str, Any]) -> None:
    said, process = started["said"], started["process"]
    token = printed(started, said["Add an analyst"])
    psql = re.split(r" {3,}\(", said["PostgreSQL"])[0]
    options = {"PGPASSWORD": token, "PGOPTIONS": "-c sfumato.epsilon=0.5"}
    counted = printed(started, f"{psql} -XAtc 'SELECT COUNT(*) FROM patients'", **options)
    assert 350 < int(counted.splitlines()[-1]) < 450
    trusted = ssl.create_default_context(cafile=str(started["certificate"]))
    with httpx.Client(base_url=said["Web"], verify=trusted) as web:
        assert web.get("/readyz").json() == {"status": "ok"}
        asked = {"sql": "SELECT COUNT(*) FROM patients WHERE age > 20", "epsilon": "0.1"}
        headers = {"Authorization": f"Bearer {token}"}
        assert web.post("/api/v1/datasets/hospital/ask", json=asked, headers=headers).status_code == 200
        link = re.split(r" {3,}\(", said["Sign in"])[0]
        assert web.get(link).status_code == 200
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGTERM)
    assert said["Web"].startswith("https://127.0.0.1:"), "where it listens on all addresses, one that is reached"
    assert Path(started["environment"]["SFUMATO_SERVER_WITNESS"]).read_text().count('"spend"') == 2


@pytest.mark.parametrize(
    ("config", "state", "variable", "options"),
    [
        (None, None, None, ""),
        (None, "/var/my state", None, "--state '/var/my state' "),
        (Path("/etc/server.yaml"), None, None, "--config /etc/server.yaml "),
        (Path("/etc/server.yaml"), None, "/state", "--config /etc/server.yaml --state /state "),
        (None, "here", "/state", "--state here "),
        (None, None, "postgresql://sfumato:secret@db/state", '--state "$SFUMATO_SERVER_STATE" '),
    ],
)
def test_printed_options_name_the_state_without_its_password(
    config: Path | None, state: str | None, variable: str | None, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SFUMATO_SERVER_STATE", raising=False)
    if variable is not None:
        monkeypatch.setenv("SFUMATO_SERVER_STATE", variable)
    assert _state_options(config, state) == options


def test_a_published_port_of_the_image_is_answered_with_tls_only(tmp_path: Path) -> None:
    _, variables = of_container()
    assert variables["SFUMATO_SERVER_HOST"] == "0.0.0.0"  # a loopback address is that of the container
    environment = {**os.environ, **variables, "SFUMATO_SERVER_STATE": str(tmp_path), "SFUMATO_SERVER_PORT": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "sfumato", "serve"], env=environment, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "only with TLS" in done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "sfumato.service"
    unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT, flags=re.MULTILINE))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_dashboard_asks_for_metrics_that_exist(tmp_path: Path) -> None:
    dashboard = json.loads((PACKAGING / "grafana-dashboard.json").read_text())
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"sfumato_\w+", target["expr"])
    }
    metrics = Metrics()
    metrics.count("rest", "ask")
    text = metrics.text(QueryService.open(tmp_path)).decode()
    told = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if line[0] != "#"}
    assert asked == {name for name in told if not name.endswith("_created")}
