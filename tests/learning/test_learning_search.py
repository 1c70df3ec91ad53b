"""Search for hyper-parameters: its cost against two independent computations, one charge, and refusals before it."""

from __future__ import annotations

import os
from fractions import Fraction
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone, is_classifier

from sfumato.cli import main
from sfumato.dp import approximate
from sfumato.dp.analytic_gaussian import normal_epsilon
from sfumato.errors import OverBudget, SfumatoError
from sfumato.learning import DecisionTree, KMeans, LinearRegression, NeuralNetwork, RandomizedSearch
from sfumato.learning.model_file import load_model
from sfumato.learning.search_cost import SearchCost
from sfumato.ledger import Ledger

DRAW = np.random.default_rng(6)
ROWS = DRAW.uniform(-1, 1, size=(1500, 2))
LABELS = (ROWS[:, 0] * ROWS[:, 1] > 0).astype(int)
TREE = DecisionTree(bounds=(-1, 1), classes=[0, 1])
DELTA = 1e-6


def theorem(squared: float, inverse: float, delta: float) -> float:
    """Theorem 2 of Papernot and Steinke (2022) with shape 0, minimized over both orders, and the conversion."""
    size = log(inverse)
    mean = (inverse - 1) / size
    orders = 1 + np.geomspace(1e-3, 1e4, 4000)
    second = np.geomspace(1, 1e4, 4000)
    constant = ((1 - 1 / second) * second * squared / 2 + size / second).min()
    renyi = orders * squared / 2 + constant + log(mean) / (orders - 1)
    return float((renyi + np.log1p(-1 / orders) - (log(delta) + np.log(orders)) / (orders - 1)).min())


@pytest.mark.parametrize("fits", [2, 10, 60])
@pytest.mark.parametrize("squared", [1e-4, 0.02, 0.5, 8.0])
def test_the_cost_is_that_of_the_theorem(fits: int, squared: float) -> None:
    cost = SearchCost.for_mean(fits)
    assert float(cost.mean) == pytest.approx(fits, rel=0.01)
    found = float(cost.epsilon(Fraction(squared), Fraction(DELTA)))
    assert found == pytest.approx(theorem(squared, float(cost.inverse), DELTA), rel=1e-3)


def exact_delta(squared: float, inverse: float, epsilon: float) -> float:
    """The exact delta of the best of a random number of noisy scores, if a person moves each of them."""
    grid = np.linspace(-40, 40, 160_001)
    share, size = 1 - 1 / inverse, log(inverse)

    def density(shift: float) -> np.ndarray:
        # The best of K has density f(x) G'(F(x)), G the generating function of K.
        rest = 1 - share * stats.norm.cdf(grid - shift)
        return stats.norm.pdf(grid - shift) * share / (rest * size)

    pairs = [(density(0), density(sqrt(squared))), (density(sqrt(squared)), density(0))]
    return max(float(np.maximum(a - exp(epsilon) * b, 0).sum() * (grid[1] - grid[0])) for a, b in pairs)


@pytest.mark.parametrize("fits", [3, 30])
def test_the_promise_holds_for_the_best_of_noisy_scores_and_that_of_one_fit_does_not(fits: int) -> None:
    cost, delta = SearchCost.for_mean(fits), Fraction(1, 1000)
    squared = cost.squared_for(Fraction(2), delta)
    assert exact_delta(float(squared), float(cost.inverse), 2.0) <= float(delta)
    alone = float(normal_epsilon(squared, delta))
    assert exact_delta(float(squared), float(cost.inverse), alone) > float(delta)


def test_the_number_of_fits_has_the_logarithmic_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", np.random.default_rng(5).bytes)
    cost = SearchCost.for_mean(5)
    drawn = np.array([cost.draw() for _ in range(1500)])
    share = 1 - 1 / float(cost.inverse)
    chances = np.array([share**k / k for k in range(1, 9)]) / log(float(cost.inverse))
    expected = 1500 * np.append(chances, 1 - chances.sum())
    seen = np.append([(drawn == k).sum() for k in range(1, 9)], (drawn > 8).sum())
    assert stats.chisquare(seen, expected).pvalue > 0.001


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    Ledger.open(tmp_path / "budget.db").set_cap(approximate(5, "1e-5"), dataset="people")
    return str(tmp_path / "budget.db")


def entries(ledger: str) -> int:
    """Caps and charges; what left is not counted."""
    return sum(entry.kind in ("cap", "spend") for entry in Ledger.open(ledger).entries())


