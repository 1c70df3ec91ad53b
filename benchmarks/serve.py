"""Load on the query server: many analysts, processes killed at random, and the cost of a question over REST.

    python benchmarks/serve.py load [--analysts 200] [--questions 10000] [--servers 3] [--state URL] [--record]
    python benchmarks/serve.py overhead [--questions 300] [--record]
    python benchmarks/serve.py rate [--seconds 20] [--record]

`load` starts server processes on one state, lets analysts ask through all of them, and ends processes by SIGKILL while
they work. A request that fails is sent again, to any process, with the same idempotency key. Then the ledger is
compared with the answers: no cap exceeded, no answer without a charge, no question charged twice, and the chain
verifies. `--state` is a database in PostgreSQL; without it, the state is a folder.

`rate` counts the answers that 1, 16 and 64 clients of the PostgreSQL endpoint get in a second, each question a new one
on 3,000 rows, and does the same at a plain PostgreSQL server, which answers exactly and charges nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import polars as pl
from record import Figures

from sfumato.dp.loss import pure
from sfumato.server.roles import AccountRole, Scope
from sfumato.server.service import QueryService

METADATA = """sfumato: 1
dataset: hospital
ledger: unused.db
person: row
tables:
  patients:
    data: patients.csv
    columns:
      ward: {kind: category, domain: {values: [east, west]}}
      age: {kind: integer, domain: {low: 0, high: 99}}
