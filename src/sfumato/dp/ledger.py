"""Privacy budget ledger: append-only, hash-chained, durable before anything is computed.

A cost is written *before* the data is read and is never refunded, so a crash, a timeout or an error costs budget and
never privacy. Three caps hold at once: that of the data set (all analysts together, so that colluding analysts gain
nothing), that of the analyst on the data set, and that of the analyst over all data sets. A data set without a cap of
its own cannot be charged.

The entries form one hash chain: each has the SHA-256 of itself and its predecessor, and the running totals of its three
accounts, so that a charge reads three rows whatever the length of the ledger. The chain reveals tampering unless the
whole file is rewritten: restrict write access to it, or keep the last hash elsewhere (``sfumato ledger verify`` prints
it).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from sfumato.dp.fixed_point_budget import Grains, cap_in_grains, cost_in_grains, loss_of
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.dp.receipt import Receipt, issue
from sfumato.errors import BadParameter, LedgerBroken, OverBudget, UnknownBudget

__all__ = ["Balance", "Entry", "Ledger", "Store", "Transaction"]

_START = "0" * 64


class Transaction(Protocol):
    """A transaction of a store."""

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement, with ``?`` for each value, and return its rows."""
        ...


class Store(Protocol):
    """A database with the tables of the ledger."""

    def write(self) -> AbstractContextManager[Transaction]:
        """An exclusive, atomic and durable write transaction."""
        ...

    def read(self) -> AbstractContextManager[Transaction]:
        """A consistent read transaction."""
        ...


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of the ledger."""

    number: int
    at: str
    kind: str
    """"cap" or "spend"."""
    dataset: str
    """Empty for an analyst's cap over all data sets."""
    analyst: str
    """Empty for a data set's own cap."""
    measure: str
    size: int
    delta: int
    about: str
    """The query's fingerprint, or who set the cap."""
    totals: str
    """Running totals after this entry of the data set, the analyst on it, and the analyst, as JSON."""
    previous: str
    hash: str

    def digest(self) -> str:
        """The hash of this entry's contents and its predecessor."""
        body = [
            self.number, self.at, self.kind, self.dataset, self.analyst, self.measure, self.size, self.delta,
            self.about, self.totals, self.previous,
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _COLUMNS}


_COLUMNS = (
    "number", "at", "kind", "dataset", "analyst", "measure", "size", "delta", "about", "totals", "previous", "hash",
)  # fmt: skip
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM sfumato_ledger"


@dataclass(frozen=True, kw_only=True)
class Balance:
    """Cap, spent and remaining loss of one account; ``cap`` and ``left`` are None if no cap was set."""

    cap: PrivacyLoss | None
    spent: PrivacyLoss
    left: PrivacyLoss | None


