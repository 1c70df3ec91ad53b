"""The ledger in one SQLite file: write-ahead log, full synchronization, one writer at a time."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.errors import FileMissing, WriteFailed

__all__ = ["SqliteStore"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS sfumato_ledger (
    number INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('cap', 'spend')),
    dataset TEXT NOT NULL, analyst TEXT NOT NULL, measure TEXT NOT NULL, size INTEGER NOT NULL CHECK (size >= 0),
    delta INTEGER NOT NULL CHECK (delta >= 0), about TEXT NOT NULL, totals TEXT NOT NULL, previous TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE
) STRICT;
CREATE INDEX IF NOT EXISTS sfumato_ledger_account ON sfumato_ledger (kind, dataset, analyst, number);
CREATE INDEX IF NOT EXISTS sfumato_ledger_dataset ON sfumato_ledger (kind, dataset, number);
CREATE INDEX IF NOT EXISTS sfumato_ledger_analyst ON sfumato_ledger (kind, analyst, number);
CREATE TRIGGER IF NOT EXISTS sfumato_ledger_keep BEFORE UPDATE ON sfumato_ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS sfumato_ledger_stay BEFORE DELETE ON sfumato_ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TABLE IF NOT EXISTS sfumato_answers (key TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
"""


class _Transaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()


class SqliteStore:
    """One connection, guarded by a lock within the process and by SQLite's own lock between processes.

    ``synchronous = FULL`` makes a commit wait for the disk, so a charge that was confirmed survives a power cut;
    ``BEGIN IMMEDIATE`` takes the write lock before the first read, so no two writers see the same balance.
    """

    def __init__(self, path: str | Path, *, timeout: float = 60.0) -> None:
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(
                str(path), timeout=timeout, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("PRAGMA journal_mode = WAL")
            with self.write() as transaction:
                for statement in _statements(_SCHEMA):
                    transaction.query(statement)
        except sqlite3.Error:
            raise FileMissing(
                f"`{path}` cannot be opened as a ledger.", fix="Name a file in a folder you can write to."
            ) from None

    @contextmanager
    def write(self) -> Iterator[_Transaction]:
        with self._lock:
            self._settle("BEGIN IMMEDIATE")
            try:
                yield _Transaction(self._connection)
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._settle("COMMIT")

    def _settle(self, statement: str) -> None:
        """Begin or commit; where that fails (locked too long, disk full) nothing is written and no receipt given."""
        try:
            self._connection.execute(statement)
        except sqlite3.OperationalError:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise WriteFailed(
                "The ledger is busy or cannot be written, so nothing was charged and nothing is answered.",
                fix="Try again; if it stays so, look for a full disk or a process that holds the file.",
            ) from None

    @contextmanager
    def read(self) -> Iterator[_Transaction]:
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                yield _Transaction(self._connection)
            finally:
                self._connection.execute("ROLLBACK")


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
