"""The samplers decide exactly: floats only speed them up."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from sfumato.dp import os_random, sampler
from sfumato.dp.sampler import (
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    exponential_race,
    round_scale_up,
    rounded_normal,
)
from sfumato.errors import BadParameter


@pytest.fixture
def fixed_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os_random, "os", SimpleNamespace(urandom=np.random.Generator(np.random.PCG64(5)).bytes))


@pytest.mark.usefixtures("fixed_bytes")
@pytest.mark.parametrize("bound", [1, 2, 3, 7, 1 << 20, (1 << 62) - 1])
def test_uniform_integers_cover_their_range(bound: int) -> None:
    drawn = os_random.below(bound, 20_000)
    assert drawn.min() >= 0
    assert drawn.max() < bound
    if bound <= 7:
        assert stats.chisquare(np.bincount(drawn, minlength=bound)).pvalue > 1e-6 or bound == 1
    assert abs(drawn.mean() / bound - (bound - 1) / (2 * bound)) < 0.02


@pytest.mark.usefixtures("fixed_bytes")
@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(1, 10**30), 1 - Fraction(1, 3**50)])
def test_rational_coins(chance: Fraction) -> None:
    assert abs(bernoulli(chance, 4000).mean() - float(chance)) < 0.04


@pytest.mark.usefixtures("fixed_bytes")
def test_undecided_draws_are_settled_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a bracket so wide that a quarter of the draws go the exact way, the distribution stays the same."""
    monkeypatch.setattr(sampler, "_MARGIN", 0.2)
    rates = np.full(6000, 0.7)
    yes = bernoulli_exp(rates, lambda _i: Fraction(7, 10)).mean()
    assert abs(yes - np.exp(-0.7)) < 5 * np.sqrt(np.exp(-0.7) * (1 - np.exp(-0.7)) / 6000)
    drawn = discrete_laplace(Fraction(5, 2), 3000)
    q = np.exp(-0.4)
    support = np.arange(-12, 13)
    expected = 3000 * (1 - q) / (1 + q) * q ** np.abs(support)
    observed = np.array([(drawn == y).sum() for y in support])
    assert stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(support)) > 1e-6


def test_exact_decisions_agree_with_the_truth() -> None:
    """A uniform number whose first bits lie clearly on one side is decided that way."""
    assert sampler._below_exp(0, Fraction(30)) is True
    assert sampler._below_exp((1 << 53) - 1, Fraction(1, 10)) is False
    assert sampler._whole_exponential(int(2**53 * np.exp(-3.5))) == 3
    assert sampler._refine_race([(4, 10, Fraction(0), 1), (9, 1 << 52, Fraction(0), 1)]) == 4


@pytest.mark.usefixtures("fixed_bytes")
def test_race_with_near_ties_goes_the_exact_way(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    exact = sampler._refine_race
    monkeypatch.setattr(sampler, "_FULL", 2.0**53)
    monkeypatch.setattr(sampler, "_prefixes", lambda count: np.zeros(count))
    monkeypatch.setattr(sampler, "_refine_race", lambda runners: seen.append(len(runners)) or exact(runners))
    chosen = [exponential_race(np.array([0, 0, 2]), Fraction(1)) for _ in range(600)]
    assert set(seen) == {3}
    weight = np.array([1, 1, np.exp(-2)])
    assert stats.chisquare(np.bincount(chosen, minlength=3), 600 * weight / weight.sum()).pvalue > 1e-6


@pytest.mark.usefixtures("fixed_bytes")
def test_race_respects_sizes_and_never_picks_an_empty_candidate() -> None:
    chosen = np.array([exponential_race(np.array([5, 0, 1]), Fraction(1, 2), np.array([0, 2, 6])) for _ in range(4000)])
    weight = np.array([0, 2, 6 * np.exp(-0.5)])
    observed = np.bincount(chosen, minlength=3)
    assert observed[0] == 0
    assert stats.chisquare(observed[1:], 4000 * weight[1:] / weight.sum()).pvalue > 1e-6


@pytest.mark.parametrize(
    "scale", [Fraction(1, 3), Fraction(10, 3), Fraction(2**80, 3**40), Fraction(10**17, 10**16 + 1)]
)
def test_a_scale_is_never_made_smaller(scale: Fraction) -> None:
    assert round_scale_up(scale) >= scale
    assert round_scale_up(scale) <= scale * (1 + Fraction(1, 10**5)) + Fraction(1, 1 << 20)


def test_large_scales_stay_inside_machine_integers() -> None:
    drawn = discrete_laplace(Fraction(1 << 54), 20_000)
    assert 0.9 < np.abs(drawn.astype(float)).mean() / 2**54 < 1.1
    wide = discrete_gaussian(Fraction(1 << 100), 20_000).astype(float)
    assert 0.9 < wide.std() / 2**50 < 1.1
    with pytest.raises(BadParameter):
        discrete_laplace(Fraction(1 << 60), 1)
    with pytest.raises(BadParameter):
        discrete_gaussian(Fraction(1 << 101), 1)


@pytest.mark.parametrize("scale", [0, -1])
def test_no_noise_is_not_noise(scale: int) -> None:
    with pytest.raises(BadParameter):
        discrete_laplace(Fraction(scale), 1)
    with pytest.raises(BadParameter):
        discrete_gaussian(Fraction(scale), 1)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [2.0, 7.5])
