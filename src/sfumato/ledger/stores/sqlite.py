"""Ledger store in a SQLite file: write-ahead log, full synchronization, one writer at a time."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from sfumato.errors import FileMissing, WriteFailed
from sfumato.ledger.stores.schema import LEDGER, SchemaVersion, migrate

_MEMORY = ":memory:"


class _Transaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()


class SqliteStore:
    """One connection, guarded by a lock within the process and by SQLite's own lock between processes.

    ``synchronous = FULL`` makes a commit wait for the disk, so a confirmed charge survives a power failure.
    ``BEGIN IMMEDIATE`` takes the write lock before the first read, so no two writers see the same balance.
    """

    def __init__(self, path: str | Path, *, timeout: float = 60.0) -> None:
        self._lock = threading.RLock()
        try:
            self._connection = _connect(path, timeout)
            if str(path) == _MEMORY:
                _empty().backup(self._connection)
            else:
                self.upgrade(LEDGER)
        except sqlite3.Error:
            raise FileMissing(
                f"`{path}` cannot be opened as a ledger.", fix="Name a file in a folder you can write to."
            ) from None

    def upgrade(self, schema: SchemaVersion) -> None:
        """Create or upgrade the tables of a schema."""
        with self._lock:
            if _revision(self._connection, schema) != schema.revision:
                _migrate(self._connection, schema)

    def close(self) -> None:
        """End the connection."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def write(self) -> Iterator[_Transaction]:
        with self._lock:
            self._begin_or_commit("BEGIN IMMEDIATE")
            try:
                yield _Transaction(self._connection)
            except sqlite3.OperationalError:
                self._rollback()
                raise _not_written() from None
            except BaseException:
                self._rollback()
                raise
            self._begin_or_commit("COMMIT")

    def _begin_or_commit(self, statement: str) -> None:
        """If this fails (locked too long, disk full), nothing is written and no receipt is issued."""
        try:
            self._connection.execute(statement)
        except sqlite3.OperationalError:
            self._rollback()
            raise _not_written() from None

    def _rollback(self) -> None:
        """SQLite has rolled back by itself after some errors, a full disk among them."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    @contextmanager
    def read(self) -> Iterator[_Transaction]:
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                yield _Transaction(self._connection)
            finally:
                self._connection.execute("ROLLBACK")


def _not_written() -> WriteFailed:
    return WriteFailed(
        "The ledger is busy or cannot be written, so nothing was charged and nothing is answered.",
        fix="Try again. If the error persists, check for a full disk or a process that locks the file.",
    )


def _connect(path: str | Path, timeout: float = 60.0) -> sqlite3.Connection:
    connection = sqlite3.connect(str(path), timeout=timeout, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA journal_mode = WAL")
    return connection


def _revision(connection: sqlite3.Connection, schema: SchemaVersion) -> str | None:
    """The schema's revision."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (schema.table,)).fetchone():
        return None
    row = connection.execute(f"SELECT version_num FROM {schema.table}").fetchone()
    return None if row is None else str(row[0])


def _migrate(connection: sqlite3.Connection, schema: SchemaVersion) -> None:
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    migrate(engine, schema, lock="BEGIN IMMEDIATE")


@cache
def _empty() -> sqlite3.Connection:
    """An empty ledger in memory; others are copied from it."""
    connection = _connect(_MEMORY)
    _migrate(connection, LEDGER)
    return connection
