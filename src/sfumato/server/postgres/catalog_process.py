"""Catalog engines in processes of their own, which are bounded in number, memory, time and size of their results.

A query on the catalogs is free, and texts and lists in it can grow without limit: DuckDB's own limit of memory does
not count them. A process that takes too much ends, alone, and the next query starts another one. A process ends by
itself when the server has gone: it waits for the server's next query, or its alarm rings.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from sfumato.errors import QueryRefused
from sfumato.query.plan.catalog import Catalog
from sfumato.server.postgres import catalog as engines
from sfumato.server.postgres.catalog import CatalogEngine, CatalogResult, UserRows
from sfumato.server.postgres.catalog_sql import CatalogQuery
from sfumato.server.workers import note_computing

_MOST_MEMORY = 768_000_000
"""Bytes that a process may take beside what it has when it starts."""
_MOST_RESULT = 32_000_000
"""Bytes of a result, which the server holds several times while it sends them."""
_GRACE_SECONDS = 3.0
"""Time beyond that of a query after which its process is ended."""


class CatalogProcesses:
    """Answers catalog queries. A process holds one data set; the one used longest ago gives way to another."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._free: list[_Process] = []
        """Those that do nothing, in the order in which they were used."""
        self._taken = 0
        self._closed = False
        self._changed = threading.Condition()

    def close(self) -> None:
        """End the processes; one that answers is ended afterwards."""
        with self._changed:
            self._closed = True
            while self._free:
                self._free.pop().stop()

    def columns(self, catalog: Catalog, query: CatalogQuery) -> CatalogResult:
        """The columns of a query, without running it."""
        return self._ask(catalog, "columns", query, {})

    def answer(self, catalog: Catalog, query: CatalogQuery, user_rows: UserRows) -> CatalogResult:
        """The rows of a query."""
        return self._ask(catalog, "answer", query, {name: list(user_rows(name)) for name in query.needs})

    def _ask(self, catalog: Catalog, verb: str, query: CatalogQuery, rows: dict[str, list[object]]) -> CatalogResult:
        process = self._take(catalog)
        try:
            return process.ask(verb, query, rows)
        finally:
            with self._changed:
                self._taken -= 1
                if self._closed:
                    process.stop()
                else:
                    self._free.append(process)
                self._changed.notify()

    def _take(self, catalog: Catalog) -> _Process:
        with self._changed:
            self._changed.wait_for(lambda: self._taken < self._most)
            self._taken += 1
            for process in reversed(self._free):
                if process.catalog is catalog:
                    self._free.remove(process)
                    return process
            if self._free and self._taken + len(self._free) > self._most:
                self._free.pop(0).stop()
            return _Process(catalog)


class _Process:
    """One process, started when it is first asked and again after it has ended."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._running: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
            self._running = None

    def ask(self, verb: str, query: CatalogQuery, rows: dict[str, list[object]]) -> CatalogResult:
        begun = time.monotonic()
        if self._running is not None and self._running.poll() is not None:
            self.stop()  # somebody else ended it
        try:
            running = self._running or self._start()
            _send(running.stdin, pickle.dumps((verb, query, rows, engines.SECONDS)))
            result, refused, used = pickle.loads(_receive(running.stdout))
        except (EOFError, OSError):
            self.stop()
            note_computing(time.monotonic() - begun)
            raise QueryRefused("The query on the catalogs took too much memory or time.") from None
        note_computing(used)
        if refused is not None:
            raise QueryRefused(refused[0], fix=refused[1])
        assert isinstance(result, CatalogResult)
        return result

    def _start(self) -> subprocess.Popen[bytes]:
        running = self._running = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],  # no module of the server's folder is imported
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        _send(running.stdin, pickle.dumps(self.catalog))
        return running


def _send(file: BinaryIO | Any, body: bytes) -> None:
    file.write(len(body).to_bytes(8, "big") + body)
    file.flush()


def _receive(file: BinaryIO | Any) -> bytes:
    length = file.read(8)
    body: bytes = file.read(int.from_bytes(length, "big"))
    if len(length) < 8 or len(body) < int.from_bytes(length, "big"):
        raise EOFError
    return body


def _serve(incoming: BinaryIO | object, outgoing: BinaryIO | object) -> None:
    """Answer until the server has gone. Signals to all processes of the server are its own to handle."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    engine = CatalogEngine(pickle.loads(_receive(incoming)))
    _limit_memory()
    counted = 0.0  # the start counts with the first query
    while True:
        verb, query, rows, engines.SECONDS = pickle.loads(_receive(incoming))
        _ring_after(engines.SECONDS + _GRACE_SECONDS)
        result, refused = None, None
        try:
            result = engine.columns(query) if verb == "columns" else engine.answer(query, rows.__getitem__)
        except QueryRefused as refusal:
            refused = refusal.message, refusal.fix
        used, counted = time.process_time() - counted, time.process_time()
        body = pickle.dumps((result, refused, used))
        if len(body) > _MOST_RESULT:
            refused = f"The result has more than {_MOST_RESULT:,} bytes.", "Add a condition or a LIMIT."
            body = pickle.dumps((None, refused, used))
        _ring_after(0)
        _send(outgoing, body)


def _ring_after(seconds: float) -> None:
    """End this process after some time, whatever it does then; 0 for never."""
    if hasattr(signal, "setitimer"):  # elsewhere a query is interrupted only where the engine looks
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _limit_memory() -> None:
    if sys.platform == "linux":  # elsewhere the address space cannot be limited
        import resource

        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + _MOST_MEMORY, now + _MOST_MEMORY))


if __name__ == "__main__":
    with suppress(EOFError, BrokenPipeError):
        _serve(sys.stdin.buffer, sys.stdout.buffer)
