"""Accounts of the ledger: who is charged, running totals, and the caps that a charge must fit.

A charge goes to the data set, to the analyst on the data set, to the analyst over all data sets, and to the same two
accounts of every group of the analyst. A cap is a lifetime cap, a window cap (per calendar month or year, UTC) or a
cap on a single question. A window cap is allowed only beside a lifetime cap: windows alone would let the accumulated
loss grow without bound.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from sfumato.dp.fixed_point_budget import Grains, loss_of
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.errors import BadParameter, OverBudget

__all__ = ["Account", "Period", "Transaction", "accounts_of", "check_caps", "last_cap", "running_total", "totals_json"]


class Transaction(Protocol):
    """A transaction of a store."""

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement, with ``?`` for each value, and return its rows."""
        ...


class Period(StrEnum):
    """What a cap limits. The values are the kinds of ledger entries."""

    LIFETIME = "cap"
    MONTH = "month"
    YEAR = "year"
    QUESTION = "question"

    def start(self, at: str) -> str:
        """Start of the window that contains a time."""
        return f"{at[:7]}-01T" if self is Period.MONTH else f"{at[:4]}-01-01T"


@dataclass(frozen=True)
class Account:
    """One account; ``analyst`` is empty for a data set, ``dataset`` for all data sets, and a group is ``@name``."""

    dataset: str
    analyst: str

    @property
    def group(self) -> str | None:
        """Name of the group, with its ``@``."""
        return self.analyst if self.analyst.startswith("@") else None

    def __str__(self) -> str:
        if self.group:
            return "the budget of your group on this data set" if self.dataset else "the budget of your group"
        if not self.analyst:
            return "the data set's budget"
        return "your budget on this data set" if self.dataset else "your budget over all data sets"

    @property
    def own(self) -> bool:
        """Whether the account is that of one analyst and nobody else."""
        return bool(self.analyst) and self.group is None


def accounts_of(dataset: str, analyst: str, groups: Iterable[str] = ()) -> tuple[Account, ...]:
    """The accounts of a charge, in the order of its running totals."""
    more = [Account(where, group) for group in groups for where in (dataset, "")]
    return Account(dataset, ""), Account(dataset, analyst), Account("", analyst), *more


def totals_json(totals: Sequence[Grains], groups: Sequence[str] = ()) -> str:
    """Running totals of an entry: three pairs, then each group with the pairs of its two accounts."""
    shown: list[Any] = [[total.size, total.delta] for total in totals[:3]]
    for place, group in enumerate(groups):
        both = totals[3 + 2 * place : 5 + 2 * place]
        shown.append([group, *(number for total in both for number in (total.size, total.delta))])
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)


def running_total(
    transaction: Transaction, account: Account, measure: PrivacyMeasure, *, before: str | None = None
) -> Grains:
    """What was charged to an account; with ``before``, what was charged earlier than that time."""
    rows = _last_charge(transaction, account, before)
    if not rows:
        return Grains(measure=measure, size=0, delta=0)
    if PrivacyMeasure(rows[0][0]) is not measure:
        raise BadParameter(f"this account is charged in {rows[0][0]} and cannot change to {measure}.")
    totals = json.loads(rows[0][1])
    if account.group is None:
        size, delta = totals[0 if not account.analyst else 1 if account.dataset else 2]
    else:
        [numbers] = [item[1:] for item in totals[3:] if item[0] == account.group]
        size, delta = numbers[:2] if account.dataset else numbers[2:]
    return Grains(measure=measure, size=size, delta=delta)


def measure_of(transaction: Transaction, account: Account) -> PrivacyMeasure:
    """The measure in which an account was charged; epsilon for a new one."""
    rows = _last_charge(transaction, account, None)
    return PrivacyMeasure(rows[0][0]) if rows else PrivacyMeasure.EPSILON


