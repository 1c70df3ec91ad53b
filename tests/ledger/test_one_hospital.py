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
from sfumato.dp.loss import PrivacyMeasure
from sfumato.ledger import Ledger
from sfumato.ledger.register import fingerprint

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
        ]
    )
    assert {line["dataset"] for line in lines} == {"hospital"}
    free = [line for line in lines if line["loss"] is None]
    assert sorted(line["kind"] for line in free) == ["graph", "microdata", "microdata", "tables"]
    assert all(len(line["sha256"]) == len(line["plan"]) == 64 and line["who"] == "owner" for line in free)
    assert {line["why"] for line in free if line["kind"] == "microdata"} == {"a yearly file"}
    last = [line for line in free if line["kind"] == "microdata"][-1]
    assert last["sha256"] == fingerprint(folder / "microdata")
    assert any("k-anonymity" in verdict for verdict in last["verdicts"])
    book = Ledger.open(folder / "ledger.db")
    measures = {entry.measure for entry in book.entries() if entry.kind == "spend"}
    assert measures == {PrivacyMeasure.EPSILON, PrivacyMeasure.RHO}
    assert book.balance(dataset="hospital").spent.size <= 4
    assert book.balance(dataset="hospital", unit="edge").spent.size == 1
    book.verify()
    assert main(["ledger", "show", document]) == 0
    assert "microdata microdata; left; by owner; no guarantee" in capsys.readouterr().out


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
