"""State of a server: ledger, accounts, data sets and questions in one database, a SQLite file or PostgreSQL."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sfumato.ledger.ledger import Ledger, Store, Transaction
from sfumato.ledger.stores.schema import SchemaVersion

__all__ = ["SERVER", "ServerState", "later", "now"]

SERVER = SchemaVersion(scripts=Path(__file__).parent / "migrations", revision="0001", table="sfumato_server_schema")
FILE = "server.db"


def now() -> str:
    """The present time as stored: ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def later(**duration: float) -> str:
    """The time after a duration, as stored."""
    return (datetime.now(UTC) + timedelta(**duration)).isoformat(timespec="milliseconds")


class ServerState:
    """The database of a server, opened or created. Several processes may share it."""

    def __init__(self, ledger: Ledger, *, where: str | Path) -> None:
        self.ledger = ledger
        self.where = where
        """The folder, or the address of a PostgreSQL database."""
        self.store.upgrade(SERVER)
        self.secret = self._secret()
        """Signs ledger heads and derives the salts of unknown users. It never leaves the server."""
        self.name = self._name()
        """Tells this server from others, also after a restore; ledgers whose accounts moved here name it."""

    @classmethod
    def open(cls, where: str | Path) -> ServerState:
        """A folder (made if there is none) or a ``postgresql://`` address."""
        if "://" in str(where):
            return cls(Ledger.open(str(where)), where=str(where))
        folder = Path(where)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return cls(Ledger.open(folder / FILE), where=folder)

    @property
    def store(self) -> Store:
        """The database."""
        return self.ledger.store

    def _name(self) -> str:
        with self.store.write() as transaction:
            stored = setting(transaction, "name")
            if stored is None:
                stored = f"the sfumato server {secrets.token_hex(4)}"
                set_setting(transaction, "name", stored)
        return stored

    def _secret(self) -> bytes:
        with self.store.write() as transaction:
            stored = setting(transaction, "secret")
            if stored is None:
                stored = secrets.token_hex(32)
                set_setting(transaction, "secret", stored)
        return bytes.fromhex(stored)


def setting(transaction: Transaction, name: str) -> str | None:
    """A stored setting."""
    rows = transaction.query("SELECT value FROM sfumato_server_settings WHERE name = ?", name)
    return str(rows[0][0]) if rows else None


def set_setting(transaction: Transaction, name: str, value: str) -> None:
    """Store a setting."""
    transaction.query("DELETE FROM sfumato_server_settings WHERE name = ?", name)
    transaction.query("INSERT INTO sfumato_server_settings (name, value) VALUES (?, ?)", name, value)
