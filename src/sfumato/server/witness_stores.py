"""Where a witness is kept: a file, or a table of another PostgreSQL database."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from sfumato.data.atomic import locked
from sfumato.errors import WriteFailed
from sfumato.ledger.ledger import Entry

_TAIL = 65_536
_MOST_MILLISECONDS = 10_000
"""A lock, a statement or a connection of the witness that takes longer has failed."""


def _line(entry: Entry) -> str:
    return json.dumps(entry.to_dict(), ensure_ascii=False)


def _entry(line: str) -> Entry:
    return Entry(**json.loads(line))


class FileWitness:
    """A file with one entry per line, which several processes may append to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def place(self) -> str:
        return str(self._path)

    def extend(self, following: Callable[[Entry | None], Iterable[Entry]]) -> None:
        """Append lines and wait for the disk. A line that a crash cut off is removed first."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as file, locked(self._path):
            last = _last(file)
            lines = "".join(f"{_line(entry)}\n" for entry in following(last))
            if lines:
                file.write(lines.encode())
                file.flush()
                os.fsync(file.fileno())

    def entries(self) -> Iterator[Entry]:
        if not self._path.is_file():
            return
        with self._path.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                if line.endswith("\n"):
                    yield _entry(line)


def _last(file: BinaryIO) -> Entry | None:
    """The last whole line; the file ends behind it afterwards, and is positioned there."""
    end = size = file.seek(0, os.SEEK_END)
    tail = b""
    while end and tail.count(b"\n") < 2:
        start = max(0, end - _TAIL)
        file.seek(start)
        tail = file.read(end - start) + tail
        end = start
    whole, newline, torn = tail.rpartition(b"\n")
    if torn:
        file.truncate(size - len(torn))
    file.seek(0, os.SEEK_END)
    return _entry(whole.rpartition(b"\n")[2].decode()) if newline else None


class PostgresWitness:
    """A table of a PostgreSQL database, which may hold the witnesses of several servers."""

    def __init__(self, address: str, *, name: str) -> None:
        self._address, self._name = address, name
        self._connection: Any = None

    @property
    def place(self) -> str:
        return self._address.rpartition("@")[2]

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """A transaction on a connection that is kept; one that was lost is opened again by the next transaction."""
        import psycopg

        try:
            if self._connection is None:
                self._connection = psycopg.connect(
                    self._address, connect_timeout=_MOST_MILLISECONDS // 1000, tcp_user_timeout=_MOST_MILLISECONDS
                )
                self._connection.execute(f"SET statement_timeout = {_MOST_MILLISECONDS}")
                self._connection.execute(
                    "CREATE TABLE IF NOT EXISTS sfumato_witness (place bigserial PRIMARY KEY, ledger text NOT NULL, "
                    "entry text NOT NULL)"
                )
                self._connection.commit()
            with self._connection.transaction():
                yield self._connection
        except psycopg.Error:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            raise WriteFailed("The witness in PostgreSQL cannot be reached.", fix="Check its address.") from None

    def extend(self, following: Callable[[Entry | None], Iterable[Entry]]) -> None:
        """Insert rows in one transaction, which waits for that of another process."""
        with self._transaction() as connection:
            connection.execute("SET LOCAL synchronous_commit = on")
            connection.execute("LOCK TABLE sfumato_witness IN EXCLUSIVE MODE")
            last = connection.execute(
                "SELECT entry FROM sfumato_witness WHERE ledger = %s ORDER BY place DESC LIMIT 1", (self._name,)
            ).fetchone()
            rows = [(self._name, _line(entry)) for entry in following(None if last is None else _entry(last[0]))]
            if rows:
                connection.cursor().executemany("INSERT INTO sfumato_witness (ledger, entry) VALUES (%s, %s)", rows)

    def entries(self) -> Iterator[Entry]:
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT entry FROM sfumato_witness WHERE ledger = %s ORDER BY place", (self._name,)
            ).fetchall()
        yield from (_entry(line) for (line,) in rows)
