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
from typing import Any, Literal, Protocol

from sfumato.dp.composition import left_of, within
from sfumato.dp.fixed_point_budget import NO_EPSILON, CurveGrains, Grains, loss_of
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.errors import BadParameter, OverBudget

__all__ = [
    "Account",
    "Period",
    "Transaction",
    "accounts_of",
    "charge_of",
    "check_caps",
    "keeps_curves",
    "last_cap",
    "measure_of",
    "running_total",
    "spent_in",
    "total_after",
    "totals_json",
]


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


def totals_json(totals: Sequence[Grains], groups: Sequence[str] = (), charge: Grains | None = None) -> str:
    """Running totals of an entry: three accounts, then each group with its two; then the curve of the charge.

    An account has a size and a delta and, where curves are kept, the three numbers of its curve.
    """
    shown: list[Any] = [_numbers(total) for total in totals[:3]]
    for place, group in enumerate(groups):
        both = totals[3 + 2 * place : 5 + 2 * place]
        shown.append([group, *(number for total in both for number in _numbers(total))])
    if charge is not None and charge.bounds is not None:
        shown.append(charge.bounds.numbers())
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)


def _numbers(total: Grains) -> list[int | None]:
    return [total.size, total.delta, *(total.bounds.numbers() if total.bounds else [])]


def charge_of(measure: str, size: int, delta: int, totals: str) -> Grains:
    """The charge of an entry. One with a curve is kept in epsilon, even if it was stated in rho and has no epsilon."""
    curves = [item for item in json.loads(totals)[3:] if not isinstance(item[0], str)]
    if not curves:
        return Grains(measure=PrivacyMeasure(measure), size=size, delta=delta)
    [(rho, gaussian, rest)] = curves
    return Grains(
        measure=PrivacyMeasure.EPSILON,
        size=size if measure == PrivacyMeasure.EPSILON else NO_EPSILON,
        delta=delta,
        bounds=CurveGrains(rho=rho, gaussian=gaussian, delta=rest),
    )


def keeps_curves(transaction: Transaction, accounts: Sequence[Account]) -> bool:
    """Whether charges to these accounts have curves: one of the budgets has a delta, or a curve was kept before."""
    caps = [last_cap(transaction, account) for account in accounts]
    if any(cap is not None and cap.measure is PrivacyMeasure.EPSILON and cap.delta for cap in caps):
        return True
    if other_caps(transaction, accounts, with_delta=True):
        return True
    last = [_charge_row(transaction, account) for account in accounts]
    return any(row is not None and charge_of(*row).bounds is not None for row in last)


def running_total(
    transaction: Transaction, account: Account, measure: PrivacyMeasure, *, before: str | None = None
) -> Grains:
    """What was charged to an account; with ``before``, what was charged earlier than that time."""
    row = _charge_row(transaction, account, before=before)
    if row is None:
        return Grains(measure=measure, size=0, delta=0)
    kept = charge_of(*row).measure
    if kept is not measure:
        raise BadParameter(f"this account is charged in {kept} and cannot change to {measure}.")
    return total_after(row[3], account, measure)


def total_after(totals: str, account: Account, measure: PrivacyMeasure) -> Grains:
    """The running total of an account after a charge, from the totals of its entry."""
    listed = json.loads(totals)
    if account.group is None:
        numbers = listed[0 if not account.analyst else 1 if account.dataset else 2]
    else:
        [both] = [item[1:] for item in listed[3:] if item[0] == account.group]
        half = len(both) // 2
        numbers = both[:half] if account.dataset else both[half:]
    size, delta, *curve = numbers
    bounds = CurveGrains(rho=curve[0], gaussian=curve[1], delta=curve[2]) if curve else None
    return Grains(measure=measure, size=size, delta=delta, bounds=bounds)


def spent_in(
    transaction: Transaction, account: Account, measure: PrivacyMeasure, period: Period, now: datetime
) -> tuple[Grains, Grains | None]:
    """What was charged to an account in a period up to now, and the first charge in it."""
    if period is Period.QUESTION:
        return Grains(measure=measure, size=0, delta=0), None
    total, since = running_total(transaction, account, measure), None
    if period is not Period.LIFETIME:
        since = period.start(now.isoformat())
        total = total - running_total(transaction, account, measure, before=since)
    first = _charge_row(transaction, account, since=since, order="ASC")
    return total, None if first is None else charge_of(*first)


def measure_of(transaction: Transaction, account: Account) -> PrivacyMeasure:
    """The measure in which an account was charged; epsilon for a new one."""
    row = _charge_row(transaction, account)
    return PrivacyMeasure.EPSILON if row is None else charge_of(*row).measure


def _charge_row(
    transaction: Transaction,
    account: Account,
    *,
    before: str | None = None,
    since: str | None = None,
    order: Literal["ASC", "DESC"] = "DESC",
) -> tuple[Any, ...] | None:
    """Measure, size, delta and totals of the last (or first) charge of an account within a time."""
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
    if since is not None:
        where.append("l.at >= ?")
        values.append(since)
    condition = " AND ".join(where)
    rows = transaction.query(
        f"SELECT l.measure, l.size, l.delta, l.totals FROM {source} WHERE {condition} "
        f"ORDER BY l.number {order} LIMIT 1",
        *values,
    )
    return rows[0] if rows else None


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


def other_caps(
    transaction: Transaction, accounts: Sequence[Account], *, with_delta: bool = False
) -> dict[tuple[Account, Period], Grains]:
    """The present window caps and caps on single questions of some accounts; or only those with a delta."""
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
    return {key: cap for key, cap in found.items() if key[0] in accounts and (cap.delta or not with_delta)}


def check_caps(
    transaction: Transaction,
    accounts: Sequence[Account],
    charges: Sequence[Grains],
    *,
    cost: PrivacyLoss,
    now: datetime,
) -> list[Grains]:
    """The totals after a charge; :class:`~sfumato.errors.OverBudget` if it does not fit every cap."""
    totals = []
    others = other_caps(transaction, accounts)
    for account, charge in zip(accounts, charges, strict=True):
        cap = last_cap(transaction, account)
        limits = {} if cap is None else {Period.LIFETIME: cap}
        limits |= {period: limit for (one, period), limit in others.items() if one == account}
        for period, limit in limits.items():
            spent, first = spent_in(transaction, account, charge.measure, period, now)
            if not within(spent + charge, limit, first or charge):
                raise _over(cost, left_of(spent, limit, first), limit, account, period)
        totals.append(running_total(transaction, account, charge.measure) + charge)
    return totals


_WHEN = {
    Period.LIFETIME: "", Period.MONTH: " for this month", Period.YEAR: " for this year",
    Period.QUESTION: " for a single question",
}  # fmt: skip


def _over(
    cost: PrivacyLoss, left: PrivacyLoss, cap: Grains, account: Account, period: Period = Period.LIFETIME
) -> OverBudget:
    fix = "Ask with a smaller epsilon (a larger error), or ask the owner for more budget."
    mixed = cost.measure is PrivacyMeasure.RHO and cap.measure is PrivacyMeasure.EPSILON
    if mixed and 0 < left.size < loss_of(cap).size:
        fix = "Ask with an epsilon: costs in ρ and earlier costs in ε add up in ρ only, where ε counts as ε²/2."
    return OverBudget(
        f"This costs {cost}, and {account}{_WHEN[period]} has {left} left of {loss_of(cap)}.",
        fix=fix,
        requested=cost,
        remaining=left,
        account=str(account),
        shared=not account.own,
    )
