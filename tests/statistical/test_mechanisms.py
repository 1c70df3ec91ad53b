"""Every mechanism against its exact distribution, with mutants that must be caught.

The bytes of the operating system are replaced by a fixed stream, so a run always gives the same verdict; the samplers
and mechanisms under test are the real ones. For each mechanism the exact probabilities of its outputs are written down
here independently, as a function of a multiplier theta on the noise (1 is the claim).

* Scale: the mean of the score d/d(theta) log p, the efficient statistic, within 4 standard errors of 0. The number of
  draws is such that theta = 0.97 lies at least 6 standard errors away, so an error of 3 % is caught; 5 % for the
  mechanisms that draw one output at a time.
* Shape: chi-squared over all outputs of expected count >= 10, p > 1e-6.
* Loss: the largest log-ratio of exact probabilities between two neighbouring inputs does not exceed the claim, and
  neither does a Clopper-Pearson lower bound (99.9 %) from draws; with a neighbour twice as far away it does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.dp import os_random
from sfumato.dp.loss import approximate
from sfumato.dp.mechanism import Mechanism
from sfumato.dp.mechanisms import quantiles
from sfumato.dp.mechanisms.exponential import Exponential
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.mechanisms.geometric import Geometric
from sfumato.dp.mechanisms.histogram import Histogram
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.mechanisms.partition_selection import PartitionSelection
from sfumato.dp.mechanisms.quantile import Quantile
from sfumato.dp.mechanisms.quantiles import Quantiles
from sfumato.dp.mechanisms.randomized_response import RandomizedResponse
from sfumato.dp.mechanisms.report_noisy_max import ReportNoisyMax
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.dp.mechanisms.sample_and_aggregate import SampleAndAggregate
from sfumato.dp.mechanisms.sparse_vector import SparseVector
from sfumato.dp.mechanisms.thresholded_gaussian import ThresholdedGaussian
from sfumato.dp.mechanisms.thresholded_laplace import ThresholdedLaplace
from sfumato.dp.mechanisms.top_keys import TopKeys
from sfumato.dp.receipt import issue
from sfumato.registry import registry
from sfumato.secret import SecretValue

Pmf = Callable[[Any, float], dict[int, float]]


@pytest.fixture(autouse=True)
def fixed_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = np.random.Generator(np.random.PCG64(20201)).bytes
    monkeypatch.setattr(os_random, "os", SimpleNamespace(urandom=stream))


@dataclass(frozen=True, kw_only=True)
class Audit:
    make: Callable[[float], Mechanism]
    """The mechanism with its noise times theta."""
    draw: Callable[[Mechanism, Any, int], np.ndarray]
    """Whole-number outputs."""
    pmf: Pmf
    """Exact chances of the outputs for an input and theta."""
    base: Any
    near: Any
    """A neighbour at the sensitivity claimed."""
    far: Any
    """A neighbour twice as far away."""
    count: int
    few: int = 4_000
    """Draws for the loss; the scale needs more."""
    error: float = 0.03
    """Relative error of the noise that is caught."""
    delta: float = 0.0


def receipt(mechanism: Mechanism) -> Any:
    return (
        issue(approximate(10**9, 1), dataset="d", entry=1)
        if not isinstance(mechanism, Gaussian) or isinstance(mechanism, RoundedGaussian)
        else issue(mechanism.loss(10**6), dataset="d", entry=1)
    )


def vector(mechanism: Mechanism, value: int, count: int) -> np.ndarray:
    return np.asarray(mechanism.release(SecretValue(np.full(count, value)), receipt=receipt(mechanism)))


def calls(result: Callable[[Any], int] = int) -> Callable[[Mechanism, Any, int], np.ndarray]:
    def draw(mechanism: Mechanism, value: Any, count: int) -> np.ndarray:
        paid, secret = receipt(mechanism), SecretValue(np.array(value))
        return np.array([result(mechanism.release(secret, receipt=paid)) for _ in range(count)])

    return draw


def laplace_pmf(scale: float, reach: int = 1000) -> dict[int, float]:
    q = np.exp(-1 / scale)
    return {y: float((1 - q) / (1 + q) * q ** abs(y)) for y in range(-reach, reach + 1)}


def shifted(scale: float) -> Pmf:
    return lambda value, theta: {value + y: p for y, p in laplace_pmf(scale * theta).items()}


def gaussian_pmf(variance: float) -> Pmf:
    def pmf(value: int, theta: float) -> dict[int, float]:
        reach = int(14 * variance**0.5 + 5)
        ys = np.arange(-reach, reach + 1)
        weight = np.exp(-(ys**2) / (2 * variance * theta**2))
        return dict(zip((ys + value).tolist(), (weight / weight.sum()).tolist(), strict=True))

    return pmf


def rounded_normal_pmf(variance: float) -> Pmf:
    def pmf(value: int, theta: float) -> dict[int, float]:
        deviation = variance**0.5 * theta
        ys = np.arange(-int(9 * variance**0.5 + 5), int(9 * variance**0.5 + 6))
        chance = stats.norm.sf((np.abs(ys) - 0.5) / deviation) - stats.norm.sf((np.abs(ys) + 0.5) / deviation)
        return dict(zip((ys + value).tolist(), chance.tolist(), strict=True))

    return pmf


def softmax(log_weights: np.ndarray) -> dict[int, float]:
    weight = np.exp(log_weights - log_weights.max())
    return dict(enumerate((weight / weight.sum()).tolist()))


def top_two_pmf(counts: list[int], theta: float) -> dict[int, float]:
    """Two selections without replacement, as 100 * first + second."""
    first = softmax(np.array(counts) / (2 * theta))
    chances = {}
    for a, chance in first.items():
        for b, other in first.items():
            if a != b:
                chances[100 * a + b] = chance * other / (1 - chance)
    return chances


def noisy_max_pmf(counts: list[int], theta: float, *, scale: float = 2.0) -> dict[int, float]:
    noise = laplace_pmf(scale * theta, 120)
    ys, ps = np.array(list(noise)), np.array(list(noise.values()))
    at_most = np.cumsum(ps)

    def reach(limit: np.ndarray) -> np.ndarray:
        index = np.clip(limit - ys[0], -1, len(ys) - 1)
        return np.where(index < 0, 0.0, at_most[np.maximum(index, 0)])

    result = {}
    for i, mine in enumerate(counts):
        chance = ps.copy()
        for j, other in enumerate(counts):
            if j != i:
                chance = chance * reach(mine + ys - other - (1 if j < i else 0))
        result[i] = float(chance.sum())
    return result


def sparse_pmf(counts: list[int], theta: float) -> dict[int, float]:
    bars, queries = laplace_pmf(2 * theta, 120), laplace_pmf(4 * theta, 160)
    ys, ps = np.array(list(queries)), np.array(list(queries.values()))
    above = np.cumsum(ps[::-1])[::-1]
    result = dict.fromkeys(range(len(counts) + 1), 0.0)
    for shift, chance in bars.items():
        left = chance
        for i, count in enumerate(counts):
            need = 5 + shift - count
            yes = 1.0 if need <= ys[0] else (0.0 if need > ys[-1] else float(above[need - ys[0]]))
            result[i] += left * yes
            left *= 1 - yes
        result[len(counts)] += left
    return result


def quantile_pmf(rank: float, rate: float, margin: float = 0) -> Pmf:
    def pmf(counts: list[int], theta: float) -> dict[int, float]:
        array = np.array(counts)
        below, here = np.cumsum(array) - array, array
        above = array.sum() - below - here
        inward = margin if rank else -margin
        least = below * (1 - rank) - (above + here) * rank + inward
        most = (below + here) * (1 - rank) - above * rank + inward
        distance = np.where((least <= 0) & (most >= 0), 0, np.minimum(abs(least), abs(most)))
        return softmax(-rate / theta * distance)

    return pmf


def partition_pmf(units: int, theta: float) -> dict[int, float]:
    epsilon, delta = 1.0 / theta, 1e-2
    chance = 0.0
    for _ in range(units):
        chance = min(np.exp(epsilon) * chance + delta, 1 - np.exp(-epsilon) * (1 - chance - delta), 1.0)
    return {0: 1 - chance, 1: chance}


def response_pmf(value: int, theta: float) -> dict[int, float]:
    weight = np.ones(4)
    grown = np.exp(1.0 / theta)
    weight[value] = grown
    return dict(enumerate((weight / weight.sum()).tolist()))


def blocks_pmf(values: list[float], theta: float) -> dict[int, float]:
    counts = np.bincount(np.floor(np.clip(values, 0, 10) * 2).astype(int), minlength=21)
    return quantile_pmf(0.5, 0.5)(counts.tolist(), theta)


def exact(number: float) -> Fraction:
    return Fraction(repr(number))


GRADED = list(range(40))

WITHHELD = -1000


def thresholded_pmf(noise: Pmf, limit: int) -> Pmf:
    """Noise where the result reaches the limit; all the rest is one outcome."""

    def pmf(value: Any, theta: float) -> dict[int, float]:
        plain = noise(value, theta)
        named = {y: p for y, p in plain.items() if y >= limit}
        return named | {WITHHELD: 1 - sum(named.values())}

    return pmf


AUDITS = {
    "laplace": Audit(
        make=lambda t: Laplace(scale=exact(3 * t), grid=1),
        draw=vector,
        pmf=shifted(3.0),
        base=0,
        near=1,
        far=2,
        count=200_000,
    ),
    "laplace, fine grid": Audit(
        make=lambda t: Laplace(scale=exact(t), grid=Fraction(1, 16)),
        draw=lambda m, value, n: (vector(m, value, n) * 16).astype(int),
        pmf=shifted(16.0),
        base=0,
        near=16,
        far=32,
        count=200_000,
    ),
    "geometric": Audit(
        make=lambda t: Geometric(scale=exact(t)), draw=vector, pmf=shifted(1.0), base=0, near=1, far=2, count=300_000
    ),
    "gaussian": Audit(
        make=lambda t: Gaussian(variance=exact(9 * t * t)),
        draw=vector,
        pmf=gaussian_pmf(9.0),
        base=0,
        near=3,
        far=6,
        count=200_000,
        delta=0.01,
    ),
    "gaussian, large": Audit(
        make=lambda t: Gaussian(variance=exact(400 * t * t)),
        draw=vector,
        pmf=gaussian_pmf(400.0),
        base=0,
        near=20,
        far=40,
        count=200_000,
        delta=0.01,
    ),
    "rounded-gaussian": Audit(
        make=lambda t: RoundedGaussian(variance=exact(9 * t * t), delta="0.01"),
        draw=vector,
        pmf=rounded_normal_pmf(9.0),
        base=0,
        near=3,
        far=6,
        count=200_000,
        delta=0.01,
    ),
    "rounded-gaussian, small": Audit(
        make=lambda t: RoundedGaussian(variance=exact(t * t), delta="0.01"),
        draw=vector,
        pmf=rounded_normal_pmf(1.0),
        base=0,
        near=1,
        far=2,
        count=200_000,
        delta=0.01,
    ),
    "histogram": Audit(
        make=lambda t: Histogram(scale=exact(2 * t)),
        draw=vector,
        pmf=shifted(2.0),
        base=7,
        near=8,
        far=9,
        count=200_000,
    ),
    "randomized-response": Audit(
        make=lambda t: RandomizedResponse.for_epsilon(1 / t, categories=4),
        draw=vector,
        pmf=response_pmf,
        base=0,
        near=1,
        far=None,
        count=600_000,
    ),
    "exponential": Audit(
        make=lambda t: Exponential(rate=1 / exact(2 * t)),
        draw=calls(),
        pmf=lambda u, t: softmax(np.array(u) / (2 * t)),
        base=GRADED,
        near=[*GRADED[:-1], 38],
        far=[*GRADED[:-1], 36],
        count=19_000,
        error=0.05,
    ),
    "top-keys": Audit(
        make=lambda t: TopKeys(rate=1 / exact(2 * t), count=2),
        draw=calls(lambda r: 100 * r[0] + r[1]),
        pmf=top_two_pmf,
        base=GRADED,
        near=[*GRADED[:-1], GRADED[-1] + 1],
        far=None,
        count=19_000,
        error=0.05,
    ),
    "report-noisy-max": Audit(
        make=lambda t: ReportNoisyMax(scale=exact(2 * t), monotone=True),
        draw=calls(lambda r: r[0]),
        pmf=noisy_max_pmf,
        base=GRADED,
        near=[*GRADED[:-1], 40],
        far=[*GRADED[:-1], 44],
        count=19_000,
        error=0.05,
    ),
    "sparse-vector": Audit(
        make=lambda t: SparseVector(threshold=5, stop=1, threshold_scale=exact(2 * t), query_scale=exact(4 * t)),
        draw=calls(lambda r: len(r) - 1 if r[-1] else len(r)),
        pmf=sparse_pmf,
        base=list(range(-16, 24)),
        near=[c + 1 for c in range(-16, 24)],
        far=None,
        count=6_600,
        few=8_000,
        error=0.05,
    ),
    "quantile": Audit(
        make=lambda t: Quantile(rank=exact(0.25), rate=1 / exact(3 * t), low=0, high=39, grid=1),
        draw=calls(),
        pmf=quantile_pmf(0.25, 1 / 3),
        base=[1] * 40,
        near=[2] + [1] * 39,
        far=None,
        count=19_000,
        error=0.05,
    ),
    "quantile, maximum": Audit(
        make=lambda t: Quantile(rank=Fraction(1), rate=1 / exact(4 * t), low=0, high=39, grid=1, margin=exact(2.5)),
        draw=calls(),
        pmf=quantile_pmf(1, 1 / 4, 2.5),
        base=[1] * 40,
        near=[1] * 39 + [2],
        far=None,
        count=19_000,
        error=0.05,
    ),
    "quantiles": Audit(
        make=lambda t: Quantiles(ranks=("1/4",), price=Fraction(1, 2) / exact(t), low=0, high=39, grid=1),
        draw=calls(lambda r: int(r[0])),
        pmf=quantile_pmf(0.25, 1 / 3),
        base=[1] * 40,
        near=[2] + [1] * 39,
        far=None,
        count=19_000,
        error=0.05,
    ),
    "partition-selection": Audit(
        make=lambda t: PartitionSelection(epsilon=1 / exact(t), delta=0.01),
        draw=vector,
        pmf=partition_pmf,
        base=3,
        near=4,
        far=6,
        count=600_000,
        delta=0.01,
    ),
    "thresholded-laplace": Audit(
        make=lambda t: ThresholdedLaplace(scale=exact(3 * t), limit=18, max_contribution=1),
        draw=lambda m, value, n: np.nan_to_num(vector(m, value, n), nan=WITHHELD).astype(int),
        pmf=thresholded_pmf(shifted(3.0), 18),
        base=20,
        near=21,
        far=22,
        count=300_000,
        delta=0.01,
    ),
    "thresholded-gaussian": Audit(
        make=lambda t: ThresholdedGaussian(variance=exact(9 * t * t), delta="0.009", limit=18, max_contribution=1),
        draw=lambda m, value, n: np.nan_to_num(vector(m, value, n), nan=WITHHELD).astype(int),
        pmf=thresholded_pmf(rounded_normal_pmf(9.0), 18),
        base=20,
        near=23,
        far=26,
        count=200_000,
        delta=0.01,
    ),
    "sample-and-aggregate": Audit(
        make=lambda t: SampleAndAggregate(blocks=20, rate=1 / exact(2 * t), low=0, high=10, grid=Fraction(1, 2)),
        draw=calls(lambda r: int(2 * r)),
        pmf=blocks_pmf,
        base=[k / 2 for k in range(20)],
        near=[k / 2 for k in range(1, 21)],
        far=None,
        count=19_000,
        error=0.05,
    ),
}
NAMES = sorted(AUDITS)
CASES = [pytest.param(name, marks=[] if AUDITS[name].count >= 200_000 else [pytest.mark.slow]) for name in NAMES]


def score(audit: Audit, outputs: np.ndarray, claimed: float = 1.0) -> tuple[float, float]:
    """Standard errors from 0 of the mean score at the claimed theta, and by how many the audit's error moves it."""
    step = 1e-4
    centre, up, down = (audit.pmf(audit.base, claimed * t) for t in (1.0, 1 + step, 1 - step))
    seen = [y for y in centre if min(up[y], down[y]) > 1e-250]
    slope = {y: (np.log(up[y]) - np.log(down[y])) / (2 * step) for y in seen}
    information = sum(centre[y] * s**2 for y, s in slope.items())
    values, times = np.unique(outputs, return_counts=True)
    total = sum(slope[int(v)] * c for v, c in zip(values, times, strict=True))
    n = len(outputs)
    return float(total / np.sqrt(n * information)), float(audit.error * np.sqrt(n * information))


