"""`sfumato learn`: attacks, audit and report of a private model, which cost no budget of their own."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from fractions import Fraction
from math import exp
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

import sfumato
from sfumato.attacks.models import AttackedModel, CanaryAudit, audit_estimator
from sfumato.cli import cli, main
from sfumato.dp import approximate, pure
from sfumato.dp.curve import gaussian_curve
from sfumato.errors import NotComparable, OutputExists
from sfumato.learning import LogisticRegression
from sfumato.ledger import Ledger
from sfumato.release.guarantee import Guarantee
from sfumato.rng import Rng

PLAN = """
sfumato: 1
dataset: clinic
data: people.csv
unit: row
ledger: budget.db
columns:
  age: {role: quasi, domain: {low: 0, high: 100}}
  sex: {role: quasi, domain: {values: [f, m]}}
  ill: {role: quasi, domain: {values: ["no", "yes"]}}
learn: naive-bayes
features: [age, sex]
target: ill
test: others.csv
epsilon: 1
delta: 1e-6
"""


def people(seed: int, count: int = 400) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    age, sex = draw.uniform(0, 100, count).round(1), draw.choice(["f", "m"], count)
    ill = np.where(age + 20 * (sex == "m") + draw.normal(0, 20, count) > 60, "yes", "no")
    return pl.DataFrame({"age": age, "sex": sex, "ill": ill})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    people(1).write_csv(tmp_path / "people.csv")
    people(2).write_csv(tmp_path / "others.csv")
    Ledger.open(tmp_path / "budget.db").set_cap(approximate(8, "1e-4"), dataset="clinic")
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words], standalone_mode=False)


def entries(folder: Path) -> int:
    """Caps and charges; what left is not counted."""
    return sum(entry.kind in ("cap", "spend") for entry in Ledger.open(folder / "budget.db").entries())


def change(folder: Path, old: str, new: str) -> None:
    assert old in PLAN
    (folder / "plan.yaml").write_text(PLAN.replace(old, new))


def test_a_model_is_attacked_audited_and_reported_and_charged_once(folder: Path) -> None:
    done = run(
        *("learn", folder / "plan.yaml", "--json", "--audit", 100, "--seed", 1),
        *("--html", folder / "in.html", "--html-external", folder / "out.html"),
    )
    assert done.return_value == 0, done.output
    document = json.loads(done.stdout)
    assert entries(folder) == 2, "the cap and one fit: shadow models cost nothing"
    risks = {one["attack"]: one for one in document["attacks"]}
    assert {"likelihood-ratio", "loss-threshold", "model-attribute"} <= set(risks)
    for name in ("likelihood-ratio", "loss-threshold"):
        assert risks[name]["low"] <= document["membership_bound"] < 0.7
        assert risks[name]["truth"] == "control file"
    assert document["audit"]["epsilon"] <= 1
    assert not document["audit"]["refuted"]
    inside, outside = (folder / "in.html").read_text(), (folder / "out.html").read_text()
    for page in (inside, outside):
        assert "default-src &#39;none&#39;" in page
        assert "(1, 1e-06)-differential privacy" in page
        assert "0 to 100" in page
    assert "likelihood ratio" in inside
    assert f"{document['measures']['accuracy']:.4f}" in inside
    assert "likelihood" not in outside
    assert "accuracy low" not in outside
    assert "Audit" not in outside


def test_people_of_the_same_file_are_no_control_group(folder: Path) -> None:
    change(folder, "test: others.csv", "test: people.csv")
    done = run("learn", folder / "plan.yaml", "--json", "--attack", "loss-threshold", "--seed", 1)
    assert [one["truth"] for one in json.loads(done.stdout)["attacks"]] == ["cross-fitting"]
    assert entries(folder) == 2
    change(folder, "test: others.csv", "control: others.csv")
    done = run("learn", folder / "plan.yaml", "--json", "--attack", "loss-threshold", "--seed", 1, "--force")
    assert [one["truth"] for one in json.loads(done.stdout)["attacks"]] == ["control file"]


def test_without_time_attacks_have_no_risk_and_no_limit_is_met(folder: Path) -> None:
    done = run("learn", folder / "plan.yaml", "--json", "--seconds", 0, "--limit", 0.5)
    assert done.return_value == 1, done.output
    attacks = json.loads(done.stdout)["attacks"]
    assert [one["risk"] for one in attacks] == [None] * 4
    assert sum(one.get("stopped", False) for one in attacks) == 4
    assert (folder / "plan.model.json").exists(), "the model was paid for"


def test_a_model_without_a_target_is_not_attacked_and_meets_no_limit(folder: Path) -> None:
    change(folder, "naive-bayes", "k-means")
    text = (folder / "plan.yaml").read_text().replace("target: ill\n", "")
    (folder / "plan.yaml").write_text(text)
    assert run("learn", folder / "plan.yaml", "--json").return_value == 0
    done = run("learn", folder / "plan.yaml", "--json", "--limit", 0.5, "--force")
    assert done.return_value == 1, done.output
    assert "predicts a column" in json.loads(done.stdout)["attacks"][0]["reason"]


def test_reports_are_not_replaced_and_that_is_said_before_the_charge(folder: Path) -> None:
    (folder / "in.html").write_text("mine")
    assert isinstance(run("learn", folder / "plan.yaml", "--html", folder / "in.html").exception, OutputExists)
    assert entries(folder) == 1
    assert (folder / "in.html").read_text() == "mine"


def test_the_audit_refutes_a_model_that_knows_its_records_by_heart() -> None:
    frame = people(1).with_columns(sex=(pl.col("sex") == "f").cast(pl.Float64))
    design, label = frame.drop("ill").to_numpy(), frame["ill"].to_numpy()
    bounds = []
    for kind in (DecisionTreeClassifier(random_state=0), DummyClassifier(strategy="prior")):
        target = AttackedModel(
            estimator=kind.fit(design, label), label="ill", features=("age", "sex"), members=frame, control=frame
        )
        bounds.append(audit_estimator(target, canaries=200, rng=Rng(1), delta=1e-9).epsilon)
    assert bounds[0] > 1
    assert bounds[1] == 0


def test_a_refuted_promise_is_said_and_ends_with_1(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = CanaryAudit(epsilon=1.5, confidence=0.95, guesses=40, correct=40)
    monkeypatch.setattr(importlib.import_module("sfumato.api.learn"), "audit_estimator", lambda *_, **__: broken)
    words = ("learn", folder / "plan.yaml", "--audit", 10, "--no-attacks", "--html", folder / "in.html")
    assert main([str(word) for word in words]) == 1
    assert "REFUTED" in capsys.readouterr().out
    assert "do not publish" in (folder / "in.html").read_text()


def test_the_bound_on_membership_is_that_of_randomized_response_and_of_normal_noise() -> None:
    general = Guarantee(loss=pure(1), unit="row", proof="test")
    assert general.membership_bound == pytest.approx(exp(1) / (1 + exp(1)))
    stated = replace(approximate(5, "1e-6"), curve=gaussian_curve(Fraction(1)))
    normal = Guarantee(loss=stated, unit="row", proof="test")
    assert normal.membership_bound == pytest.approx(0.6914624612740131)


def test_attacks_on_a_private_model_do_not_charge_its_ledger(folder: Path) -> None:
    frame = people(1)
    model = LogisticRegression(
        epsilon=1, delta=1e-6, bounds={"age": (0, 100)}, categories={"sex": ["f", "m"]}, classes=["no", "yes"], steps=2,
        ledger=str(folder / "budget.db"), dataset="clinic",
    ).fit(frame.drop("ill"), frame["ill"].to_numpy())  # fmt: skip
    sfumato.attack_model(model, frame, control=people(2), label="ill", attacks=["loss-threshold"], seed=1)
    assert entries(folder) == 2


def test_attacks_on_models_stop_in_time() -> None:
    frame = people(1).with_columns(sex=(pl.col("sex") == "f").cast(pl.Float64))
    tree = DecisionTreeClassifier(random_state=0).fit(frame.drop("ill").to_numpy(), frame["ill"].to_numpy())
    found = sfumato.attack_model(tree, frame, label="ill", features=["age", "sex"], seed=1, seconds=0, limit=0.9)
    assert found.to_frame()["risk"].null_count() == 4
    assert [limit.met for limit in found.limits] == [None, None]


def test_two_private_models_are_compared(folder: Path) -> None:
    for name in ("old", "new"):
        assert run("learn", folder / "plan.yaml", "--no-attacks", "--out", folder / f"{name}.json").return_value == 0
    words = ("integral", "compare", folder / "old.json", folder / "new.json", "--original", folder / "people.csv")
    done = run(*words, "-k", 5, "--json")
    assert done.return_value == 0, done.output
    document = json.loads(done.stdout)
    assert (document["publish"], document["verdict"]["model"]) == (True, "differintegral-privacy")
    assert 1 < document["epsilon"] < 2
    assert run(*words, "-k", 401).return_value == 1
    (folder / "other.json").write_text('{"sfumato": "integral-model"}')
    mixed = run("integral", "compare", folder / "old.json", folder / "other.json", "--original", "x.csv", "-k", 5)
    assert isinstance(mixed.exception, NotComparable)
