"""The auditor's memory on disk: every decision is written before its answer is given, in the ledger's own database.

A decision is made and written inside one exclusive transaction. A process that is killed before the commit has answered
nothing and left nothing; one that is killed after it finds its decision again. Decisions depend on the queries, the
data and the rules alone (searches are bounded by counted work, not by the clock), so a restarted auditor goes on
exactly as one that was never stopped.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from sfumato.dp.ledger import Store, Transaction
from sfumato.errors import LedgerBroken
from sfumato.query.auditing.auditor import Auditor, Decision
from sfumato.query.auditing.rules import AuditRules

__all__ = ["DurableAuditor"]

_START = "0" * 64
_ALWAYS = {"k", "counterfeits", "simulatable", "allow", "effort"}


class DurableAuditor:
    """An auditor whose decisions outlive the process; several processes may share one database.

    ``dataset`` names the table in the database. The decisions of another table or under other rules are not mixed: the
    table's fingerprint and the rules are part of each entry, and an entry that does not fit is an error.
    """

    def __init__(self, auditor: Auditor, store: Store, *, dataset: str) -> None:
        self._auditor, self._store, self._dataset = auditor, store, dataset
        seen = hashlib.sha256()
        for name in auditor.frame.columns:
            seen.update(json.dumps([name, *map(str, auditor.frame.get_column(name).to_list())]).encode())
        seen.update(auditor.beside.encode())
        self._rules = json.dumps(
            {**_recorded(auditor.rules), "secrets": auditor.secrets, "data": seen.hexdigest()}, sort_keys=True
        )
        self._stopped = False
        self._last = 0
        self._previous = _START
        with store.write() as transaction:
            self._catch_up(transaction)

    def ask(self, query: str) -> Decision:
        """Decide, write, commit; only then is there an answer."""
        if self._stopped:
            raise LedgerBroken(
                "An earlier decision of this process was interrupted before it was written.",
                fix="Open the audit again; it goes on from what is on disk.",
            )
        # Until the commit the auditor in memory may be ahead of the disk; if it fails, this auditor must not go on.
        self._stopped = True
        with self._store.write() as transaction:
            self._catch_up(transaction)
            made = self._auditor.ask(query)
            number = transaction.query("SELECT coalesce(max(number), 0) FROM sfumato_audit")[0][0] + 1
            body = [number, self._dataset, self._rules, query, made.verdict, json.dumps(made.fakes), self._previous]
            digest = _digest(body)
            transaction.query("INSERT INTO sfumato_audit VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *body, digest)
        self._last, self._previous = number, digest
        self._stopped = False
        return made

    def _catch_up(self, transaction: Transaction) -> None:
        """Take in what other processes, or this one before it died, have decided."""
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
            if dataset == self._dataset:
                if rules != self._rules:
                    raise LedgerBroken(
                        f"Decision {number} was made about other data, or by other rules.",
                        fix="Audit a changed table under a new name; earlier answers about the old one still count.",
                    )
                again = self._auditor.ask(query)
                if again.verdict != verdict or json.dumps(again.fakes) != fakes:
                    raise LedgerBroken(f"Decision {number} cannot be repeated: software or data have changed.")
            self._last, self._previous = number, digest


def _digest(body: list[Any]) -> str:
    return hashlib.sha256(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


def _recorded(rules: AuditRules) -> dict[str, Any]:
    """The rules as stored with each decision: the five of version 0.1 always, later ones where they are not default."""
    return {**rules.model_dump(exclude_defaults=True), **rules.model_dump(include=_ALWAYS)}
