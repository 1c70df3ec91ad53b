"""`sfumato learn` and `sfumato predict`: plans, charges, model files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

import sfumato
from sfumato.cli import cli
from sfumato.dp import approximate
from sfumato.errors import OutputExists, SfumatoError
from sfumato.learning.catalogue import estimator_names
from sfumato.learning.model_file import load_model, model_text
from sfumato.learning.plan import LearningPlan
from sfumato.ledger import Ledger

PLAN = """
sfumato: 1
dataset: clinic
data: people.csv
unit: row
ledger: budget.db
columns:
  person: {role: quasi, kind: integer, domain: {low: 0, high: 500}}
  age: {role: quasi, domain: {low: 0, high: 100}}
  sex: {role: quasi, domain: {values: [f, m]}}
  ill: {role: quasi, domain: {values: ["no", "yes"]}}
learn: additive-model
features: [age, sex]
target: ill
test: people.csv
epsilon: 5
delta: 1e-6
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw = np.random.default_rng(4)
    age, sex = draw.uniform(0, 100, 1500).round(1), draw.choice(["f", "m"], 1500)
    ill = np.where(age + 20 * (sex == "m") > 60, "yes", "no")
    person = np.arange(1500) // 3
    pl.DataFrame({"person": person, "age": age, "sex": sex, "ill": ill}).write_csv(tmp_path / "people.csv")
    Ledger.open(tmp_path / "budget.db").set_cap(approximate(12, "1e-4"), dataset="clinic")
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def entries(folder: Path) -> int:
    """Caps and charges; what left is not counted."""
    return sum(entry.kind in ("cap", "spend") for entry in Ledger.open(folder / "budget.db").entries())


def test_a_model_is_learned_charged_saved_and_used(folder: Path) -> None:
    done = run("learn", folder / "plan.yaml", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["measures"]["accuracy"] > 0.8
    assert document["privacy"]["entry"] == entries(folder) == 2
    assert document["measures_are_private"] is False
    stored = (folder / "plan.model.json").read_text()
    assert "accuracy" not in stored
    assert "budget.db" not in stored
    used = run("predict", folder / "plan.model.json", folder / "people.csv", "--out", folder / "guesses.csv")
    assert used.exit_code == 0, used.output
    guesses = pl.read_csv(folder / "guesses.csv")
    assert guesses.columns == ["prediction", "probability no", "probability yes"]
    assert (guesses["prediction"] == pl.read_csv(folder / "people.csv")["ill"]).mean() > 0.8
    assert "(5, 1e-06)-differential privacy" in run("predict", folder / "plan.model.json", "-", "--privacy").stdout
    people = pl.read_csv(folder / "people.csv")
    again = sfumato.predict(folder / "plan.model.json", people.to_pandas())
    assert type(again).__module__.startswith("pandas")
    assert again["prediction"].tolist() == guesses["prediction"].to_list()


def test_results_and_folders_of_models_predict_like_their_files(folder: Path) -> None:
    made = sfumato.protect(folder / "plan.yaml", n_targets=20, seconds=1)
    made.save(folder / "model")
    people = folder / "people.csv"
    first = sfumato.predict(made, people)
    assert first.equals(sfumato.predict(folder / "model", people))
    assert first.equals(sfumato.predict(made.results, people))
    used = run("predict", folder / "model", people, "--json")
    assert [row["prediction"] for row in json.loads(used.stdout)] == first["prediction"].to_list()
    assert "differential privacy" in run("predict", folder / "model", "-", "--privacy").stdout


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("learn: additive-model", "learn: additive-tree", "additive-model"),
        ("epsilon: 5", "epsilon: 0", "epsilon"),
        ("epsilon: 5\n", "", "epsilon"),
        ("epsilon: 5", "epsilon: 50", "budget"),
        ("unit: row\n", "", "whose privacy"),
        ("unit: row", "unit: person", "bounds"),
        ("high: 100", "high: 0", "bounds"),
        ("low: 0, high: 100", "low: 0", "high"),
        ("  age:", "  aged:", "age"),
        ("target: ill", "target: age", "target"),
        ("data: people.csv", "data: nobody.csv", "nobody.csv"),
        ("test: people.csv", "test: nobody.csv", "nobody.csv"),
        ("delta: 1e-6", "delta: 1e-6\noptions: {epoch: 3}", "epochs"),
        ("features: [age, sex]", "features: [age, sexe]", "sex"),
        ("  sex: {", "  sex: {role: identifier, ", "identifier"),
        ("epsilon: 5", "epsilonn: 5", "epsilon"),
    ],
)
def test_a_bad_plan_costs_nothing(folder: Path, old: str, new: str, named: str) -> None:
    assert old in PLAN
    (folder / "plan.yaml").write_text(PLAN.replace(old, new))
    done = run("learn", folder / "plan.yaml")
    assert isinstance(done.exception, SfumatoError)
    assert named in str(done.exception)
    assert entries(folder) == 1
    assert not (folder / "plan.model.json").exists()


