"""Server processes: kill -9 under load, graceful end, slow and broken clients, the Python client and the commands."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi", reason="the extra `server` is not installed")
import sfumato
from server_sample import COUNT, write_hospital
from sfumato.cli import main
from sfumato.dataset.document import Dataset
from sfumato.dp.loss import pure
from sfumato.errors import BadParameter, NotSignedIn, OverBudget, QueryRefused
from sfumato.ledger.charge import Charge
from sfumato.ledger.ledger import Ledger
from sfumato.query.open_session import open_session
from sfumato.query.plan.catalog import Catalog
from sfumato.query.session import Session
from sfumato.server.service import QueryService

pytestmark = pytest.mark.xdist_group("server-process")  # one server for all, which the last test ends

ROOT = Path(__file__).parents[2]
OWN_OF_SERVERS = {
    "answer", "certificate", "charge", "checked", "for_analyst", "joint_certificate", "key_of", "move_memory_from",
    "part_of", "plan_noise", "recall", "run_plan", "run_plans", "running", "signed",
}  # fmt: skip
"""Steps of an answer, which are taken on the server."""


def benchmark() -> ModuleType:
    path = ROOT / "benchmarks" / "serve.py"
    sys.path.insert(0, str(path.parent))
    try:
        spec = importlib.util.spec_from_file_location("benchmark_serve", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def wrong(found: dict[str, Any]) -> dict[str, Any]:
    """What must not be: figures above zero, or a run without kills, answers and refusals."""
    zero = ("grains overspent", "unpaid answers", "paid twice", "questions with two answers", "other refusals")
    some = ("killed", "answered", "over budget", "chain verifies")
    return {name: found[name] for name in found if (name in zero and found[name]) or (name in some and not found[name])}


@pytest.mark.parametrize("option", ["--port", "--postgres-port"])
def test_a_busy_port_is_refused_in_words(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        ports = {"--port": "0", "--postgres-port": "0", option: str(port)}
        options = [word for pair in ports.items() for word in pair]
        assert main(["serve", "--state", str(tmp_path / "state"), *options]) == 2
    said = capsys.readouterr().err
    assert f"port {port} of 127.0.0.1 is in use" in said
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_processes_are_killed_under_load(tmp_path: Path) -> None:
    found = benchmark().load(tmp_path, state=None, analysts=6, questions=60, count=2, pause=1.0, threads=6)
    assert wrong(found) == {}


@pytest.mark.slow
def test_processes_on_postgresql_are_killed_under_load(tmp_path: Path, postgresql: str) -> None:
    import psycopg

    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS server_load")
        connection.execute("CREATE DATABASE server_load")
    state = postgresql.replace("/postgres", "/server_load")
    found = benchmark().load(tmp_path, state=state, analysts=6, questions=42, count=2, pause=1.0, threads=6)
    assert wrong(found) == {}


def test_the_comparison_sees_an_unpaid_answer_and_a_double_charge(tmp_path: Path) -> None:
    module = benchmark()
    service, _ = module.prepare(tmp_path, tmp_path / "state", analysts=1, each=5)
    good = module.compare(service, {})
    assert (good["grains overspent"], good["unpaid answers"], good["paid twice"]) == (0, 0, 0)
    from sfumato.dp.loss import pure

    for _ in range(2):
        service.state.ledger.charge(
            Charge(loss=pure("0.01"), unit="row", what="sql", key="q"), dataset="hospital", analyst="analyst0"
        )
    service.state.ledger.carry_over(pure(1), dataset="hospital", analyst="analyst0", unit="row", about="beyond")
    with service.state.store.write() as transaction:
        number = transaction.query("SELECT max(number) FROM sfumato_ledger")[0][0]
        transaction.query("INSERT INTO sfumato_queries (number, text) VALUES (?, ?)", number, "other")
    bad = module.compare(service, {("analyst0", "never paid"): 1.0})
    assert (bad["unpaid answers"], bad["paid twice"]) == (1, 1)
    assert bad["grains overspent"] > 0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """`sfumato serve` on the hospital, and an analyst's token, all by the command line."""
    folder = tmp_path_factory.mktemp("serve")
    path = write_hospital(folder)
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "home"), "SFUMATO_SERVER_REQUEST_SECONDS": "1.5"}
    command = [sys.executable, "-m", "sfumato", "serve", str(path), "--state", str(folder / "state"), "--port", "0",
               "--postgres-port", "-1", "--epsilon", "3"]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        said = ""
        while "Add an analyst" not in said:
            line = process.stdout.readline()
            assert line, process.stderr.read()  # type: ignore[union-attr]
            said += line
        url = re.search(r"Web: +(\S+)", said)[1]  # type: ignore[index]
        add = [sys.executable, "-m", "sfumato", "server", "--state", str(folder / "state"), "user", "add", "ada",
               "--dataset", "hospital", "--epsilon", "1"]  # fmt: skip
        token = subprocess.run(add, capture_output=True, text=True, check=True, env=environment).stdout.strip()
        yield {"url": url, "token": token, "process": process, "folder": folder, "said": said}
        if process.poll() is None:
            process.kill()


