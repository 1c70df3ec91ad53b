"""One hospital, one document, one ledger: questions, tables, a model, graphs and microdata of the same people."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.data.atomic import path_digest
from sfumato.dp.loss import PrivacyMeasure
from sfumato.errors import BadParameter
from sfumato.ledger import Ledger
from sfumato.recipe import Recipe
from sfumato.studies.cell import run_cell

HOSPITAL = """
sfumato: 1
dataset: hospital
person: patients
ledger: ledger.db
tables:
  patients:
    data: patients.csv
    key: id
    columns:
      id: {role: identifier}
      age: {role: quasi, kind: integer, domain: {low: 0, high: 120}}
      sex: {role: quasi, kind: category, domain: {values: [f, m]}}
      ill: {role: sensitive, kind: boolean}
  visits:
    data: visits.csv
    links: {patient: patients}
    bounds: {rows: 4, groups: 2}
    columns:
      patient: {role: identifier}
      ward: {role: quasi, kind: category, domain: {values: [east, west]}}
      bill: {role: quasi, kind: number, domain: {low: 0, high: 1000}}
  contacts:
    data: contacts.csv
    links: {a: patients, b: patients}
"""
PLANS = {
    "statistics": "table: visits\nstatistics: [{of: bill, by: [ward]}]\nbudget: {rho: 1/50}\n",
    "model": "learn: naive-bayes\nfeatures: [age, sex]\ntarget: ill\nepsilon: 1/2\ndelta: 1e-8\n",
    "synthetic": "table: visits\nsteps: [private-synthesis: {epsilon: 0.5, delta: 1e-8}]\n",
    "made-up": "table: patients\nsteps: [private-synthesis: {epsilon: 0.5, delta: 1e-8}]\n",
    "suppressed": "table: visits\ntables: [[ward]]\nround: 5\n",
    "microdata": "table: patients\nmodels: [{k-anonymity: 5}]\nsteps: [mondrian]\nabout: {purpose: a yearly file}\n",
    "contacts": "graph: {edges: contacts}\nmodels: [k-degree-anonymity: 2]\nsteps: [anonymize-degrees: 2]\n",
    "people": "graph: {edges: contacts}\nstatistics: {protect: nodes, epsilon: 1/5, max_degree: 5, publish: [edges]}\n",
    "edges": "graph: {edges: contacts}\nstatistics: {protect: edges, epsilon: 1, publish: [edges]}\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw = np.random.default_rng(3)
    people = {"id": range(200), "age": draw.integers(20, 90, 200), "sex": ["f", "m"] * 100, "ill": [True, False] * 100}
    pl.DataFrame(people).write_csv(tmp_path / "patients.csv")
    visits = {"patient": draw.integers(0, 200, 900), "ward": ["east", "west", "west"] * 300, "bill": [100.0] * 900}
    pl.DataFrame(visits).write_csv(tmp_path / "visits.csv")
    pl.DataFrame({"a": range(150), "b": [n + 1 + n % 40 for n in range(150)]}).filter(
        pl.col("a") != pl.col("b")
    ).write_csv(tmp_path / "contacts.csv")
    (tmp_path / "hospital.yaml").write_text(HOSPITAL)
    for name, plan in PLANS.items():
        (tmp_path / f"{name}.yaml").write_text(f"sfumato: 1\ndataset: hospital.yaml\n{plan}")
    return tmp_path


def run(folder: Path, *words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main([*words, "--json"]) in (0, 1), capsys.readouterr().err
    done: dict[str, object] = json.loads(capsys.readouterr().out)
    return done


def test_the_command_line_charges_and_registers_everything_in_one_ledger(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = str(folder / "hospital.yaml")
    run(folder, "ledger", "cap", document, "--epsilon", "4", "--delta", "1e-6", capsys=capsys)
    run(folder, "ledger", "cap", document, "--epsilon", "2", "--unit", "edge", capsys=capsys)
    question = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    run(folder, "query", document, question, "--epsilon", "0.1", "--analyst", "ana", capsys=capsys)
    for name in PLANS:
        more = ["--seconds", "0"] if name == "model" else ["--unmet"]
        run(folder, "protect", str(folder / f"{name}.yaml"), "--out", str(folder / name), *more, capsys=capsys)
    again = ["protect", str(folder / "microdata.yaml"), "--out", str(folder / "microdata"), "--force", "--unmet"]
    run(folder, *again, capsys=capsys)
    shown = run(folder, "ledger", "show", document, capsys=capsys)
    lines = shown["register"]
    assert isinstance(lines, list)
    kinds = [line["kind"] for line in lines]
    assert sorted(kinds) == sorted(
        [
            "answers",
            "tables",
            "model",
            "graph-statistics",
            "graph-statistics",
            "tables",
            "microdata",
            "graph",
            "microdata",
            "microdata",
            "microdata",
        ]
    )
    assert {line["dataset"] for line in lines} == {"hospital"}
    free = [line for line in lines if line["loss"] is None]
    assert sorted(line["kind"] for line in free) == ["graph", "microdata", "microdata", "tables"]
    assert all(len(line["sha256"]) == len(line["plan"]) == 64 and line["who"] == "owner" for line in free)
    paid = [line for line in lines if line["kind"] == "microdata" and line["loss"] is not None]
    assert [line["name"] for line in paid] == ["synthetic", "made-up"]
    assert {line["why"] for line in free if line["kind"] == "microdata"} == {"a yearly file"}
    last = [line for line in free if line["kind"] == "microdata"][-1]
    assert last["sha256"] == path_digest(folder / "microdata")
    assert any("k-anonymity" in verdict for verdict in last["verdicts"])
    book = Ledger.open(folder / "ledger.db")
    measures = {entry.measure for entry in book.entries() if entry.kind == "spend"}
    assert measures == {PrivacyMeasure.EPSILON, PrivacyMeasure.RHO}
    assert book.balance(dataset="hospital").spent.size <= 4
    assert book.balance(dataset="hospital", unit="edge").spent.size == 1
    book.verify()
    assert main(["ledger", "show", document]) == 0
    assert "microdata microdata; left; by owner; no charge" in capsys.readouterr().out


@pytest.mark.parametrize(
    "step",
    [
        "private-synthesis: {epsilon: 1, delta: 1e-8}",
        "private-item-counts: {item: ward, epsilon: 1, delta: 1e-8, max_items: 2}",
    ],
)
@pytest.mark.parametrize("short", [False, True])
def test_a_step_with_a_guarantee_is_charged_to_the_document(
    folder: Path, step: str, short: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a step draws costs as much as a question, whichever file the step stands in."""
    document, plan = folder / "hospital.yaml", folder / "plan.yaml"
    if short:
        columns = HOSPITAL.partition("  visits:")[2].partition("    columns:\n")[2].partition("  contacts:")[0]
        document = plan
        text = (
            f"data: visits.csv\nunit: patient\nbounds: {{rows: 4, groups: 2}}\nledger: ledger.db\ncolumns:\n{columns}"
        )
        plan.write_text(f"sfumato: 1\ndataset: visits\n{text}steps: [{step}]\n")
    else:
        plan.write_text(f"sfumato: 1\ndataset: hospital.yaml\ntable: visits\nsteps: [{step}]\n")
    protect = ["protect", str(plan), "--out", str(folder / "out"), "--seconds", "0", "--unmet"]
    assert main(protect) == 2, "no cap is set"
    assert "No budget" in capsys.readouterr().err
    assert not (folder / "out").exists()
    run(folder, "ledger", "cap", str(document), "--epsilon", "1.05", "--delta", "1e-6", capsys=capsys)
    done = sfumato.protect(plan, seconds=0, unmet=True)
    [guarantee] = done.guarantees
    assert guarantee.entry is not None
    assert guarantee.max_rows == (2 if "item" in step else 4), "the bound of the document"
    assert "no ledger" not in str(guarantee)
    done.save(folder / "out", unmet=True)
    spent = Ledger.open(folder / "ledger.db").balance(dataset="visits" if short else "hospital").spent
    assert 0.5 < spent.size <= 1
    assert main([*protect, "--force"]) == 1
    assert "left" in capsys.readouterr().err
    assert main(["query", str(document), "SELECT COUNT(*) FROM visits", "--epsilon", "1.1"]) == 1
    assert main(["query", str(document), "SELECT COUNT(*) FROM visits", "--epsilon", "0.04"]) == 0