@pytest.mark.parametrize("name", ["additive-model", "naive-bayes", "decision-tree"])
def test_nobody_can_be_learned_from(folder: Path, name: str) -> None:
    """To refuse a file without a complete row would tell that the one person it may have is not there."""
    for text in ("person,age,sex,ill\n", "person,age,sex,ill\n1,old,f,yes\n2,40,f,unknown\n"):
        (folder / "people.csv").write_text(text)
        (folder / "plan.yaml").write_text(PLAN.replace("additive-model", name).replace("test: people.csv\n", ""))
        done = run("learn", folder / "plan.yaml", "--no-attacks", "--force")
        assert done.exit_code == 0, done.output
    assert entries(folder) == 3


def test_an_existing_model_is_not_replaced_and_costs_nothing(folder: Path) -> None:
    (folder / "plan.model.json").write_text("mine")
    assert isinstance(run("learn", folder / "plan.yaml").exception, OutputExists)
    assert (folder / "plan.model.json").read_text() == "mine"
    assert entries(folder) == 1


def test_rows_of_a_person_are_bounded(folder: Path) -> None:
    (folder / "plan.yaml").write_text(PLAN.replace("unit: row", "unit: person\nbounds: {rows: 2}"))
    done = run("learn", folder / "plan.yaml", "--json")
    assert done.exit_code == 0, done.output
    privacy = json.loads(done.stdout)["privacy"]
    assert (privacy["unit"], privacy["max_rows"]) == ("person", 2)


@pytest.mark.parametrize("name", estimator_names())
def test_every_model_survives_its_file(name: str, folder: Path) -> None:
    text = PLAN.replace("additive-model", name).replace("ledger: budget.db\n", "")
    if name in {"k-means", "pca", "standardizer"}:
        text = text.replace("target: ill\n", "")
    if name == "standardizer":
        text = text.replace("[age, sex]", "[age]")
    if name == "linear-regression":
        text = text.replace("target: ill", "target: person")
    (folder / "plan.yaml").write_text(text)
    from sfumato.learning.run import predict_frame, run_plan

    model = run_plan(LearningPlan.load(folder / "plan.yaml")).model
    (folder / "model.json").write_text(model_text(model), encoding="utf-8")
    stored = load_model(folder / "model.json")
    people = pl.read_csv(folder / "people.csv").head(50)
    assert predict_frame(stored, people).equals(predict_frame(model, people))
    assert stored.privacy_ == model.privacy_


@pytest.mark.parametrize(
    "text",
    [
        "{}", "[]", "nonsense", '{"sfumato_model": 2}', '{"sfumato_model": 1, "estimator": "os"}',
        '{"sfumato_model": 1, "estimator": "pca", "parameters": {"x": 1}, "fitted": {}, "privacy": {}}',
        '{"sfumato_model": 1, "estimator": "pca", "parameters": {}, "fitted": {"__class__": 1}, "privacy": {}}',
    ],
)  # fmt: skip
def test_a_file_that_is_no_model_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(SfumatoError, match="not a model"):
        load_model(tmp_path / "model.json")
