"""Every private estimator passes scikit-learn's own checks, works in pipelines, and is charged for every fit.

Noise is never the same in two fits. Some checks compare two fits, so that every fit here draws from the same stream.
Classes are declared as a user would declare them: for the data of each check.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

from sfumato.dp import approximate
from sfumato.errors import SfumatoError
from sfumato.learning import Standardizer
from sfumato.learning.catalogue import estimator, estimator_names, name_of
from sfumato.learning.noisy_sums import NoisySums
from sfumato.ledger import Ledger

NAMES = estimator_names()
OWN = {
    "logistic-regression": {"steps": 8}, "linear-regression": {"target_bounds": (-4, 4), "bounds": (-4, 4)},
    "neural-network": {"steps": 60, "rate": 0.5, "hidden": 8, "learning_rate": 0.1},
    "k-means": {"n_clusters": 3}, "random-forest": {"n_estimators": 20}, "decision-tree": {"max_depth": 3},
}  # fmt: skip
NOT_PRIVATE = "`labels_` of the training rows would be part of the model, and labels of rows are not private."
EXPECTED = {"k-means": {"check_clustering": NOT_PRIVATE}}


def declaring(cls: type) -> type:
    """The class, with the labels of a fit declared as its classes. One label alone is declared with another one."""

    def fit(self: Any, X: Any, y: Any = None) -> Any:  # noqa: N803
        labels = [0, 1] if y is None else np.unique(np.asarray(y)).tolist()
        self.classes = labels if len(labels) != 1 else [*labels, labels[0] * 2 + labels[0]]
        try:
            return super(made, self).fit(X, y)
        finally:
            self.classes = None

    made = type(cls.__name__, (cls,), {"fit": fit, "__module__": __name__})
    globals()[cls.__name__] = made  # pickled by name
    return made


def instance(name: str) -> Any:
    cls = estimator(name)
    own = {"epsilon": 1000, "delta": 1e-6, "bounds": (-10, 10), **OWN.get(name, {})}
    return (declaring(cls) if is_classifier(cls()) else cls)(**own)


CHECKS = [
    pytest.param(one, check, id=f"{name}-{getattr(check, 'func', check).__name__}-{number}")
    for name in NAMES
    for number, (one, check) in enumerate(estimator_checks_generator(instance(name), legacy=True))
    if getattr(check, "func", check).__name__ not in EXPECTED.get(name, {})
]


@pytest.fixture
def same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    started = NoisySums.__init__

    def restart(self: NoisySums, *args: Any, **options: Any) -> None:
        monkeypatch.setattr(os, "urandom", np.random.default_rng(3).bytes)
        started(self, *args, **options)

    monkeypatch.setattr(NoisySums, "__init__", restart)


@pytest.mark.parametrize(("one", "check"), CHECKS)
def test_scikit_learn_accepts(one: Any, check: Any, same_noise: None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert check(one) is None


DRAW = np.random.default_rng(2)
ROWS = DRAW.uniform(-1, 1, size=(400, 3))
LABELS = (ROWS.sum(axis=1) > 0).astype(int)
PUBLIC: dict[str, Any] = {"epsilon": 100, "delta": 1e-6, "bounds": (-1, 1)}


def usable(name: str, **more: Any) -> Any:
    own = {**PUBLIC, **OWN.get(name, {}), **more}
    if is_classifier(estimator(name)()):
        own["classes"] = [0, 1]
    if is_regressor(estimator(name)()):
        own["target_bounds"] = (0, 1)
    return estimator(name)(**own)


@pytest.mark.parametrize("name", NAMES)
def test_every_fit_is_charged_and_an_error_is_not(name: str, tmp_path: Path) -> None:
    place = tmp_path / "budget.db"
    Ledger.open(place).set_cap(approximate(250, "1e-4"), dataset="people")
    model = usable(name, ledger=str(place), dataset="people").fit(ROWS, LABELS)
    entries = Ledger.open(place).head()[0]
    assert model.privacy_.entry == entries
    assert 0 < model.privacy_.epsilon <= 100
    for broken in ({"epsilon": 0}, {"delta": 1}, {"bounds": None}, {"bounds": (1, 1)}, {"max_rows": 0}):
        with pytest.raises(SfumatoError):
            clone(model).set_params(**broken).fit(ROWS, LABELS)
    with pytest.raises(ValueError, match="NaN"):
        clone(model).fit(np.where(ROWS > 0.99, np.nan, ROWS), LABELS)
    assert Ledger.open(place).head()[0] == entries


@pytest.mark.parametrize("name", NAMES)
def test_estimators_work_in_pipelines_and_cross_validation(name: str) -> None:
    one = usable(name, bounds=(-3, 3))
    pipeline = make_pipeline(Standardizer(**PUBLIC), one)
    if is_classifier(one) or is_regressor(one):
        assert cross_val_score(pipeline, ROWS, LABELS, cv=2, error_score="raise").mean() > 0.3
    else:
        assert len(pipeline.fit(ROWS).transform(ROWS)) == len(ROWS)
    assert name_of(type(one)) == name


@pytest.mark.parametrize("name", NAMES)
def test_fitted_values_hold_no_row(name: str) -> None:
    """No fitted array has the length of the data, and no number of it is a value of the data."""
    model = usable(name).fit(ROWS, LABELS)
    for attribute, value in vars(model).items():
        if attribute.endswith("_") and isinstance(value, np.ndarray):
            assert len(ROWS) not in value.shape
            assert value.dtype.kind != "f" or not np.isin(value, ROWS).any()