def chi_squared(audit: Audit, outputs: np.ndarray) -> float:
    chances = audit.pmf(audit.base, 1.0)
    n = len(outputs)
    values, times = np.unique(outputs, return_counts=True)
    seen = dict(zip(values.tolist(), times.tolist(), strict=True))
    assert set(seen) <= set(chances), "an output that cannot occur"
    common = [y for y, p in chances.items() if n * p >= 10]
    expected = np.array([n * chances[y] for y in common] + [n * (1 - sum(chances[y] for y in common))])
    observed = np.array([seen.get(y, 0) for y in common] + [n - sum(seen.get(y, 0) for y in common)])
    use = expected > 1e-6
    return float(stats.chi2.sf(((observed - expected)[use] ** 2 / expected[use]).sum(), use.sum() - 1))


def loss_found(audit: Audit, other: Any, first: np.ndarray, second: np.ndarray) -> float:
    """A lower bound (99.9 %) on the epsilon at audit.delta between base and other, from draws of both."""
    here, there = audit.pmf(audit.base, 1.0), audit.pmf(other, 1.0)
    best = -np.inf
    for a, b, x, y in ((here, there, first, second), (there, here, second, first)):
        ratio = {v: a.get(v, 0.0) / max(b.get(v, 0.0), 1e-300) for v in {*a, *b}}
        order = sorted(ratio, key=lambda v: -ratio[v])
        mass = np.cumsum([a.get(v, 0.0) for v in order])
        cut = int(np.searchsorted(mass, 0.2)) + 1
        event = np.array(order[:cut])
        hits, misses = int(np.isin(x, event).sum()), int(np.isin(y, event).sum())
        low = stats.beta.ppf(0.0005, hits, len(x) - hits + 1) if hits else 0.0
        high = stats.beta.ppf(0.9995, misses + 1, len(y) - misses)
        if low > audit.delta:
            best = max(best, float(np.log((low - audit.delta) / high)))
    return best


