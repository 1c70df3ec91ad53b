"""Audit of private learning: canaries show no more than the statement allows, and no row moves a sum too far."""

from __future__ import annotations

import os
from fractions import Fraction
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor

from sfumato.attacks.models import audit_repeated
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.dp.subsampled_gaussian import sampled_squared_for
from sfumato.learning import NaiveBayes, NeuralNetwork
from sfumato.learning.catalogue import estimator, estimator_names
from sfumato.learning.estimators import neural_network as network
from sfumato.learning.estimators.neural_network import clipped_gradients
from sfumato.learning.noisy_sums import NoisySums

RUNS, CANARIES, FEATURES = 150, 3, 4
BASE = [["a"] * FEATURES] * 120 + [["b"] * FEATURES] * 30


def evidence(rows: list[list[str]]) -> tuple[list[float], float]:
    """The canaries' probability in every fitted model: the best simple test of whether they took part."""
    table, labels = np.array(rows, dtype=object), np.ones(len(rows), dtype=int)
    values = {feature: ["a", "b"] for feature in range(FEATURES)}
    model = NaiveBayes(epsilon=4, delta=1e-5, categories=values, classes=[0, 1])
    seen = []
    for _ in range(RUNS):
        model.fit(table, labels)
        seen.append(sum(float(table[1, 1]) for table in model.feature_log_prob_))
    return seen, model.privacy_.mu


def audited() -> tuple[float, float]:
    """A lower bound on the Gaussian privacy parameter of the canaries together, and what group privacy allows.

    The honest model has about 0.8 of what is allowed, one with half the noise 1.6. The bound is four standard errors
    below the estimate, of which one is about 0.07 of what is allowed.
    """
    unseen, mu = evidence(BASE)
    seen, _ = evidence(BASE + [["b"] * FEATURES] * CANARIES)
    distance = (np.mean(seen) - np.mean(unseen)) / sqrt((np.var(seen) + np.var(unseen)) / 2)
    return float(distance - 4 * sqrt((2 + distance**2 / 4) / RUNS)), CANARIES * mu


def test_canaries_show_no_more_than_the_statement() -> None:
    """And no less than a third: the audit has power."""
    bound, allowed = audited()
    assert allowed / 3 < bound <= allowed


def test_the_audit_catches_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = RoundedGaussian._draw
    monkeypatch.setattr(
        RoundedGaussian,
        "_draw",
        lambda self, count: draw(self.model_copy(update={"variance": self.variance / 4}), count),
    )
    bound, allowed = audited()
    assert bound > allowed


class Recorder:
    """Answers every measurement with numbers that do not depend on the data, and keeps the exact sums.

    Two fits on neighbouring tables then ask for the same measurements, so that every one of them can be compared.
    """

    def __init__(self) -> None:
        self.sums: list[np.ndarray] = []
        self.distances: list[int] = []
        self.shares: list[float] = []

    def measure(self, sums: np.ndarray, *, distance: int, share: Any) -> np.ndarray:
        made = np.abs(np.random.default_rng(len(self.sums)).normal(size=sums.shape)) * 30 * sqrt(distance)
        self.sums.append(np.array(sums, dtype=object))
        self.distances.append(distance)
        self.shares.append(float(share))
        return made


def recorded(name: str, rows: np.ndarray, labels: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(NoisySums, "measure", lambda self, sums, **options: recorder.measure(sums, **options))
    own: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "bounds": {0: (-2, 3), 1: (0, 1e9)}}
    if name == "standardizer":
        rows = rows[:, :2].astype(float)
    else:
        own["categories"] = {2: ["u", "v", "w"]}
    if is_classifier(estimator(name)()):
        own["classes"] = [0, 1, 2]
    if is_regressor(estimator(name)()):
        own["target_bounds"] = (0, 1)
    if name == "random-forest":
        monkeypatch.setattr("sfumato.learning.estimators.random_forest.words", lambda count: [1, 2, 3, 4])
    if name == "neural-network":
        monkeypatch.setattr(
            "sfumato.learning.estimators.neural_network.bernoulli", lambda rate, count: np.ones(count, bool)
        )
        monkeypatch.setattr("sfumato.learning.estimators.neural_network.words", lambda count: [5])
        own["steps"] = 40
    if name == "k-means":
        monkeypatch.setattr("sfumato.learning.estimators.k_means.below", lambda bound, count: [7])
    estimator(name)(**own).fit(rows, labels)
    return recorder


DRAW = np.random.default_rng(9)
TABLE = np.column_stack(
    [DRAW.uniform(-2, 3, 40).astype(object), DRAW.uniform(0, 1e9, 40).astype(object), DRAW.choice(["u", "v", "w"], 40)]
)
LABELS = DRAW.integers(0, 3, 40)
NEIGHBOURS = [(-2, 0, "u"), (3, 1e9, "w"), (1e300, -1e300, "v"), (0.5, 5e8, "elsewhere"), (-2, 1e9, "v")]


