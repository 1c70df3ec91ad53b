"""Plans of every kind name one data set document: domains, people, bounds and ledger come from it."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.dp import concentrated
from sfumato.ledger import Ledger
from sfumato.recipe.json_schema import json_schema

HOSPITAL = """
sfumato: 1
dataset: hospital
person: patients
ledger: ledger.db
tables:
  patients:
    data: {file: patients.csv, delimiter: ";"}
    key: id
    columns:
      id: {role: identifier}
      age: {role: quasi, kind: integer, domain: {low: 0, high: 120}}
      sex: {role: quasi, kind: category, domain: {values: [f, m]}}
      ill: {role: sensitive, kind: boolean}
      name: {role: identifier}
  visits:
    data: visits.csv
    links: {patient: patients}
    bounds: {rows: 4}
    columns:
      patient: {role: identifier}
      ward: {role: quasi, kind: category, domain: {values: [east, west]}}
      bill: {role: quasi, kind: number, domain: {low: 0, high: 1000}}
"""
PLANS = {
    "statistics": "table: visits\nstatistics: [{of: bill, by: [ward]}]\nbudget: {rho: 1/4}\n",
    "model": "learn: naive-bayes\nfeatures: [age, sex]\ntarget: ill\nepsilon: 1\ndelta: 1e-6\n",
    "areas": "budget: {rho: 1/4}\nareas: {data: areas.csv, levels: [sex]}\nby: [ill]\nlevels: [1, 1]\n"
    "queries: [{by: [ill], share: 1}]\ntables: [{by: [ill]}]\n",
    "tables": "table: visits\ntables: [[ward]]\nround: 5\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw = np.random.default_rng(3)
    people = {"id": range(200), "age": draw.integers(20, 90, 200), "sex": ["f", "m"] * 100, "ill": [True, False] * 100}
    pl.DataFrame(people).with_columns(name=pl.lit("x")).write_csv(tmp_path / "patients.csv", separator=";")
    visits = {"patient": draw.integers(0, 200, 900), "ward": ["east", "west", "west"] * 300, "bill": [100.0] * 900}
    pl.DataFrame(visits).write_csv(tmp_path / "visits.csv")
    (tmp_path / "areas.csv").write_text("sex\nf\nm\n")
    (tmp_path / "hospital.yaml").write_text(HOSPITAL)
    for name, plan in PLANS.items():
        (tmp_path / f"{name}.yaml").write_text(f"sfumato: 1\ndataset: hospital.yaml\n{plan}")
    Ledger.open(tmp_path / "ledger.db").set_cap(concentrated(5), dataset="hospital")
    return tmp_path


def protect(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    words = ["protect", str(folder / f"{name}.yaml"), "--out", str(folder / name), "--json"]
    assert main(words if name != "model" else [*words, "--seconds", "0"]) == 0, capsys.readouterr().err
    done: dict[str, Any] = json.loads(capsys.readouterr().out)
    return done


def test_plans_of_all_kinds_are_charged_to_one_ledger(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The unit is the person in every table, so that the losses add up; queries charge the same unit."""
    assert protect(folder, "statistics", capsys)["guarantee"]["max_rows"] == 4
    protect(folder, "areas", capsys)
    protect(folder, "tables", capsys)
    protect(folder, "model", capsys)
    session = sfumato.session(folder / "hospital.yaml")
    session.ask("SELECT COUNT(*) FROM patients", rho="1/10")
    book = Ledger.open(folder / "ledger.db")
    assert book.unit("hospital") == "id, patient"
    kinds = [entry.unit for entry in book.entries() if entry.kind == "spend"]
    assert kinds == ["id, patient"] * 4


def test_a_person_loses_the_budget_and_a_row_its_share(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """rho of a plan is that of a person: a row has rho / k², so the noise of k rows grows by k."""
    protect(folder, "statistics", capsys)
    assert Ledger.open(folder / "ledger.db").balance(dataset="hospital").spent.size == Fraction(1, 4)
    deviation = pl.read_csv(folder / "statistics" / "statistics.csv").filter(figure="count")["deviation"][0]
    row = Fraction(1, 4) / 4**2
    assert deviation == pytest.approx(float(3 / (2 * row)) ** 0.5)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("statistics", "of: bill", "of: bil", "bill"),
        ("statistics", "by: [ward]", "by: [patient]", "whose row"),
        ("statistics", "table: visits", "table: visit", "visits"),
        ("statistics", "budget:", "budgets:", "budget"),
        ("statistics", "budget:", "data: visits.csv\nbudget:", "data"),
        ("model", "[age, sex]", "[age, name]", "role `identifier`"),
        ("model", "[age, sex]", "[age, sexe]", "sex"),
        ("model", "target: ill", "targets: ill", "target"),
        ("model", "dataset: hospital.yaml", "dataset: clinic.yaml", "clinic.yaml"),
        ("areas", "by: [ill]\nl", "by: [age]\nl", "`values` of `age`"),
    ],
)
def test_a_wrong_plan_is_refused_before_the_charge(
    name: str, old: str, new: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / f"{name}.yaml").read_text()
    assert old in text
    (folder / f"{name}.yaml").write_text(text.replace(old, new))
    assert main(["protect", str(folder / f"{name}.yaml"), "--out", str(folder / "out")]) == 2
    assert message in capsys.readouterr().err
    assert Ledger.open(folder / "ledger.db").balance(dataset="hospital").spent.size == 0