def test_the_python_client_has_the_methods_of_a_session(running: dict[str, Any], tmp_path: Path) -> None:
    session = sfumato.connect(running["url"], token=running["token"])
    answer = session.ask("SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward", epsilon="0.1")
    assert answer.frame.columns == ["ward", "n"]
    assert answer.intervals.columns == ["ward", "n", "n_low", "n_high"]
    assert session.explain(COUNT, epsilon="0.1").cost == "ε = 0.1"
    assert session.table("patients").by("ward").count("n").ask(epsilon="0.1").columns == ("ward", "n")
    rows = session.connect(epsilon="0.1").cursor().execute(f"{COUNT} WHERE age > ?", (30,)).fetchall()
    assert len(rows) == 1
    queries = [f"{COUNT} WHERE age < {age}" for age in (20, 60)]
    together = session.workload(queries, epsilon=0.1)
    assert (together.cached, len(together.values), together.loss) == (False, 2, pure("0.1"))
    assert session.workload(queries, epsilon=Fraction(1, 10)) == replace(together, cached=True)
    metadata = Dataset.load(running["folder"] / "hospital.yaml")
    assert session.catalog == Catalog.of(metadata)
    local = open_session(metadata, ledger=Ledger.open(tmp_path / "own.db"), analyst="ada")
    for options in ({"epsilon": "0.1"}, {"epsilon": 1, "delta": 1e-6}, {"rho": Fraction(1, 3)}):
        assert session.analyze(COUNT, **options) == local.analyze(COUNT, **options)  # type: ignore[arg-type]
    public = {name for name in vars(Session) if not name.startswith("_")} - OWN_OF_SERVERS
    assert {name for name in public if not hasattr(session, name)} == set(), "methods of a session"
    assert session.ask("SHOW TABLES").rows[0][0].value == "patients"
    left = session.remaining()
    assert left is not None
    assert left.size < 1
    assert session.schema()[0]["name"] == "patients"
    with pytest.raises(QueryRefused, match="nonsense"):
        session.ask("SELECT COUNT(*) FROM nonsense", epsilon="0.1")
    with pytest.raises(OverBudget) as refusal:
        session.ask(COUNT, epsilon="1")
    assert refusal.value.fix
    with pytest.raises(NotSignedIn):
        sfumato.connect(running["url"], token="sfu_wrong")
    with pytest.raises(BadParameter, match="https"):
        sfumato.connect("http://example.org", token="sfu_x")


def test_the_three_lines_of_a_notebook(running: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "server.md").read_text()
    [lines] = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    lines = lines.replace("http://127.0.0.1:8642", running["url"]).replace("sfu_...", running["token"])
    *first, last = lines.strip().splitlines()
    assert len(first) == 2
    known: dict[str, Any] = {}
    exec("\n".join(first), known)
    assert eval(last, known).frame.columns == ["ward", "n"]


def test_a_remote_answer_has_a_certificate(
    running: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = sfumato.connect(running["url"], token=running["token"])
    answer = session.ask(COUNT, epsilon="0.1")
    assert answer.certificate is not None
    assert sfumato.verify(answer.certificate).holds
    monkeypatch.setenv("SFUMATO_TOKEN", running["token"])
    path = tmp_path / "certificate.json"
    options = ["--epsilon", "0.1", "--server", running["url"], "--certificate", str(path)]
    assert main(["query", session.dataset, COUNT, *options]) == 0
    assert json.loads(path.read_text()) == answer.certificate


def test_the_command_asks_a_server(
    running: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SFUMATO_TOKEN", running["token"])
    assert main(["query", "--server", running["url"], "hospital", COUNT, "--epsilon", "0.01", "--json"]) == 0
    assert '"columns"' in capsys.readouterr().out
    assert main(["query", "--server", running["url"], "hospital", COUNT, "--epsilon", "1"]) == 1
    assert main(["query", "--server", running["url"], "clinic", COUNT, "--epsilon", "0.01"]) == 2


def raw(running: dict[str, Any]) -> socket.socket:
    host, _, port = running["url"].removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=20)


@pytest.mark.parametrize(
    "sent",
    [
        b"",  # nothing at all
        b"GET / HTTP/1.1\r\nHost: ",  # half a head
        b"POST /api/v1/sign-in HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
        b"\x00\xff\x16\x03\x01 this is no HTTP\r\n\r\n",
    ],
)
def test_slow_and_broken_clients_are_closed_and_others_are_served(running: dict[str, Any], sent: bytes) -> None:
    place = running["url"].removeprefix("http://").encode()
    with raw(running) as slow:
        slow.sendall(sent.replace(b"HOST", place))
        started = time.monotonic()
        assert sfumato.connect(running["url"], token=running["token"]).explain(COUNT, epsilon="0.1").cost
        while slow.recv(4096):
            pass
        assert time.monotonic() - started < 15, "the server closes the connection"


def test_a_hundred_megabytes_are_refused_without_being_read(running: dict[str, Any]) -> None:
    place = running["url"].removeprefix("http://")
    head = f"POST /api/v1/datasets/hospital/ask HTTP/1.1\r\nHost: {place}\r\nContent-Length: 100000000\r\n\r\n"
    with raw(running) as client:
        client.sendall(head.encode())
        assert b"413" in client.recv(4096)


def test_the_end_is_graceful_and_the_witness_is_current(running: dict[str, Any]) -> None:
    process: subprocess.Popen[str] = running["process"]
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGTERM)
    assert running["token"] not in errors + running["said"]
    assert COUNT not in errors
    [witness] = (running["folder"] / "home" / "sfumato").glob("witness-*.jsonl")
    number, digest = Ledger.open(running["folder"] / "state" / "server.db").head()
    last = json.loads(witness.read_text().splitlines()[-1])
    assert (last["number"], last["hash"]) == (number, digest)


