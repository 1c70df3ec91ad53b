"""State of a server: ledger, accounts, data sets and questions in one database, a SQLite file or PostgreSQL."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path

from sfumato.dp.loss import NOTHING
from sfumato.errors import WriteFailed
from sfumato.ledger.entries import append
from sfumato.ledger.ledger import Ledger, Store, Transaction
from sfumato.ledger.stores.schema import SchemaVersion

SERVER = SchemaVersion(scripts=Path(__file__).parent / "migrations", revision="0001", table="sfumato_server_schema")
FILE = "server.db"
_EVENT = "server"
_PROBE_BYTES, _PROBE_SECONDS = 65_536, 5.0


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
        """Derives the salts of unknown users. It never leaves the server."""
        self.name = self._name()
        """Tells this server from others. It stands in the ledger, so that every copy has it."""
        self._probe_lock, self._probed, self._writable = threading.Lock(), -inf, True

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

    def close(self) -> None:
        """End the connection to the database."""
        self.store.close()

    def check_writable(self) -> None:
        """Refuse if the disk of the state takes nothing more. No lock of the database is taken.

        A file of 64 KiB is written to the folder and removed, at most once in five seconds. A state in PostgreSQL is
        only read: its own monitoring tells about its disk.
        """
        with self.store.read() as transaction:
            transaction.query("SELECT 1")
        if isinstance(self.where, str):
            return
        with self._probe_lock:
            if time.monotonic() - self._probed > _PROBE_SECONDS:
                self._writable, self._probed = _takes_bytes(self.where), time.monotonic()
            if not self._writable:
                raise WriteFailed("The disk of the state is full or cannot be written.", fix="Make room for the state.")

    def _name(self) -> str:
        with self.store.write() as transaction:
            rows = transaction.query(
                "SELECT about FROM sfumato_ledger WHERE kind = 'event' AND about LIKE ? ORDER BY number LIMIT 1",
                f'{{"event": "{_EVENT}"%',
            )
            if rows:
                return str(json.loads(rows[0][0])["name"])
            name = f"the sfumato server {secrets.token_hex(4)}"
            about = json.dumps({"event": _EVENT, "name": name})
            append(transaction, "event", "", "", "", NOTHING, about, "{}")
        return name

    def _secret(self) -> bytes:
        with self.store.write() as transaction:
            stored = setting(transaction, "secret")
            if stored is None:
                stored = secrets.token_hex(32)
                set_setting(transaction, "secret", stored)
        return bytes.fromhex(stored)


def _takes_bytes(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        return False
    return True


def setting(transaction: Transaction, name: str) -> str | None:
    """A stored setting."""
    rows = transaction.query("SELECT value FROM sfumato_server_settings WHERE name = ?", name)
    return str(rows[0][0]) if rows else None


def set_setting(transaction: Transaction, name: str, value: str) -> None:
    """Store a setting."""
    transaction.query("DELETE FROM sfumato_server_settings WHERE name = ?", name)
    transaction.query("INSERT INTO sfumato_server_settings (name, value) VALUES (?, ?)", name, value)
