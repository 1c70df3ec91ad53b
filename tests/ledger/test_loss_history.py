"""Accumulated loss over time: every point is the balance that the ledger told then."""

from __future__ import annotations

import pytest

from sfumato.dp.loss import PrivacyLoss, approximate, concentrated, pure
from sfumato.ledger.charge import Charge
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.loss_history import loss_history

BUDGETS: dict[str, tuple[PrivacyLoss, list[PrivacyLoss]]] = {
    "epsilon": (pure(3), [pure("0.5"), pure("0.25"), pure(1)]),
    "rho": (concentrated(1, 0), [concentrated("0.1", 0), concentrated("0.2", 0)]),
    "epsilon and delta": (approximate(3, "1/1000000"), [pure("0.5"), concentrated("0.01", 0), concentrated("0.02", 0)]),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_every_point_is_the_balance_of_its_time(name: str) -> None:
    cap, costs = BUDGETS[name]
    ledger = Ledger.open(":memory:")
    told: dict[str, list[PrivacyLoss]] = {"": [], "ada": []}
    ledger.set_cap(cap, dataset="hospital")
    ledger.set_cap(cap, dataset="other")
    told[""].append(ledger.balance(dataset="hospital").spent)
    for number, cost in enumerate(costs):
        who = "ada" if number % 2 == 0 else "bob"
        ledger.charge(Charge(loss=cost, unit="row", what=str(number)), dataset="hospital", analyst=who)
        ledger.charge(Charge(loss=costs[0], unit="row", what=f"other {number}"), dataset="other", analyst=who)
        told[""].append(ledger.balance(dataset="hospital").spent)
        if who == "ada":
            told["ada"].append(ledger.balance(dataset="hospital", analyst="ada").spent)
    for analyst, expected in told.items():
        points = loss_history(ledger, dataset="hospital", analyst=analyst)
        assert [point.spent for point in points] == expected
    assert [point.cap for point in loss_history(ledger, dataset="hospital")] == [cap] * (len(costs) + 1)


def test_a_long_history_is_thinned_and_keeps_its_end() -> None:
    ledger = Ledger.open(":memory:")
    ledger.set_cap(pure(10), dataset="hospital")
    for number in range(40):
        ledger.charge(Charge(loss=pure("0.1"), unit="row", what=str(number)), dataset="hospital", analyst="ada")
    points = loss_history(ledger, dataset="hospital", most=7)
    assert len(points) <= 7
    assert points[-1].spent == ledger.balance(dataset="hospital").spent
    assert [point.entry for point in points] == sorted({point.entry for point in points})