@pytest.mark.parametrize("name", estimator_names())
def test_no_row_moves_a_sum_further_than_stated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all measurements of a fit, whose shares add up to the budget; and the bound is not idle."""
    base = recorded(name, TABLE, LABELS, monkeypatch)
    assert sum(base.shares) <= 1 + 1e-9
    worst = 0.0
    for row in NEIGHBOURS:
        for label in range(3):
            more = np.vstack([TABLE, np.array([row], dtype=object)])
            other = recorded(name, more, np.append(LABELS, label), monkeypatch)
            assert other.distances == base.distances
            for before, after, distance in zip(base.sums, other.sums, base.distances, strict=True):
                moved = int(((after - before) ** 2).sum())
                assert moved <= distance
                worst = max(worst, moved / distance)
    assert worst > 0.2


def unclipped(design: Any, targets: Any, first: Any, last: Any, *, clip: float) -> Any:
    return clipped_gradients(design, targets, first, last, clip=50.0)


def test_the_bound_of_a_network_is_broken_without_clipping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.learning.estimators.neural_network.clipped_gradients", unclipped)
    with pytest.raises(AssertionError):
        test_no_row_moves_a_sum_further_than_stated("neural-network", monkeypatch)


STEPS, RATE = 4, 0.5
PROMISE = {"epsilon": 1, "delta": 1e-5}


def white_box(included: bool, monkeypatch: pytest.MonkeyPatch) -> float:
    """The log-likelihood ratio of all noisy gradients for and against one canary, by an attacker who sees them."""
    base, canary = ("a", 0), ("b", 1)
    seen: list[tuple[Any, ...]] = []
    measure, gradients = NoisySums.measure, network.clipped_gradients

    def observed(self: NoisySums, sums: Any, *, distance: int, share: Any) -> Any:
        noisy = measure(self, sums, distance=distance, share=share)
        scale = self.deviation(distance=distance, share=share)
        seen[-1] = (*seen[-1], noisy, sqrt(distance), scale)
        return noisy

    def remembered(design: Any, targets: Any, first: Any, last: Any, *, clip: float) -> Any:
        # The canary's own gradient at these weights, which the attacker can compute.
        seen.append((gradients(np.array([[0.0, 4096, 4096]]), np.array([[1.0]]), first, last, clip=clip),))
        return gradients(design, targets, first, last, clip=clip)

    with monkeypatch.context() as patch:
        patch.setattr(NoisySums, "measure", observed)
        patch.setattr(network, "clipped_gradients", remembered)
        people = [base, canary] if included else [base]
        NeuralNetwork(
            **PROMISE, categories={0: ["a", "b"]}, classes=[0, 1], steps=STEPS, rate=RATE, hidden=2, clip=0.05
        ).fit(np.array([[one] for one, _ in people], dtype=object), [label for _, label in people])
    total = 0.0
    for own, noisy, _, scale in seen:
        length = float(np.sqrt((own.astype(float) ** 2).sum()))
        shift = float(noisy @ own) / length / scale - length / scale / 2
        total += log(1 - RATE + RATE * exp(min(shift * length / scale, 500)))
    return total


def audited_network(monkeypatch: pytest.MonkeyPatch) -> float:
    return audit_repeated(lambda included: white_box(included, monkeypatch), 160, delta=1e-5).epsilon


def test_a_network_shows_a_canary_no_more_than_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", np.random.default_rng(8).bytes)
    assert audited_network(monkeypatch) <= 1


def test_the_audit_catches_a_network_without_clipping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", np.random.default_rng(8).bytes)
    monkeypatch.setattr(network, "clipped_gradients", unclipped)
    assert audited_network(monkeypatch) > 1


def test_the_audit_catches_a_network_with_a_tenth_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", np.random.default_rng(8).bytes)
    draw = RoundedGaussian._draw
    monkeypatch.setattr(
        RoundedGaussian,
        "_draw",
        lambda self, count: draw(self.model_copy(update={"variance": self.variance / 100}), count),
    )
    assert audited_network(monkeypatch) > 1


def test_the_noise_of_a_network_is_that_of_its_accounting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variance over all draws: half the noise would be 0.25, and one part in twenty is seen."""
    monkeypatch.setattr(os, "urandom", np.random.default_rng(8).bytes)
    ratios: list[Any] = []
    measure = NoisySums.measure

    def compared(self: NoisySums, sums: Any, *, distance: int, share: Any) -> Any:
        noisy = measure(self, sums, distance=distance, share=share)
        ratios.append((noisy - sums) / sqrt(distance))
        return noisy

    monkeypatch.setattr(NoisySums, "measure", compared)
    NeuralNetwork(**PROMISE, bounds=(-1, 1), classes=[0, 1], steps=20, rate=0.1, hidden=40).fit(
        np.zeros((30, 5)), [0, 1] * 15
    )
    squared = sampled_squared_for(Fraction(1), Fraction(1, 10**5), rate=Fraction(1, 10), steps=20)
    assert np.concatenate(ratios).var() * float(squared) == pytest.approx(1, abs=0.05)