def claim(audit: Audit) -> float:
    loss = audit.make(1.0).loss(1 if not isinstance(audit.make(1.0), Gaussian) else audit.near - audit.base)
    return float(loss.at(Fraction(repr(audit.delta))).size if audit.delta else loss.size)


def outputs(name: str, which: str) -> np.ndarray:
    audit = AUDITS[name]
    count = audit.count if which == "base" else max(audit.few, audit.count if audit.draw is vector else 0)
    return audit.draw(audit.make(1.0), getattr(audit, which), count)


def test_every_mechanism_is_audited() -> None:
    assert {name.split(",")[0] for name in AUDITS} == set(registry("mechanism").names())


@pytest.mark.parametrize("name", CASES)
def test_distribution_and_loss(name: str) -> None:
    """One test a mechanism, so that its draws are made once."""
    base = outputs(name, "base")
    check_scale_and_shape(AUDITS[name], base)
    check_that_a_small_error_is_caught(AUDITS[name], base)
    check_loss(AUDITS[name], base, outputs(name, "near"))
    if AUDITS[name].far is not None:
        check_that_a_double_step_is_caught(AUDITS[name], base, outputs(name, "far"))


def check_scale_and_shape(audit: Audit, drawn: np.ndarray) -> None:
    distance, power = score(audit, drawn)
    assert power > 6, f"the test is too weak: {audit.error:.0%} is {power:.1f} standard errors"
    assert abs(distance) < 4
    assert chi_squared(audit, drawn) > 1e-6


