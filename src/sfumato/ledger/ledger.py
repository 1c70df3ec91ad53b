"""Privacy budget ledger: append-only, hash-chained, durable before anything is computed.

An account is charged in any measure and has a total in each. A budget in epsilon and delta is kept by the best of three
compositions (:mod:`sfumato.ledger.composition`), all others by sums. A cost is written *before* the data is read and is
never refunded, so a crash, a timeout or an error costs budget and never privacy. A data set has one ledger, and in it
one account for each privacy unit: an account that has moved to another ledger is closed.

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

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sfumato.dp.loss import NOTHING, PrivacyLoss, PrivacyMeasure
from sfumato.dp.receipt import Receipt, issue
from sfumato.errors import BadParameter, UnknownBudget
from sfumato.ledger.accounts import (
    Account,
    Period,
    account_unit,
    accounts_of,
    cap_text,
    check_caps,
    has_parts,
    has_windows,
    last_cap,
    own_units,
    part_charge,
    part_of,
    part_total,
    running_total,
    spent_in,
    totals_json,
)
from sfumato.ledger.charge import Charge
from sfumato.ledger.composition import (
    BudgetCap,
    DeltaShares,
    decided,
    delta_shares,
    kept_composition,
    left_of,
    smallest_part,
    spent_of,
)
from sfumato.ledger.entries import (
    SELECT,
    START,
    Entry,
    append,
    entry_of,
    index_names,
    moved_entry,
    paid_entry,
    refuse_moved,
)
from sfumato.ledger.exact_budget import cap_loss, cost_amount, cost_loss
from sfumato.ledger.parts import DataPart
from sfumato.ledger.register import ReleaseRecord
from sfumato.ledger.stores.store import Store, Transaction
from sfumato.ledger.verification import verify_entries
from sfumato.proof.certificate import signed
from sfumato.rationals import Number, rational

__all__ = ["Balance", "Entry", "Ledger", "Store", "Transaction"]

UNKEPT = ":memory:"
"""The place of a ledger that ends with the process."""


@dataclass(frozen=True, kw_only=True)
class Balance:
    """Cap, spent and remaining loss of one account; ``cap`` and ``left`` are None if no cap was set."""

    cap: PrivacyLoss | None
    spent: PrivacyLoss
    left: PrivacyLoss | None
    shares: DeltaShares | None = None
    """What the delta of the cap is for; None where it has none to divide."""


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
        cap: PrivacyLoss | BudgetCap,
        *,
        dataset: str = "",
        analyst: str = "",
        unit: str | None = None,
        by: str = "owner",
        why: str = "",
        period: Period = Period.LIFETIME,
    ) -> Entry:
        """Set a cap of a data set, of an analyst on a data set, or of an analyst. Earlier charges still count.

        ``analyst`` may be a group, as ``@name``. ``unit`` gives a privacy unit a budget of its own beside that of the
        unit that the data set is charged for. A cap for a month or a year needs a lifetime cap of the same account.
        How a budget composes (:class:`~sfumato.ledger.composition.BudgetCap`) is fixed by the first charge.
        """
        if not dataset and not analyst:
            raise BadParameter("a cap needs a data set, an analyst, or both.")
        stated = cap if isinstance(cap, BudgetCap) else BudgetCap(loss=cap)
        with self._store.write() as transaction:
            refuse_moved(transaction, dataset)
            charged = account_unit(transaction, dataset, None)
            own = "" if unit in (None, charged) or not dataset else unit or ""
            account = Account(dataset, analyst, own or charged)
            old, first = (last_cap(transaction, account), spent_in(transaction, account, period, _now())[1])
            if period in (Period.MONTH, Period.YEAR) and old is None:
                raise BadParameter(
                    f"a cap per {period} needs a lifetime cap of the same account.",
                    fix="Set the lifetime cap first: a budget that is only ever renewed does not bound the loss.",
                )
            if period in (Period.MONTH, Period.YEAR) and has_parts(transaction, account):
                raise BadParameter(
                    f"this account was charged for parts of a data set, and what each lost in a {period} is not known.",
                    fix="Set the cap before the first question to a part: the whole data set is charged then.",
                )
            if period is Period.LIFETIME and first is not None and old is not None:
                stated = kept_composition(stated, decided(old, first))
            loss, about = cap_loss(stated.loss), f"{by}: {why}" if why else by
            return append(transaction, str(period), dataset, analyst, own, loss, about, cap_text(stated))

    def charge(
        self,
        charge: Charge,
        *,
        dataset: str,
        analyst: str,
        groups: Sequence[str] = (),
        once: bool = False,
        records: Callable[[Entry], Mapping[str, str]] | None = None,
    ) -> Receipt:
        """Charge all accounts or none, and return a receipt once the charge is on disk. Nothing else charges.

        The charge goes to the account of its privacy unit (:func:`~sfumato.ledger.accounts.account_unit`), in its own
        measure. A charge to a part of the data set lets every account grow by as much as its largest part grows
        (:mod:`sfumato.ledger.parts`). ``groups`` are those of the analyst, each as ``@name``. With
        ``once``, an analyst who was charged for this query before is not charged again unless that run failed: the run
        was interrupted before its answer was stored, or is going on. One charge still releases one answer, because
        :meth:`remember` keeps the first that is stored and every run must return that one. A stored answer that another
        analyst is charged for costs what a new one does: what is left would tell otherwise that it is stored.
        ``records`` makes of the entry what is kept of it for the certificates of answers, by their keys.
        """
        if not dataset or not analyst or analyst.startswith("@") or not all(name.startswith("@") for name in groups):
            raise BadParameter("a charge needs a data set and an analyst; only names of groups start with @.")
        with self._store.write() as transaction:
            refuse_moved(transaction, dataset)
            unit = account_unit(transaction, dataset, charge.charged_unit)
            own = last_cap(transaction, Account(dataset, "", unit))
            if own is None:
                raise _no_budget(dataset)
            cost, covers = charge.cost(own.loss.measure), charge.of_unit(own.loss.measure)
            if once and (earlier := paid_entry(transaction, dataset, analyst, charge.key)) is not None:
                if records is not None:
                    [row] = transaction.query(f"{SELECT} WHERE number = ?", earlier)
                    _remember_charge(transaction, analyst, records(entry_of(row)))
                return issue(covers, dataset=dataset, entry=earlier, kept=self.kept, ledger=self.where)
            accounts, amount = accounts_of(dataset, analyst, unit, groups), cost_amount(cost)
            amounts = [amount] * len(accounts)
            part = charge.part
            if part is not None and has_windows(transaction, accounts):
                part = None
            of_part = None if part is None else part_charge(transaction, part, accounts, amounts)
            totals = check_caps(transaction, accounts, amounts, cost=cost, now=_now(), part=of_part)
            entry = append(
                transaction, "spend", dataset, analyst, unit, cost_loss(cost),
                charge.key, totals_json(totals, groups, amount, charge.plan, of_part),
                bounds="" if charge.bounds is None else str(charge.bounds),
            )  # fmt: skip
            index_names(transaction, entry, [*groups, *(() if part is None else part.index)])
            if charge.what:
                insert = "INSERT INTO sfumato_queries (number, text) VALUES (?, ?)"
                transaction.query(insert, entry.number, charge.what.replace("\x00", "\\0"))
            if records is not None:
                _remember_charge(transaction, analyst, records(entry))
        account = charge.account(own.loss.measure, dataset=dataset, unit=unit, entry=entry if self.kept else None)
        if account is not None and self.kept:
            account.sign = self._signed
        return issue(covers, dataset=dataset, entry=entry.number, kept=self.kept, ledger=self.where, account=account)

    def _signed(self, certificate: dict[str, object]) -> dict[str, object]:
        return signed(certificate, self.signing_key())

    def move(self, *, dataset: str, to: str) -> Entry:
        """Close the account of a data set for good, because it is charged in another ledger from now on.

        Returns the entry that closed it, also if that was before.
        """
        with self._store.write() as transaction:
            closed = moved_entry(transaction, dataset)
            if closed is None:
                return append(transaction, "moved", dataset, "", "", NOTHING, to, "{}")
            if closed.about != to:
                refuse_moved(transaction, dataset)
            return closed

    def unit(self, dataset: str) -> str | None:
        """The privacy unit that the budget of a data set is charged for; None before the first charge."""
        with self._store.read() as transaction:
            return account_unit(transaction, dataset, None) or None

    def units(self, dataset: str) -> tuple[str, ...]:
        """All units of a data set that were charged or have a budget of their own."""
        with self._store.read() as transaction:
            first, more = account_unit(transaction, dataset, None), own_units(transaction, dataset)
        return tuple(dict.fromkeys(([first] if first else []) + more))

    def parts(self, *, dataset: str) -> dict[DataPart, PrivacyLoss]:
        """What each part of a data set was charged, beside the charges to the whole."""
        found = {}
        for entry in self.entries():
            if entry.kind == "spend" and entry.dataset == dataset and (part := part_of(entry.totals)) is not None:
                found[part] = part_total(entry.totals, Account(dataset, "", entry.unit)).loss()
        return found

    def moved_to(self, dataset: str) -> str | None:
        """The ledger that the account of a data set has moved to."""
        with self._store.read() as transaction:
            closed = moved_entry(transaction, dataset)
        return None if closed is None else closed.about

    def total(self, *, dataset: str = "", analyst: str = "", unit: str | None = None) -> PrivacyLoss:
        """All charges to an account, with their curve, so that another ledger can be charged for them at once."""
        with self._store.read() as transaction:
            account = Account(dataset, analyst, account_unit(transaction, dataset, unit))
            return spent_in(transaction, account, Period.LIFETIME, _now())[0].loss()

    def cap(self, *, dataset: str = "", analyst: str = "", unit: str | None = None) -> BudgetCap | None:
        """The lifetime cap of an account with its composition, as the first charge decided it."""
        with self._store.read() as transaction:
            account = Account(dataset, analyst, account_unit(transaction, dataset, unit))
            cap, first = last_cap(transaction, account), spent_in(transaction, account, Period.LIFETIME, _now())[1]
        return None if cap is None else decided(cap, first)

    def carry_over(
        self, loss: PrivacyLoss, *, dataset: str, analyst: str, unit: str, about: str, groups: Sequence[str] = (),
    ) -> Entry:  # fmt: skip
        """Charge a loss that happened outside this ledger. Caps are not checked, because it cannot be undone.

        ``groups`` are those of :meth:`charge`.
        """
        with self._store.write() as transaction:
            accounts = accounts_of(dataset, analyst, account_unit(transaction, dataset, unit), groups)
            charge = cost_amount(loss)
            totals = [running_total(transaction, account) + charge for account in accounts]
            entry = append(
                transaction, "spend", dataset, analyst, accounts[0].unit, cost_loss(loss),
                about, totals_json(totals, groups, charge),
            )  # fmt: skip
            index_names(transaction, entry, groups)
            return entry

    def record_event(self, about: str, *, dataset: str = "", analyst: str = "") -> Entry:
        """Add an entry that charges nothing: who did what, and why."""
        with self._store.write() as transaction:
            return append(transaction, "event", dataset, analyst, "", NOTHING, about, "{}")

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
            return append(transaction, "release", dataset, by, "", NOTHING, record.to_text(), "{}")

    def paid(self, *, dataset: str, analyst: str, query: str) -> int | None:
        """Number of the newest entry in which an analyst was charged for a query, except for runs that failed."""
        with self._store.read() as transaction:
            return paid_entry(transaction, dataset, analyst, query)

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

    def balance(
        self, *, dataset: str = "", analyst: str = "", period: Period = Period.LIFETIME, unit: str | None = None
    ) -> Balance:
        """Cap, spent and remaining loss of one account. A query must fit all accounts that it is charged to.

        ``unit`` is the privacy unit; without it, the one that the data set is charged for.
        """
        with self._store.read() as transaction:
            account = Account(dataset, analyst, account_unit(transaction, dataset, unit))
            cap = last_cap(transaction, account, period)
            spent, first = spent_in(transaction, account, period, _now())
            if cap is None:
                whole = last_cap(transaction, Account(dataset, "", account.unit)) if dataset else None
                measure = PrivacyMeasure.EPSILON if whole is None else whole.loss.measure
                return Balance(cap=None, spent=spent.loss(measure), left=None)
        shares = delta_shares(cap, first) if cap.filtered else None
        return Balance(cap=cap.loss, spent=spent_of(spent, cap, first), left=left_of(spent, cap, first), shares=shares)

    def part(self, share: Number, *, dataset: str, analyst: str, unit: str | None = None) -> tuple[PrivacyLoss, ...]:
        """What a share of the lifetime budgets allows for one charge, in one or two ways: see ``composition.part_of``.

        Of the caps that a charge has to fit, the one that allows least counts. Earlier charges do not matter.
        """
        size = rational(share)
        if not 0 < size <= 1:
            raise BadParameter("a share of the budget is above 0 and at most 1, for example 1/100.")
        with self._store.read() as transaction:
            accounts = accounts_of(dataset, analyst, account_unit(transaction, dataset, unit))
            caps = [last_cap(transaction, account) for account in accounts]
        if caps[0] is None:
            raise _no_budget(dataset)
        return smallest_part([cap for cap in caps if cap is not None], size)

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

    def salt(self) -> str:
        """Random text that this ledger keeps to itself, made at the first use."""
        return self._own_secret("salt of keys", 16)

    def signing_key(self) -> bytes:
        """The secret that signs certificates of this ledger, made at the first use. It stays in the ledger."""
        return bytes.fromhex(self._own_secret("signing key", 32))

    def _own_secret(self, name: str, size: int) -> str:
        with self._store.read() as transaction:
            rows = transaction.query("SELECT body FROM sfumato_answers WHERE key = ?", name)
        if rows:
            return str(rows[0][0])
        with self._store.write() as transaction:
            insert = "INSERT INTO sfumato_answers (key, body) VALUES (?, ?) ON CONFLICT (key) DO NOTHING"
            transaction.query(insert, name, secrets.token_hex(size))
            [row] = transaction.query("SELECT body FROM sfumato_answers WHERE key = ?", name)
        return str(row[0])

    def recall_charge(self, key: str, analyst: str) -> str | None:
        """What an analyst paid for the answer under a key, or else what was paid first."""
        with self._store.read() as transaction:
            for whose in (analyst, ""):
                rows = transaction.query("SELECT body FROM sfumato_answers WHERE key = ?", f"{key} paid by {whose}")
                if rows:
                    return str(rows[0][0])
        return None

    def entry(self, number: int) -> Entry:
        """The entry with this number."""
        with self._store.read() as transaction:
            [row] = transaction.query(f"{SELECT} WHERE number = ?", number)
        return entry_of(row)

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
        with self._store.read() as transaction:
            listed = {(str(name), int(number)) for name, number in transaction.query(
                "SELECT name, number FROM sfumato_ledger_index")}  # fmt: skip
        return verify_entries(self.entries(), listed, last=last)


def _remember_charge(transaction: Transaction, analyst: str, records: Mapping[str, str]) -> None:
    """Store what an analyst paid for answers, by their keys, for certificates; the first of each is kept."""
    for key, record in records.items():
        for whose in (analyst, ""):
            transaction.query(
                "INSERT INTO sfumato_answers (key, body) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
                f"{key} paid by {whose}", record,
            )  # fmt: skip


def _now() -> datetime:
    return datetime.now(UTC)


def _no_budget(dataset: str) -> UnknownBudget:
    return UnknownBudget(
        f"No budget is set for data set `{dataset}`.", fix="Its owner sets one with `sfumato ledger cap`."
    )