def test_a_search_is_charged_once_and_keeps_the_better_candidate(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SearchCost, "draw", lambda self: 8)
    monkeypatch.setattr(os, "urandom", np.random.default_rng(2).bytes)
    search = RandomizedSearch(
        TREE, {"max_depth": [1, 4]}, fits=4, epsilon=4, delta=DELTA, ledger=ledger, dataset="people"
    )
    assert is_classifier(search)
    assert clone(search).fits == 4
    search.fit(ROWS, LABELS)
    assert entries(ledger) == 2
    assert search.best_params_ == {"max_depth": 4}
    assert search.score(ROWS, LABELS) > 0.8
    assert search.best_estimator_.privacy_ == search.privacy_
    assert search.privacy_.epsilon == 4
    assert search.best_estimator_.epsilon < 2.6, "one fit has a part of the budget"
    assert "2110.03620" in search.privacy_.proof


def test_a_regression_can_be_searched() -> None:
    model = LinearRegression(bounds=(-1, 1), target_bounds=(-2, 2))
    found = RandomizedSearch(model, {"target_bounds": [(-2, 2)]}, fits=2, epsilon=20, delta=DELTA)
    assert found.fit(ROWS, ROWS[:, 0]).score(ROWS, ROWS[:, 0]) > 0.8


def test_nothing_is_fitted_before_the_charge(ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SearchCost, "draw", lambda self: pytest.fail("a fit without a charge"))
    with pytest.raises(OverBudget):
        RandomizedSearch(TREE, {"max_depth": [1, 2]}, epsilon=6, delta=DELTA, ledger=ledger, dataset="people").fit(
            ROWS, LABELS
        )
    assert entries(ledger) == 1


@pytest.mark.parametrize(
    ("estimator", "candidates", "changes", "named"),
    [
        (TREE, {"max_dept": [1]}, {}, "max_depth"),
        (TREE, {"epsilon": [1, 2]}, {}, "epsilon"),
        (TREE, {"max_rows": [1, 2]}, {}, "max_rows"),
        (TREE, {"max_depth": [2, 0]}, {}, "max_depth"),
        (TREE, {}, {}, "candidates"),
        (TREE, {"max_depth": [1]}, {"fits": 1}, "fits"),
        (TREE, {"max_depth": [1]}, {"epsilon": 0}, "epsilon"),
        (TREE, {"max_depth": [1]}, {"delta": None}, "delta"),
        (DecisionTree(bounds=(-1, 1)), {"max_depth": [1]}, {}, "classes"),
        (KMeans(bounds=(-1, 1)), {"steps": [1]}, {}, "classifier"),
        (NeuralNetwork(bounds=(-1, 1), classes=[0, 1]), {"hidden": [1]}, {}, "Gaussian"),
    ],
)
def test_bad_searches_are_refused_and_cost_nothing(
    estimator: Any, candidates: Any, changes: dict[str, Any], named: str, ledger: str
) -> None:
    own = {"epsilon": 1, "delta": DELTA, "ledger": ledger, "dataset": "people", **changes}
    with pytest.raises(SfumatoError, match=named):
        RandomizedSearch(estimator, candidates, **own).fit(ROWS, LABELS)
    assert entries(ledger) == 1


def test_a_plan_may_ask_for_a_search(tmp_path: Path, ledger: str) -> None:
    pl.DataFrame({"a": ROWS[:, 0], "b": ROWS[:, 1], "y": LABELS}).write_csv(tmp_path / "people.csv")
    (tmp_path / "plan.yaml").write_text(
        "sfumato: 1\ndataset: people\ndata: people.csv\nunit: row\nledger: budget.db\n"
        "columns:\n  a: {role: quasi, domain: {low: -1, high: 1}}\n  b: {role: quasi, domain: {low: -1, high: 1}}\n"
        "  y: {role: quasi, domain: {values: [0, 1]}}\n"
        "learn: decision-tree\nfeatures: [a, b]\ntarget: y\nepsilon: 2\ndelta: 1e-6\n"
        "search: {fits: 3, candidates: {max_depth: [2, 3], bins: [4]}}\n"
    )
    assert main(["learn", str(tmp_path / "plan.yaml"), "--no-attacks"]) == 0
    model = load_model(tmp_path / "plan.model.json")
    assert (model.bins, model.privacy_.epsilon) == (4, 2.0)
    assert entries(ledger) == 2
    text = (tmp_path / "plan.yaml").read_text()
    (tmp_path / "plan.yaml").write_text(text.replace("{max_depth: [2, 3]", "{max_deep: [2, 3]"))
    assert main(["learn", str(tmp_path / "plan.yaml"), "--no-attacks", "--force"]) == 2
    assert entries(ledger) == 2