"""
EPSILON = "0.01"
CLIENTS = (1, 16, 64)


def prepare(
    folder: Path, state: str | Path, *, analysts: int, each: int, people: int = 1_000
) -> tuple[QueryService, dict[str, str]]:
    """A state with a data set and analysts, whose budget covers four fifths of their questions; and their tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = {"ward": ["east", "west"] * (people // 2), "age": [i % 90 for i in range(people)]}
    pl.DataFrame(rows).write_csv(folder / "patients.csv")
    (folder / "hospital.yaml").write_text(METADATA)
    service = QueryService.open(state)
    service.registered.register_file(folder / "hospital.yaml", by="owner")
    service.budgets.set_cap(pure(10_000), dataset="hospital", holder="", by="owner", why="load")
    tokens = {}
    for number in range(analysts):
        name = f"analyst{number}"
        service.users.add(name, roles=[AccountRole.ANALYST], by="owner")
        service.registered.set_grant("hospital", name, True, by="owner")
        cap = pure(f"{max(each * 4 // 5, 1)}/100")
        service.budgets.set_cap(cap, dataset="hospital", holder=name, by="owner", why="load")
        tokens[name] = service.tokens.create(name, scopes=[Scope.ASK], days=1).secret
    return service, tokens


def _free_port() -> int:
    """A port below those of outgoing connections: clients that try again would take it while its server is down."""
    draw = random.SystemRandom()
    while True:
        port = draw.randrange(15_000, 32_000)
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Process:
    """One server process, which can be killed and started again on the same port."""

    def __init__(self, state: str | Path, folder: Path, *, postgres: bool = False, **settings: str) -> None:
        self.port, self.postgres_port = _free_port(), _free_port() if postgres else -1
        ports = ["--port", str(self.port), "--postgres-port", str(self.postgres_port)]
        self._command = [sys.executable, "-m", "sfumato", "serve", "--state", str(state), *ports]
        self._environment = {
            **os.environ, "SFUMATO_SERVER_REQUEST_LIMIT": "1000000/minute", "XDG_STATE_HOME": str(folder / "witness"),
            **settings,
        }  # fmt: skip
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def wait(self) -> None:
        for _ in range(1200):
            try:
                if httpx.get(f"{self.address}/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                if self.process.poll() is not None:
                    raise RuntimeError("a server ended while it started") from None
                time.sleep(0.1)
        raise RuntimeError("a server did not start")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def cpu(self) -> float:
        """CPU seconds of the process so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def servers(state: str | Path, folder: Path, count: int) -> Iterator[list[Process]]:
    """Server processes on one state."""
    running = [Process(state, folder) for _ in range(count)]
    try:
        for process in running:
            process.wait()
        yield running
    finally:
        for process in running:
            process.kill()


def load(
    folder: Path, *, state: str | Path | None, analysts: int, questions: int, count: int, pause: float, threads: int
) -> dict[str, Any]:
    """Ask under fire and compare the ledger with the answers."""
    each = max(questions // analysts, 1)
    place = state or folder / "state"
    service, tokens = prepare(folder, place, analysts=analysts, each=each)
    answers: dict[tuple[str, str], float] = {}
    refused, seconds, kills = Counter[str](), [], 0
    done = threading.Event()
    with servers(place, folder, count) as running:

        def work(name: str) -> None:
            draw = random.Random(name)
            with httpx.Client(headers={"Authorization": f"Bearer {tokens[name]}"}, timeout=60) as client:
                for number in range(each):
                    # Half of the questions are asked by everybody.
                    bound = number if number % 2 else 100 + int(name.removeprefix("analyst")) * each + number
                    sql = f"SELECT COUNT(*) AS n FROM patients WHERE age * 7 > {bound}"
                    started = time.monotonic()
                    ask(client, draw, name, sql, f"{name}-{number}")
                    seconds.append(time.monotonic() - started)

        def ask(client: httpx.Client, draw: random.Random, name: str, sql: str, key: str) -> None:
            body, headers = {"sql": sql, "epsilon": EPSILON}, {"Idempotency-Key": key}
            for _ in range(10_000):
                try:
                    address = f"{draw.choice(running).address}/api/v1/datasets/hospital/ask"
                    response = client.post(address, json=body, headers=headers)
                except httpx.TransportError:
                    time.sleep(0.02)
                    continue
                if response.status_code == 503:
                    continue
                if response.status_code == 200:
                    answers[name, sql] = response.json()["rows"][0]["n"]["value"]
                else:
                    refused[response.json()["error"]["code"]] += 1
                return

        def fire() -> None:
            nonlocal kills
            draw = random.Random(1)
            while not done.wait(draw.uniform(0.5, 1.5) * pause):
                victim = draw.choice(running)
                victim.kill()
                kills += 1
                victim.start()
                victim.wait()

        killer = threading.Thread(target=fire)
        killer.start()
        began = time.monotonic()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, tokens))
        elapsed = time.monotonic() - began
        done.set()
        killer.join()
    return {
        "analysts": analysts, "servers": count, "killed": kills, "answered": len(answers),
        "over budget": refused["SFU-701"], "other refusals": sum(refused.values()) - refused["SFU-701"],
        "questions per second": len(seconds) / elapsed,
        "p95 seconds": statistics.quantiles(seconds, n=20)[-1], **compare(service, answers),
    }  # fmt: skip


def compare(service: QueryService, answers: dict[tuple[str, str], float]) -> dict[str, Any]:
    """What the ledger says about the answers that analysts have."""
    ledger = service.state.ledger
    ledger.verify()
    texts = ledger.queries()
    paid = Counter((e.analyst, texts[e.number]) for e in ledger.entries() if e.kind == "spend")
    overspent = 0
    for dataset, holder in service.budgets.accounts():
        balance = ledger.balance(dataset=dataset, analyst=holder)
        if balance.cap is not None:
            overspent += max(balance.spent.size - balance.cap.size, 0)
    same: dict[str, set[float]] = {}
    for (_, sql), value in answers.items():
        same.setdefault(sql, set()).add(value)
    return {
        "grains overspent": overspent,
        "unpaid answers": sum(question not in paid for question in answers),
        "paid twice": sum(times > 1 for times in paid.values()),
        "questions with two answers": sum(len(values) > 1 for values in same.values()),
        "chain verifies": True,
    }


def overhead(folder: Path, *, questions: int) -> dict[str, Any]:
    """CPU seconds of one question in a local session and in the server process over REST."""
    _, tokens = prepare(folder, folder / "state", analysts=1, each=questions * 4)
    texts = [f"SELECT COUNT(*) AS n FROM patients WHERE age * 7 > {number}" for number in range(2 * questions + 40)]
    from sfumato.dataset.document import Dataset
    from sfumato.query.open_session import open_session

    metadata = Dataset.load(folder / "hospital.yaml")
    session = open_session(metadata, analyst="local")
    session.ledger.set_cap(pure(1000), dataset="hospital")
    for sql in texts[:20]:
        session.ask(sql, epsilon=EPSILON)
    before = time.process_time()
    for sql in texts[20 : questions + 20]:
        session.ask(sql, epsilon=EPSILON)
    local = (time.process_time() - before) / questions
    with servers(folder / "state", folder, 1) as [process]:
        address = f"{process.address}/api/v1/datasets/hospital/ask"
        seconds = []
        with httpx.Client(headers={"Authorization": f"Bearer {tokens['analyst0']}"}, timeout=60) as client:
            for number, sql in enumerate(texts[questions:]):
                if number == 20:
                    began, seconds = process.cpu(), []
                started = time.monotonic()
                client.post(address, json={"sql": sql, "epsilon": EPSILON}).raise_for_status()
                seconds.append(time.monotonic() - started)
            remote = (process.cpu() - began) / len(seconds)
    return {
        "local session, CPU ms": 1000 * local, "REST, server's CPU ms": 1000 * remote, "ratio": remote / local,
        "REST, p95 ms": 1000 * statistics.quantiles(seconds, n=20)[-1],
    }  # fmt: skip


def rate(folder: Path, *, seconds: float) -> Iterator[dict[str, Any]]:
    """Answers per second and latencies of clients of the PostgreSQL endpoint, and of a plain PostgreSQL server."""
    import psycopg

    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from postgres import server

    _, tokens = prepare(folder, folder / "state", analysts=max(CLIENTS), each=100_000, people=3_000)
    limits = {"SFUMATO_SERVER_REQUEST_LIMIT": "1000000/minute", "SFUMATO_SERVER_COMPUTE_SECONDS": "1000000"}
    process = Process(folder / "state", folder, postgres=True, **limits)
    with server() as (plain, _):
        try:
            process.wait()
            with psycopg.connect(plain, autocommit=True) as client:
                client.execute("CREATE TABLE patients (ward text, age int)")
                copied = "INSERT INTO patients SELECT 'east', i % 90 FROM generate_series(1, 3000) i"
                client.execute(copied)
            place = f"127.0.0.1:{process.postgres_port}/hospital?options=-c%20sfumato.epsilon%3D{EPSILON}"
            ours = [f"postgresql://{name}:{token}@{place}" for name, token in tokens.items()]
            count = 0
            for clients in CLIENTS:
                for what, urls in (("sfumato", ours), ("PostgreSQL", [plain] * max(CLIENTS))):
                    before, began = process.cpu(), time.monotonic()
                    times = asked_together(urls[:clients], seconds, start=count)
                    elapsed, ordered = time.monotonic() - began, sorted(times)
                    count += len(times)
                    own = (process.cpu() - before) / len(times) if what == "sfumato" else 0.0
                    yield {
                        "server": what, "clients": clients, "rate": len(times) / elapsed, "cpu": 1000 * own,
                        "p50": 1000 * ordered[len(times) // 2], "p95": 1000 * ordered[len(times) * 95 // 100],
                    }  # fmt: skip
        finally:
            process.kill()


def asked_together(urls: list[str], seconds: float, *, start: int) -> list[float]:
    """Latencies of new questions, asked one after the other by each of several clients at once."""
    import asyncio

    import asyncpg

    numbers = iter(range(start, sys.maxsize))

    async def ask(client: Any, until: float, times: list[float]) -> None:
        while time.monotonic() < until:
            began = time.monotonic()
            number = next(numbers)
            sql = f"SELECT COUNT(*) AS n FROM patients WHERE age > {number % 90} AND age * 7 < {number}"
            await client.fetchval(sql)
            times.append(time.monotonic() - began)

    async def work() -> list[float]:
        found: list[float] = []
        clients = [await asyncpg.connect(url, ssl=False, statement_cache_size=0) for url in urls]
        for client in clients:
            await client.fetchval("SELECT 1")
        await asyncio.gather(*(ask(client, time.monotonic() + seconds, found) for client in clients))
        for client in clients:
            await client.close()
        return found

    return asyncio.run(work())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["load", "overhead", "rate"])
    parser.add_argument("--analysts", type=int, default=200)
    parser.add_argument("--questions", type=int, default=None)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--state", default=None)
    parser.add_argument("--pause", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.what == "rate":
            columns = {"server": "", "clients": "", "rate": ".1f", "cpu": ".1f", "p50": ".1f", "p95": ".1f"}
            titles = {
                "rate": "answers per second",
                "cpu": "server's CPU ms of an answer",
                "p50": "p50 ms",
                "p95": "p95 ms",
            }
            rates = Figures("serve", "rate", columns, titles)
            for row in rate(Path(folder), seconds=given.seconds):
                rates.add(**row)
            return
        if given.what == "load":
            found = load(
                Path(folder), state=given.state, analysts=given.analysts, questions=given.questions or 10_000,
                count=given.servers, pause=given.pause, threads=min(given.analysts, 200),
            )  # fmt: skip
        else:
            found = overhead(Path(folder), questions=given.questions or 300)
    kept = given.what if given.state is None else f"{given.what}-postgres"
    if given.what == "load" and given.analysts != parser.get_default("analysts"):
        kept += f"-{given.analysts}"
    table = Figures("serve", kept, {"what": "", "measured": ""})
    for name, value in found.items():
        table.add(what=name, measured=f"{value:,.3g}" if isinstance(value, float) else str(value))


if __name__ == "__main__":
    main()
