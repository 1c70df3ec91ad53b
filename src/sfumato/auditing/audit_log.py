"""Audit log: every decision is stored in the ledger's database before its answer is given.

A decision is made and stored inside one exclusive transaction. A process that is killed before the commit has answered
nothing and stored nothing; after the commit, a new process finds the decision. Decisions depend on the queries, the
data and the rules only (searches are bounded by deterministic work, not by the clock), so a restarted auditor continues
exactly where it stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.auditing.auditor import Auditor, Decision
from sfumato.auditing.known_values import known_rows
from sfumato.auditing.register import PolicyEntry, register_table
from sfumato.auditing.row_order import canonical_order
from sfumato.auditing.rules import AuditRules
from sfumato.errors import LedgerBroken
from sfumato.ledger.ledger import Store, Transaction

_START = "0" * 64


class DurableAuditor:
    """An auditor with stored decisions; several processes may share one database.

    ``entry`` is the table's entry in the register (:mod:`sfumato.auditing.register`): decisions about a table bind
    every later audit of it, whatever it is called and however its rows are ordered. Without it the table is entered
    under the name ``dataset``.
    """

    def __init__(
        self, auditor: Auditor, store: Store, *, dataset: str, place: object = None, entry: PolicyEntry | None = None
    ) -> None:
        self._auditor, self._store, self._dataset = auditor, store, dataset
        if entry is None:
            policy = {"audit": recorded_rules(auditor.rules, auditor.frame, auditor.secrets), **auditor.declarations()}
            entry = register_table(
                store, dataset=dataset, place=place, policy=json.dumps(policy, sort_keys=True), frame=auditor.frame,
                sensitive=auditor.secrets,
            )  # fmt: skip
        self._entry = entry
        self._rules = json.dumps({"table": entry.number})
        auditor.seed = entry.secret
        self._stopped = False
        self._last = 0
        self._previous = _START
        with store.write() as transaction:
            self._catch_up(transaction)

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
            self._entry.claim_in(transaction)
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
            number, _, rules, query, verdict, fakes, previous = body
            if previous != self._previous or _digest(body) != digest:
                raise LedgerBroken(
                    f"Decision {number} of the audit was changed or does not follow from the one before it."
                )
            if json.loads(rules)["table"] == self._entry.number:
                again = self._auditor.repeat(query)
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


def _digest(body: list[object]) -> str:
    return hashlib.sha256(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


def recorded_rules(rules: AuditRules, frame: pl.DataFrame, secrets: Sequence[str]) -> dict[str, object]:
    """The rules as they are entered in the register.

    Of a file of known values it is entered which people it names, so that the file may be moved and not changed.
    """
    recorded = rules.model_dump(mode="json")
    if isinstance(rules.known, Path):
        ordered = frame[canonical_order(frame)]
        people = sorted((name, rows.tolist()) for name, rows in known_rows(rules.known, ordered, secrets).items())
        recorded["known"] = hashlib.sha256(json.dumps(people).encode()).hexdigest()
    return recorded
