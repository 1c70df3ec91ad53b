"""Private learning: public domains, refusals that cost nothing, charges before fits, and exact sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.dp import approximate
from sfumato.errors import BadParameter, OverBudget, SfumatoError
from sfumato.learning import LinearRegression, LogisticRegression
from sfumato.learning.noisy_sums import exact_product
from sfumato.ledger import Ledger

DRAW = np.random.default_rng(5)
ROWS = DRAW.uniform(-1, 1, size=(3000, 3))
LABELS = (ROWS[:, 0] + ROWS[:, 1] > 0).astype(int)
PUBLIC = {"epsilon": 2, "delta": 1e-6, "bounds": (-1, 1), "classes": [0, 1]}


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    book = Ledger.open(tmp_path / "budget.db")
    book.set_cap(approximate(5, "1e-5"), dataset="people")
    return str(tmp_path / "budget.db")


def spent(ledger: str) -> float:
    return float(Ledger.open(ledger).balance(dataset="people").spent.size)


def test_a_fit_is_charged_to_the_ledger_and_says_so(ledger: str) -> None:
    model = LogisticRegression(**PUBLIC, ledger=ledger, dataset="people").fit(ROWS, LABELS)
    assert 1.5 < spent(ledger) <= 2  # the ledger composes more tightly at the delta of its budget
    assert model.privacy_.entry is not None
    assert model.privacy_.epsilon <= 2
    assert model.score(ROWS, LABELS) > 0.95


def test_a_fit_beyond_the_budget_is_refused(ledger: str) -> None:
    with pytest.raises(OverBudget):
        LogisticRegression(**{**PUBLIC, "epsilon": 6}, ledger=ledger, dataset="people").fit(ROWS, LABELS)
    assert spent(ledger) == 0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": float("nan")}, "number"),
        ({"epsilon": None}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": None}, "delta"),
        ({"bounds": None}, "bounds"),
        ({"bounds": (1, 1)}, "bounds"),
        ({"bounds": (1, -1)}, "bounds"),
        ({"bounds": {0: (-1, 1)}}, "`1`, `2`"),
        ({"bounds": {7: (-1, 1)}}, "`7`"),
        ({"classes": None}, "classes"),
        ({"classes": [1]}, "classes"),
        ({"classes": [1, 2]}, "classes"),
        ({"max_rows": 0}, "max_rows"),
        ({"steps": 0}, "steps"),
    ],
)
def test_bad_parameters_are_refused_and_cost_nothing(changes: dict[str, object], named: str, ledger: str) -> None:
    with pytest.raises(SfumatoError, match=named):
        LogisticRegression(**{**PUBLIC, **changes}, ledger=ledger, dataset="people").fit(ROWS, LABELS)
    assert spent(ledger) == 0


def test_missing_values_and_text_are_refused_without_showing_a_value(ledger: str) -> None:
    private = {"ledger": ledger, "dataset": "people"}
    broken = ROWS.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LogisticRegression(**PUBLIC, **private).fit(broken, LABELS)
    texts = ROWS.astype(object)
    texts[3, 1] = "Wilhelmina"
    with pytest.raises(SfumatoError, match="text") as refusal:
        LogisticRegression(**PUBLIC, **private).fit(texts, LABELS)
    assert "Wilhelmina" not in str(refusal.value)
    assert spent(ledger) == 0


def test_one_class_constant_columns_and_more_features_than_rows_are_learned() -> None:
    """Refusing them would tell something about the data without noise."""
    model = LogisticRegression(**PUBLIC)
    assert model.fit(ROWS, np.zeros(len(ROWS), dtype=int)).predict(ROWS).mean() < 0.1
    assert np.isfinite(model.fit(np.ones((50, 3)), LABELS[:50]).coef_).all()
    assert np.isfinite(model.fit(DRAW.uniform(-1, 1, size=(5, 40)), LABELS[:5]).coef_).all()


def test_categories_are_learned_by_name_and_unknown_ones_are_zeros() -> None:
    frame = pl.DataFrame({"sex": np.where(LABELS > 0, "f", "m"), "age": 40 + 10 * ROWS[:, 2]})
    model = LogisticRegression(
        epsilon=2, delta=1e-6, bounds={"age": (0, 100)}, categories={"sex": ["f", "m"]}, classes=[0, 1]
    ).fit(frame, LABELS)
    assert model.score(frame, LABELS) > 0.95
    other = pl.DataFrame({"sex": ["x"], "age": [40.0]})
    age = np.clip((-0.2 - model.center_[2]) / model.scale_[2], -1, 1)
    assert model.decision_function(other) == pytest.approx(model.intercept_ + age * model.coef_[0, 2])
    with pytest.raises(BadParameter, match="`age`"):
        LogisticRegression(epsilon=2, delta=1e-6, categories={"sex": ["f", "m"]}, classes=[0, 1]).fit(frame, LABELS)


def test_three_classes_are_learned() -> None:
    labels = np.array(["a", "b", "c"])[np.digitize(ROWS[:, 0], [-0.3, 0.3])]
    model = LogisticRegression(**{**PUBLIC, "classes": ["a", "b", "c"]}).fit(ROWS, labels)
    assert model.score(ROWS, labels) > 0.8
    assert model.predict_proba(ROWS).sum(axis=1) == pytest.approx(np.ones(len(ROWS)))


def test_several_rows_per_person_cost_accuracy_not_privacy() -> None:
    """Ten rows of a person move a sum ten times as far: the noise grows tenfold."""
    one = LogisticRegression(**PUBLIC).fit(ROWS, LABELS)
    ten = LogisticRegression(**PUBLIC, max_rows=10).fit(ROWS, LABELS)
    assert ten.privacy_.epsilon == one.privacy_.epsilon
    assert ten.privacy_.max_rows == 10


def test_products_of_integers_are_exact() -> None:
    left = DRAW.integers(-4096, 4096, size=(5000, 3)).astype(float)
    right = DRAW.integers(-65536, 65536, size=(5000, 2)).astype(float)
    exact = left.astype(int).astype(object).T @ right.astype(int).astype(object)
    assert (exact_product(left, right) == exact).all()


CENSUS = pl.read_csv(Path(__file__).parents[1] / "samples" / "sdcmicro" / "CASCrefmicrodata.csv")
INCOMES = ["AFNLWGT", "AGI", "EMCONTRB", "FEDTAX", "PTOTVAL", "STATETAX", "TAXINC", "POTHVAL", "INTVAL", "PEARNVAL"]


def explained(epsilon: float, seeds: int) -> list[float]:
    """Share of the variance of FICA that linear regression explains: 1,080 rows, bounds as a person would set them."""
    rows, paid = CENSUS[INCOMES].to_numpy().astype(float), CENSUS["FICA"].to_numpy().astype(float)
    bounds = [(0.0, 10.0 ** np.ceil(np.log10(high))) for high in rows.max(axis=0)]
    model = LinearRegression(epsilon=epsilon, delta=1e-6, bounds=bounds, target_bounds=(0, 10_000))
    return [float(model.fit(rows, paid).score(rows, paid)) for _ in range(seeds)]


def test_linear_regression_with_a_budget_explains_most_of_a_real_file() -> None:
    assert np.median(explained(10, 9)) > 0.85  # least squares: 0.92


def test_linear_regression_is_no_worse_than_a_noisy_mean() -> None:
    """A budget too small for slopes leaves the noise of the mean. Without a measurement of the mean of its own, which
    has a fifth of the noise of the moments, the medians were below -0.5 at epsilon 0.1."""
    assert np.median(explained(0.1, 15)) > -0.25
    assert np.median(explained(0.3, 15)) > -0.1
    assert np.median(explained(1, 15)) > 0.3
