"""The ledger in PostgreSQL: one writer at a time by an advisory lock, durable by synchronous commit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sfumato.errors import FileMissing, missing_extra

__all__ = ["PostgresStore"]

_LOCK = 7_416_371
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS sfumato_ledger (number BIGINT PRIMARY KEY, at TEXT NOT NULL, "
    "kind TEXT NOT NULL CHECK (kind IN ('cap', 'spend')), dataset TEXT NOT NULL, analyst TEXT NOT NULL, "
    "measure TEXT NOT NULL, size BIGINT NOT NULL CHECK (size >= 0), delta BIGINT NOT NULL CHECK (delta >= 0), "
    "about TEXT NOT NULL, totals TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL UNIQUE)",
    "CREATE INDEX IF NOT EXISTS sfumato_ledger_account ON sfumato_ledger (kind, dataset, analyst, number)",
    "CREATE INDEX IF NOT EXISTS sfumato_ledger_dataset ON sfumato_ledger (kind, dataset, number)",
    "CREATE INDEX IF NOT EXISTS sfumato_ledger_analyst ON sfumato_ledger (kind, analyst, number)",
    "CREATE OR REPLACE FUNCTION sfumato_ledger_keep() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
    "CREATE OR REPLACE TRIGGER sfumato_ledger_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON sfumato_ledger "
    "FOR EACH STATEMENT EXECUTE FUNCTION sfumato_ledger_keep()",
    "CREATE TABLE IF NOT EXISTS sfumato_answers (key TEXT PRIMARY KEY, body TEXT NOT NULL)",
)


class _Transaction:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(sql.replace("?", "%s") if values else sql, values or None)
        return cursor.fetchall() if cursor.description else []


class PostgresStore:
    """One connection per store; transactions take an advisory lock first, so they happen one after the other."""

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise missing_extra("postgres", "psycopg", needed_by="A ledger in PostgreSQL") from None
        self._lock = threading.RLock()
        try:
            self._connection = psycopg.connect(url, autocommit=True)
            self._connection.execute("SET synchronous_commit = on")
            with self.write() as transaction:
                for statement in _SCHEMA:
                    transaction.query(statement)
        except psycopg.Error:
            raise FileMissing(
                "The PostgreSQL ledger cannot be opened.", fix="Check the address, and that it may create tables."
            ) from None

    @contextmanager
    def write(self) -> Iterator[_Transaction]:
        with self._lock, self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            yield _Transaction(self._connection)

    @contextmanager
    def read(self) -> Iterator[_Transaction]:
        with self._lock, self._connection.transaction():
            yield _Transaction(self._connection)
