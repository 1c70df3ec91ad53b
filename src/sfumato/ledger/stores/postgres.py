"""Ledger store in PostgreSQL: one writer at a time by an advisory lock, durable by synchronous commit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sfumato.errors import FileMissing, WriteFailed
from sfumato.extras import missing_extra
from sfumato.ledger.stores.schema import LEDGER, SchemaVersion, migrate

_LOCK = "SELECT pg_advisory_xact_lock(7416371)"


class _Transaction:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(sql.replace("?", "%s") if values else sql, values or None)
        return cursor.fetchall() if cursor.description else []


class PostgresStore:
    """One connection per store. Write transactions take an advisory lock first, so they run one after the other."""

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise missing_extra("postgres", "psycopg", needed_by="A ledger in PostgreSQL") from None
        self._lock = threading.RLock()
        self._url = url
        try:
            self._connection = _connect(url)
            self.upgrade(LEDGER)
        except psycopg.Error:
            raise FileMissing(
                "The PostgreSQL ledger cannot be opened.", fix="Check the address and the right to create tables."
            ) from None

    def upgrade(self, schema: SchemaVersion) -> None:
        """Create or upgrade the tables of a schema."""
        if self._revision(schema) != schema.revision:
            _migrate(self._url, schema)

    def _revision(self, schema: SchemaVersion) -> str | None:
        """The schema's revision."""
        with self.read() as transaction:
            if transaction.query("SELECT to_regclass(?)", schema.table) == [(None,)]:
                return None
            rows = transaction.query(f"SELECT version_num FROM {schema.table}")
        return str(rows[0][0]) if rows else None

    def close(self) -> None:
        """End the connection."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[_Transaction]:  # all are durable: the server groups commits
        with self._transaction(_LOCK) as transaction:
            yield transaction

    @contextmanager
    def read(self) -> Iterator[_Transaction]:
        with self._transaction("SELECT 1") as transaction:
            yield transaction

    @contextmanager
    def _transaction(self, first: str) -> Iterator[_Transaction]:
        """A transaction that starts with a statement. A lost connection is opened again before, never within one."""
        import psycopg

        with self._lock:
            try:
                try:
                    self._connection.execute("SELECT 1")
                except psycopg.Error:
                    self._connection.close()
                    self._connection = _connect(self._url)
                with self._connection.transaction():
                    self._connection.execute(first)
                    yield _Transaction(self._connection)
            except psycopg.OperationalError:
                raise WriteFailed(
                    "The PostgreSQL ledger cannot be reached, so nothing is answered.",
                    fix="Check that the server runs, and ask again. A charge that was confirmed before stays.",
                ) from None


def _connect(url: str) -> Any:
    import psycopg

    connection = psycopg.connect(url, autocommit=True, connect_timeout=10)
    connection.execute("SET synchronous_commit = on")
    return connection


def _migrate(url: str, schema: SchemaVersion) -> None:
    import psycopg
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool)
    migrate(engine, schema, lock=_LOCK)
