"""Audit log: every decision is stored in the ledger's database before its answer is given.

A decision is made and stored inside one exclusive transaction. A process that is killed before the commit has answered
nothing and stored nothing; after the commit, a new process finds the decision. Decisions depend on the queries, the
data and the rules only (searches are bounded by deterministic work, not by the clock), so a restarted auditor continues
exactly where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from sfumato.dp.ledger import Store, Transaction
from sfumato.errors import LedgerBroken
from sfumato.query.auditing.auditor import Auditor, Decision

__all__ = ["DurableAuditor", "stored_decisions"]

_START = "0" * 64
_ALWAYS = {"k", "counterfeits", "simulatable", "effort"}


class DurableAuditor:
    """An auditor with stored decisions; several processes may share one database.

    ``dataset`` names the table in the database. Each entry contains the table's fingerprint and the rules. Entries with
    this name or with this table bind the audit, so another name for the same table forgets nothing. Such an entry with
    another table or with other rules is an error.
    """

    def __init__(self, auditor: Auditor, store: Store, *, dataset: str) -> None:
        self._auditor, self._store, self._dataset = auditor, store, dataset
        fingerprint = hashlib.sha256()
        for name in auditor.frame.columns:
            fingerprint.update(json.dumps([name, *map(str, auditor.frame.get_column(name).to_list())]).encode())
        fingerprint.update(auditor.beside.encode())
        self._data = fingerprint.hexdigest()
        self._rules = json.dumps({**_recorded(auditor), "secrets": auditor.secrets, "data": self._data}, sort_keys=True)
        auditor.seed = self._secret()
        self._stopped = False
        self._last = 0
        self._previous = _START
        with store.write() as transaction:
            self._catch_up(transaction)

    def _secret(self) -> bytes:
        """The secret of this data set's counterfeits: drawn at the first use, then stored."""
        with self._store.write() as transaction:
            transaction.query(
                "CREATE TABLE IF NOT EXISTS sfumato_audit_secrets (dataset TEXT PRIMARY KEY, secret TEXT NOT NULL)"
            )
            stored = transaction.query("SELECT secret FROM sfumato_audit_secrets WHERE dataset = ?", self._dataset)
            if not stored:
                stored = [(os.urandom(32).hex(),)]
                transaction.query("INSERT INTO sfumato_audit_secrets VALUES (?, ?)", self._dataset, stored[0][0])
        return bytes.fromhex(stored[0][0])

    def ask(self, query: str) -> Decision:
        """Decide a query and store the decision before returning it."""
        if self._stopped:
            raise LedgerBroken(
                "An earlier decision of this process was interrupted before it was written.",
                fix="Open the audit again; it goes on from what is on disk.",
            )
        # Until the commit the auditor in memory may be ahead of the database; if the commit fails, do not use it again.
        self._stopped = True
        with self._store.write() as transaction:
            self._catch_up(transaction)
            decision = self._auditor.ask(query)
            number = transaction.query("SELECT coalesce(max(number), 0) FROM sfumato_audit")[0][0] + 1
            body = [
                number,
                self._dataset,
                self._rules,
                query,
                decision.verdict,
                json.dumps(decision.fakes),
                self._previous,
            ]
            digest = _digest(body)
            transaction.query("INSERT INTO sfumato_audit VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *body, digest)
        self._last, self._previous = number, digest
        self._stopped = False
        return decision

    def _catch_up(self, transaction: Transaction) -> None:
        """Replay the stored decisions of other processes and of earlier runs."""
        rows: list[tuple[Any, ...]] = transaction.query(
            "SELECT number, dataset, rules, question, verdict, fakes, previous, hash FROM sfumato_audit "
            "WHERE number > ? ORDER BY number",
            self._last,
        )
        for *body, digest in rows:
            number, dataset, rules, query, verdict, fakes, previous = body
            if previous != self._previous or _digest(body) != digest:
                raise LedgerBroken(
                    f"Decision {number} of the audit was changed or does not follow from the one before it."
                )
            if dataset == self._dataset or json.loads(rules)["data"] == self._data:
                if rules != self._rules:
                    raise LedgerBroken(
                        f"Decision {number} was made about other data, or by other rules.",
                        fix="Audit a changed table under a new name; earlier answers about the old one still count.",
                    )
                again = self._auditor.ask(query)
                if again.verdict != verdict or json.dumps(again.fakes) != fakes:
                    raise LedgerBroken(f"Decision {number} cannot be repeated: software or data have changed.")
            self._last, self._previous = number, digest


def stored_decisions(store: Store, *, dataset: str) -> tuple[tuple[int, str, str], ...]:
    """Number, query and verdict of each stored decision about a data set. For the owner only."""
    with store.read() as transaction:
        rows = transaction.query(
            "SELECT number, question, verdict FROM sfumato_audit WHERE dataset = ? ORDER BY number", dataset
        )
    return tuple((int(number), str(query), str(verdict)) for number, query, verdict in rows)


def _digest(body: list[Any]) -> str:
    return hashlib.sha256(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


def _recorded(auditor: Auditor) -> dict[str, Any]:
    """The rules stored with each decision: four always, the others where they differ from the default.

    Of a file of known values it is stored which people it names, so that the file may be moved and not changed.
    """
    rules = auditor.rules
    recorded = {**rules.model_dump(exclude_defaults=True), **rules.model_dump(include=_ALWAYS)}
    if isinstance(rules.known, Path):
        people = sorted((name, rows.tolist()) for name, rows in auditor.known.items())
        recorded["known"] = hashlib.sha256(json.dumps(people).encode()).hexdigest()
    return recorded