class Ledger:
    """Budgets of data sets and analysts. ``Ledger.open(path_or_url)`` opens or creates one."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def store(self) -> Store:
        """The database, for other records that must be as durable as the ledger."""
        return self._store

    @classmethod
    def open(cls, where: str | Path) -> Ledger:
        """A SQLite file, ``:memory:`` for tests and demos, or a ``postgresql://`` address."""
        if str(where).startswith(("postgresql://", "postgres://")):
            from sfumato.dp.stores.postgres import PostgresStore

            return cls(PostgresStore(str(where)))
        from sfumato.dp.stores.sqlite import SqliteStore

        return cls(SqliteStore(where))

    def set_cap(self, cap: PrivacyLoss, *, dataset: str = "", analyst: str = "", by: str = "owner") -> Entry:
        """Set the cap of a data set, of an analyst on a data set, or of an analyst. Earlier charges still count."""
        if not dataset and not analyst:
            raise BadParameter("a cap needs a data set, an analyst, or both.")
        grains = cap_in_grains(cap)
        with self._store.write() as transaction:
            if dataset and analyst:
                own = _cap(transaction, dataset, "")
                if own is not None and own.measure is not grains.measure:
                    raise BadParameter(
                        f"the data set's budget is in {own.measure}; use the same measure for the analyst."
                    )
            totals = [_total(transaction, dataset, analyst, which, grains.measure) for which in range(3)]
            _same_measure(totals, grains.measure)
            return _append(transaction, "cap", dataset, analyst, grains, by, totals)

    def reserve(self, cost: PrivacyLoss, *, dataset: str, analyst: str, query: str, text: str = "") -> Receipt:
        """Charge ``cost`` to all three accounts or to none, and return a receipt once the charge is on disk.

        ``query`` is the query's fingerprint, ``text`` what the analyst wrote; the owner can read it later.
        """
        if not dataset or not analyst:
            raise BadParameter("a charge needs a data set and an analyst.")
        with self._store.write() as transaction:
            own = _cap(transaction, dataset, "")
            if own is None:
                raise UnknownBudget(
                    f"No budget is set for data set `{dataset}`.", fix="Its owner sets one with `sfumato ledger cap`."
                )
            charge = cost_in_grains(cost, own.measure)
            totals = []
            for which, cap in enumerate((own, _cap(transaction, dataset, analyst), _cap(transaction, "", analyst))):
                before = _total(transaction, dataset, analyst, which, charge.measure)
                after = before + charge
                if cap is not None and not after.fits(cap):
                    raise _over(cost, before, cap, which)
                totals.append(after)
            entry = _append(transaction, "spend", dataset, analyst, charge, query, totals)
            if text:
                insert = "INSERT INTO sfumato_queries (number, text) VALUES (?, ?)"
                transaction.query(insert, entry.number, text.replace("\x00", "\\0"))
        return issue(cost, entry=entry.number)

    def balance(self, *, dataset: str = "", analyst: str = "") -> Balance:
        """Cap, spent and remaining loss of one account. A query must fit all three accounts that it is charged to."""
        with self._store.read() as transaction:
            cap = _cap(transaction, dataset, analyst)
            measure = cap.measure if cap is not None else _measure(transaction, dataset, analyst)
            which = 0 if not analyst else 1 if dataset else 2
            spent = _total(transaction, dataset, analyst, which, measure)
        if cap is None:
            return Balance(cap=None, spent=loss_of(spent), left=None)
        left = Grains(measure=measure, size=max(0, cap.size - spent.size), delta=max(0, cap.delta - spent.delta))
        return Balance(cap=loss_of(cap), spent=loss_of(spent), left=loss_of(left))

    def remember(self, key: str, body: str) -> str:
        """Store a noisy answer under a key and return it; if the key has an answer already, return that one."""
        with self._store.write() as transaction:
            rows = transaction.query("SELECT body FROM sfumato_answers WHERE key = ?", key)
            if rows:
                return str(rows[0][0])
            transaction.query("INSERT INTO sfumato_answers (key, body) VALUES (?, ?)", key, body)
        return body

    def recall(self, key: str) -> str | None:
        """The noisy answer stored under a key, or None."""
        with self._store.read() as transaction:
            rows = transaction.query("SELECT body FROM sfumato_answers WHERE key = ?", key)
        return str(rows[0][0]) if rows else None

    def entries(self) -> Iterator[Entry]:
        """All entries in order."""
        with self._store.read() as transaction:
            rows = transaction.query(f"{_SELECT} ORDER BY number")
        return (_entry(row) for row in rows)

    def queries(self) -> dict[int, str]:
        """What analysts asked, by the number of the entry that was charged for it. For the owner of the data only."""
        with self._store.read() as transaction:
            return dict(transaction.query("SELECT number, text FROM sfumato_queries ORDER BY number"))

    def verify(self, *, last: str | None = None) -> str:
        """Check every hash, number and running total, and return the last hash. ``last`` is a hash returned earlier."""
        previous, seen = _START, last is None or last == _START
        totals: dict[tuple[int, str, str], Grains] = {}
        for number, entry in enumerate(self.entries(), start=1):
            if entry.number != number or entry.previous != previous or entry.digest() != entry.hash:
                raise LedgerBroken(
                    f"Entry {entry.number} does not follow from the one before it.",
                    fix="Compare with an export or a backup. No later entry can be trusted.",
                    number=entry.number,
                )
            if entry.kind == "spend":
                charge = Grains(measure=PrivacyMeasure(entry.measure), size=entry.size, delta=entry.delta)
                expected = []
                for which, key in enumerate(_accounts(entry.dataset, entry.analyst)):
                    before = totals.get((which, *key), Grains(measure=charge.measure, size=0, delta=0))
                    totals[(which, *key)] = before + charge
                    expected.append(before + charge)
                if _totals_json(expected) != entry.totals:
                    raise LedgerBroken(f"Entry {entry.number} has a wrong running total.", number=entry.number)
            previous = entry.hash
            seen = seen or previous == last
        if not seen:
            raise LedgerBroken("The earlier hash is not in the chain: entries were removed or replaced.")
        return previous


