"""Losses: exact sums, an order, and conversions that only ever round up."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.dp.loss import (
    NOTHING,
    PrivacyLoss,
    PrivacyMeasure,
    advanced,
    approximate,
    concentrated,
    parallel,
    pure,
    sequential,
)
from sfumato.dp.zcdp import epsilon_at, rho_for
from sfumato.errors import BadParameter, NotComparable

sizes = st.fractions(min_value=0, max_value=20, max_denominator=1000)
deltas = st.fractions(min_value=0, max_value=Fraction(1, 100), max_denominator=10**6)
losses = st.builds(
    lambda m, s, d: PrivacyLoss(measure=m, size=s, delta=d), st.sampled_from(list(PrivacyMeasure)), sizes, deltas
)


def test_sums_are_exact() -> None:
    assert sequential([pure(0.1)] * 10) == pure(1)
    assert pure("1/3") + approximate("2/3", "1e-6") == approximate(1, "1e-6")
    assert concentrated("1/8") + pure(1) == concentrated("5/8")


@given(losses, losses, losses)
def test_composition_commutes_and_only_grows(a: PrivacyLoss, b: PrivacyLoss, c: PrivacyLoss) -> None:
    assert a + b == b + a
    if a.measure is b.measure is c.measure:
        assert (a + b) + c == a + (b + c)
        assert a <= a + b
    assert a + NOTHING == a


@given(losses, losses)
def test_order_agrees_with_the_parts(a: PrivacyLoss, b: PrivacyLoss) -> None:
    if a.measure is b.measure:
        assert (a <= b) == (a.size <= b.size and a.delta <= b.delta)
    assert a <= a


def test_parallel_takes_the_largest() -> None:
    assert parallel([pure(1), pure(3), approximate(2, "1e-9")]) == approximate(3, "1e-9")
    assert parallel([]) == NOTHING


def test_group_privacy() -> None:
    assert pure("1/2").for_group(4) == pure(2)
    assert concentrated("1/2").for_group(3) == concentrated("9/2")
    grown = approximate(1, "1e-9").for_group(3)
    assert grown.size == 3
    assert 3 * exp(2) * 1e-9 <= float(grown.delta) < 3.0001 * exp(2) * 1e-9
    with pytest.raises(NotComparable):
        concentrated(1, "1e-9").for_group(2)


@pytest.mark.parametrize(
    "stated",
    [pure(1), pure(20), approximate(1, "1e-6"), approximate(8, "1e-3"), approximate("1/100", "1/2"), concentrated(2)],
)
def test_a_budget_for_replacement_is_the_largest_that_implies_it(stated: PrivacyLoss) -> None:
    """Group privacy of two leads back to what was stated, and not from a loss that is 0.1 % larger."""
    single = stated.for_replacement()
    assert single.for_group(2) <= stated
    more = Fraction(1001, 1000)
    for larger in (replace(single, size=single.size * more), replace(single, delta=single.delta * more)):
        assert larger == single or not larger.for_group(2) <= stated
    with pytest.raises(NotComparable):
        concentrated(1, "1e-9").for_replacement()


@pytest.mark.parametrize(("rho", "delta"), [("1/2", "1e-6"), ("0.01", "1e-9"), ("1e-8", "1e-3"), (8, "1e-12")])
def test_rho_to_epsilon_is_valid_and_tighter_than_the_classic_bound(rho: str, delta: str) -> None:
    r, d = Fraction(rho), Fraction(delta)
    epsilon = float(epsilon_at(r, d))
    classic = float(r) + 2 * sqrt(float(r) * log(1 / float(d)))
    assert 0 <= epsilon <= classic  # 0 where delta covers all of it
    # Gaussian noise with this rho has exactly known delta(epsilon); the bound must not promise less.
    from scipy.stats import norm

    mu = sqrt(2 * float(r))
    truth = norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert truth <= float(d) * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), ("0.01", "1e-9"), (10, "1e-6"), ("0.5", "1e-2")])
def test_rho_for_inverts_epsilon_at(epsilon: str, delta: str) -> None:
    rho = rho_for(epsilon, delta)
    assert epsilon_at(rho, Fraction(delta)) <= Fraction(epsilon)
    assert epsilon_at(rho * Fraction(1001, 1000), Fraction(delta)) > Fraction(epsilon)


def test_rho_has_no_epsilon_without_delta() -> None:
    with pytest.raises(NotComparable):
        concentrated("1/2").to(PrivacyMeasure.EPSILON)
    assert not concentrated("1/2") <= pure(100)
    assert concentrated("1/2") <= approximate(6, "1e-6")
    assert not concentrated("1/2") <= approximate(5, "1e-6")


def test_advanced_composition_beats_the_sum_for_many_small_losses() -> None:
    many = advanced([pure("0.01")] * 1000, "1e-6")
    assert many.delta == Fraction(1, 10**6)
    assert float(many.size) == pytest.approx(
        1000 * 0.01 * (exp(0.01) - 1) / (exp(0.01) + 1) + sqrt(2 * log(1e6) * 1000 * 1e-4), rel=1e-9
    )
    assert advanced([pure(1)] * 2, "1e-6") == pure(2)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1, True])
def test_what_is_no_loss_is_refused(bad: float) -> None:
    with pytest.raises(BadParameter):
        pure(bad)
    with pytest.raises(BadParameter):
        approximate(1, bad)