@pytest.mark.parametrize(
    ("name", "column"),
    [("statistics", "ward"), ("statistics", "bill"), ("tables", "ward"), ("model", "sex"), ("areas", "ill")],
)
@pytest.mark.parametrize("role", ["", "role: undecided, "])
def test_every_plan_refuses_a_column_that_nobody_decided(
    name: str, column: str, role: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A column without a role is undecided, with or without noise. Deciding it as the error says makes the release."""
    text, count = re.subn(rf"( {column}: {{)role: \w+, ", rf"\g<1>{role}", HOSPITAL)
    assert count == 1
    (folder / "hospital.yaml").write_text(text)
    assert main(["protect", str(folder / f"{name}.yaml"), "--out", str(folder / "out")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"`{column}`" in said
    table = "visits" if column in ("ward", "bill") else "patients"
    assert f"sfumato decide DOCUMENT {column}=quasi --table {table} --by YOUR-NAME" in said
    assert not (folder / "out").exists()
    assert Ledger.open(folder / "ledger.db").balance(dataset="hospital").spent.size == 0
    decided = ["decide", str(folder / "hospital.yaml"), f"{column}=quasi", "--table", table, "--by", "A. Steward"]
    assert main(decided) == 0
    capsys.readouterr()
    protect(folder, name, capsys)


def test_an_unknown_key_has_its_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (folder / "model.yaml").read_text().replace("features", "feature")
    (folder / "model.yaml").write_text(text)
    assert main(["learn", str(folder / "model.yaml")]) == 2
    said = capsys.readouterr().err
    assert "line 4" in said
    assert "features" in said


def test_queries_take_a_file_with_a_plan_in_it(folder: Path) -> None:
    short = "sfumato: 1\ndataset: visits\ndata: visits.csv\nunit: row\nledger: ledger.db\n"
    short += "columns: {ward: {role: quasi, kind: category, domain: {values: [east, west]}}}\n"
    for name, plan in PLANS.items():
        (folder / "short.yaml").write_text(short + plan.replace("table: visits\n", ""))
        assert sfumato.session(folder / "short.yaml").catalog.private, name


@pytest.mark.parametrize("name", sorted(PLANS))
def test_the_schema_knows_every_plan(name: str, folder: Path) -> None:
    from sfumato.data.yaml_documents import parse_yaml

    text = (folder / f"{name}.yaml").read_text()
    check = jsonschema.Draft202012Validator(json_schema())
    assert not list(check.iter_errors(parse_yaml(text).value))
    assert list(check.iter_errors({**parse_yaml(text).value, "colour": 1}))


def test_a_graph_is_a_table_with_two_links_to_people(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A person with all links is the person of the ledger; one link is not, and is refused there."""
    draw = np.random.default_rng(5)
    pairs = {"sender": draw.integers(0, 100, 300), "receiver": draw.integers(100, 200, 300)}
    pl.DataFrame(pairs).unique().write_csv(folder / "referrals.csv", separator="\t")
    table = '  referrals:\n    data: {file: referrals.csv, delimiter: "\\t"}\n'
    links = "    links: {sender: patients, receiver: patients}\n"
    (folder / "hospital.yaml").write_text(HOSPITAL + table + links)
    plan = "sfumato: 1\ndataset: hospital.yaml\ngraph: {edges: referrals}\n"
    nodes = "statistics: {protect: nodes, epsilon: 1, max_degree: 10, publish: [edges]}\n"
    (folder / "graph.yaml").write_text(plan + nodes)
    done = protect(folder, "graph", capsys)
    assert done["guarantee"]["unit"] == "id, patient"
    assert Ledger.open(folder / "ledger.db").unit("hospital") == "id, patient"
    (folder / "graph.yaml").write_text(plan + "statistics: {protect: edges, epsilon: 1}\n")
    assert main(["protect", str(folder / "graph.yaml"), "--out", str(folder / "links")]) == 2
    assert "do not add up" in capsys.readouterr().err
    for old, new, message in (
        ("edges: referrals", "edges: visits", "two links"),
        ("edges: referrals", "edges: referrals, nodes: patients.csv", "leave it out"),
        ("epsilon: 1", "epsilonn: 1", "epsilon"),
    ):
        (folder / "graph.yaml").write_text((plan + nodes).replace(old, new))
        assert main(["protect", str(folder / "graph.yaml"), "--out", str(folder / "links")]) == 2
        assert message in capsys.readouterr().err
    steps = "models: [k-degree-anonymity: 2]\nsteps: [anonymize-degrees: 2]\n"
    (folder / "graph.yaml").write_text(plan + steps)
    assert main(["protect", str(folder / "graph.yaml"), "--out", str(folder / "edges"), "--seconds", "0"]) in (0, 1)


def test_a_plan_of_another_kind_names_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", str(folder / "statistics.yaml")]) == 2
    said = capsys.readouterr().err
    assert "kind `tables`" in said
    assert "sfumato protect" in said
