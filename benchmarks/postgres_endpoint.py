"""The PostgreSQL endpoint: CPU time and latency of a question against a local session, and memory of idle clients.

    python benchmarks/postgres_endpoint.py question [--questions 300] [--record]
    python benchmarks/postgres_endpoint.py idle [--clients 1000] [--record]

The server runs in a process of its own, so that its CPU time and memory can be told from those of the clients.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from record import Figures

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
EPSILON = "0.01"


def serve(folder: str, tls: bool, said: Any, stop: Any) -> None:
    """The server's process."""
    from postgres_sample import serving
    from server_sample import self_signed

    options = dict(zip(("certificate", "key"), self_signed(Path(folder) / "tls"), strict=True)) if tls else {}
    with serving(Path(folder), **options) as served:
        said.put((served.port, served.token, os.getpid()))
        stop.wait()


@contextmanager
def server(*, tls: bool = False) -> Iterator[tuple[int, str, int]]:
    context = multiprocessing.get_context("spawn")
    said, stop = context.Queue(), context.Event()
    with tempfile.TemporaryDirectory() as folder:
        process = context.Process(target=serve, args=(folder, tls, said, stop))
        process.start()
        try:
            yield said.get(timeout=60)
        finally:
            stop.set()
            process.join(30)


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(process: int) -> float:
    """Resident memory in MB."""
    [line] = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def questions(count: int) -> list[str]:
    return [f"SELECT COUNT(*) AS n FROM patients WHERE age > {i % 90} AND bill > {i}" for i in range(count)]


def asked_locally(count: int) -> tuple[float, list[float]]:
    """CPU milliseconds of a question in a local session on the same data, and all latencies."""
    from postgres_sample import register_hospital
    from sfumato.dataset.document import Dataset
    from sfumato.dp.loss import pure
    from sfumato.ledger.ledger import Ledger
    from sfumato.query.open_session import open_session
    from sfumato.server.service import QueryService

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        register_hospital(QueryService.open(folder / "state"), folder / "data")
        Ledger.open(folder / "data" / "unused.db").set_cap(pure(1000), dataset="hospital")
        session = open_session(Dataset.load(folder / "data" / "hospital.yaml"), analyst="alice")
        warm, timed = questions(20), questions(count)
        for sql in warm:
            session.ask(f"{sql} AND flu", epsilon=EPSILON)
        latencies, began = [], time.process_time()
        for sql in timed:
            start = time.perf_counter()
            session.ask(sql, epsilon=EPSILON)
            latencies.append(time.perf_counter() - start)
        return 1000 * (time.process_time() - began) / count, latencies


def asked_by_psycopg(count: int, *, prepared: bool) -> tuple[float, list[float]]:
    """CPU milliseconds of the server for a question, and all latencies as the client sees them."""
    import psycopg

    with server() as (port, token, process):
        url = f"postgresql://alice:{token}@127.0.0.1:{port}/hospital?options=-c%20sfumato.epsilon%3D{EPSILON}"
        with psycopg.connect(url, autocommit=True) as client:
            for sql in questions(20):
                client.execute(f"{sql} AND flu")
            latencies, began = [], cpu_seconds(process)
            for number, sql in enumerate(questions(count)):
                start = time.perf_counter()
                if prepared:
                    template = "SELECT COUNT(*) AS n FROM patients WHERE age > %s AND bill > %s"
                    client.execute(template, (number % 90, number)).fetchall()
                else:
                    client.execute(sql).fetchall()
                latencies.append(time.perf_counter() - start)
            return 1000 * (cpu_seconds(process) - began) / count, latencies


async def idle_clients(port: int, token: str, count: int, process: int, *, tls: bool) -> float:
    """Resident memory of the server while so many clients are connected and do nothing."""
    import asyncpg

    gate = asyncio.Semaphore(20)

    async def connect() -> Any:
        async with gate:
            return await asyncpg.connect(
                host="127.0.0.1", port=port, user="alice", password=token, database="hospital", timeout=60,
                ssl="require" if tls else False,
            )  # fmt: skip

    clients = await asyncio.gather(*(connect() for _ in range(count)))
    await asyncio.sleep(1)
    used = memory(process)
    for client in clients:
        client.terminate()
    return used


def measure_questions(count: int) -> None:
    cost = Figures(
        "postgres_endpoint", "question", {"way": "", "cpu": ".1f", "ratio": ".2f", "p50": ".1f", "p95": ".1f"},
        {"cpu": "CPU ms of a question", "ratio": "times a local session", "p50": "p50 ms", "p95": "p95 ms"},
    )  # fmt: skip
    local = asked_locally(count)
    rows = {
        "local session": local,
        "PostgreSQL, simple protocol": asked_by_psycopg(count, prepared=False),
        "PostgreSQL, extended protocol": asked_by_psycopg(count, prepared=True),
    }
    for way, (cpu, times) in rows.items():
        ordered = sorted(1000 * one for one in times)
        p50, p95 = ordered[len(ordered) // 2], ordered[len(ordered) * 95 // 100]
        cost.add(way=way, cpu=cpu, ratio=cpu / local[0], p50=p50, p95=p95)


def measure_idle(clients: int) -> None:
    columns = {"clients": ",", "tls": "", "memory": ".0f"}
    space = Figures("postgres_endpoint", "idle", columns, {"memory": "resident MB", "tls": "TLS"})
    for tls in (False, True):
        for count in (1, clients):
            with server(tls=tls) as (port, token, process):
                used = asyncio.run(idle_clients(port, token, count, process, tls=tls))
                space.add(clients=count, tls="yes" if tls else "no", memory=used)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["question", "idle"])
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--clients", type=int, default=1000)
    given = parser.parse_args()
    if given.what == "question":
        measure_questions(given.questions)
    else:
        measure_idle(given.clients)


if __name__ == "__main__":
    main()