def _last_charge(transaction: Transaction, account: Account, before: str | None) -> list[tuple[Any, ...]]:
    values: list[Any] = []
    source, where = "sfumato_ledger l", ["l.kind = 'spend'"]
    if account.group is not None:
        source += " JOIN sfumato_ledger_groups g ON g.number = l.number"
        where.append("g.name = ?")
        values.append(account.group)
    elif account.analyst:
        where.append("l.analyst = ?")
        values.append(account.analyst)
    if account.dataset:
        where.append("l.dataset = ?")
        values.append(account.dataset)
    if before is not None:
        where.append("l.at < ?")
        values.append(before)
    condition = " AND ".join(where)
    return transaction.query(
        f"SELECT l.measure, l.totals FROM {source} WHERE {condition} ORDER BY l.number DESC LIMIT 1", *values
    )


def last_cap(transaction: Transaction, account: Account, period: Period = Period.LIFETIME) -> Grains | None:
    """The present cap of an account."""
    rows = transaction.query(
        "SELECT measure, size, delta FROM sfumato_ledger WHERE kind = ? AND dataset = ? AND analyst = ? "
        "ORDER BY number DESC LIMIT 1",
        str(period),
        account.dataset,
        account.analyst,
    )
    return Grains(measure=PrivacyMeasure(rows[0][0]), size=rows[0][1], delta=rows[0][2]) if rows else None


def other_caps(transaction: Transaction, accounts: Sequence[Account]) -> dict[tuple[Account, Period], Grains]:
    """The present window caps and caps on single questions of some accounts."""
    datasets = sorted({account.dataset for account in accounts})
    analysts = sorted({account.analyst for account in accounts})
    rows = transaction.query(
        "SELECT dataset, analyst, kind, measure, size, delta FROM sfumato_ledger "
        "WHERE kind IN ('month', 'year', 'question') "
        f"AND dataset IN ({', '.join('?' * len(datasets))}) AND analyst IN ({', '.join('?' * len(analysts))}) "
        "ORDER BY number",
        *datasets,
        *analysts,
    )
    found = {
        (Account(dataset, analyst), Period(kind)): Grains(measure=PrivacyMeasure(measure), size=size, delta=delta)
        for dataset, analyst, kind, measure, size, delta in rows
    }
    return {key: cap for key, cap in found.items() if key[0] in accounts}


def check_caps(
    transaction: Transaction,
    accounts: Sequence[Account],
    charges: Sequence[Grains],
    *,
    cost: PrivacyLoss,
    now: datetime,
) -> list[Grains]:
    """The totals after a charge; :class:`~sfumato.errors.OverBudget` if it does not fit every cap."""
    at = now.isoformat(timespec="milliseconds")
    totals = []
    others = other_caps(transaction, accounts)
    for account, charge in zip(accounts, charges, strict=True):
        total = running_total(transaction, account, charge.measure)
        cap = last_cap(transaction, account)
        if cap is not None and not (total + charge).fits(cap):
            raise _over(cost, total, cap, account)
        for (_, period), limit in ((key, limit) for key, limit in others.items() if key[0] == account):
            spent = Grains(measure=charge.measure, size=0, delta=0)
            if period is not Period.QUESTION:
                earlier = running_total(transaction, account, charge.measure, before=period.start(at))
                spent = Grains(
                    measure=charge.measure, size=total.size - earlier.size, delta=total.delta - earlier.delta
                )
            if not (spent + charge).fits(limit):
                raise _over(cost, spent, limit, account, period)
        totals.append(total + charge)
    return totals


_WHEN = {
    Period.LIFETIME: "", Period.MONTH: " for this month", Period.YEAR: " for this year",
    Period.QUESTION: " for a single question",
}  # fmt: skip


def _over(
    cost: PrivacyLoss, spent: Grains, cap: Grains, account: Account, period: Period = Period.LIFETIME
) -> OverBudget:
    size, delta = max(0, cap.size - spent.size), max(0, cap.delta - spent.delta)
    left = loss_of(Grains(measure=cap.measure, size=size, delta=delta))
    return OverBudget(
        f"This costs {cost}, and {account}{_WHEN[period]} has {left} left of {loss_of(cap)}.",
        fix="Ask with a smaller epsilon (a larger error), or ask the owner for more budget.",
        requested=cost,
        remaining=left,
        account=str(account),
        shared=not account.own,
    )
