"""The ledger as one analyst sees it while one question is answered.

- An answer is free only for an analyst who was charged for the same question before. Another analyst's answer is
  charged, computed anew and replaced by the stored one: neither cost nor time tells what others have asked. The data
  set is charged as for a new answer: a budget that is used up would tell it otherwise.
- Nothing about budgets that are shared with others is told, except that one of them does not cover the question. After
  such a refusal, a question that costs more than half as much is refused without looking, until a shared cap changes:
  refusals are free, and a search by refusals would tell what others spent. So it tells the next lower power of two.
- A question that was charged and interrupted, by a crash for example, is not charged again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from sfumato.dp.loss import NOTHING, PrivacyLoss, PrivacyMeasure, pure
from sfumato.dp.receipt import Receipt
from sfumato.errors import Conflict, NotComparable, OverBudget, UnknownBudget
from sfumato.ledger.accounts import Period
from sfumato.ledger.charge import Charge
from sfumato.ledger.entries import Entry
from sfumato.ledger.ledger import Balance, Ledger, Transaction
from sfumato.rationals import Number
from sfumato.server.roles import Principal
from sfumato.server.state import now

_NO_CAP = "Its owner sets one with `sfumato server budget set`."


class AnalystLedger(Ledger):
    """Charges one analyst and their groups for one question."""

    def __init__(
        self,
        ledger: Ledger,
        principal: Principal,
        *,
        dataset: str,
        max_epsilon: Number | None = None,
        only_stored: bool = False,
    ) -> None:
        super().__init__(ledger.store)
        self._analyst, self._dataset = principal.name, dataset
        self._groups = tuple(f"@{name}" for name in principal.groups)
        self._most = None if max_epsilon is None else pure(max_epsilon)
        self._only_stored = only_stored
        self._spent = NOTHING
        self.charged: list[int] = []
        """Numbers of the entries that were charged."""

    def recall(self, key: str) -> str | None:
        if self.paid(dataset=self._dataset, analyst=self._analyst, query=key) is None:
            return None
        return super().recall(key)

    def recall_charge(self, key: str, analyst: str) -> str | None:
        """What this analyst paid, with the hash of the entry alone: its place would tell how much others ask."""
        record = super().recall(f"{key} paid by {analyst}")
        if record is None:
            return None
        charge = json.loads(record)
        return json.dumps({**charge, "entry": {"hash": charge["entry"]["hash"]}})

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
        if self._only_stored:
            raise Conflict(
                "No new question is answered here.", fix="Questions that you asked before can be read again as asked."
            )
        cost = charge.loss
        self._check_limit(cost)
        self._check_own_budget()
        if self.paid(dataset=self._dataset, analyst=self._analyst, query=charge.key) is None:
            self._check_shared_refusals(cost)
        try:
            receipt = super().charge(
                charge, dataset=self._dataset, analyst=self._analyst, groups=self._groups, once=True,
                records=records,
            )  # fmt: skip
        except UnknownBudget as refusal:
            raise UnknownBudget(refusal.message, fix=_NO_CAP) from None
        except OverBudget as refusal:
            if not refusal.facts["shared"]:
                raise
            self._note_shared_refusal(cost)
            raise _shared(cost) from None
        self.charged.append(receipt.entry)
        return receipt

    def _check_shared_refusals(self, cost: PrivacyLoss) -> None:
        with self.store.read() as transaction:
            rows = transaction.query(
                "SELECT size FROM sfumato_server_shared_refusals "
                "WHERE analyst = ? AND dataset = ? AND measure = ? AND caps = ?",
                self._analyst, self._dataset, str(cost.measure), self._shared_caps(transaction),
            )  # fmt: skip
        if rows and 2 * cost.size > Fraction(rows[0][0]):
            raise _shared(cost)

    def _note_shared_refusal(self, cost: PrivacyLoss) -> None:
        key = self._analyst, self._dataset, str(cost.measure)
        with self.store.write() as transaction:
            caps = self._shared_caps(transaction)
            transaction.query(
                "DELETE FROM sfumato_server_shared_refusals WHERE analyst = ? AND dataset = ? AND measure = ?", *key
            )
            transaction.query(
                "INSERT INTO sfumato_server_shared_refusals (analyst, dataset, measure, caps, size) "
                "VALUES (?, ?, ?, ?, ?)",
                *key, caps, str(cost.size),
            )  # fmt: skip

    def _shared_caps(self, transaction: Transaction) -> str:
        """The newest cap of the shared accounts, and the month, in which budgets may be renewed."""
        marks = ", ".join("?" * (1 + len(self._groups)))
        [(newest,)] = transaction.query(
            f"SELECT max(number) FROM sfumato_ledger WHERE kind IN ('cap', 'month', 'year', 'question') "
            f"AND dataset IN (?, '') AND analyst IN ({marks})",
            self._dataset, "", *self._groups,
        )  # fmt: skip
        return f"{newest} {now()[:7]}"

    def balance(
        self, *, dataset: str = "", analyst: str = "", period: Period = Period.LIFETIME, unit: str | None = None
    ) -> Balance:
        """The balance of the analyst's own accounts; that of others is not told."""
        if analyst != self._analyst:
            return Balance(cap=None, spent=NOTHING, left=None)
        return super().balance(dataset=dataset, analyst=analyst, period=period, unit=unit)

    def _check_limit(self, cost: PrivacyLoss) -> None:
        if self._most is None:
            return
        try:
            total = self._spent + cost.to(PrivacyMeasure.EPSILON)
        except NotComparable:
            raise OverBudget(
                "A limit in epsilon cannot be compared with a cost in rho.", fix="Ask with epsilon.",
                requested=cost, remaining=None, account="limit", shared=False,
            ) from None  # fmt: skip
        if total.size > self._most.size:
            raise OverBudget(
                f"This costs {cost}, and the limit of this request is {self._most}.", fix="Raise max_epsilon.",
                requested=cost, remaining=self._most, account="limit", shared=False,
            )  # fmt: skip
        self._spent = total

    def _check_own_budget(self) -> None:
        """An analyst without a cap of their own or of a group is not answered: budgets have no default."""
        own = [(self._dataset, self._analyst), ("", self._analyst)]
        own += [(where, group) for group in self._groups for where in (self._dataset, "")]
        if all(Ledger.balance(self, dataset=where, analyst=who).cap is None for where, who in own):
            raise UnknownBudget("No budget is set for you on this data set.", fix=_NO_CAP)


def _shared(cost: PrivacyLoss) -> OverBudget:
    return OverBudget(
        f"This costs {cost}, and a budget that you share with other analysts does not cover it.",
        fix="Ask with at most half the epsilon (a larger error), or ask the owner for more budget.",
        requested=cost, remaining=None, account="shared", shared=True,
    )  # fmt: skip
