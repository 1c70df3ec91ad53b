"""Store: a database with the tables of the ledger."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from sfumato.ledger.stores.schema import SchemaVersion


class Transaction(Protocol):
    """A transaction of a store."""

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement, with ``?`` for each value, and return its rows."""
        ...


class Store(Protocol):
    """A database with the tables of the ledger."""

    def write(self, *, durable: bool = True) -> AbstractContextManager[Transaction]:
        """An exclusive and atomic write transaction, which is on disk when it has ended.

        One that is not ``durable`` may be lost in a power failure, until the next durable one has ended.
        """
        ...

    def read(self) -> AbstractContextManager[Transaction]:
        """A consistent read transaction."""
        ...

    def upgrade(self, schema: SchemaVersion) -> None:
        """Create or upgrade the tables of a schema."""
        ...

    def close(self) -> None:
        """End the connection. Nothing is lost if it is not ended."""
        ...
