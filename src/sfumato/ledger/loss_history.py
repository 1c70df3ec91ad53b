"""Accumulated privacy loss over time: what the ledger had charged to an account after each charge."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.ledger.accounts import Account, Period, cap_of, charge_of, total_after
from sfumato.ledger.composition import BudgetCap, spent_of
from sfumato.ledger.exact_budget import Amount
from sfumato.ledger.ledger import Entry, Ledger


@dataclass(frozen=True, kw_only=True)
class LossPoint:
    """The account after one entry of the ledger."""

    at: str
    entry: int
    spent: PrivacyLoss
    cap: PrivacyLoss | None

    def to_dict(self) -> dict[str, object]:
        cap = None if self.cap is None else self.cap.to_dict()
        return {"at": self.at, "entry": self.entry, "spent": self.spent.to_dict(), "cap": cap}


def loss_history(ledger: Ledger, *, dataset: str, analyst: str = "", most: int = 500) -> tuple[LossPoint, ...]:
    """The loss of a data set, or of an analyst on it, after every charge and every new lifetime cap.

    The loss after a charge is the one that :meth:`~sfumato.ledger.ledger.Ledger.balance` returned then. At most
    ``most`` entries are evaluated, evenly spread and with the last one.

    >>> from sfumato.dp.loss import pure
    >>> from sfumato.ledger.charge import Charge
    >>> ledger = Ledger.unkept()
    >>> entry = ledger.set_cap(pure(1), dataset="hospital")
    >>> charge = Charge(loss=pure("0.25"), unit="row", what="1")
    >>> receipt = ledger.charge(charge, dataset="hospital", analyst="ada")
    >>> [str(point.spent) for point in loss_history(ledger, dataset="hospital")]
    ['ε = 0', 'ε = 0.25']
    """
    account = Account(dataset, analyst, ledger.unit(dataset) or "")
    kept = [entry for entry in ledger.entries() if _concerns(entry, account)]
    step = max(1, -(-len(kept) // most))
    shown = {entry.number for entry in kept[::-1][::step]}
    caps: dict[str, BudgetCap] = {}
    total, first = Amount(), None
    points = []
    for entry in kept:
        if entry.kind == Period.LIFETIME:
            caps[entry.analyst] = cap_of(entry.measure, entry.size, entry.delta, entry.totals)
        else:
            first, total = first or charge_of(entry.totals), total_after(entry.totals, account)
        if entry.number in shown and (entry.kind == "spend" or entry.analyst == analyst):
            cap = caps.get(analyst)
            points.append(LossPoint(at=entry.at, entry=entry.number, spent=_spent(total, cap, first, caps.get("")),
                                    cap=None if cap is None else cap.loss))  # fmt: skip
    return tuple(points)


def _concerns(entry: Entry, account: Account) -> bool:
    if entry.dataset != account.dataset:
        return False
    if entry.kind == "spend":
        return account.analyst in ("", entry.analyst) and entry.unit == account.unit
    return entry.kind == Period.LIFETIME and entry.analyst in ("", account.analyst) and not entry.unit


def _spent(total: Amount, cap: BudgetCap | None, first: Amount | None, whole: BudgetCap | None) -> PrivacyLoss:
    if cap is None:
        return total.loss(PrivacyMeasure.EPSILON if whole is None else whole.loss.measure)
    return spent_of(total, cap, first)
