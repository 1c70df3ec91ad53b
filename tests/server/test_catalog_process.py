"""Processes of catalog queries: how many there are, what they send back, and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlglot

from sfumato.dataset import Column, Kind, Schema
from sfumato.errors import QueryRefused
from sfumato.query.plan.catalog import Catalog, PrivateTable
from sfumato.server.postgres import catalog_process
from sfumato.server.postgres.catalog_process import CatalogProcesses
from sfumato.server.postgres.catalog_sql import CatalogQuery, Identity, rewrite

DESCRIBED = "SELECT relname FROM pg_class WHERE relname = 'budget'"


def small(name: str) -> Catalog:
    table = PrivateTable(name="people", schema=Schema(columns={"ward": Column(kind=Kind.CATEGORY)}))
    return Catalog(dataset=name, private={"people": table})


def query(sql: str) -> CatalogQuery:
    identity = Identity(user="ada", database="hospital", version="", settings={})
    return rewrite(sqlglot.parse_one(sql, dialect="postgres"), tables={}, identity=identity, parameters=())


def asked(processes: CatalogProcesses, catalog: Catalog, sql: str = DESCRIBED) -> list[tuple[object, ...]]:
    return list(processes.answer(catalog, query(sql), lambda _: ()).rows)


@pytest.fixture
def processes() -> Iterator[CatalogProcesses]:
    made = CatalogProcesses(most=2)
    yield made
    made.close()


def children() -> set[int]:
    """Processes of catalogs that this one has started."""
    return {
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit() and f"\nPPid:\t{os.getpid()}\n" in read(folder / "status")
        and catalog_process.__name__ in read(folder / "cmdline")
    }  # fmt: skip


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has just ended
        return ""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_the_number_of_processes_does_not_grow_with_data_sets(processes: CatalogProcesses) -> None:
    before = children()
    first, second, third = small("first"), small("second"), small("third")
    assert asked(processes, first) == asked(processes, second) == [("budget",)]
    two = children() - before
    assert len(two) == 2
    assert asked(processes, second) == [("budget",)]
    assert children() - before == two  # each data set has its own
    assert asked(processes, third) == [("budget",)]
    assert len(children() - before) == 2
    assert len(children() - before - two) == 1  # that of the first has given way
    processes.close()
    assert children() == before


def test_a_process_that_was_ended_is_started_again(processes: CatalogProcesses) -> None:
    catalog = small("first")
    asked(processes, catalog)
    [process] = processes._free
    assert process._running is not None
    process._running.kill()
    process._running.wait()
    assert asked(processes, catalog) == [("budget",)]


def test_a_result_that_is_too_large_is_refused_where_it_is_made(processes: CatalogProcesses) -> None:
    text = "x" * 1_000
    wide = f"SELECT a || '{text}' AS t FROM generate_series(1, 40000) AS g(a)"
    with pytest.raises(QueryRefused, match="more than 32,000,000 bytes"):
        asked(processes, small("first"), wide)
    assert len(asked(processes, small("first"), wide.replace("40000", "4000"))) == 4_000


def test_no_module_of_the_server_s_folder_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: CatalogProcesses
) -> None:
    (tmp_path / "duckdb.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    assert asked(processes, small("first")) == [("budget",)]


SERVER = """
from sfumato.server.postgres.catalog_process import CatalogProcesses
from test_catalog_process import asked, small

processes = CatalogProcesses(most=1)
catalog = small("first")
asked(processes, catalog)
print(processes._free[0]._running.pid, flush=True)
asked(processes, catalog, "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT COUNT(*) FROM x")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_nothing_is_left_behind_when_the_server_is_killed() -> None:
    """Not even a query that runs: it is interrupted, and the process finds that nobody waits for its result."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    )  # fmt: skip
    assert server.stdout is not None
    child = int(server.stdout.readline())
    time.sleep(0.5)
    server.send_signal(signal.SIGKILL)
    server.communicate()
    until = time.monotonic() + 60
    while Path(f"/proc/{child}").exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="alarms")
def test_the_alarm_ends_a_process_whatever_it_does() -> None:
    text = f"from {catalog_process.__name__} import _ring_after\n_ring_after(0.2)\nwhile True: pass"
    assert subprocess.run([sys.executable, "-c", text], timeout=60, check=False).returncode == -signal.SIGALRM