def test_a_signal_closes_both_doors_and_questions_that_run_are_answered(tmp_path: Path) -> None:
    """Answers come at multiples of some seconds here, so that the signal finds questions at both doors."""
    import psycopg

    module = benchmark()
    _, tokens = module.prepare(tmp_path / "data", tmp_path / "state", analysts=1, each=50)
    secret = tokens["analyst0"]
    process = module.Process(
        tmp_path / "state", tmp_path, postgres=True, SFUMATO_SERVER_RESPONSE_INTERVAL="4", SFUMATO_SERVER_WORKERS="8"
    )
    place = f"host=127.0.0.1 port={process.postgres_port} dbname=hospital user=analyst0 password={secret}"
    cost = "options='-c sfumato.epsilon=0.01'"
    headers = {"Authorization": f"Bearer {secret}"}
    ask = f"{process.address}/api/v1/datasets/hospital/ask"

    def by_rest() -> int:
        body = {"sql": f"{COUNT} WHERE age > 3", "epsilon": "0.01"}
        return httpx.post(ask, json=body, headers=headers, timeout=60).status_code

    def by_postgres() -> int:
        with psycopg.connect(f"{place} {cost}", autocommit=True) as client:
            return len(client.execute(f"{COUNT} WHERE age > 4").fetchall())

    def streamed(place: str) -> str:
        return httpx.get(f"{process.address}{place}/events", headers=headers, timeout=60).text

    try:
        process.wait()
        idle = psycopg.connect(place)
        with ThreadPoolExecutor(3) as threads:
            body = {"sql": f"{COUNT} WHERE age > 5", "epsilon": "0.01"}
            job = httpx.post(ask, json=body, headers={**headers, "Prefer": "respond-async"}, timeout=60)
            asked = threads.submit(by_rest), threads.submit(by_postgres)
            stream = threads.submit(streamed, job.headers["location"])
            status = f"{process.address}/api/v1/questions"
            while len(httpx.get(status, headers=headers).json()["questions"]) < 3:
                time.sleep(0.05)
            process.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(place)
            with pytest.raises(httpx.TransportError):
                httpx.get(f"{process.address}/healthz")
            assert [one.result() for one in asked] == [200, 1]
            assert '"running"' in stream.result()
        with pytest.raises(psycopg.OperationalError, match="the server stops"):
            idle.execute("SELECT 1")
        process.process.wait(30)
    finally:
        process.kill()
    service = QueryService.open(tmp_path / "state")
    assert {question.state for question in service.log.latest()} == {"done"}
    assert service.state.ledger.balance(dataset="hospital").spent == pure("0.03")


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit")
def test_readiness_tells_of_a_full_disk_and_takes_no_lock(tmp_path: Path) -> None:
    import resource
    import sqlite3

    module = benchmark()
    _, tokens = module.prepare(tmp_path / "data", tmp_path / "state", analysts=1, each=5)
    with module.servers(tmp_path / "state", tmp_path, 1) as [process]:
        address, pid = process.address, process.process.pid
        with sqlite3.connect(tmp_path / "state" / "server.db") as other:
            other.execute("BEGIN IMMEDIATE")
            assert httpx.get(f"{address}/readyz", timeout=5).status_code == 200
            other.execute("ROLLBACK")
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, before[1]))  # as a full disk: no file grows
        asked = httpx.post(
            f"{address}/api/v1/datasets/hospital/ask", json={"sql": COUNT, "epsilon": "0.01"}, timeout=30,
            headers={"Authorization": f"Bearer {tokens['analyst0']}"},
        )  # fmt: skip
        assert asked.status_code == 503
        assert status_within(address, 503)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        assert status_within(address, 200)


def status_within(address: str, status: int) -> bool:
    """Whether `/readyz` has a status within some seconds: it looks at the disk once in five."""
    for _ in range(80):
        if httpx.get(f"{address}/readyz").status_code == status:
            return True
        time.sleep(0.2)
    return False
