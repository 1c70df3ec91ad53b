"""Accounts of the ledger: who is charged, running totals, and the caps that a charge must fit.

A charge goes to the data set, to the analyst on the data set, to the analyst over all data sets, and to the same two
accounts of every group of the analyst. The accounts of a data set are kept by privacy unit, because losses of different
units do not add up; each is charged in any measure. A cap is a lifetime cap, a window cap (per calendar month or year,
UTC) or a cap on a single question. A window cap is allowed only beside a lifetime cap: windows alone would let the
accumulated loss grow without bound.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from sfumato.dp.curve import Curve
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.errors import NotComparable, OverBudget, UnitsDiffer
from sfumato.ledger.composition import BudgetCap, Composition, left_of, within
from sfumato.ledger.exact_budget import Amount
from sfumato.ledger.parts import ANY_PART, DataPart, PartCharge
from sfumato.ledger.stores.store import Transaction

Numbers: TypeAlias = list[str | None]
"""Epsilon, delta, and the rho, squared Gaussian parameter and delta of the curve, as exact fractions."""


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
    unit: str = ""
    """The privacy unit; empty over all data sets, and for a data set that was never charged."""

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


def accounts_of(dataset: str, analyst: str, unit: str, groups: Iterable[str] = ()) -> tuple[Account, ...]:
    """The accounts of a charge, in the order of its running totals."""
    more = [account for group in groups for account in (Account(dataset, group, unit), Account("", group))]
    return Account(dataset, "", unit), Account(dataset, analyst, unit), Account("", analyst), *more


def totals_json(
    totals: Sequence[Amount],
    groups: Sequence[str] = (),
    charge: Amount | None = None,
    plan: str = "",
    part: PartCharge | None = None,
) -> str:
    """Running totals of an entry: three accounts, each group with its two; the charge itself, its plan's hash and the
    part of the data set that it is about."""
    shown: dict[str, object] = _listed(totals, groups)
    if charge is not None:
        shown["charge"] = amount_numbers(charge)
    if plan:
        shown["plan"] = plan
    if part is not None:
        shown["part"] = {
            "partition": part.part.partition, "name": part.part.name,
            "totals": _listed(part.totals, groups), "largest": _listed(part.largest, groups),
        }  # fmt: skip
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)


def _listed(totals: Sequence[Amount], groups: Sequence[str]) -> dict[str, object]:
    """Amounts by account: the data set, the analyst on it and the analyst; then the two of each group."""
    listed: dict[str, object] = {"accounts": [amount_numbers(total) for total in totals[:3]]}
    if groups:
        listed["groups"] = {
            group: [amount_numbers(total) for total in totals[3 + 2 * place : 5 + 2 * place]]
            for place, group in enumerate(groups)
        }
    return listed


def part_of(totals: str) -> DataPart | None:
    """The part of the data set that an entry is about, from its totals; None for the whole."""
    stated = json.loads(totals).get("part")
    return None if stated is None else DataPart(partition=stated["partition"], name=stated["name"])


def part_total(totals: str, account: Account) -> Amount:
    """What an account was charged for the part that an entry is about, from the totals of the entry."""
    return _amount_in(json.loads(totals)["part"]["totals"], account)


def part_charge(
    transaction: Transaction, part: DataPart, accounts: Sequence[Account], charges: Sequence[Amount]
) -> PartCharge:
    """A charge to a part, after all charges to the partition so far."""
    _, whole, own = part.index

    def last(account: Account, name: str, what: str) -> Amount:
        totals = _charge_totals(transaction, account, index=name)
        return Amount() if totals is None else _amount_in(json.loads(totals)["part"][what], account)

    totals = [last(account, own, "totals") for account in accounts]
    largest = [last(account, whole, "largest") for account in accounts]
    return PartCharge.of(part, charges, totals, largest)


def has_parts(transaction: Transaction, account: Account) -> bool:
    """Whether an account was charged for parts of a data set."""
    return _charge_totals(transaction, account, index=ANY_PART) is not None


def has_windows(transaction: Transaction, accounts: Sequence[Account]) -> bool:
    """Whether one of the accounts has a cap for a calendar month or year.

    What a part lost in a month is not known from the growth of the largest part, so it is charged to the whole then.
    """
    return bool(_caps(transaction, accounts, [Period.MONTH, Period.YEAR]))


def groups_of(totals: str) -> list[str]:
    """The groups that an entry was charged to, from its totals."""
    return list(json.loads(totals).get("groups", {}))


def amount_numbers(total: Amount) -> Numbers:
    """An amount as an entry stores it."""
    curve = total.curve
    gaussian = None if curve.gaussian is None else str(curve.gaussian)
    return [str(total.epsilon), str(total.delta), str(curve.rho), gaussian, str(curve.delta)]


def amount_of(numbers: Numbers) -> Amount:
    """The amount of its numbers."""
    epsilon, delta, rho, gaussian, chance = (Fraction(-1) if one is None else Fraction(one) for one in numbers)
    curve = Curve(rho=rho, gaussian=None if gaussian < 0 else gaussian, delta=chance)
    return Amount(epsilon=epsilon, delta=delta, curve=curve)


def charge_of(totals: str) -> Amount:
    """The charge of an entry, from its totals."""
    return amount_of(json.loads(totals)["charge"])


def plan_of(totals: str) -> str:
    """The hash of the plan that a charge paid for, from the totals of its entry; empty if it named none."""
    return str(json.loads(totals).get("plan", ""))


def total_after(totals: str, account: Account) -> Amount:
    """The running total of an account after a charge, from the totals of its entry."""
    return _amount_in(json.loads(totals), account)


def _amount_in(listed: dict[str, Any], account: Account) -> Amount:
    if account.group is None:
        return amount_of(listed["accounts"][0 if not account.analyst else 1 if account.dataset else 2])
    return amount_of(listed["groups"][account.group][0 if account.dataset else 1])


def cap_text(cap: BudgetCap) -> str:
    """How a cap composes, for the totals of its entry."""
    return json.dumps({"composition": cap.composition, "reserved": str(cap.reserved)}, separators=(",", ":"))


def cap_of(measure: str, size: str, delta: str, totals: str) -> BudgetCap:
    """A cap, from its entry."""
    loss = PrivacyLoss(measure=PrivacyMeasure(measure), size=Fraction(size), delta=Fraction(delta))
    stated = json.loads(totals)
    return BudgetCap(loss=loss, composition=Composition(stated["composition"]), reserved=Fraction(stated["reserved"]))


def running_total(transaction: Transaction, account: Account, *, before: str | None = None) -> Amount:
    """What was charged to an account; with ``before``, what was charged earlier than that time."""
    totals = _charge_totals(transaction, account, before=before)
    return Amount() if totals is None else total_after(totals, account)


def spent_in(transaction: Transaction, account: Account, period: Period, now: datetime) -> tuple[Amount, Amount | None]:
    """What was charged to an account in a period up to now, and the first charge in it."""
    if period is Period.QUESTION:
        return Amount(), None
    total, since = running_total(transaction, account), None
    if period is not Period.LIFETIME:
        since = period.start(now.isoformat())
        total = total - running_total(transaction, account, before=since)
    first = _charge_totals(transaction, account, since=since, order="ASC")
    return total, None if first is None else charge_of(first)


def _charge_totals(
    transaction: Transaction,
    account: Account,
    *,
    before: str | None = None,
    since: str | None = None,
    order: Literal["ASC", "DESC"] = "DESC",
    index: str | None = None,
) -> str | None:
    """Totals of the last (or first) charge of an account within a time; with ``index``, of those under that name."""
    source, given = "sfumato_ledger l", {"l.kind = ?": "spend"}
    if index is not None:
        source += " JOIN sfumato_ledger_index p ON p.number = l.number"
        given["p.name = ?"] = index
    if account.group is not None:
        source += " JOIN sfumato_ledger_index g ON g.number = l.number"
        given["g.name = ?"] = account.group
    elif account.analyst:
        given["l.analyst = ?"] = account.analyst
    if account.dataset:
        given |= {"l.dataset = ?": account.dataset, "l.unit = ?": account.unit}
    given |= {} if before is None else {"l.at < ?": before}
    given |= {} if since is None else {"l.at >= ?": since}
    condition = " AND ".join(given)
    rows = transaction.query(
        f"SELECT l.totals FROM {source} WHERE {condition} ORDER BY l.number {order} LIMIT 1", *given.values()
    )
    return str(rows[0][0]) if rows else None


def last_cap(transaction: Transaction, account: Account, period: Period = Period.LIFETIME) -> BudgetCap | None:
    """The present cap of an account."""
    return _caps(transaction, [account], [period]).get((account, period))


def _caps(
    transaction: Transaction, accounts: Sequence[Account], periods: Sequence[Period]
) -> dict[tuple[Account, Period], BudgetCap]:
    """The present caps of some accounts of one data set. A cap without a unit is that of the data set's own unit."""
    if not accounts:
        return {}
    datasets = sorted({account.dataset for account in accounts})
    analysts = sorted({account.analyst for account in accounts})
    rows = transaction.query(
        "SELECT dataset, analyst, unit, kind, measure, size, delta, totals FROM sfumato_ledger "
        f"WHERE kind IN ({_marks(periods)}) AND dataset IN ({_marks(datasets)}) AND analyst IN ({_marks(analysts)}) "
        "ORDER BY number",
        *map(str, periods), *datasets, *analysts,
    )  # fmt: skip
    named = {dataset: own_units(transaction, dataset) for dataset in datasets if dataset}
    found: dict[tuple[Account, Period], BudgetCap] = {}
    for dataset, analyst, unit, kind, *stated in rows:
        for account in accounts:
            own = "" if account.unit not in named.get(account.dataset, ()) else account.unit
            if (account.dataset, account.analyst, own) == (dataset, analyst, unit):
                found[account, Period(kind)] = cap_of(*stated)
    return found


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def own_units(transaction: Transaction, dataset: str) -> list[str]:
    """The units of a data set that have a budget of their own."""
    rows = transaction.query(
        "SELECT DISTINCT unit FROM sfumato_ledger WHERE kind = 'cap' AND dataset = ? AND analyst = '' AND unit <> ''",
        dataset,
    )
    return sorted(str(unit) for (unit,) in rows)


