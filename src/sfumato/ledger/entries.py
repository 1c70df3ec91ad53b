"""Entries of the ledger: one append-only hash chain of charges, caps, events and records of what left.

An entry holds the SHA-256 of itself and its predecessor. The chain reveals tampering unless the whole file is
rewritten: restrict write access to it, or keep the last hash elsewhere (``sfumato ledger verify`` prints it).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sfumato.dp.loss import PrivacyLoss
from sfumato.ledger.accounts import Transaction, amount_of
from sfumato.ledger.exact_budget import Amount, loss_of

__all__ = ["SELECT", "START", "Entry", "append", "entry_of"]

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
    """Whose privacy a charge is about: ``row``, ``edge``, ``node``, or columns that identify a person."""
    measure: str
    size: str
    """An exact rational."""
    delta: str
    bounds: str
    """How much of one person the charged run used, and who says so; empty where nothing had to be bounded."""
    about: str
    """The query's fingerprint, after ``repeat:`` if its answer had been released before; who set the cap and why; or
    the record of what left (:mod:`sfumato.ledger.register`), as JSON."""
    totals: str
    """Running totals after this entry of the data set, the analyst on it, the analyst, and groups, as JSON: size, delta
    and, where curves are kept, the three numbers of the curve; then the curve of the charge itself."""
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
        return loss_of(amount_of(self.measure, self.size, self.delta))

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _COLUMNS}


_COLUMNS = (
    "number", "at", "kind", "dataset", "analyst", "unit", "measure", "size", "delta", "bounds", "about", "totals",
    "previous", "hash",
)  # fmt: skip
SELECT = f"SELECT {', '.join(_COLUMNS)} FROM sfumato_ledger"


def append(
    transaction: Transaction, kind: str, dataset: str, analyst: str, unit: str, amount: Amount, about: str, totals: str,
    *, bounds: str = "",
) -> Entry:  # fmt: skip
    """Append an entry to the chain, within the transaction that checked it."""
    last = transaction.query("SELECT number, hash, at FROM sfumato_ledger ORDER BY number DESC LIMIT 1")
    number, previous, earliest = (last[0][0] + 1, *last[0][1:]) if last else (1, START, "")
    at = max(datetime.now(UTC).isoformat(timespec="milliseconds"), earliest)  # a clock that is set back changes nothing
    draft = Entry(
        number=number, at=at, kind=kind, dataset=dataset, analyst=analyst, unit=unit, measure=str(amount.measure),
        size=str(amount.size), delta=str(amount.delta), bounds=bounds, about=about, totals=totals,
        previous=previous, hash="",
    )  # fmt: skip
    entry = replace(draft, hash=draft.digest())
    marks = ", ".join("?" * len(_COLUMNS))
    values = [entry.to_dict()[name] for name in _COLUMNS]
    transaction.query(f"INSERT INTO sfumato_ledger ({', '.join(_COLUMNS)}) VALUES ({marks})", *values)
    return entry


def entry_of(row: tuple[Any, ...]) -> Entry:
    return Entry(**dict(zip(_COLUMNS, row, strict=True)))
