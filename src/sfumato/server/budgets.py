"""Budgets: caps of data sets, groups, analysts and single questions, and requests for more.

Every cap is an entry of the ledger with who set it and why. An owner sets a first cap or a lower one alone. A higher
cap is a request that two people approve, neither of whom made it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, approximate, concentrated
from sfumato.errors import AccessDenied, BadParameter, Conflict, NoSuchItem
from sfumato.ledger.accounts import Period
from sfumato.ledger.exact_budget import cap_loss
from sfumato.ledger.ledger import Balance, Entry
from sfumato.rationals import Number
from sfumato.server.state import ServerState, now

_APPROVALS = 2
_COLUMNS = "id, by_name, dataset, holder, period, measure, size, delta, why, state, at"


@dataclass(frozen=True, kw_only=True)
class AccountBalance:
    """Cap, accumulated loss since the beginning and remaining loss of one account."""

    dataset: str
    """Empty for all data sets."""
    holder: str
    """An analyst, a group as ``@name``, or empty for the data set itself."""
    period: Period
    cap: PrivacyLoss | None
    spent: PrivacyLoss
    """Within the period; for a cap on single questions and for the lifetime, since the beginning."""
    left: PrivacyLoss | None
    since_beginning: PrivacyLoss
    """The loss that has accumulated since the beginning, whatever was renewed in between."""

    def to_dict(self) -> dict[str, Any]:
        def shown(loss: PrivacyLoss | None) -> dict[str, str] | None:
            return None if loss is None else loss.to_dict()

        return {"dataset": self.dataset, "holder": self.holder, "period": period_name(self.period),
                "cap": shown(self.cap), "spent": shown(self.spent), "left": shown(self.left),
                "since_beginning": shown(self.since_beginning)}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BudgetRequest:
    """A request to raise a cap."""

    id: str
    by: str
    dataset: str
    holder: str
    period: Period
    cap: PrivacyLoss
    why: str
    state: str
    """open, approved or rejected."""
    at: str
    approvals: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "by": self.by, "dataset": self.dataset, "holder": self.holder,
                "period": period_name(self.period), "cap": self.cap.to_dict(), "why": self.why, "state": self.state,
                "at": self.at, "approvals": list(self.approvals)}  # fmt: skip


def period_name(period: Period) -> str:
    """The period as users write it: lifetime, month, year or question.

    >>> period_name(Period.LIFETIME)
    'lifetime'
    """
    return period.name.lower()


def stated_cap(epsilon: Number | None, rho: Number | None, delta: Number) -> PrivacyLoss:
    """A budget as it is written: epsilon or rho, and delta."""
    if epsilon is not None and rho is None:
        return approximate(epsilon, delta)
    if rho is not None and epsilon is None:
        return concentrated(rho, delta)
    raise BadParameter("a budget is given as epsilon or as rho.")


class Budgets:
    """The budgets of a server."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def set_cap(
        self, cap: PrivacyLoss, *, dataset: str, holder: str, by: str, why: str, period: Period = Period.LIFETIME
    ) -> Entry:
        """Set a first cap, or lower one. A higher one needs :meth:`request` and two approvals."""
        old = self._state.ledger.balance(dataset=dataset, analyst=holder, period=period).cap
        if old is not None and not _fits(cap_loss(cap), old):
            raise Conflict(
                f"The cap of this account is {old}. A higher one needs a request that two people approve.",
                fix="Make a request.",
            )
        _check_reason(why)
        return self._state.ledger.set_cap(cap, dataset=dataset, analyst=holder, by=by, why=why, period=period)

    def request(
        self, cap: PrivacyLoss, *, dataset: str, holder: str, by: str, why: str, period: Period = Period.LIFETIME
    ) -> BudgetRequest:
        """Ask for a cap."""
        _check_reason(why)
        identifier = secrets.token_hex(6)
        with self._state.store.write() as transaction:
            transaction.query(
                f"INSERT INTO sfumato_server_requests ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', ?)",
                identifier, by, dataset, holder, str(period), str(cap.measure), str(cap.size), str(cap.delta), why,
                now(),
            )  # fmt: skip
        return self.get(identifier)

    def approve(self, identifier: str, *, by: str) -> BudgetRequest:
        """Approve a request. The cap is set when two people other than the one who made it have approved.

        The owner of the data set is one of them, or made the request: nobody raises a cap without them.
        """
        request = self._open(identifier)
        if by == request.by:
            raise AccessDenied("A request is approved by two people other than the one who made it.")
        with self._state.store.write() as transaction:
            transaction.query(
                "INSERT INTO sfumato_server_approvals (request, by_name, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                identifier, by, now(),
            )  # fmt: skip
        request = self.get(identifier)
        owner = self._owner(request.dataset)
        if len(request.approvals) < _APPROVALS or owner not in (None, request.by, *request.approvals):
            return request
        # A crash between the two steps is harmless: approving again sets the same cap again.
        self._state.ledger.set_cap(
            request.cap, dataset=request.dataset, analyst=request.holder, period=request.period,
            by=" and ".join(request.approvals), why=f"request {identifier} of {request.by}: {request.why}",
        )  # fmt: skip
        return self._close(identifier, "approved")

    def reject(self, identifier: str, *, by: str) -> BudgetRequest:
        """Reject a request. One person is enough."""
        request = self._open(identifier)
        self._state.ledger.record_event(
            f"{by}: rejected request {identifier} of {request.by}", dataset=request.dataset, analyst=request.holder
        )
        return self._close(identifier, "rejected")

    def get(self, identifier: str) -> BudgetRequest:
        """A request by its identifier."""
        for request in self._listed("WHERE id = ?", identifier):
            return request
        raise NoSuchItem("There is no such request.")

    def requests(self, *, by: str | None = None) -> tuple[BudgetRequest, ...]:
        """All requests, or those of one user."""
        return self._listed("") if by is None else self._listed("WHERE by_name = ?", by)

    def balances(self, *, dataset: str = "", holder: str = "") -> tuple[AccountBalance, ...]:
        """The caps of one account with what is spent: the lifetime first, then windows and single questions."""
        lifetime = self._state.ledger.balance(dataset=dataset, analyst=holder)
        found = [_shown(dataset, holder, Period.LIFETIME, lifetime, lifetime)]
        for period in (Period.YEAR, Period.MONTH, Period.QUESTION):
            balance = self._state.ledger.balance(dataset=dataset, analyst=holder, period=period)
            if balance.cap is not None:
                found.append(_shown(dataset, holder, period, balance, lifetime))
        return tuple(found)

    def accounts(self) -> tuple[tuple[str, str], ...]:
        """Every account that has a cap or a charge, as data set and holder."""
        known: dict[tuple[str, str], None] = {}
        for entry in self._state.ledger.entries():
            if entry.kind != "event":
                known[entry.dataset, entry.analyst] = None
            if entry.kind == "spend":
                known[entry.dataset, ""] = None
        return tuple(sorted(known))

    def _owner(self, dataset: str) -> str | None:
        """The owner of a data set; None for an account over all data sets."""
        with self._state.store.read() as transaction:
            rows = transaction.query("SELECT owner FROM sfumato_server_datasets WHERE name = ?", dataset)
        return str(rows[0][0]) if rows else None

    def _open(self, identifier: str) -> BudgetRequest:
        request = self.get(identifier)
        if request.state != "open":
            raise Conflict(f"The request is {request.state} already.")
        return request

    def _close(self, identifier: str, state: str) -> BudgetRequest:
        with self._state.store.write() as transaction:
            transaction.query("UPDATE sfumato_server_requests SET state = ? WHERE id = ?", state, identifier)
        return self.get(identifier)

    def _listed(self, where: str, *values: str) -> tuple[BudgetRequest, ...]:
        with self._state.store.read() as transaction:
            rows = transaction.query(
                f"SELECT {_COLUMNS} FROM sfumato_server_requests {where} ORDER BY at DESC, id", *values
            )
            given = transaction.query("SELECT request, by_name FROM sfumato_server_approvals ORDER BY at, by_name")
        return tuple(
            BudgetRequest(
                id=row[0], by=row[1], dataset=row[2], holder=row[3], period=Period(row[4]),
                cap=PrivacyLoss(measure=PrivacyMeasure(row[5]), size=Fraction(row[6]), delta=Fraction(row[7])),
                why=row[8], state=row[9], at=row[10],
                approvals=tuple(name for request, name in given if request == row[0]),
            )
            for row in rows
        )  # fmt: skip


def _check_reason(why: str) -> None:
    if not why.strip():
        raise BadParameter("a change of a budget needs a reason.", fix="Say why.")


def _shown(dataset: str, holder: str, period: Period, balance: Balance, lifetime: Balance) -> AccountBalance:
    left = balance.cap if period is Period.QUESTION else balance.left
    return AccountBalance(
        dataset=dataset, holder=holder, period=period, cap=balance.cap, spent=balance.spent, left=left,
        since_beginning=lifetime.spent,
    )  # fmt: skip


def _fits(cap: PrivacyLoss, old: PrivacyLoss) -> bool:
    """Whether a cap is not above an old one, in the same measure."""
    return cap.measure is old.measure and cap.size <= old.size and cap.delta <= old.delta
