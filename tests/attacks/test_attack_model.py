"""Attacks on models through Python and the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skops.io import dump

import sfumato
from sfumato.api.attack_model import stored_model
from sfumato.attacks.models.likelihood_ratio import LikelihoodRatio
from sfumato.cli import main
from sfumato.errors import BadParameter, FileMissing, NotApplicable, NotThatFormat, UnknownColumn
from sfumato.learning import LogisticRegression as PrivateLogisticRegression


def people(seed: int, count: int = 300) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    a, b, c = draw.normal(size=(3, count))
    label = (a + b + draw.normal(size=count) > 0).astype(np.int64)
    return pl.DataFrame({"a": a, "b": b, "c": c, "y": label, "z": a - 2 * c + draw.normal(size=count)})


DATA, CONTROL = people(1), people(2)
FEATURES = ["a", "b", "c"]


def fitted(estimator: object, label: str = "y") -> object:
    return estimator.fit(DATA.select(FEATURES), DATA[label].to_numpy())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("estimator", "label"),
    [
        (LinearRegression(), "z"),
        (Ridge(alpha=3.0), "z"),
        (make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=1000)), "y"),
        (LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000), "y"),
    ],
    ids=["least squares", "ridge", "scaled logistic", "unpenalized logistic"],
)
def test_records_are_reconstructed_from_coefficients(estimator: object, label: str) -> None:
    model = fitted(estimator, label)
    options = {"label": label, "features": FEATURES, "control": CONTROL, "attacks": ["coefficient-reconstruction"]}
    [found] = sfumato.attack_model(model, DATA, seed=1, **options)
    assert found.main.rate > 0.97
    assert found.baseline.rate < 0.05
    assert found.control.rate < 0.05
    # Rounded coefficients withhold what the reconstruction needs.
    tail = model[-1] if hasattr(model, "steps") else model  # type: ignore[index]
    tail.coef_ = np.round(tail.coef_, 1)
    [rounded] = sfumato.attack_model(model, DATA, seed=1, **options)
    assert rounded.main.rate < 0.05


def test_private_models_give_nobody_away() -> None:
    model = PrivateLogisticRegression(epsilon=1, delta=1e-6, bounds=(-4, 4), classes=[0, 1], steps=4)
    model.fit(DATA.select(FEATURES).to_numpy(), DATA["y"].to_numpy())
    attacks = ["coefficient-reconstruction", "loss-threshold"]
    found = sfumato.attack_model(model, DATA, label="y", features=FEATURES, control=CONTROL, seed=1, attacks=attacks)
    assert isinstance(found[0], NotApplicable)
    assert found[1].to_dict()["low"] < 0.55


def test_a_forest_gives_its_members_away_and_a_stump_does_not() -> None:
    options = {
        "label": "y",
        "features": FEATURES,
        "seed": 3,
        "attacks": ["loss-threshold", LikelihoodRatio(shadows=12)],
    }
    grown = sfumato.attack_model(fitted(RandomForestClassifier(20, random_state=0)), DATA, control=CONTROL, **options)
    coarse = RandomForestClassifier(5, max_depth=1, random_state=0)
    stump = sfumato.attack_model(fitted(coarse), DATA, control=CONTROL, **options)
    for item in grown:
        assert item.to_dict()["low"] > 0.6
    for item in stump:
        assert item.to_dict()["low"] < 0.56
    assert grown[0].main.trials == 600


def test_without_a_control_file_the_algorithm_is_refitted() -> None:
    model = fitted(RandomForestClassifier(10, random_state=0))
    [found] = sfumato.attack_model(model, DATA, label="y", features=FEATURES, attacks=["loss-threshold"], seed=3)
    assert found.truth == "cross-fitting"
    assert found.main.trials == 300
    assert found.main.rate > 0.6


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump(fitted(RandomForestClassifier(10, random_state=0)), tmp_path / "model.skops")
    DATA.write_csv(tmp_path / "data.csv")
    CONTROL.write_csv(tmp_path / "control.csv")
    command = ["attack", str(tmp_path / "model.skops"), "--original", str(tmp_path / "data.csv"), "--label", "y"]
    command += ["--control", str(tmp_path / "control.csv"), "--attack", "loss-threshold", "--seed", "1", "--json"]
    assert main([*command, "--limit", "0.1"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["attacks"][0]["discloses"] == "membership"
    assert document["limits"][0]["met"] is False
    assert main([*command, "--limit", "1"]) == 0
    assert main(command[:4]) == 2
    assert "--label" in capsys.readouterr().err
    assert main([*command, "--knows", "a"]) == 2
    assert main(["attack", str(tmp_path / "data.csv"), "--label", "y"]) == 2


class Foreign:
    """A type that skops files may name and that is not loaded."""

    def __init__(self) -> None:
        self.value = 1


def test_unsafe_and_broken_files_are_refused(tmp_path: Path) -> None:
    dump(Foreign(), tmp_path / "foreign.skops")
    (tmp_path / "broken.skops").write_bytes(b"not a zip")
    for name in ("foreign.skops", "broken.skops"):
        with pytest.raises(NotThatFormat):
            stored_model(tmp_path / name)
    with pytest.raises(FileMissing):
        stored_model(tmp_path / "none.skops")


def test_bad_input_is_refused() -> None:
    model = fitted(LinearRegression(), "z")
    with pytest.raises(UnknownColumn):
        sfumato.attack_model(model, DATA, label="nothing")
    with pytest.raises(BadParameter):
        sfumato.attack_model(model, DATA, label="z", features=["a"])
    with pytest.raises(BadParameter):
        sfumato.attack_model(model, DATA, label="z", control=CONTROL, attacks=["model-attribute"], secrets=["y"])
    with pytest.raises(BadParameter):
        sfumato.attack_model(object(), DATA, label="z")
    small = sfumato.attack_model(model, DATA, label="z", control=CONTROL.head(5), attacks=["loss-threshold"])
    assert isinstance(small[0], NotApplicable)
