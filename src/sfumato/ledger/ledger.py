"""Privacy budget ledger: append-only, hash-chained, durable before anything is computed.

A budget in epsilon and delta is kept by the best of three accounts (:mod:`sfumato.ledger.composition`), all others by
sums.
A cost is written *before* the data is read and is never refunded, so a crash, a timeout or an error costs budget and
never privacy. A data set has one privacy unit and one ledger: charges about another unit are refused, and an account
that has moved to another ledger is closed.

Three caps hold at once: that of the data set (all analysts together, so that colluding analysts gain nothing), that of
the analyst on the data set, and that of the analyst over all data sets; the caps of the analyst's groups, of calendar
months and years and of single questions hold as well where they are set (:mod:`sfumato.ledger.accounts`). A data set
without a cap of its own cannot be charged.

The entries form one hash chain: each has the SHA-256 of itself and its predecessor, and the running totals of its
accounts, so that a charge reads one row per account whatever the length of the ledger. The chain reveals tampering
unless the whole file is rewritten: restrict write access to it, or keep the last hash elsewhere (``sfumato ledger
verify`` prints it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.dp.receipt import Receipt, issue
from sfumato.errors import AccountMoved, BadParameter, LedgerBroken, UnknownBudget
from sfumato.ledger.accounts import (
    Account,
    Period,
    Transaction,
    accounts_of,
    charge_of,
    check_caps,
    check_unit,
    groups_of,
    keeps_curves,
    last_cap,
    measure_of,
    running_total,
    spent_in,
    totals_json,
)
from sfumato.ledger.charge import Charge
from sfumato.ledger.composition import left_of, part_of, spent_of
from sfumato.ledger.entries import SELECT, START, Entry, append, entry_of
from sfumato.ledger.exact_budget import Amount, cap_amount, cost_amount, loss_of
from sfumato.ledger.register import ReleaseRecord
from sfumato.ledger.stores.schema import SchemaVersion
from sfumato.rationals import Number, rational

__all__ = ["Balance", "Entry", "Ledger", "Store", "Transaction"]

UNKEPT = ":memory:"
"""The place of a ledger that ends with the process."""
_REPEAT = "repeat:"
"""Before the fingerprint of a query whose answer was released before: the data set is not charged again."""


class Store(Protocol):
    """A database with the tables of the ledger."""

    def write(self) -> AbstractContextManager[Transaction]:
        """An exclusive, atomic and durable write transaction."""
        ...

    def read(self) -> AbstractContextManager[Transaction]:
        """A consistent read transaction."""
        ...

    def upgrade(self, schema: SchemaVersion) -> None:
        """Create or upgrade the tables of a schema."""
        ...


@dataclass(frozen=True, kw_only=True)
class Balance:
    """Cap, spent and remaining loss of one account; ``cap`` and ``left`` are None if no cap was set."""

    cap: PrivacyLoss | None
    spent: PrivacyLoss
    left: PrivacyLoss | None


class Ledger:
    """Budgets of data sets and analysts. ``Ledger.open(path_or_url)`` opens or creates one."""

    def __init__(self, store: Store, *, kept: bool = True, where: str = "") -> None:
        self._store = store
        self.where = where
        """The file or address that it was opened from."""
        self.kept = kept
        """Whether the ledger outlives the process. What one that does not is charged is not added to other runs."""

    @property
    def store(self) -> Store:
        """The database, for other records that must be as durable as the ledger."""
        return self._store

    @classmethod
    def open(cls, where: str | Path) -> Ledger:
        """A SQLite file, a ``postgresql://`` address, or ``:memory:`` for a ledger that is not kept."""
        if str(where).startswith(("postgresql://", "postgres://")):
            from sfumato.ledger.stores.postgres import PostgresStore

            return cls(PostgresStore(str(where)), where=str(where))
        from sfumato.ledger.stores.sqlite import SqliteStore

        return cls(SqliteStore(where), kept=str(where) != UNKEPT, where=str(where))

    @classmethod
    def unkept(cls) -> Ledger:
        """A ledger that ends with the process: for a run whose owner named none. Its receipts say so."""
        return cls.open(UNKEPT)

    def set_cap(
        self,
        cap: PrivacyLoss,
        *,
        dataset: str = "",
        analyst: str = "",
        by: str = "owner",
        why: str = "",
        period: Period = Period.LIFETIME,
    ) -> Entry:
        """Set a cap of a data set, of an analyst on a data set, or of an analyst. Earlier charges still count.

        ``analyst`` may be a group, as ``@name``. A cap for a month or a year needs a lifetime cap of the same account.
        """
        if not dataset and not analyst:
            raise BadParameter("a cap needs a data set, an analyst, or both.")
        amount, account = cap_amount(cap), Account(dataset, analyst)
        with self._store.write() as transaction:
            _refuse_moved(transaction, dataset)
            if dataset and analyst:
                own = last_cap(transaction, Account(dataset, ""))
                if own is not None and own.measure is not amount.measure:
                    raise BadParameter(
                        f"the data set's budget is in {own.measure}; use the same measure for the analyst."
                    )
            if period in (Period.MONTH, Period.YEAR) and last_cap(transaction, account) is None:
                raise BadParameter(
                    f"a cap per {period} needs a lifetime cap of the same account.",
                    fix="Set the lifetime cap first: a budget that is only ever renewed does not bound the loss.",
                )
            accounts = accounts_of(dataset, analyst)
            totals = [running_total(transaction, one, amount.measure) for one in (*accounts[:3], account)][:3]
            about = f"{by}: {why}" if why else by
            return append(transaction, str(period), dataset, analyst, "", amount, about, totals_json(totals))

    def charge(
        self,
        charge: Charge,
        *,
        dataset: str,
        analyst: str,
        groups: Sequence[str] = (),
        released: bool = False,
        once: bool = False,
    ) -> Receipt:
        """Charge all accounts or none, and return a receipt once the charge is on disk. Nothing else charges.

        A data set has one privacy unit (:func:`~sfumato.ledger.accounts.check_unit`). ``groups`` are those of the
        analyst, each as ``@name``. ``released`` says that the answer to this query is stored already and that the
        stored one will be returned: the data set is then not charged again. With ``once``, an analyst who was charged
        for this query before is not charged again unless that run failed: the run was interrupted before its answer was
        stored, or is going on. One charge still releases one answer, because :meth:`remember` keeps the first that is
        stored and every run must return that one.
        """
        if not dataset or not analyst or analyst.startswith("@") or not all(name.startswith("@") for name in groups):
            raise BadParameter("a charge needs a data set and an analyst; only names of groups start with @.")
        with self._store.write() as transaction:
            _refuse_moved(transaction, dataset)
            check_unit(transaction, dataset, charge.charged_unit)
            own = last_cap(transaction, Account(dataset, ""))
            if own is None:
                raise _no_budget(dataset)
            cost, covers = charge.cost(own.measure), charge.of_unit(own.measure)
            if once and (earlier := _paid(transaction, dataset, analyst, charge.key)) is not None:
                return issue(covers, dataset=dataset, entry=earlier, kept=self.kept, ledger=self.where)
            accounts = accounts_of(dataset, analyst, groups)
            amount = cost_amount(cost, own.measure, curved=keeps_curves(transaction, accounts))
            amounts = [Amount(measure=amount.measure) if released else amount]
            amounts += [amount] * (len(accounts) - 1)
            totals = check_caps(transaction, accounts, amounts, cost=cost, now=datetime.now(UTC))
            stated = amount if amount.bounds is None else cost_amount(cost, cost.measure)
            entry = append(
                transaction, "spend", dataset, analyst, charge.charged_unit, stated,
                f"{_REPEAT}{charge.key}" if released else charge.key, totals_json(totals, groups, amount),
                bounds="" if charge.bounds is None else str(charge.bounds),
            )  # fmt: skip
            for name in groups:
                transaction.query("INSERT INTO sfumato_ledger_groups (name, number) VALUES (?, ?)", name, entry.number)
            if charge.what:
                insert = "INSERT INTO sfumato_queries (number, text) VALUES (?, ?)"
                transaction.query(insert, entry.number, charge.what.replace("\x00", "\\0"))
        return issue(covers, dataset=dataset, entry=entry.number, kept=self.kept, ledger=self.where)

    def move(self, *, dataset: str, to: str) -> Entry:
        """Close the account of a data set for good, because it is charged in another ledger from now on.

        Returns the entry that closed it, also if that was before.
        """
        with self._store.write() as transaction:
            closed = _moved(transaction, dataset)
            if closed is None:
                nothing = Amount(measure=PrivacyMeasure.EPSILON)
                return append(transaction, "moved", dataset, "", "", nothing, to, "{}")
            if closed.about != to:
                _refuse_moved(transaction, dataset)
            return closed

    def unit(self, dataset: str) -> str | None:
        """The privacy unit that a data set was charged for; None before the first charge."""
        with self._store.read() as transaction:
            rows = transaction.query(
                "SELECT unit FROM sfumato_ledger WHERE kind = 'spend' AND dataset = ? ORDER BY number LIMIT 1", dataset
            )
        return str(rows[0][0]) if rows else None

    def carry_over(self, loss: PrivacyLoss, *, dataset: str, analyst: str, unit: str, about: str) -> Entry:
        """Charge a loss that happened outside this ledger. Caps are not checked, because it cannot be undone."""
        with self._store.write() as transaction:
            check_unit(transaction, dataset, unit)
            own = last_cap(transaction, Account(dataset, ""))
            accounts = accounts_of(dataset, analyst)
            measure, curved = loss.measure if own is None else own.measure, keeps_curves(transaction, accounts)
            charge = cost_amount(loss, measure, curved=curved)
            totals = [running_total(transaction, one, charge.measure) + charge for one in accounts]
            stated = charge if charge.bounds is None else cost_amount(loss, loss.measure)
            return append(transaction, "spend", dataset, analyst, unit, stated, about, totals_json(totals, (), charge))

    def record_event(self, about: str, *, dataset: str = "", analyst: str = "") -> Entry:
        """Add an entry that charges nothing: who did what, and why."""
        nothing = Amount(measure=PrivacyMeasure.EPSILON)
        with self._store.write() as transaction:
            return append(transaction, "event", dataset, analyst, "", nothing, about, "{}")

    def register(self, record: ReleaseRecord, *, dataset: str, by: str) -> Entry:
        """Record something that leaves. The charges that paid for it must be charges to the same data set."""
        if not dataset or not by:
            raise BadParameter("a record of what leaves needs a data set and a name.")
        with self._store.write() as transaction:
            for number in record.charges:
                rows = transaction.query(
                    "SELECT 1 FROM sfumato_ledger WHERE kind = 'spend' AND dataset = ? AND number = ?", dataset, number
                )
                if not rows:
                    raise BadParameter(f"entry {number} is not a charge to `{dataset}`.")
            nothing = Amount(measure=PrivacyMeasure.EPSILON)
            return append(transaction, "release", dataset, by, "", nothing, record.to_text(), "{}")

    def paid(self, *, dataset: str, analyst: str, query: str) -> int | None:
        """Number of the newest entry in which an analyst was charged for a query, except for runs that failed."""
        with self._store.read() as transaction:
            return _paid(transaction, dataset, analyst, query)

    def note_failure(self, entry: int) -> None:
        """Note that the run of a charge failed. Its cost stays, and asking again is charged again."""
        with self._store.write() as transaction:
            known = transaction.query("SELECT 1 FROM sfumato_ledger_failures WHERE number = ?", entry)
            if not known:
                transaction.query("INSERT INTO sfumato_ledger_failures (number) VALUES (?)", entry)

    def head(self) -> tuple[int, str]:
        """Number and hash of the last entry."""
        with self._store.read() as transaction:
            rows = transaction.query("SELECT number, hash FROM sfumato_ledger ORDER BY number DESC LIMIT 1")
        return (int(rows[0][0]), str(rows[0][1])) if rows else (0, START)

    def holds(self, number: int, digest: str) -> bool:
        """Whether the entry of this number has this hash."""
        if number == 0:
            return digest == START
        with self._store.read() as transaction:
            rows = transaction.query("SELECT hash FROM sfumato_ledger WHERE number = ?", number)
        return bool(rows) and str(rows[0][0]) == digest

    def balance(self, *, dataset: str = "", analyst: str = "", period: Period = Period.LIFETIME) -> Balance:
        """Cap, spent and remaining loss of one account. A query must fit all accounts that it is charged to."""
        account = Account(dataset, analyst)
        with self._store.read() as transaction:
            cap = last_cap(transaction, account, period)
            measure = cap.measure if cap is not None else measure_of(transaction, account)
            spent, first = spent_in(transaction, account, measure, period, datetime.now(UTC))
        if cap is None:
            return Balance(cap=None, spent=loss_of(spent), left=None)
        proven = loss_of(spent) if spent.bounds is None or not cap.delta else spent_of(spent, cap, first)
        return Balance(cap=loss_of(cap), spent=proven, left=left_of(spent, cap, first))

    def part(self, share: Number, *, dataset: str, analyst: str) -> tuple[PrivacyLoss, ...]:
        """What a share of the lifetime budgets allows for one charge, in one or two ways: see ``composition.part_of``.

        Of the caps that a charge has to fit, the one that allows least counts. Earlier charges do not matter.
        """
        size = rational(share)
        if not 0 < size <= 1:
            raise BadParameter("a share of the budget is above 0 and at most 1, for example 1/100.")
        with self._store.read() as transaction:
            caps = [last_cap(transaction, account) for account in accounts_of(dataset, analyst)]
        if caps[0] is None:
            raise _no_budget(dataset)
        return min((part_of(cap, size) for cap in caps if cap is not None), key=lambda losses: losses[-1].size)

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
            rows = transaction.query(f"{SELECT} ORDER BY number")
        return (entry_of(row) for row in rows)

    def entries_after(self, number: int) -> Iterator[Entry]:
        """The entries after the one with this number, in order."""
        with self._store.read() as transaction:
            rows = transaction.query(f"{SELECT} WHERE number > ? ORDER BY number", number)
        return (entry_of(row) for row in rows)

    def queries(self) -> dict[int, str]:
        """What analysts asked, by the number of the entry that was charged for it. For the owner of the data only."""
        with self._store.read() as transaction:
            return dict(transaction.query("SELECT number, text FROM sfumato_queries ORDER BY number"))

    def verify(self, *, last: str | None = None) -> str:
        """Check every hash, number and running total, and return the last hash. ``last`` is a hash returned earlier."""
        previous, seen = START, last is None or last == START
        totals: dict[Account, Amount] = {}
        named: set[tuple[str, int]] = set()
        for number, entry in enumerate(self.entries(), start=1):
            if entry.number != number or entry.previous != previous or entry.digest() != entry.hash:
                raise LedgerBroken(
                    f"Entry {entry.number} does not follow from the one before it.",
                    fix="Compare with an export or a backup. No later entry can be trusted.",
                    number=entry.number,
                )
            if entry.kind == "spend":
                groups = groups_of(entry.totals)
                charge = charge_of(entry.measure, entry.size, entry.delta, entry.totals)
                nothing = Amount(measure=charge.measure)
                expected = []
                for account in accounts_of(entry.dataset, entry.analyst, groups):
                    free = not account.analyst and entry.about.startswith(_REPEAT)
                    totals[account] = totals.get(account, nothing) + (nothing if free else charge)
                    expected.append(totals[account])
                if totals_json(expected, groups, charge) != entry.totals:
                    raise LedgerBroken(f"Entry {entry.number} has a wrong running total.", number=entry.number)
                named |= {(name, entry.number) for name in groups}
            previous = entry.hash
            seen = seen or previous == last
        if not seen:
            raise LedgerBroken("The earlier hash is not in the chain: entries were removed or replaced.")
        with self._store.read() as transaction:
            if named != set(transaction.query("SELECT name, number FROM sfumato_ledger_groups")):
                raise LedgerBroken("The index of groups does not fit the entries of the ledger.")
        return previous


