"""Tighter totals, filters and odometers."""

from __future__ import annotations

from collections import Counter

import pytest

from sfumato.dp.accounting import Odometer, PrivacyFilter, by_distribution, by_renyi, tightest
from sfumato.dp.loss import NOTHING, approximate, concentrated, pure, sequential
from sfumato.errors import NotComparable, OverBudget

pytest.importorskip("dp_accounting")


def test_many_small_losses_get_a_smaller_total() -> None:
    counted = Counter({pure("0.01"): 1000})
    total = float(sequential(counted.elements()).size)
    renyi = float(by_renyi(counted, delta="1e-6").size)
    distribution = float(by_distribution(counted, delta="1e-6").size)
    assert total == 10
    assert distribution < renyi < 2
    assert distribution == pytest.approx(1.4, abs=0.1)
    assert tightest(counted, delta="1e-6")[0] == "distribution"


def test_one_loss_stays_what_it_is() -> None:
    assert float(by_distribution([pure(1)], delta="1e-9").size) == pytest.approx(1, rel=1e-3)
    assert tightest([pure(1)], delta="1e-9")[1].size <= 1


def test_renyi_of_concentrated_losses_agrees_with_the_direct_conversion() -> None:
    losses = [concentrated("0.05")] * 10
    direct = sequential(losses).at("1e-6")
    assert float(by_renyi(losses, delta="1e-6").size) == pytest.approx(float(direct.size), rel=0.02)
    with pytest.raises(NotComparable):
        by_distribution(losses, delta="1e-6")


def test_own_deltas_are_paid_first() -> None:
    losses = [approximate(1, "1e-6")] * 5
    with pytest.raises(NotComparable):
        by_renyi(losses, delta="5e-6")
    assert float(by_distribution(losses, delta="6e-6").size) <= 5
    assert tightest(losses, delta="5e-6")[0] == "sum"


def test_filter_never_passes_its_budget() -> None:
    guard = PrivacyFilter(pure(1))
    for _ in range(10):
        guard.admit(pure("0.1"))
    with pytest.raises(OverBudget) as refusal:
        guard.admit(pure("1e-9"))
    assert guard.spent == pure(1)
    assert refusal.value.facts["budget"] == pure(1)
    mixed = PrivacyFilter(concentrated("1/2"))
    mixed.admit(pure(1))
    with pytest.raises(OverBudget):
        mixed.admit(concentrated("1e-9"))


def test_odometer_reads_the_sum_in_epsilon_and_more_in_rho() -> None:
    meter = Odometer()
    assert meter.reading() == NOTHING
    meter.add(pure(1))
    assert meter.reading() == pure(1)
    meter.add(concentrated("1/10"))
    reading = meter.reading(delta="1e-6")
    assert reading.size > concentrated("6/10").at("1e-6").size
    assert reading.delta < 1e-6
    with pytest.raises(NotComparable):
        meter.reading()
