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
_MOST_MEMBERS = 64
"""Writers that one commit serves: those of other processes wait for it."""


class _Transaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()


class _Group:
    """Writers whose transactions one commit makes durable."""

    def __init__(self) -> None:
        self.members = 0
        self.ended = threading.Event()
        self.failed = False


class SqliteStore:
    """One connection for writers, guarded by a lock within the process and by SQLite's own lock between processes.

    ``synchronous = FULL`` makes a commit wait for the disk, so a confirmed charge survives a power failure.
    ``BEGIN IMMEDIATE`` takes the write lock before the first read, so no two writers see the same balance.

    Waiting for the disk takes longer than writing. So writers who wait for their turn are let into the transaction that
    is open, one after the other and each behind a savepoint, and one commit ends it for all: nobody goes on before it,
    and if it fails, it fails for all. Readers have connections of their own and see what is committed alone.
    """

    def __init__(self, path: str | Path, *, timeout: float = 60.0) -> None:
        self._lock = threading.RLock()
        self._counting = threading.Lock()
        self._waiting = 0
        """Writers that wait for their turn."""
        self._group: _Group | None = None
        """The writers in the transaction that is open; read and changed by those who hold the lock."""
        self._path, self._most = path, 1 if str(path) == _MEMORY else _MOST_MEMBERS
        self._readers: list[sqlite3.Connection] = []
        """Connections that nobody reads from at the moment."""
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
        """End the connections."""
        with self._lock:
            for reader in self._readers:
                reader.close()
            self._readers.clear()
            self._connection.close()

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[_Transaction]:
        self._take_turn()
        try:
            group = self._group or self._begin(durable=durable)
            try:
                if group.members:
                    self._connection.execute("SAVEPOINT member")
                yield _Transaction(self._connection)
                if group.members:
                    self._connection.execute("RELEASE member")
                group.members += 1
            except BaseException as failure:
                self._undo(group)
                if isinstance(failure, sqlite3.OperationalError):
                    raise _not_written() from None
                raise
            finally:
                if self._group is group and (not self._waiting or group.members >= self._most):
                    self._end(group)
        finally:
            self._lock.release()
        group.ended.wait()
        if group.failed:
            raise _not_written()

    def _take_turn(self) -> None:
        with self._counting:
            self._waiting += 1
        try:
            self._lock.acquire()
        finally:
            with self._counting:
                self._waiting -= 1

    def _begin(self, *, durable: bool) -> _Group:
        """A transaction. One that need not be durable does not wait for the disk, unless others share it."""
        alone = not durable and not self._waiting
        try:
            self._connection.execute(f"PRAGMA synchronous = {'NORMAL' if alone else 'FULL'}")
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            self._rollback()
            raise _not_written() from None
        self._group = _Group()
        return self._group

    def _undo(self, group: _Group) -> None:
        """Undo what one member wrote. If SQLite has rolled back by itself, as on a full disk, it failed for all."""
        if group.members and self._connection.in_transaction:
            self._connection.execute("ROLLBACK TO member")
            self._connection.execute("RELEASE member")
            return
        self._rollback()
        self._group, group.failed = None, True
        group.ended.set()

    def _end(self, group: _Group) -> None:
        self._group, group.failed = None, True
        try:
            self._connection.execute("COMMIT")
            group.failed = False
        except sqlite3.OperationalError:  # locked too long, disk full: nothing is written and no receipt is issued
            self._rollback()
        finally:
            group.ended.set()

    def _rollback(self) -> None:
        """SQLite has rolled back by itself after some errors, a full disk among them."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    @contextmanager
    def read(self) -> Iterator[_Transaction]:
        if str(self._path) == _MEMORY:
            with self._lock, _reading(self._connection) as transaction:
                yield transaction
            return
        try:
            reader = self._readers.pop()
        except IndexError:
            reader = _connect_reader(Path(self._path))
        try:
            with _reading(reader) as transaction:
                yield transaction
        finally:
            self._readers.append(reader)


@contextmanager
def _reading(connection: sqlite3.Connection) -> Iterator[_Transaction]:
    connection.execute("BEGIN")
    try:
        yield _Transaction(connection)
    finally:
        connection.execute("ROLLBACK")


def _not_written() -> WriteFailed:
    return WriteFailed(
        "The ledger is busy or cannot be written, so nothing was charged and nothing is answered.",
        fix="Try again. If the error persists, check for a full disk or a process that locks the file.",
    )


def _connect_reader(path: Path) -> sqlite3.Connection:
    try:
        reader = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
        )
    except sqlite3.OperationalError:
        raise FileMissing(f"`{path.name}` can no longer be read as a ledger.", fix="Put the file back.") from None
    reader.execute("PRAGMA query_only = ON")
    return reader


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
