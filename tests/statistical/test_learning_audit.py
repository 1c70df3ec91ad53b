"""Audit of private learning: canaries show no more than the statement allows, and no row moves a sum too far."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor

from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.learning import NaiveBayes
from sfumato.learning.catalogue import estimator, estimator_names
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
