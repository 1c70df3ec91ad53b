"""Backup, restore and verification of a server's state.

A restored ledger is older than the charges that were made since, and would give their budget back. The witness
(:mod:`sfumato.server.witness`) tells, and a restore charges again what the witness, or the database that is replaced,
has beyond the backup.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from sfumato.dp.loss import PrivacyLoss
from sfumato.errors import (
    BadParameter,
    Conflict,
    FileMissing,
    LedgerBroken,
    NotApplicable,
    OutputExists,
    SfumatoError,
)
from sfumato.ledger.ledger import Entry, Ledger
from sfumato.server.state import FILE, ServerState, now
from sfumato.server.witness import (
    WitnessStore,
    charge_again,
    check_witness,
    missing_witness,
    was_witnessed,
    witness_store,
)


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
    place: str,
    backup: Path | None,
    *,
    witness: str | None,
    by: str,
    without: str | None = None,
    keep_tokens: bool = False,
) -> dict[tuple[str, str], PrivacyLoss]:
    """Replace a state by a backup and charge again what was charged since, by data set and analyst.

    Without a ``backup``, the state was restored by other means, as a database of PostgreSQL is, and is only charged
    again. The database that is replaced is kept whole beside the new one, as ``replaced-TIME.db``. ``without`` is the
    reason to do without the witness. All browser sessions and links end, and all tokens unless ``keep_tokens``: one
    that was revoked since the backup would be valid again.
    """
    replaced: tuple[Entry, ...] = ()
    if backup is None:
        state = ServerState.open(place)
        store = witness_store(state, witness)
        _check_seen((), state, store, without)
    else:
        if "://" in place:
            raise BadParameter(
                "the state is in PostgreSQL.", fix="Restore it with pg_restore, then run this command without a file."
            )
        if not backup.is_file():
            raise FileMissing(f"There is no file `{backup}`.")
        source = ServerState(Ledger.open(backup), where=Path(place))
        source.ledger.verify()
        store, kept = witness_store(source, witness), _set_aside(Path(place))
        try:
            replaced = () if kept is None else _entries(kept)
            _check_seen(replaced, source, store, without)
        except SfumatoError:
            _put_back(kept, Path(place))
            raise
        source.close()
        _copy(backup, Path(place) / FILE)
        state = ServerState.open(place)
    charged = charge_again((*store.entries(), *replaced), state.ledger, by=by)
    with state.store.write() as transaction:
        for table in ("sessions", "links"):
            transaction.query(f"DELETE FROM sfumato_server_{table}")
        if not keep_tokens:
            transaction.query("UPDATE sfumato_server_tokens SET revoked = ? WHERE revoked = ''", now())
    state.ledger.record_event(f"{by}: restored a backup" + (f" without a witness: {without}" if without else ""))
    known = {entry.hash for entry in store.entries()}
    store.extend(lambda _: [entry for entry in state.ledger.entries() if entry.hash not in known])
    state.close()
    return charged


def _check_seen(replaced: tuple[Entry, ...], state: ServerState, store: WitnessStore, without: str | None) -> None:
    """Refuse to restore where what was charged since is not known, or known about another server.

    A database that is replaced tells what was charged since only if no server ran on it: it may be an old copy itself.
    """
    witnessed, known = tuple(store.entries()), {entry.hash for entry in state.ledger.entries()}
    served = was_witnessed(state.ledger.entries()) or was_witnessed(replaced)
    if not witnessed and not without and (served or not replaced):
        raise missing_witness(store)
    for seen in (witnessed, replaced):
        if seen and not known & {entry.hash for entry in seen}:
            raise BadParameter("the witness is that of another server.", fix="Name the witness of this one.")


def _set_aside(folder: Path) -> Path | None:
    """Give the present database another name; None if there is none. Its write-ahead log is merged first."""
    place = folder / FILE
    if not place.is_file():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return None
    try:
        with closing(sqlite3.connect(place, timeout=1)) as database:
            database.execute("PRAGMA journal_mode = DELETE")  # needs the database for itself
    except sqlite3.OperationalError:
        raise Conflict("The state is in use.", fix="Stop the server, then restore.") from None
    except sqlite3.DatabaseError:
        pass  # it is damaged: all of its files are kept as they are
    kept = folder / f"replaced-{now().replace(':', '-')}.db"
    for suffix in ("", "-wal", "-shm"):  # SQLite finds the other files by the name of the database
        with suppress(FileNotFoundError):
            Path(f"{place}{suffix}").rename(f"{kept}{suffix}")
    return kept


def _put_back(kept: Path | None, folder: Path) -> None:
    for suffix in ("", "-wal", "-shm") if kept is not None else ():
        with suppress(FileNotFoundError):
            Path(f"{kept}{suffix}").rename(folder / f"{FILE}{suffix}")


def _copy(backup: Path, place: Path) -> None:
    with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(place)) as copy:
        source.backup(copy)
    place.chmod(0o600)


def _entries(place: Path) -> tuple[Entry, ...]:
    """The ledger of a database that is replaced, if it can still be read and its chain holds."""
    with suppress(FileMissing, LedgerBroken, sqlite3.Error):
        ledger = Ledger.open(place)
        try:
            ledger.verify()
            return tuple(ledger.entries())
        finally:
            ledger.store.close()
    return ()


def verify(state: ServerState, witness: WitnessStore, *, last: str | None = None) -> str:
    """Check the chain, and that the ledger is not older than its witness; returns the last hash."""
    digest = state.ledger.verify(last=last)
    check_witness(state, witness)
    return digest
