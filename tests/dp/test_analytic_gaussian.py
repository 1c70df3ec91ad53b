"""The exact privacy of normal noise: against SciPy, against its own definition, and never on the wrong side."""

from __future__ import annotations

import random
from fractions import Fraction
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.dataset import Column, Kind, RangeDomain, Role, Schema
from sfumato.dp.analytic_gaussian import _normal, normal_delta, normal_epsilon, squared_for
from sfumato.dp.loss import approximate, sequential
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.dp.zcdp import epsilon_at, rho_for
from sfumato.errors import AnswerFailed, BadParameter
from sfumato.query import Catalog, PrivateTable
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query

PAIRS = [
    ("1", "1e-6"),
    ("0.1", "1e-6"),
    ("3", "1e-9"),
    ("8", "1e-5"),
    ("0.001", "1e-12"),
    ("0.5", "0.01"),
    ("1", "1e-25"),
]


@pytest.mark.parametrize("x", ["0", "1", "-5", "-9", "13", "-13.5", "1e-6", "0.3"])
def test_the_normal_distribution_is_bracketed(x: str) -> None:
    low, high = _normal(Fraction(x))
    assert 0 < high - low <= Fraction(2, 10**60)
    truth = float(stats.norm.cdf(float(x)))
    assert float(low) == pytest.approx(truth, rel=1e-13)


def test_thirty_digits_of_the_normal_distribution() -> None:
    """P(-5) and P(1) from the tables of the error function (DLMF 7.2), to 30 digits."""
    assert abs(_normal(Fraction(1))[0] - Fraction("0.841344746068542948585232545632")) < Fraction(1, 10**29)
    assert abs(_normal(Fraction(-5))[0] - Fraction("2.86651571879193911673752333e-7")) < Fraction(1, 10**32)
    assert _normal(Fraction(-15)) == (Fraction(0), Fraction(1, 10**44))
    assert _normal(Fraction(15))[1] == 1


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_what_is_found_holds_and_is_nearly_the_best(epsilon: str, delta: str) -> None:
    e, d = Fraction(epsilon), Fraction(delta)
    squared = squared_for(e, d)
    assert normal_epsilon(squared, d) <= e
    assert normal_delta(squared, e) <= d
    assert normal_delta(squared * Fraction(10001, 10000), e) > d
    assert normal_delta(squared, e * Fraction(9999, 10000)) > d
    assert squared > 2 * rho_for(e, d), "concentrated privacy would have done better"


@pytest.mark.parametrize("epsilon", [90, 150, 300, 700, 1000])
@pytest.mark.parametrize("delta", ["1e-6", "1e-20"])
def test_a_large_epsilon_is_answered_by_concentrated_privacy(epsilon: int, delta: str) -> None:
    """The true delta is at most the promised one, by the logarithm of the normal distribution function."""
    e, d = Fraction(epsilon), Fraction(delta)
    m = sqrt(squared_for(e, d))
    assert normal_epsilon(squared_for(e, d), d) <= e
    here, there = (stats.norm.logcdf(side * m / 2 - epsilon / m) for side in (1, -1))
    assert exp(here) - exp(epsilon + there) <= float(d)
    assert m**2 > 2 * epsilon - 4 * sqrt(2 * epsilon * -np.log(float(d))), "far from what it may be"


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS[:6])
def test_the_condition_is_that_of_balle_and_wang(epsilon: str, delta: str) -> None:
    m, e = sqrt(squared_for(Fraction(epsilon), Fraction(delta))), float(epsilon)
    truth = stats.norm.cdf(m / 2 - e / m) - exp(e) * stats.norm.cdf(-m / 2 - e / m)
    assert truth == pytest.approx(float(delta), rel=1e-3)


def test_published_calibration() -> None:
    """Noise for epsilon 1 and delta 1e-5 at distance 1: 3.7306 standard deviations by the analytic Gaussian mechanism,
    where the classic formula sqrt(2 ln(1.25 / delta)) / epsilon asks for 4.8448."""
    assert float(squared_for(Fraction(1), Fraction(1, 10**5))) ** -0.5 == pytest.approx(3.7306, abs=5e-4)


def delta_of(variance: float, shift: list[int], epsilon: float) -> float:
    """The exact delta between a vector and one moved by ``shift`` under rounded normal noise: all outcomes."""
    reach = int(9 * variance**0.5) + 2 + max(shift)
    ys = np.arange(-reach, reach + 1)

    def chances(centre: int) -> np.ndarray:
        low, high = ((ys - centre + side) / variance**0.5 for side in (-0.5, 0.5))
        upper, lower = stats.norm.sf(low) - stats.norm.sf(high), stats.norm.cdf(high) - stats.norm.cdf(low)
        found: np.ndarray = np.where(ys > centre, upper, lower)
        return found

    here, there = np.ones(1), np.ones(1)
    for step in shift:
        here, there = np.multiply.outer(here, chances(0)).ravel(), np.multiply.outer(there, chances(step)).ravel()
    return float(np.maximum(0, here - exp(epsilon) * there).sum())


