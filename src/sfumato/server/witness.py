"""Witness: a copy of the ledger's entries outside of the database and its backups.

A server appends new entries to its witness every second. A ledger that lacks an entry of its witness is an old copy:
the server does not start on it, and ends to answer if that happens while it runs. :func:`charge_again` enters what an
old copy lacks, so that no budget comes back. A witness that cannot be written stops questions until it can.

The witness belongs to the ledger and not to a path: it is found by the name in the ledger's first entry, which every
copy has. A ledger that had a witness is not served without it, unless the operator says why, which is entered.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from math import inf
from pathlib import Path
from typing import Protocol

from sfumato.dp.loss import PrivacyLoss
from sfumato.errors import BadParameter, LedgerRolledBack, SfumatoError, WriteFailed
from sfumato.ledger.accounts import Period, cap_of, charge_of, groups_of
from sfumato.ledger.ledger import Entry, Ledger
from sfumato.server.state import ServerState
from sfumato.server.witness_stores import FileWitness, PostgresWitness

_log = logging.getLogger("sfumato.server")
_EVENT = "witness"
_RESTORED = "restored "
"""Before the hash of the entry that a charge repeats."""
_LATE_SECONDS = 20.0
"""A witness that was not written for so long is not current: whatever it waits for, it does not see what is charged."""


class WitnessStore(Protocol):
    """Entries that were seen, in the order in which they were written. Nothing is ever removed."""

    @property
    def place(self) -> str:
        """The file or address, as operators write it."""
        ...

    def extend(self, following: Callable[[Entry | None], Iterable[Entry]]) -> None:
        """Add what follows the newest entry, durably; nobody else adds in between."""
        ...

    def entries(self) -> Iterator[Entry]:
        """All entries."""
        ...


def witness_store(state: ServerState, place: str | None) -> WitnessStore:
    """The witness at a place; by default in the user's state folder, which a backup of the server does not hold."""
    if place is None:
        home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        return FileWitness(home / "sfumato" / f"witness-{state.name.rpartition(' ')[2]}.jsonl")
    if place.startswith(("postgresql://", "postgres://")):
        return PostgresWitness(place, name=state.name)
    if "://" in place:
        raise BadParameter("a witness is a file or a postgresql:// address.")
    return FileWitness(Path(place))


class Witness:
    """Keeps a witness current, by a thread of its own."""

    def __init__(self, state: ServerState, store: WitnessStore, *, seconds: float = 1.0) -> None:
        self._state, self._store, self._seconds = state, store, seconds
        self._failure: SfumatoError | None = None
        self._current = -inf
        """When the witness had all entries the last time."""
        self._newest: Entry | None = None
        """The last entry that this process saw in the witness, or wrote to it."""
        self._last: Entry | None = None
        self._gone = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)

    def start(self, *, without: str | None = None, by: str = "") -> None:
        """Check the ledger against the witness, then keep the witness current.

        ``without`` is the reason to begin a new witness for a ledger that had one; it is entered in the ledger.
        """
        ledger = self._state.ledger

        def first(seen: Entry | None) -> Iterator[Entry]:
            """Nobody else adds in between: servers that start at once begin one witness."""
            if seen is not None and without:
                raise BadParameter("the witness is there, so the server does not start without it.")
            if seen is None:
                if was_witnessed(ledger.entries()) and not without:
                    raise missing_witness(self._store)
                self._enter(by=by or "server", why=without or "first start")
            return self._noted(seen)

        self._extend(first)
        self._thread.start()

    def stop(self) -> None:
        """Write a last time and end. A witness that does not answer is not waited for."""
        self._stop.set()
        self._thread.join(timeout=10)
        if not self._thread.is_alive():
            self._try()

    def check(self) -> None:
        """Refuse to go on while entries cannot be witnessed, or if the ledger has become an older one."""
        failure = self._failure or (_unwritten() if time.monotonic() - self._current > _LATE_SECONDS else None)
        if failure is not None:
            raise type(failure)(failure.message, fix=failure.fix)

    def write(self) -> None:
        """Append the entries that are new; refuses a ledger that does not contain what was seen before."""
        self._extend(self._next)

    def _extend(self, following: Callable[[Entry | None], Iterable[Entry]]) -> None:
        began = time.monotonic()
        self._store.extend(following)
        self._newest, self._gone, self._current = self._last, False, began

    def _next(self, seen: Entry | None) -> Iterator[Entry]:
        """What the witness lacks: everything, if it was taken away while this process ran, which is entered."""
        if seen is None and self._newest is not None:
            _check_holds(self._state.ledger, self._newest, self._store)
            if not self._gone:  # once, also where the disk takes nothing
                self._gone = True
                self._enter(by="server", why="the witness was gone while the server ran")
                _log.error("witness gone", extra={"facts": {}})
        return self._noted(seen)

    def _noted(self, seen: Entry | None) -> Iterator[Entry]:
        self._last = seen
        for entry in _following(self._state.ledger, seen, self._store):
            self._last = entry
            yield entry

    def _enter(self, *, by: str, why: str) -> None:
        about = {"event": _EVENT, "by": by, "place": self._store.place, "why": why}
        self._state.ledger.record_event(json.dumps(about, ensure_ascii=False))

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            self._try()

    def _try(self) -> None:
        before = self._failure
        try:
            self.write()
            self._failure = None
        except LedgerRolledBack as failure:
            self._failure = failure
        except Exception:  # the thread outlives whatever fails: a restarted database, a full disk
            self._failure = _unwritten()
        if (before is None) != (self._failure is None):
            (_log.info if self._failure is None else _log.error)(
                "witness works" if self._failure is None else "witness failed",
                extra={"facts": {} if self._failure is None else {"code": self._failure.code}},
            )


