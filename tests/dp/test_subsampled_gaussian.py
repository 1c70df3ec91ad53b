"""Rényi differential privacy of the sampled Gaussian mechanism, against numerical integration."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, sqrt

import numpy as np
import pytest
from scipy import stats

from sfumato.dp.subsampled_gaussian import sampled_epsilon, sampled_renyi, sampled_squared_for, touched_rate

GRID = np.linspace(-60, 60, 240_001)
WIDTH = GRID[1] - GRID[0]


def densities(rate: float, squared: float, rows: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Densities of a noisy sum without and with a unit of whose rows a Poisson sample is taken, in log."""
    base = stats.norm.logpdf(GRID)
    counts = np.arange(rows + 1)
    parts = stats.binom.logpmf(counts, rows, rate)[:, None] + stats.norm.logpdf(GRID - counts[:, None] * sqrt(squared))
    return base, np.logaddexp.reduce(parts, axis=0)


def renyi(here: np.ndarray, there: np.ndarray, order: int) -> float:
    return log(float(np.exp(order * here - (order - 1) * there).sum() * WIDTH)) / (order - 1)


@pytest.mark.parametrize(("order", "rate", "squared"), [(2, 0.05, 0.2), (5, 0.3, 0.5), (8, 0.01, 1.0), (3, 1.0, 0.7)])
def test_the_divergence_is_that_of_the_two_distributions(order: int, rate: float, squared: float) -> None:
    base, mixed = densities(rate, squared)
    bound = float(sampled_renyi(order, rate=Fraction(rate), squared=Fraction(squared)))
    assert bound == pytest.approx(renyi(mixed, base, order), rel=1e-6)
    assert renyi(base, mixed, order) <= bound * (1 + 1e-6)


def test_everybody_in_the_sample_is_normal_noise() -> None:
    assert float(sampled_renyi(7, rate=Fraction(1), squared=Fraction(1, 3))) == pytest.approx(7 / 6, rel=1e-12)


@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 5), Fraction(1)])
@pytest.mark.parametrize("rows", [1, 3])
def test_one_step_keeps_the_promised_delta(rate: Fraction, rows: int) -> None:
    """The exact delta of one step, in both directions. An eighth of the variance breaks it."""
    epsilon, delta = Fraction(1), Fraction(1, 10**4)
    touched = touched_rate(rate, rows)
    squared = float(sampled_squared_for(epsilon, delta, rate=touched, steps=1)) / rows**2
    found = []
    for part in (squared, 8 * squared):
        base, mixed = (np.exp(one) for one in densities(float(rate), part, rows))
        pairs = ((base, mixed), (mixed, base))
        found.append(max(float(np.maximum(a - exp(1) * b, 0).sum() * WIDTH) for a, b in pairs))
    assert found[0] <= float(delta)
    if rows == 1:
        assert found[1] > float(delta), "an eighth of the variance would have done"


def test_steps_add_up_and_the_search_is_tight() -> None:
    own = {"rate": Fraction(1, 20), "steps": 100}
    squared = sampled_squared_for(Fraction(1), Fraction(1, 10**6), **own)
    assert sampled_epsilon(squared, delta=Fraction(1, 10**6), **own) <= 1
    assert sampled_epsilon(squared * Fraction(101, 100), delta=Fraction(1, 10**6), **own) > 1
    more = sampled_epsilon(squared, rate=Fraction(1, 20), steps=200, delta=Fraction(1, 10**6))
    assert more > Fraction(13, 10)


def test_published_epsilon() -> None:
    """Noise 4, rate 0.01, 10,000 steps, delta 1e-5: 1.26 (Abadi et al. 2016, section 3.2); conversions were since
    sharpened, so that the epsilon is smaller."""
    found = sampled_epsilon(Fraction(1, 16), rate=Fraction(1, 100), steps=10_000, delta=Fraction(1, 10**5))
    assert 0.9 < float(found) < 1.26
