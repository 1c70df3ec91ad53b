"""Backup, restore and verification of a server's state.

A restored ledger is older than the charges that were made since, and would give their budget back. It is noticed by
the witness, a file outside of the database, and by the signed heads that clients show. A restore charges again what
the witness, or the database that is replaced, knows of.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from sfumato.dp.loss import PrivacyLoss
from sfumato.errors import BadParameter, FileMissing, LedgerBroken, NotApplicable, OutputExists
from sfumato.ledger.ledger import Ledger
from sfumato.server.heads import clear_rolled_back, refuse_rolled_back
from sfumato.server.state import FILE, ServerState, now
from sfumato.server.witness import Witness, charge_again, check_witness

__all__ = ["back_up", "restore", "verify"]


def back_up(state: ServerState, out: Path) -> str:
    """Copy the database to a file while the server runs; returns the hash of the ledger's last entry."""
    if isinstance(state.where, str):
        raise NotApplicable("The state is in PostgreSQL.", fix="Use pg_dump, and keep the witness elsewhere.")
    if out.exists():
        raise OutputExists(f"`{out}` exists.", fix="Choose another name.")
    descriptor = os.open(out, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
    os.close(descriptor)
    with closing(sqlite3.connect(state.where / FILE)) as source, closing(sqlite3.connect(out)) as copy:
        source.backup(copy)
    return Ledger.open(out).verify()


def restore(
    backup: Path, folder: Path, *, witness: Path | None, by: str, keep_tokens: bool = False
) -> dict[tuple[str, str], PrivacyLoss]:
    """Replace the state by a backup and charge again what was charged since, by data set and analyst.

    The database that is replaced is kept beside the new one. All browser sessions and links end, and all tokens unless
    ``keep_tokens``: one that was revoked since the backup would be valid again.
    """
    if not backup.is_file():
        raise FileMissing(f"There is no file `{backup}`.")
    Ledger.open(backup).verify()
    place = folder / FILE
    if witness is None and not place.is_file():
        raise BadParameter(
            "neither a witness nor the present database is there, so what was charged since is not known.",
            fix="Name the witness. Without one, set lower caps on a copy of the ledger first.",
        )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    known = folder / "replaced.witness"
    if place.is_file():
        _note_present(place, known)
        place.replace(folder / f"replaced-{now().replace(':', '-')}.db")
        for suffix in ("-wal", "-shm"):
            (folder / (FILE + suffix)).unlink(missing_ok=True)
    with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(place)) as copy:
        source.backup(copy)
    place.chmod(0o600)
    state = ServerState.open(folder)
    charged: dict[tuple[str, str], PrivacyLoss] = {}
    for path in (known, witness):
        if path is not None:
            charged |= charge_again(path, state.ledger, by=by)
    with state.store.write() as transaction:
        for table in ("sessions", "links"):
            transaction.query(f"DELETE FROM sfumato_server_{table}")
        # A new key: heads that clients have from before are not recognized, because their charges were entered again.
        transaction.query("DELETE FROM sfumato_server_settings WHERE name = 'secret'")
        if not keep_tokens:
            transaction.query("UPDATE sfumato_server_tokens SET revoked = ? WHERE revoked = ''", now())
    state.ledger.record_event(f"{by}: restored a backup")
    clear_rolled_back(state)
    return charged


def _note_present(place: Path, known: Path) -> None:
    """Keep the totals of the database that is replaced, if it can still be read and its chain holds."""
    try:
        ledger = Ledger.open(place)
        ledger.verify()
    except (FileMissing, LedgerBroken, sqlite3.Error):
        return
    Witness(known, ledger).write()


def verify(state: ServerState, *, witness: Path | None, last: str | None = None) -> str:
    """Check the chain, the witness and that no client has shown a newer head; returns the last hash."""
    digest = state.ledger.verify(last=last)
    if witness is not None:
        check_witness(witness, state.ledger)
    refuse_rolled_back(state)
    return digest
