"""Catalog engines in processes of their own, which are bounded in memory and time.

A query on the catalogs is free, and texts and lists in it can grow without limit: DuckDB's own limit of memory does
not count them. A process that takes too much ends, alone, and the next query starts another one.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, BinaryIO

from sfumato.errors import QueryRefused
from sfumato.query.catalog import Catalog
from sfumato.query.results.public_schema import describe_table, list_tables
from sfumato.server.postgres import catalog as engines
from sfumato.server.postgres.catalog import CatalogEngine, CatalogResult, UserRows
from sfumato.server.postgres.catalog_sql import CatalogQuery, Identity, rewrite
from sfumato.server.workers import note_computing

__all__ = ["CatalogProcesses"]

_MOST_MEMORY = 768_000_000
"""Bytes that a process may take beside what it has when it starts."""
_PROCESSES = 2
"""Processes of one data set: one long query does not stop all others."""
_GRACE_SECONDS = 3.0
"""Time beyond that of a query after which its process is ended."""


class CatalogProcesses:
    """Answers catalog queries about one data set."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._free: LifoQueue[_Process] = LifoQueue()
        self._closed = False
        for _ in range(_PROCESSES):
            self._free.put(_Process(catalog))

    def close(self) -> None:
        """End the processes; one that answers is ended afterwards."""
        self._closed = True
        with suppress(Empty):
            while True:
                self._free.get_nowait().stop()

    def prepare(self, tree: Any, identity: Identity, parameters: Any) -> CatalogQuery:
        """The query as the engine runs it."""
        return rewrite(tree, public=tuple(self.catalog.public), identity=identity, parameters=parameters)

    def columns(self, query: CatalogQuery) -> CatalogResult:
        """The columns of a query, without running it."""
        return self._ask("columns", query, {})

    def answer(self, query: CatalogQuery, user_rows: UserRows) -> CatalogResult:
        """The rows of a query."""
        return self._ask("answer", query, {name: list(user_rows(name)) for name in query.needs})

    def declared_columns(self) -> list[dict[str, Any]]:
        """The rows of ``sfumato.columns``."""
        return [
            {"table_name": table, "column_name": column, "kind": kind, "declared_values": values}
            for table, *_ in list_tables(self.catalog)[1]
            for column, kind, values in describe_table(self.catalog, table)[1]
        ]

    def _ask(self, verb: str, query: CatalogQuery, rows: dict[str, list[Any]]) -> CatalogResult:
        process = self._free.get()
        try:
            return process.ask(verb, query, rows)
        finally:
            if self._closed:
                process.stop()
            else:
                self._free.put(process)


class _Process:
    """One process, started when it is first asked and again after it was ended."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._running: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
            self._running = None

    def ask(self, verb: str, query: CatalogQuery, rows: dict[str, list[Any]]) -> CatalogResult:
        begun, seconds = time.monotonic(), engines.SECONDS
        timer: threading.Timer | None = None
        try:
            running = self._running or self._start()
            timer = threading.Timer(seconds + _GRACE_SECONDS, running.kill)
            timer.start()
            _send(running.stdin, (verb, query, rows, seconds))
            result, refused, used = _receive(running.stdout)
        except (EOFError, OSError):
            self.stop()
            note_computing(time.monotonic() - begun)
            raise QueryRefused("The query on the catalogs took too much memory or time.") from None
        finally:
            if timer is not None:
                timer.cancel()
        note_computing(used)
        if refused is not None:
            raise QueryRefused(refused[0], fix=refused[1])
        assert isinstance(result, CatalogResult)
        return result

    def _start(self) -> subprocess.Popen[bytes]:
        running = self._running = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        _send(running.stdin, self._catalog)
        _receive(running.stdout)  # it is ready: its start does not count
        return running


def _send(file: BinaryIO | Any, value: object) -> None:
    body = pickle.dumps(value)
    file.write(len(body).to_bytes(8, "big") + body)
    file.flush()


def _receive(file: BinaryIO | Any) -> Any:
    length = file.read(8)
    if len(length) < 8:
        raise EOFError
    body = file.read(int.from_bytes(length, "big"))
    if len(body) < int.from_bytes(length, "big"):
        raise EOFError
    return pickle.loads(body)


def _serve(incoming: BinaryIO | Any, outgoing: BinaryIO | Any) -> None:
    """Answer until the server has gone. Signals to all processes of the server are its own to handle."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    engine = CatalogEngine(_receive(incoming))
    _limit_memory()
    _send(outgoing, None)
    while True:
        verb, query, rows, engines.SECONDS = _receive(incoming)
        begun, result, refused = time.process_time(), None, None
        try:
            result = engine.columns(query) if verb == "columns" else engine.answer(query, rows.__getitem__)
        except QueryRefused as refusal:
            refused = refusal.message, refusal.fix
        _send(outgoing, (result, refused, time.process_time() - begun))


def _limit_memory() -> None:
    if sys.platform == "linux":  # elsewhere the address space cannot be limited
        import resource

        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + _MOST_MEMORY, now + _MOST_MEMORY))


if __name__ == "__main__":
    with suppress(EOFError, BrokenPipeError):
        _serve(sys.stdin.buffer, sys.stdout.buffer)