def account_unit(transaction: Transaction, dataset: str, unit: str | None) -> str:
    """The name under which a data set keeps the account of a unit; with None, of the unit that it is charged for.

    A loss of 1 about rows is one of 5 about people with five rows each: losses of different units do not add up. A unit
    is ``row``, ``edge``, ``node``, or the columns that identify a person (in several tables, separated by commas); two
    lists of columns are the same unit if they share one. The budget of a data set is about the unit of its first
    charge; every other unit needs a budget of its own, and a charge about one without it is refused.
    """
    if not dataset:
        return ""
    named = own_units(transaction, dataset)
    if unit is not None:
        for other in named:
            if _same(unit, other):
                return other
    rows = transaction.query(
        "SELECT unit FROM sfumato_ledger WHERE kind = 'spend' AND dataset = ? "
        + (f"AND unit NOT IN ({_marks(named)}) " if named else "")
        + "ORDER BY number LIMIT 1",
        dataset, *named,
    )  # fmt: skip
    first = str(rows[0][0]) if rows else ""
    if unit is None or (first and _same(unit, first)):
        return first
    if first:
        raise UnitsDiffer(
            f"The budget of `{dataset}` protects the unit `{first}`, and this protects `{unit}`: "
            "losses of different units do not add up.",
            fix=f"Use the same unit, or set a budget for this one: `sfumato ledger cap --dataset {dataset} "
            f"--unit {unit!r}`.",
        )
    return unit


