"""Log of questions: who asked what, at what cost, and what became of it. The only place that keeps SQL texts.

A row is written before a question is answered. An idempotency key belongs to one analyst and one question: a retry
finds the row of the first request. Rows are on disk with the next charge: what a power failure takes from the log, the
ledger still knows. Questions that were charged are kept. Of those that ended without a charge (refused, cancelled,
asked before), the newest of each analyst are kept: they are free, so their number has no other bound.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from sfumato.errors import Conflict, NoSuchItem
from sfumato.ledger.ledger import Transaction
from sfumato.server.state import ServerState, now

_MOST_FREE = 200
"""Questions without a charge that are kept of one analyst."""
_MOST_LISTED = 1_000_000
"""Characters of the questions in one list."""
_COLUMNS = "id, analyst, dataset, sql, options, state, error, entries, at, finished, request"


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question in the log."""

    id: str
    analyst: str
    dataset: str
    sql: str
    options: Mapping[str, Any]
    state: str
    """running, done, refused (nothing charged), failed (charged) or cancelled."""
    error: Mapping[str, Any] | None
    """The error as analysts saw it."""
    entries: tuple[int, ...] | None
    """Ledger entries that were charged; None until the run has ended."""
    at: str
    finished: str
    request: str

    @property
    def queries(self) -> tuple[str, ...] | None:
        """The queries of a workload, which are stored as a JSON list; None for one query."""
        return tuple(json.loads(self.sql)) if "workload" in self.options else None

    def to_dict(self) -> dict[str, Any]:
        """The question as its analyst sees it. Numbers of ledger entries are left out: they count what others ask."""
        return {"id": self.id, "analyst": self.analyst, "dataset": self.dataset, "sql": self.sql,
                "options": dict(self.options), "state": self.state, "error": self.error,
                "charges": len(self.entries or ()), "at": self.at, "finished": self.finished}  # fmt: skip

    def audited(self) -> dict[str, object]:
        """The question as owners and auditors see it, with the ledger entries that were charged."""
        return {**self.to_dict(), "entries": list(self.entries or ())}


class QuestionLog:
    """The questions of a server."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def begin(
        self, *, analyst: str, dataset: str, sql: str, options: Mapping[str, object], idempotency_key: str | None
    ) -> tuple[Question, bool]:
        """The row of a question, and whether it is new; the row of the first request for a known idempotency key."""
        body = json.dumps(options, sort_keys=True)
        request = hashlib.sha256(json.dumps([dataset, sql, body]).encode("utf-8", "surrogatepass")).hexdigest()
        identifier = secrets.token_hex(12)
        with self._state.store.write(durable=False) as transaction:
            if idempotency_key is not None:
                known = transaction.query(
                    f"SELECT {_COLUMNS} FROM sfumato_server_questions WHERE analyst = ? AND idempotency_key = ?",
                    analyst,
                    idempotency_key,
                )
                if known:
                    question = _question(known[0])
                    if question.request != request:
                        raise Conflict(
                            "This idempotency key was used for another question.",
                            fix="Use a new key for each.",
                        )
                    return question, False
            transaction.query(
                "INSERT INTO sfumato_server_questions "
                "(id, analyst, dataset, sql, options, request, idempotency_key, state, at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, 'running', ?)",
                identifier, analyst, dataset, _storable(sql), body, request, idempotency_key, now(),
            )  # fmt: skip
        return self.get(identifier), True

    def finish(
        self, identifier: str, state: str, *, error: Mapping[str, object] | None = None, entries: Sequence[int] = ()
    ) -> bool:
        """Note what became of a question and what was charged. False if it was cancelled, which it stays."""
        with self._state.store.write(durable=False) as transaction:
            rows = transaction.query(
                "SELECT state, entries, analyst FROM sfumato_server_questions WHERE id = ?", identifier
            )
            if not rows:  # it ended before without a charge, and was too old to be kept
                return True
            before, known, analyst = rows[0]
            charged = json.dumps(sorted({*json.loads(known or "[]"), *entries}))
            transaction.query("UPDATE sfumato_server_questions SET entries = ? WHERE id = ?", charged, identifier)
            if before != "cancelled":
                transaction.query(
                    "UPDATE sfumato_server_questions SET state = ?, error = ?, finished = ? WHERE id = ?",
                    state, "" if error is None else json.dumps(error), now(), identifier,
                )  # fmt: skip
            if charged == "[]":
                _forget_free(transaction, analyst)
        return bool(before != "cancelled")

    def cancel(self, identifier: str) -> None:
        """Note that a running question is cancelled; one that has ended stays as it is."""
        with self._state.store.write() as transaction:
            transaction.query(
                "UPDATE sfumato_server_questions SET state = 'cancelled', finished = ? "
                "WHERE id = ? AND state = 'running'",
                now(),
                identifier,
            )

    def get(self, identifier: str) -> Question:
        """A question by its identifier."""
        with self._state.store.read() as transaction:
            rows = transaction.query(f"SELECT {_COLUMNS} FROM sfumato_server_questions WHERE id = ?", identifier)
        if not rows:
            raise NoSuchItem("There is no such question.")
        return _question(rows[0])

    def latest(self, *, analyst: str | None = None, most: int = 100) -> tuple[Question, ...]:
        """The newest questions, of one analyst or of all; fewer where their texts are long."""
        where, values = ("", ()) if analyst is None else ("WHERE analyst = ? ", (analyst,))
        newest = f"FROM sfumato_server_questions {where}ORDER BY at DESC, id LIMIT ?"
        with self._state.store.read() as transaction:
            lengths = transaction.query(f"SELECT length(sql) + length(error) {newest}", *values, most)
            fitting = sum(total <= _MOST_LISTED for total in accumulate(length for (length,) in lengths))
            rows = transaction.query(f"SELECT {_COLUMNS} {newest}", *values, fitting)
        return tuple(_question(row) for row in rows)


def _forget_free(transaction: Transaction, analyst: str) -> None:
    ended = "WHERE analyst = ? AND state <> 'running' AND entries = '[]'"
    transaction.query(
        f"DELETE FROM sfumato_server_questions {ended} AND at < (SELECT min(at) FROM "
        f"(SELECT at FROM sfumato_server_questions {ended} ORDER BY at DESC LIMIT ?) newest)",
        analyst, analyst, _MOST_FREE,
    )  # fmt: skip


def _storable(sql: str) -> str:
    """A text that both databases can store."""
    return sql.replace("\x00", "\\0").encode("utf-8", "replace").decode()


def _question(row: tuple[Any, ...]) -> Question:
    identifier, analyst, dataset, sql, options, state, error, entries, at, finished, request = row
    return Question(
        id=identifier, analyst=analyst, dataset=dataset, sql=sql, options=json.loads(options), state=state,
        error=json.loads(error) if error else None, entries=tuple(json.loads(entries)) if entries else None, at=at,
        finished=finished, request=request,
    )  # fmt: skip