def _unwritten() -> WriteFailed:
    return WriteFailed(
        "The witness of the ledger cannot be written, so nothing is answered.",
        fix="The operator checks the witness; its place is in the settings.",
    )


def check_witness(state: ServerState, store: WitnessStore) -> None:
    """Refuse a ledger that is older than its witness, or whose witness is gone."""
    last = next(iter(deque(store.entries(), maxlen=1)), None)
    if last is None and was_witnessed(state.ledger.entries()):
        raise missing_witness(store)
    list(_following(state.ledger, last, store))


def _check_holds(ledger: Ledger, seen: Entry, store: WitnessStore) -> None:
    if not ledger.holds(seen.number, seen.hash):
        raise LedgerRolledBack(
            f"The ledger does not contain entry {seen.number}, which was written before: it is an old copy.",
            fix="The operator stops the server and runs `sfumato server restore`, which charges what is missing. "
            f"The witness is {store.place}.",
        )


def _following(ledger: Ledger, seen: Entry | None, store: WitnessStore) -> Iterator[Entry]:
    if seen is not None:
        _check_holds(ledger, seen, store)
    return ledger.entries_after(0 if seen is None else seen.number)


def was_witnessed(entries: Iterable[Entry]) -> bool:
    """Whether a ledger had a witness, as its entries say."""
    return any(entry.kind == "event" and entry.about.startswith(f'{{"event": "{_EVENT}"') for entry in entries)


def missing_witness(store: WitnessStore) -> LedgerRolledBack:
    """The refusal to go on where a ledger had a witness that is not there."""
    return LedgerRolledBack(
        "The ledger had a witness, which is not there: whether this is an old copy is not known.",
        fix=f"Bring the witness back to {store.place}, or set `witness` to where it is. If it is lost, use "
        "`--without-witness REASON`; the reason is entered in the ledger.",
    )


def charge_again(seen: Collection[Entry], ledger: Ledger, *, by: str) -> dict[tuple[str, str], PrivacyLoss]:
    """Enter the charges and caps that a ledger lacks of those that were seen; returns the charges by account.

    Each charge is entered by itself, to the same accounts and groups, so that composition counts it as before. Its
    query is not entered: the answer is not stored here, and asking again must be charged again. What an earlier call
    entered is not entered twice, also if it was interrupted.
    """
    there = set()
    for entry in ledger.entries():
        there |= {entry.hash, *_repeated(entry)}
    known = {entry.hash for entry in seen}
    charged: dict[tuple[str, str], PrivacyLoss] = {}
    for entry in seen:
        if entry.hash in there or _repeated(entry) & known:
            continue  # it is there, or it repeats a charge that is entered by itself
        there.add(entry.hash)
        if entry.kind == "spend":
            loss, account = entry.stated(charge_of(entry.totals).curve), (entry.dataset, entry.analyst)
            ledger.carry_over(
                loss, dataset=entry.dataset, analyst=entry.analyst, groups=groups_of(entry.totals), unit=entry.unit,
                about=f"{_RESTORED}{entry.hash}",
            )  # fmt: skip
            charged[account] = charged[account] + loss if account in charged else loss
        elif entry.kind in set(Period):
            ledger.set_cap(
                cap_of(entry.measure, entry.size, entry.delta, entry.totals), dataset=entry.dataset,
                analyst=entry.analyst, unit=entry.unit or None, by=by, why=entry.about, period=Period(entry.kind),
            )  # fmt: skip
        elif entry.kind == "moved":
            ledger.move(dataset=entry.dataset, to=entry.about)
    return charged


def _repeated(entry: Entry) -> set[str]:
    """The hash of the charge that an entry repeats after a restore."""
    _, restored, digest = entry.about.rpartition(_RESTORED)
    return {digest} if restored and entry.kind == "spend" else set()
