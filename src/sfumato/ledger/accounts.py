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
from fractions import Fraction
from typing import Any, Literal, Protocol

from sfumato.dp.curve import Curve
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.errors import BadParameter, OverBudget, UnitsDiffer
from sfumato.ledger.composition import left_of, within
from sfumato.ledger.exact_budget import NO_EPSILON, Amount, loss_of

__all__ = [
    "Account",
    "Period",
    "Transaction",
    "accounts_of",
    "amount_of",
    "charge_of",
    "check_caps",
    "check_unit",
    "groups_of",
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


def totals_json(totals: Sequence[Amount], groups: Sequence[str] = (), charge: Amount | None = None) -> str:
    """Running totals of an entry: three accounts, each group with its two, and the curve of the charge.

    An account has a size and a delta and, where curves are kept, the three numbers of its curve.
    """
    shown: dict[str, Any] = {"accounts": [_numbers(total) for total in totals[:3]]}
    if groups:
        shown["groups"] = {
            group: [_numbers(total) for total in totals[3 + 2 * place : 5 + 2 * place]]
            for place, group in enumerate(groups)
        }
    if charge is not None and charge.bounds is not None:
        shown["curve"] = _curve_numbers(charge.bounds)
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)


def groups_of(totals: str) -> list[str]:
    """The groups that an entry was charged to, from its totals."""
    return list(json.loads(totals).get("groups", {}))


def _numbers(total: Amount) -> list[str | None]:
    return [str(total.size), str(total.delta), *(_curve_numbers(total.bounds) if total.bounds else [])]


def _curve_numbers(curve: Curve) -> list[str | None]:
    return [str(curve.rho), None if curve.gaussian is None else str(curve.gaussian), str(curve.delta)]


def _curve(numbers: Sequence[str | None]) -> Curve | None:
    if not numbers:
        return None
    rho, gaussian, delta = numbers
    squared = None if gaussian is None else Fraction(gaussian)
    return Curve(rho=Fraction(rho or 0), gaussian=squared, delta=Fraction(delta or 0))


def charge_of(measure: str, size: str, delta: str, totals: str) -> Amount:
    """The charge of an entry. One with a curve is kept in epsilon, even if it was stated in rho and has no epsilon."""
    curve, chance = _curve(json.loads(totals).get("curve", [])), Fraction(delta)
    if curve is None:
        return Amount(measure=PrivacyMeasure(measure), size=Fraction(size), delta=chance)
    known = Fraction(size) if measure == PrivacyMeasure.EPSILON else NO_EPSILON
    return Amount(measure=PrivacyMeasure.EPSILON, size=known, delta=max(chance, curve.delta), bounds=curve)


def amount_of(measure: str, size: str, delta: str) -> Amount:
    """An amount as an entry stores it."""
    return Amount(measure=PrivacyMeasure(measure), size=Fraction(size), delta=Fraction(delta))


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
) -> Amount:
    """What was charged to an account; with ``before``, what was charged earlier than that time."""
    row = _charge_row(transaction, account, before=before)
    if row is None:
        return Amount(measure=measure)
    kept = charge_of(*row).measure
    if kept is not measure:
        raise BadParameter(f"this account is charged in {kept} and cannot change to {measure}.")
    return total_after(row[3], account, measure)


def total_after(totals: str, account: Account, measure: PrivacyMeasure) -> Amount:
    """The running total of an account after a charge, from the totals of its entry."""
    listed = json.loads(totals)
    if account.group is None:
        numbers = listed["accounts"][0 if not account.analyst else 1 if account.dataset else 2]
    else:
        numbers = listed["groups"][account.group][0 if account.dataset else 1]
    size, delta, *curve = numbers
    return Amount(measure=measure, size=Fraction(size), delta=Fraction(delta), bounds=_curve(curve))


def spent_in(
    transaction: Transaction, account: Account, measure: PrivacyMeasure, period: Period, now: datetime
) -> tuple[Amount, Amount | None]:
    """What was charged to an account in a period up to now, and the first charge in it."""
    if period is Period.QUESTION:
        return Amount(measure=measure), None
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


def last_cap(transaction: Transaction, account: Account, period: Period = Period.LIFETIME) -> Amount | None:
    """The present cap of an account."""
    rows = transaction.query(
        "SELECT measure, size, delta FROM sfumato_ledger WHERE kind = ? AND dataset = ? AND analyst = ? "
        "ORDER BY number DESC LIMIT 1",
        str(period),
        account.dataset,
        account.analyst,
    )
    return amount_of(*rows[0]) if rows else None


def other_caps(
    transaction: Transaction, accounts: Sequence[Account], *, with_delta: bool = False
) -> dict[tuple[Account, Period], Amount]:
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
        (Account(dataset, analyst), Period(kind)): amount_of(measure, size, delta)
        for dataset, analyst, kind, measure, size, delta in rows
    }
    return {key: cap for key, cap in found.items() if key[0] in accounts and (cap.delta or not with_delta)}


def check_unit(transaction: Transaction, dataset: str, unit: str) -> None:
    """Refuse a charge about another privacy unit than that of earlier charges to the data set.

    A loss of 1 about rows is one of 5 about people with five rows each: losses of different units do not add up. A unit
    is ``row``, ``edge``, ``node``, or the columns that identify a person (in several tables, separated by commas); two
    lists of columns are the same unit if they share one.
    """
    rows = transaction.query(
        "SELECT unit FROM sfumato_ledger WHERE kind = 'spend' AND dataset = ? ORDER BY number LIMIT 1", dataset
    )
    if rows and not set(unit.split(", ")) & set(str(rows[0][0]).split(", ")):
        raise UnitsDiffer(
            f"The budget of `{dataset}` protects the unit `{rows[0][0]}`, and this protects `{unit}`: "
            "losses of different units do not add up.",
            fix="Use the same unit, or a data set of its own in the ledger for each unit.",
        )


def check_caps(
    transaction: Transaction,
    accounts: Sequence[Account],
    charges: Sequence[Amount],
    *,
    cost: PrivacyLoss,
    now: datetime,
) -> list[Amount]:
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
    cost: PrivacyLoss, left: PrivacyLoss, cap: Amount, account: Account, period: Period = Period.LIFETIME
) -> OverBudget:
    fix = "Ask with a smaller epsilon (a larger error), or ask the owner for more budget."
    mixed = cost.measure is PrivacyMeasure.RHO and cap.measure is PrivacyMeasure.EPSILON
    if mixed and 0 < left.size < loss_of(cap).size:
        fix = "Ask with an epsilon: costs in ρ and earlier costs in ε add up in ρ only, where ε counts as ε²/2."
    digits = next((many for many in (4, 9) if cost.shown(many) != left.shown(many)), 17)
    costs, rest, whole = (loss.shown(digits) for loss in (cost, left, loss_of(cap)))
    return OverBudget(
        f"This costs {costs}, and {account}{_WHEN[period]} has {rest} left of {whole}.",
        fix=fix,
        requested=cost,
        remaining=left,
        account=str(account),
        shared=not account.own,
    )