def _no_budget(dataset: str) -> UnknownBudget:
    return UnknownBudget(
        f"No budget is set for data set `{dataset}`.", fix="Its owner sets one with `sfumato ledger cap`."
    )


def _moved(transaction: Transaction, dataset: str) -> Entry | None:
    rows = transaction.query(f"{SELECT} WHERE kind = 'moved' AND dataset = ?", dataset)
    return entry_of(rows[0]) if rows else None


def _refuse_moved(transaction: Transaction, dataset: str) -> None:
    closed = _moved(transaction, dataset)
    if closed is not None:
        raise AccountMoved(
            f"The budget of `{dataset}` has moved to {closed.about}, so it cannot be charged here.",
            fix="Ask there. Two accounts of the same data would each allow the whole budget.",
        )


def _paid(transaction: Transaction, dataset: str, analyst: str, query: str) -> int | None:
    rows = transaction.query(
        "SELECT number FROM sfumato_ledger WHERE about IN (?, ?) AND analyst = ? AND dataset = ? AND kind = 'spend' "
        "AND number NOT IN (SELECT number FROM sfumato_ledger_failures) ORDER BY number DESC LIMIT 1",
        query,
        f"{_REPEAT}{query}",
        analyst,
        dataset,
    )
    return int(rows[0][0]) if rows else None