def test_a_study_of_a_step_with_a_guarantee_costs_nothing(folder: Path) -> None:
    sfumato.set_budget(folder / "hospital.yaml", epsilon="1/100", delta="1e-6")
    step = "private-synthesis: {epsilon: 1, delta: 1e-8, max_rows: 2}"
    plan = f"sfumato: 1\ndataset: hospital.yaml\ntable: visits\nsteps: [{step}]\n"
    recipe = Recipe.parse(plan, base=folder)
    run_cell(recipe, recipe.open(folder / "visits.csv"), n_targets=20)
    assert [entry.kind for entry in Ledger.open(folder / "ledger.db").entries()] == ["cap"]


def test_a_person_who_is_twice_in_the_table_of_people_counts_once(folder: Path) -> None:
    """The key is unique by declaration; a guarantee holds for a file in which it is not."""
    people = pl.read_csv(folder / "patients.csv")
    copies = pl.concat([people, *[people.filter(pl.col("id") == 7)] * 400])
    copies.write_csv(folder / "patients.csv")
    sfumato.set_budget(folder / "hospital.yaml", epsilon=1000, delta="1e-6")
    (folder / "made-up.yaml").write_text(
        "sfumato: 1\ndataset: hospital.yaml\ntable: patients\nsteps: [private-synthesis: {epsilon: 500, delta: 1e-8}]\n"
    )
    made = sfumato.protect(folder / "made-up.yaml", seconds=0, unmet=True)
    assert abs(made.data.height - 200) < 20
    [guarantee] = made.guarantees
    assert guarantee.unit == "id, patient"


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("id_", ["7", ""])
def test_rows_are_not_taken_for_people_where_a_key_is_not_unique(folder: Path, engine: str, id_: str) -> None:
    """Nine rows of one person are no class of nine people."""
    with (folder / "patients.csv").open("a") as file:
        file.writelines(f"{id_},99,f,true\n" for _ in range(9))
    with pytest.raises(BadParameter, match="rows are not people"):
        sfumato.protect(folder / "microdata.yaml", engine=engine, unmet=True)