@pytest.mark.parametrize("shift", [[1], [3], [1, 1], [2, 1], [1, 1, 1]])
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-3"), ("2", "1e-2"), ("4", "1e-4")])
def test_rounded_noise_keeps_its_promise_over_all_outcomes(shift: list[int], epsilon: str, delta: str) -> None:
    squared = sum(step * step for step in shift)
    noise = RoundedGaussian.for_budget(epsilon, delta, squared=squared)
    found = delta_of(float(noise.variance), shift, float(epsilon))
    assert found <= float(delta) * (1 + 1e-9)
    if noise.variance > 4:  # on a coarser grid, rounding itself hides something
        assert found > 0.5 * float(delta), "far from what it may be"
        less = delta_of(float(noise.variance) * 0.9, shift, float(epsilon))
        assert less > float(delta), "a tenth less variance would have done"


def test_discrete_noise_of_that_size_would_not() -> None:
    """Why the discrete Gaussian is not calibrated so: on a grid of 1 its delta can be three times as large."""
    variance = 1 / float(squared_for(Fraction(8), Fraction(1, 10**6)))
    ys = np.arange(-20, 21)
    here, there = (np.exp(-((ys - c) ** 2) / (2 * variance)) for c in (0, 1))
    found = np.maximum(0, here - exp(8) * there).sum() / here.sum()
    assert found > 2.9e-6


def test_less_noise_than_through_rho() -> None:
    through = Gaussian.for_budget(1, "1e-6")
    direct = RoundedGaussian.for_budget(1, "1e-6")
    assert 0.93 < sqrt(direct.variance / through.variance) < 0.94
    assert direct.loss(1) <= approximate(1, "1e-6")


def test_losses_are_ordered() -> None:
    draw = random.Random(4)
    for _ in range(12):
        noise = RoundedGaussian(
            variance=Fraction(draw.randint(1, 400), 4), delta=Fraction(1, 10 ** draw.randint(2, 12))
        )
        small, large = sorted(Fraction(draw.randint(1, 300), 7) for _ in range(2))
        assert noise.loss(small) <= noise.loss(large)
        assert noise.loss(small).size <= epsilon_at(small**2 / (2 * noise.variance), noise.delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, "1e-6"), (1, 0), (1, 1), (1, "1e-31")])
def test_no_noise_for_no_budget(epsilon: int, delta: str) -> None:
    with pytest.raises(BadParameter):
        squared_for(Fraction(epsilon), Fraction(delta))


def plan(delta: str, items: str = "COUNT(*)") -> NoisePlan:
    columns = {"p": Column(role=Role.PLAIN, kind=Kind.INTEGER), "k": Column(role=Role.PLAIN, kind=Kind.BOOLEAN),
               "x": Column(role=Role.PLAIN, kind=Kind.NUMBER, domain=RangeDomain(low=0, high=9))}  # fmt: skip
    table = PrivateTable(name="t", schema=Schema(columns=columns, unit="p"), rows=3, groups=2)
    question = parse_query(f"SELECT k, {items} FROM t GROUP BY k", Catalog(dataset="d", private={"t": table}))
    return plan_query(question, approximate(1, delta), bounding="clip")


def test_one_draw_and_several_together_have_the_exact_trade() -> None:
    [alone] = plan("1e-6").measurements
    assert isinstance(alone.mechanism, RoundedGaussian)
    assert alone.loss <= approximate(1, "1e-6")
    assert alone.loss.size > Fraction(999, 1000)
    assert alone.mechanism.variance < Gaussian.for_budget(1, "1e-6", squared=alone.sensitivity).variance
    # A sum and the number of its rows are shares, also where vectors are scaled down: one draw of two parts.
    [shared] = plan("1e-6", "COUNT(*), SUM(x)").measurements
    assert isinstance(shared.mechanism, RoundedGaussian)
    assert shared.parts == 2
    assert Fraction(999, 1000) < shared.loss.size
    assert shared.loss <= approximate(1, "1e-6")
    # A count of some rows and one of all are shares, too; people and rows are counted by two draws.
    assert len(plan("1e-6", "COUNT(*), COUNT_IF(x > 3)").measurements) == 1
    several = plan("1e-6", "COUNT(*), COUNT(DISTINCT p)")
    assert [type(draw.mechanism) for draw in several.measurements] == [RoundedGaussian, RoundedGaussian]
    both = sequential(draw.loss for draw in several.measurements)
    assert both <= approximate(1, "1e-6")
    assert not both <= approximate("0.999", "1e-6")
    assert both.size > rho_for(1, "1e-6"), "zero-concentrated composition would have done as well"


def test_a_delta_too_small_for_the_exact_trade_goes_through_rho() -> None:
    [draw] = plan("1e-40").measurements
    assert type(draw.mechanism) is Gaussian


def test_noise_below_a_grid_step_is_discrete() -> None:
    assert type(RoundedGaussian.or_discrete(1, "1e-6")) is RoundedGaussian
    assert type(RoundedGaussian.or_discrete(20, "1e-6")) is Gaussian
    with pytest.raises(BadParameter):
        RoundedGaussian(variance="1/5", delta="1e-6").steps()


def test_a_plan_with_too_little_noise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = RoundedGaussian.or_discrete

    def less(*cost: Any, squared: Fraction, grid: Fraction) -> Gaussian:
        return honest(*cost, squared=squared * Fraction(999, 1000), grid=grid)

    monkeypatch.setattr(RoundedGaussian, "or_discrete", less)
    with pytest.raises(AnswerFailed):
        plan("1e-6")
