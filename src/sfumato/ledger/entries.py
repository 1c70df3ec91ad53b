"""Entries of the ledger: one append-only hash chain of charges, caps, events and records of what left.

An entry holds the SHA-256 of itself and its predecessor. The chain reveals tampering unless the whole file is
rewritten: restrict write access to it, or keep the last hash elsewhere (``sfumato ledger verify`` prints it).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from sfumato.dp.curve import Curve
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.errors import AccountMoved
from sfumato.ledger.stores.store import Transaction

START = "0" * 64
"""The hash before the first entry."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of the ledger."""

    number: int
    at: str
    kind: str
    """"spend", "release" (what left), "cap" (lifetime), "month", "year", "question" (other caps), "moved", "event"."""
    dataset: str
    """Empty for an analyst's cap over all data sets."""
    analyst: str
    """Empty for a data set's own cap."""
    unit: str
    """Whose privacy a charge is about: ``row``, ``edge``, ``node``, or columns that identify a person. Of a cap, the
    unit that has this budget of its own; empty for the unit that the data set is charged for."""
    measure: str
    size: str
    """An exact rational."""
    delta: str
    bounds: str
    """How much of one person the charged run used, and who says so; empty where nothing had to be bounded."""
    about: str
    """The query's fingerprint; who set the cap and why; or the record of what left (:mod:`sfumato.ledger.register`), as
    JSON."""
    totals: str
    """Running totals after this entry of the data set, the analyst on it, the analyst, and groups, as JSON: epsilon,
    delta, and the three numbers of the curve; then those of the charge itself, the SHA-256 of the plan that it paid
    for, where a certificate states that plan, and the part that it is about. Of a cap, how it composes."""
    previous: str
    hash: str

    def digest(self) -> str:
        """The hash of this entry's contents and its predecessor."""
        body = [
            self.number, self.at, self.kind, self.dataset, self.analyst, self.unit, self.measure, self.size,
            self.delta, self.bounds, self.about, self.totals, self.previous,
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()

    def cost(self) -> PrivacyLoss:
        """The charge of this entry."""
        return self.stated(None)

    def stated(self, curve: Curve | None) -> PrivacyLoss:
        """The charge of this entry with a curve."""
        size, delta = Fraction(self.size), min(Fraction(self.delta), Fraction(1))
        return PrivacyLoss(measure=PrivacyMeasure(self.measure), size=size, delta=delta, curve=curve)

    def to_dict(self) -> dict[str, int | str]:
        return {name: getattr(self, name) for name in _COLUMNS}


_COLUMNS = (
    "number", "at", "kind", "dataset", "analyst", "unit", "measure", "size", "delta", "bounds", "about", "totals",
    "previous", "hash",
)  # fmt: skip
SELECT = f"SELECT {', '.join(_COLUMNS)} FROM sfumato_ledger"


def append(
    transaction: Transaction, kind: str, dataset: str, analyst: str, unit: str, loss: PrivacyLoss, about: str,
    totals: str, *, bounds: str = "",
) -> Entry:  # fmt: skip
    """Append an entry to the chain, within the transaction that checked it."""
    last = transaction.query("SELECT number, hash, at FROM sfumato_ledger ORDER BY number DESC LIMIT 1")
    number, previous, earliest = (last[0][0] + 1, *last[0][1:]) if last else (1, START, "")
    at = max(datetime.now(UTC).isoformat(timespec="milliseconds"), earliest)  # a clock that is set back changes nothing
    draft = Entry(
        number=number, at=at, kind=kind, dataset=dataset, analyst=analyst, unit=unit, measure=str(loss.measure),
        size=str(loss.size), delta=str(loss.delta), bounds=bounds, about=about, totals=totals,
        previous=previous, hash="",
    )  # fmt: skip
    entry = replace(draft, hash=draft.digest())
    marks = ", ".join("?" * len(_COLUMNS))
    values = [entry.to_dict()[name] for name in _COLUMNS]
    transaction.query(f"INSERT INTO sfumato_ledger ({', '.join(_COLUMNS)}) VALUES ({marks})", *values)
    return entry


def entry_of(row: tuple[Any, ...]) -> Entry:
    return Entry(**dict(zip(_COLUMNS, row, strict=True)))


def index_names(transaction: Transaction, entry: Entry, names: Sequence[str]) -> None:
    """Note the groups that an entry was charged to, and the part that it is about."""
    for name in names:
        transaction.query("INSERT INTO sfumato_ledger_index (name, number) VALUES (?, ?)", name, entry.number)


def moved_entry(transaction: Transaction, dataset: str) -> Entry | None:
    """The entry that closed the account of a data set."""
    rows = transaction.query(f"{SELECT} WHERE kind = 'moved' AND dataset = ?", dataset)
    return entry_of(rows[0]) if rows else None


def refuse_moved(transaction: Transaction, dataset: str) -> None:
    """Refuse a data set whose account has moved to another ledger."""
    closed = moved_entry(transaction, dataset)
    if closed is not None:
        raise AccountMoved(
            f"The budget of `{dataset}` has moved to {closed.about}, so it cannot be charged here.",
            fix="Ask there. Two accounts of the same data would each allow the whole budget.",
        )


def paid_entry(transaction: Transaction, dataset: str, analyst: str, query: str) -> int | None:
    """Number of the newest charge to an analyst for a query, except for runs that failed."""
    rows = transaction.query(
        "SELECT number FROM sfumato_ledger WHERE about = ? AND analyst = ? AND dataset = ? AND kind = 'spend' "
        "AND number NOT IN (SELECT number FROM sfumato_ledger_failures) ORDER BY number DESC LIMIT 1",
        query,
        analyst,
        dataset,
    )
    return int(rows[0][0]) if rows else None
