"""Auditing by canaries: honest noise is never refuted, half the noise and missing clipping are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.attacks.models import audit_one_run, audit_repeated, one_run_bound, repeated_bound
from sfumato.dp.analytic_gaussian import squared_for
from sfumato.rng import Rng

DELTA = 1e-8
CANARIES = 100_000


def bound(epsilon: int, *, noise: float = 1.0, norm: float = 1.0, seed: int = 0) -> float:
    """Audit of a noisy sum in which every canary has a coordinate of its own: the model of a worst-case gradient."""
    deviation = noise / float(squared_for(Fraction(epsilon), Fraction(DELTA))) ** 0.5
    draw = np.random.default_rng(seed)
    audit = audit_one_run(
        lambda inside: norm * inside + draw.normal(0, deviation, CANARIES),
        CANARIES,
        rng=Rng(seed),
        share=0.01,
        delta=DELTA,
        confidence=0.99,
    )
    return audit.epsilon


@pytest.mark.parametrize("epsilon", [1, 4])
def test_honest_noise_is_not_refuted_and_mutants_are(epsilon: int) -> None:
    for seed in range(5):
        assert bound(epsilon, seed=seed) < epsilon
        assert bound(epsilon, noise=0.45, seed=seed) > epsilon  # 10 % less than half the noise
        assert bound(epsilon, norm=3, seed=seed) > epsilon  # a gradient that was not clipped


def test_pure_promise_is_audited_tightly() -> None:
    """Randomized response at epsilon 1: the bound is within 15 % of the truth and not above it."""
    draw = np.random.default_rng(4)
    truth = 1 / (1 + np.exp(-1.0))

    def responses(inside: np.ndarray) -> np.ndarray:
        return np.where(draw.random(len(inside)) < truth, inside, ~inside).astype(float)

    audit = audit_one_run(responses, 20_000, rng=Rng(3), share=0.5, confidence=0.99)
    assert 0.85 < audit.epsilon < 1
    assert not audit.refutes(1)
    assert audit.refutes(0.5)


def test_one_run_bound_is_the_exact_binomial_one() -> None:
    epsilon = one_run_bound(90, 100, canaries=100, confidence=0.95)
    rate = 1 / (1 + np.exp(-epsilon))
    assert binom.sf(89, 100, rate) == pytest.approx(0.05, abs=1e-6)
    assert one_run_bound(90, 100, canaries=100, delta=1e-3) < epsilon


def test_repeated_runs_catch_half_the_noise() -> None:
    deviation = 1 / float(squared_for(Fraction(1), Fraction(1, 10**6))) ** 0.5
    draw = np.random.default_rng(1)
    honest = audit_repeated(lambda inside: inside + draw.normal(0, deviation), 2000, delta=1e-6)
    mutant = audit_repeated(lambda inside: inside + draw.normal(0, deviation / 4), 2000, delta=1e-6)
    assert honest.epsilon < 1 < mutant.epsilon


def test_repeated_bound_covers() -> None:
    """The bound exceeds the truth in at most 5 % of audits; 400 audits of randomized response at epsilon 1."""
    draw = np.random.default_rng(2)
    truth = np.exp(1) / (1 + np.exp(1))
    above = sum(
        repeated_bound(draw.binomial(200, truth), 200, draw.binomial(200, 1 - truth), 200) > 1 for _ in range(400)
    )
    assert binom.sf(above - 1, 400, 0.05) > 1e-6