def check_that_a_small_error_is_caught(audit: Audit, drawn: np.ndarray) -> None:
    """Noise of a claim that is a little larger: the draws are those of the mechanism, the claim is the mutant."""
    assert abs(score(audit, drawn, claimed=1 / (1 - audit.error))[0]) > 4


def check_loss(audit: Audit, drawn: np.ndarray, near: np.ndarray) -> None:
    here, there = audit.pmf(audit.base, 1.0), audit.pmf(audit.near, 1.0)
    for a, b in ((here, there), (there, here)):
        grown = np.exp(claim(audit))
        overshoot = sum(max(0.0, p - grown * b.get(y, 0.0)) for y, p in a.items() if p > 1e-12)
        assert overshoot <= audit.delta + 1e-9
    found = loss_found(audit, audit.near, drawn, near)
    assert found <= claim(audit)
    assert found > 0.2 * claim(audit), "the audit sees nothing"


def check_that_a_double_step_is_caught(audit: Audit, drawn: np.ndarray, far: np.ndarray) -> None:
    """A unit that moves the input twice as far as claimed loses more than claimed, and the audit sees it."""
    assert loss_found(audit, audit.far, drawn, far) > claim(audit)


@pytest.mark.parametrize(("parts", "grid"), [(1, "1"), (1, "1/4"), (2, "1/4"), (3, "1/2"), (4, "1/8")])
def test_keys_of_one_person_are_named_as_rarely_as_claimed(parts: int, grid: str) -> None:
    """The exact chance, by convolution of the discrete noise, is below the claim, and a limit 12 % lower breaks it."""
    made = ThresholdedLaplace.for_budget(1, "0.001", sensitivity=2, max_contribution=2, grid=grid, parts=parts)
    step, far = float(made.grid), 4000
    q = np.exp(-step / float(made.scale))
    one = (1 - q) / (1 + q) * q ** np.abs(np.arange(-far, far + 1))
    total = one
    for _ in range(parts - 1):
        total = np.convolve(total, one)
    places = (np.arange(len(total)) - len(total) // 2) * step

    def chance(limit: float) -> float:
        return float(total[places + 2 >= limit - 1e-9].sum())

    assert chance(float(made.limit)) <= float(made.chance) * (1 + 1e-9) <= 0.001
    assert chance(0.88 * float(made.limit)) > 0.001


@pytest.mark.parametrize(("parts", "grid"), [(1, "1"), (1, "1/4"), (2, "1/4"), (4, "1/8")])
def test_keys_of_one_person_pass_a_gaussian_limit_as_rarely_as_claimed(parts: int, grid: str) -> None:
    """The exact chance, by convolution of the rounded noise, is below the claim, and a limit 12 % lower breaks it."""
    noise = RoundedGaussian(variance=9, grid=grid)
    made = ThresholdedGaussian.around(noise, delta="0.001", max_contribution=2, keys=2, parts=parts)
    step = float(made.grid)
    one = np.array(list(rounded_normal_pmf(9 / step**2)(0, 1.0).values()))
    total = one
    for _ in range(parts - 1):
        total = np.convolve(total, one)
    places = (np.arange(len(total)) - len(total) // 2) * step

    def chance(limit: float) -> float:
        return float(total[places + 2 >= limit - 1e-9].sum())

    assert chance(float(made.limit)) <= float(made.chance) * (1 + 1e-9) <= 0.0005
    assert chance(0.88 * float(made.limit)) > 0.0005


@pytest.mark.parametrize("count", [1, 2, 3, 6, 7, 9])
def test_several_quantiles_use_each_row_once_per_level(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss claimed is the price times the levels; no row takes part more often, nor at a higher price."""
    used: list[int] = []
    prices: list[Fraction] = []
    honest = Quantile.draw_near

    def watched(one: Quantile, places: np.ndarray, counts: np.ndarray, before: int, total: int, span: Any) -> int:
        used.append(total)
        prices.append(one.loss(1).size)
        return honest(one, places, counts, before, total, span)

    monkeypatch.setattr(Quantile, "draw_near", watched)
    ranks = tuple(Fraction(i, count + 1) for i in range(1, count + 1))
    made = Quantiles.for_epsilon(2, ranks=ranks, low=0, high=99, grid=1, sensitivity=2)
    made.release(SecretValue(np.full(100, 7)), receipt=receipt(made), sensitivity=2)
    assert made.loss(2).size == 2
    assert len(used) == count
    assert used[0] == 700
    assert sum(used) <= 700 * made.levels
    assert set(prices) == {made.price}


SPIKES = [2, 0, 1, 6, 0, 0, 3, 1]


def unlikely(found: dict[Any, int], chances: dict[Any, float]) -> bool:
    """A G-test of drawn numbers against their chances, at one in a million."""
    count, groups = sum(found.values()), len(chances)
    g = 2 * sum(n * np.log(n / (count * chances[value])) for value, n in found.items())
    return bool(stats.chi2.sf(g, groups - 1) < 1e-6)


@pytest.mark.parametrize(("near", "always"), [(1, False), (0, False), (0, True)])
@pytest.mark.parametrize(("rank", "margin"), [("1/4", 0), ("1", "5/2")])
def test_far_candidates_have_their_own_probability(
    near: int, always: bool, rank: str, margin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few candidates count as near: the others are proposed together and accepted by their own probability.

    2,000 draws: accepting all of them would be noticed.
    """
    monkeypatch.setattr("sfumato.dp.mechanisms.quantile._NEAR", near)
    if always:
        monkeypatch.setattr("sfumato.dp.mechanisms.quantile._accepted", lambda rate: True)
    made = Quantile(rank=Fraction(rank), rate=Fraction(1, 4), low=0, high=7, grid=1, margin=Fraction(margin))
    found = Counter(int(made.draw(np.array(SPIKES))) for _ in range(2_000))
    assert unlikely(found, quantile_pmf(float(made.rank), 0.25, float(made.margin))(SPIKES, 1.0)) == always


def test_bits_that_order_equal_rows_are_drawn_once() -> None:
    """Ranks that are asked in pieces are those of one fixed order of all rows."""
    places, counts = np.array([2, 3, 7, 9]), np.array([3, 40, 1, 8])
    rows = quantiles._TiedRows(places, counts)
    some = rows.ordered(10, 30).copy()
    middle = int(some[10])
    every = rows.ordered(0, 52)
    assert every.tolist() == sorted(every)
    assert (every >> 20).tolist() == np.repeat(places, counts).tolist()
    assert some.tolist() == every[10:30].tolist()
    for place in (0, middle, middle + 1, (3 << 20) - 1, 8 << 20, int(every[-1]), 99 << 20):
        assert rows.span(place) == (int((every < place).sum()), int((every <= place).sum()))
    for first, last in ((0, 52), (1, 3), (2, 44), (43, 44), (5, 5)):
        wanted = Counter((every[first:last] >> 20).tolist())
        assert dict(zip(*(part.tolist() for part in rows.cells(first, last)), strict=True)) == wanted


def test_several_quantiles_are_selected_by_the_bisection_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The middle one of three and then the lower one: their joint chances, with one row in each value."""
    monkeypatch.setattr("sfumato.dp.mechanisms.quantile._NEAR", 0)
    monkeypatch.setattr(quantiles, "_TIES", 0)
    made = Quantiles(ranks=("1/4", "1/2", "3/4"), price=Fraction(1, 2), low=0, high=5, grid=1)
    counts = [1] * 6
    found: Counter[Any] = Counter()
    for _ in range(1_500):
        low, middle, _high = made.release(SecretValue(np.array(counts)), receipt=receipt(made))
        found[int(low), int(middle)] += 1
    chances = {}
    for middle, chance in quantile_pmf(0.5, 0.5)(counts, 1.0).items():
        for low, other in quantile_pmf(0.5, 0.5)(counts[: middle + 1], 1.0).items():
            chances[low, middle] = chance * other
    assert not unlikely(found, chances)


def test_several_quantiles_are_ascending_and_right_without_noise() -> None:
    """Spikes that hold several of the ranks are divided."""
    counts = np.zeros(101, dtype=np.int64)
    counts[[10, 20, 50, 99]] = [300, 100, 350, 250]
    ranks = tuple(Fraction(i, 100) for i in (5, 15, 25, 35, 45, 55, 65, 80, 95))
    made = Quantiles.for_epsilon(10**4, ranks=ranks, low=0, high=100, grid=1)
    found = [int(v) for v in made.release(SecretValue(counts), receipt=receipt(made))]
    assert found == [10, 10, 10, 20, 50, 50, 50, 99, 99]
    rough = made.model_copy(update={"price": Fraction(1, 100)})
    for _ in range(50):
        drawn = rough.release(SecretValue(counts), receipt=receipt(rough))
        assert list(drawn) == sorted(drawn)
        assert 0 <= drawn[0] <= drawn[-1] <= 100