def _same(unit: str, other: str) -> bool:
    return bool(set(unit.split(", ")) & set(other.split(", ")))


def check_caps(
    transaction: Transaction,
    accounts: Sequence[Account],
    charges: Sequence[Amount],
    *,
    cost: PrivacyLoss,
    now: datetime,
    part: PartCharge | None = None,
) -> list[Amount]:
    """The totals after a charge; :class:`~sfumato.errors.OverBudget` if it does not fit every cap."""
    caps = _caps(transaction, accounts, list(Period))
    asked = dict(zip(accounts, charges, strict=True))
    charged = asked if part is None else dict(zip(accounts, part.growth, strict=True))
    # What the analyst may know comes first: a refusal by it tells nothing about what others spent.
    for (account, period), cap in sorted(caps.items(), key=lambda one: _shared(*one[0])):
        spent, first = spent_in(transaction, account, period, now)
        more = asked if period is Period.QUESTION else charged
        if not within(spent + more[account], cap, first or asked[account]):
            _refuse_no_epsilon(cost, cap, account)
            raise _over(cost, left_of(spent, cap, first), cap.loss, account, period)
    return [running_total(transaction, account) + charge for account, charge in charged.items()]


def _shared(account: Account, period: Period) -> bool:
    """Whether what is left of a budget depends on what others spent."""
    return not account.own and period is not Period.QUESTION


_WHEN = {
    Period.LIFETIME: "", Period.MONTH: " for this month", Period.YEAR: " for this year",
    Period.QUESTION: " for a single question",
}  # fmt: skip


def _refuse_no_epsilon(cost: PrivacyLoss, cap: BudgetCap, account: Account) -> None:
    """A cost in rho has an epsilon at every delta above 0, and none at 0."""
    if cost.measure is PrivacyMeasure.RHO and cost.size and not cap.filtered and cap.loss.measure is not cost.measure:
        raise NotComparable(
            f"This costs {cost}, and {account} is {cap.loss} without a δ: a loss in ρ has no ε without one.",
            fix="Ask with an epsilon, or give the budget a δ (`sfumato ledger cap --delta`).",
        )


def _over(
    cost: PrivacyLoss, left: PrivacyLoss, cap: PrivacyLoss, account: Account, period: Period = Period.LIFETIME
) -> OverBudget:
    fix = "Ask with a smaller epsilon (a larger error), or ask the owner for more budget."
    mixed = cost.measure is PrivacyMeasure.RHO and cap.measure is PrivacyMeasure.EPSILON
    if mixed and 0 < left.size < cap.size:
        fix = "Ask with an epsilon: costs in ρ and earlier costs in ε add up in ρ only, where ε counts as ε²/2."
    stated = cost.to(cap.measure) if cap.measure is PrivacyMeasure.RHO else cost
    if stated.delta > 0 and not cap.delta:
        fix = "The budget has no δ: ask for something that needs none, or give it one (`sfumato ledger cap --delta`)."
    digits = next((many for many in (4, 9) if stated.shown(many) != left.shown(many)), 17)
    costs, rest, whole = (loss.shown(digits) for loss in (stated, left, cap))
    return OverBudget(
        f"This costs {costs}, and {account}{_WHEN[period]} has {rest} left of {whole}.",
        fix=fix,
        requested=cost,
        remaining=left,
        account=str(account),
        shared=_shared(account, period),
    )