def test_same_distribution_as_opendp(scale: float) -> None:
    """Two samples of 60,000, chi-squared: an error of 3 % in the scale gives p below 1e-4."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    count = 60_000
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    theirs = np.array(dp.m.make_laplace(*space, scale=scale)([0] * count))
    ours = discrete_laplace(Fraction(scale), count)
    assert _same(ours, theirs) > 1e-6
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = np.array(dp.m.make_gaussian(*space, scale=scale)([0] * count))
    assert _same(discrete_gaussian(Fraction(scale) ** 2, count), theirs) > 1e-6
    assert _same(discrete_gaussian((Fraction(scale) * Fraction(9, 10)) ** 2, count), theirs) < 1e-6


def _same(a: np.ndarray, b: np.ndarray) -> float:
    both, edge = np.concatenate([a, b]), 0
    edge = int(np.quantile(np.abs(both), 0.995))
    table = [np.bincount(np.clip(x, -edge, edge) + edge, minlength=2 * edge + 1) for x in (a, b)]
    return float(stats.chi2_contingency(np.array(table)).pvalue)


@pytest.mark.usefixtures("fixed_bytes")
@pytest.mark.parametrize(("margin", "count"), [(None, 200_000), (0.2, 4_000)])
@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(7, 3), Fraction(50)])
def test_rounded_normals(variance: Fraction, margin: float | None, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with a bracket so wide that many draws are decided by drawing more bits of both uniform numbers."""
    if margin is not None:
        monkeypatch.setattr(sampler, "_MARGIN", margin)
    drawn, deviation = rounded_normal(variance, count), float(variance) ** 0.5
    support = np.arange(-int(4 * deviation) - 1, int(4 * deviation) + 2)
    chance = stats.norm.cdf((support + 0.5) / deviation) - stats.norm.cdf((support - 0.5) / deviation)
    kept = chance * count >= 10
    observed = np.array([(drawn == y).sum() for y in support[kept]])
    distance = ((observed - count * chance[kept]) ** 2 / (count * chance[kept])).sum()
    assert stats.chi2.sf(distance, kept.sum()) > 1e-6
    wrong = stats.norm.cdf((support + 0.5) / deviation / 0.9) - stats.norm.cdf((support - 0.5) / deviation / 0.9)
    distance = ((observed - count * wrong[kept]) ** 2 / (count * wrong[kept])).sum()
    assert margin is not None or stats.chi2.sf(distance, kept.sum()) < 1e-6


@pytest.mark.parametrize(("k", "prefix"), [(0, (1 << 52) - 1), (0, 0), (3, 12345), (1, (1 << 53) - 1)])
def test_the_rate_of_a_normal_is_bracketed_closer_and_closer(k: int, prefix: int) -> None:
    centre, variance = Fraction(5, 4), Fraction(5)
    more = sampler._normal_rate(k, prefix, centre, variance)
    first, second = more(), more()
    assert first[0] <= second[0] <= second[1] <= first[1]
    assert second[1] - second[0] < Fraction(1, 1 << 150)
    v = Fraction(prefix, 1 << 53) - Fraction(1, 2)
    assert abs(second[0] - ((k + v - centre) ** 2 + centre * (1 + 2 * v)) / (2 * variance)) < Fraction(1, 1 << 50)


@pytest.mark.parametrize("variance", [Fraction(1, 5), Fraction(1 << 101)])
def test_normals_too_small_or_too_large_are_refused(variance: Fraction) -> None:
    with pytest.raises(BadParameter):
        rounded_normal(variance, 1)


@pytest.mark.usefixtures("fixed_bytes")
def test_long_draws_come_in_batches_of_the_same_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "_BATCH", 1000)
    drawn = discrete_gaussian(Fraction(9), 20_000)
    assert len(drawn) == 20_000
    # The standard error of a variance of 9 is 0.09.
    assert abs(drawn.var() - 9) < 0.5
    assert abs(drawn.mean()) < 0.12