def test_python_does_the_same(folder: Path) -> None:
    document = folder / "hospital.yaml"
    sfumato.set_budget(document, epsilon=4, delta="1e-6", why="2026")
    session = sfumato.session(document, analyst="ana")
    session.ask("SELECT COUNT(*) FROM visits", epsilon="0.1")
    session.ask("SELECT COUNT(*) FROM visits WHERE bill > 50", rho="0.0001")
    sfumato.protect(folder / "statistics.yaml").save(folder / "statistics")
    sfumato.learn(folder / "model.yaml", out=folder / "model.json", attacks=None)
    sfumato.protect(folder / "microdata.yaml", unmet=True).save(folder / "microdata", unmet=True)
    overview = sfumato.ledger_overview(document)
    assert [line.kind for line in overview.register] == ["answers", "tables", "model", "microdata"]
    whole = next(account for account in overview.accounts if not account.analyst)
    assert whole.balance.left is not None
    assert 0 < whole.balance.spent.size < 4
    assert whole.balance.cap is not None
    assert whole.balance.cap.delta == Fraction(1, 10**6)


def test_what_is_registered_holds_no_value_of_the_data(folder: Path) -> None:
    sfumato.protect(folder / "microdata.yaml", unmet=True).save(folder / "microdata", unmet=True)
    sfumato.protect(folder / "suppressed.yaml", unmet=True).save(folder / "suppressed", unmet=True)
    for entry in Ledger.open(folder / "ledger.db").entries():
        told = json.loads(entry.about)
        assert set(told) == {"kind", "name", "sha256", "plan", "verdicts", "why", "charges"}
        assert not any(value in json.dumps(told["verdicts"]) for value in ("east", "west", "True", "100.0"))