def _accounts(dataset: str, analyst: str) -> tuple[tuple[str, str], ...]:
    return (dataset, ""), (dataset, analyst), ("", analyst)


def _totals_json(totals: list[Grains]) -> str:
    return json.dumps([[total.size, total.delta] for total in totals], separators=(",", ":"))


def _cap(transaction: Transaction, dataset: str, analyst: str) -> Grains | None:
    rows = transaction.query(
        "SELECT measure, size, delta FROM sfumato_ledger WHERE kind = 'cap' AND dataset = ? AND analyst = ? "
        "ORDER BY number DESC LIMIT 1",
        dataset,
        analyst,
    )
    return Grains(measure=PrivacyMeasure(rows[0][0]), size=rows[0][1], delta=rows[0][2]) if rows else None


def _last_spend(transaction: Transaction, dataset: str, analyst: str, which: int) -> list[tuple[Any, ...]]:
    where = ("dataset = ?", "dataset = ? AND analyst = ?", "analyst = ?")[which]
    values = ((dataset,), (dataset, analyst), (analyst,))[which]
    return transaction.query(
        f"SELECT measure, totals FROM sfumato_ledger WHERE kind = 'spend' AND {where} ORDER BY number DESC LIMIT 1",
        *values,
    )


def _total(transaction: Transaction, dataset: str, analyst: str, which: int, measure: PrivacyMeasure) -> Grains:
    rows = _last_spend(transaction, dataset, analyst, which)
    if not rows:
        return Grains(measure=measure, size=0, delta=0)
    size, delta = json.loads(rows[0][1])[which]
    if PrivacyMeasure(rows[0][0]) is not measure:
        raise BadParameter(f"this account is charged in {rows[0][0]} and cannot change to {measure}.")
    return Grains(measure=measure, size=size, delta=delta)


def _measure(transaction: Transaction, dataset: str, analyst: str) -> PrivacyMeasure:
    rows = _last_spend(transaction, dataset, analyst, 0 if not analyst else 1 if dataset else 2)
    return PrivacyMeasure(rows[0][0]) if rows else PrivacyMeasure.EPSILON


def _same_measure(totals: list[Grains], measure: PrivacyMeasure) -> None:
    if any(total.measure is not measure for total in totals):
        raise BadParameter("the measure of an account cannot be changed.")


def _append(
    transaction: Transaction, kind: str, dataset: str, analyst: str, grains: Grains, about: str, totals: list[Grains]
) -> Entry:
    last = transaction.query("SELECT number, hash FROM sfumato_ledger ORDER BY number DESC LIMIT 1")
    number, previous = (last[0][0] + 1, last[0][1]) if last else (1, _START)
    draft = Entry(
        number=number, at=datetime.now(UTC).isoformat(timespec="milliseconds"), kind=kind, dataset=dataset,
        analyst=analyst, measure=str(grains.measure), size=grains.size, delta=grains.delta, about=about,
        totals=_totals_json(totals), previous=previous, hash="",
    )  # fmt: skip
    entry = replace(draft, hash=draft.digest())
    marks = ", ".join("?" * len(_COLUMNS))
    values = [entry.to_dict()[name] for name in _COLUMNS]
    transaction.query(f"INSERT INTO sfumato_ledger ({', '.join(_COLUMNS)}) VALUES ({marks})", *values)
    return entry


def _entry(row: tuple[Any, ...]) -> Entry:
    return Entry(**dict(zip(_COLUMNS, row, strict=True)))


def _over(cost: PrivacyLoss, spent: Grains, cap: Grains, which: int) -> OverBudget:
    account = ("the data set's budget", "your budget on this data set", "your budget over all data sets")[which]
    size, delta = max(0, cap.size - spent.size), max(0, cap.delta - spent.delta)
    left = loss_of(Grains(measure=cap.measure, size=size, delta=delta))
    return OverBudget(
        f"This costs {cost}, and {account} has {left} left of {loss_of(cap)}.",
        fix="Ask with a smaller epsilon (a larger error), or ask the owner for more budget.",
        requested=cost,
        remaining=left,
        account=account,
    )
