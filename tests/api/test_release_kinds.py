"""The same verbs for every kind of release: documents, exit codes, folders, and a toy kind as one package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.api.kind import kind_of_plan, kind_of_release
from sfumato.cli import main
from sfumato.errors import BadParameter, OutputExists
from sfumato.registry import registry

ROOT = Path(__file__).parents[2]
RECIPE = """
sfumato: 1
data: people.csv
columns:
  age: {role: quasi, kind: integer, hierarchy: {intervals: [20]}}
  ward: sensitive
models: [k-anonymity: 5]
steps: [generalize]
attacks: [linkage]
measures: [uniqueness]
"""
PLANS = {
    "microdata": RECIPE,
    "graph": "sfumato: 1\ngraph: {edges: friends.csv}\nmodels: [k-degree-anonymity: 2]\nsteps: [anonymize-degrees: 2]\n"
    "attacks: [degree-matching]\nmeasures: [edges-kept]\n",
    "graph-statistics": "sfumato: 1\ngraph: {edges: friends.csv, nodes: nodes.csv}\n"
    "dataset: friends\nledger: ledger.db\nstatistics: {protect: edges, epsilon: 1}\n",
    "tables": "sfumato: 1\ndata: people.csv\nunit: row\ncolumns: {ward: {role: quasi}}\ntables: [[ward]]\n"
    "sensitive: {threshold: 3}\n",
    "model": "sfumato: 1\ndata: people.csv\nunit: row\n"
    "columns: {age: {role: quasi, domain: {low: 0, high: 100}}, ward: {role: quasi, domain: {values: [east, west]}}}\n"
    "learn: logistic-regression\nfeatures: [age]\ntarget: ward\nepsilon: 1\ndelta: 1e-6\n",
}
DOCUMENTS = {
    "microdata": {"kind", "release", "private", "rows", "original_rows", "undeclared", "steps", "sha256", "files"}
    | {"standing", "decisions", "verdicts", "attacks_before", "attacks", "measures", "limits", "advice"},
    "graph": {"kind", "release", "private", "title", "released", "nodes", "edges", "edge_columns", "original_nodes"}
    | {"original_edges", "rows", "original_rows", "steps", "files"}
    | {"standing", "attacks", "measures", "verdicts", "limits", "advice"},
    "graph-statistics": {
        "kind",
        "release",
        "private",
        "counts",
        "degrees",
        "guarantee",
        "standing",
        "verdicts",
        "files",
    },
    "tables": {"kind", "release", "private", "method", "unit", "rules", "values", "cells", "suppressed", "optimal"}
    | {"standing", "verdicts", "files"},
    "model": {"kind", "release", "private", "estimator", "privacy", "measures", "measures_are_private", "files"}
    | {"membership_bound", "domain", "weights", "attacks", "limits", "audit"},
}
"""Keys of the document that ``protect --json`` prints."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    draw = np.random.default_rng(1)
    people = {"age": draw.integers(20, 60, 200), "ward": draw.choice(["east", "west"], 200)}
    pl.DataFrame(people).write_csv(tmp_path / "people.csv")
    ends = draw.integers(0, 40, (80, 2))
    ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    pl.DataFrame({"a": ends[:, 0], "b": ends[:, 1]}).write_csv(tmp_path / "friends.csv")
    pl.DataFrame({"node": range(40)}).write_csv(tmp_path / "nodes.csv")
    for kind, text in PLANS.items():
        (tmp_path / f"{kind}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["ledger", "cap", "ledger.db", "--dataset", "friends", "--epsilon", "1"]) == 0
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("kind", PLANS)
def test_every_kind_has_the_same_folder_and_says_its_kind(
    kind: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document = run(capsys, "protect", f"{kind}.yaml", "--out", "out")
    assert code == 0
    assert set(document) == DOCUMENTS[kind]
    manifest = json.loads((folder / "out" / "release.json").read_text())
    assert manifest["kind"] == document["kind"] == kind == kind_of_release("out").part_name()
    assert {"README.md", "release.json", "report.html"} <= {file.name for file in (folder / "out").iterdir()}
    assert set(manifest["files"]) == {file.name for file in (folder / "out").iterdir()} - {"release.json"}
    assert {"report.html", "report.json"} <= {file.name for file in (folder / "out-private").iterdir()}
    assert main(["report", "out", "--audience", "external", "--out", "shown.html"]) == 0
    assert "<html" in (folder / "shown.html").read_text()
    code, checked = run(capsys, "check", "out")
    assert set(checked) == {"release", "verdicts"}
    assert code == (0 if all(one["state"] == "holds" for one in checked["verdicts"]) else 1)
    code, failure = run(capsys, "protect", f"{kind}.yaml", "--out", "out")
    assert (code, failure["error"]["code"]) == (2, "SFU-107")


ORIGINALS = {"microdata": "people.csv", "model": "people.csv"}
"""What `measure` compares a release with, where it is not the plan."""


@pytest.mark.parametrize("kind", PLANS)
def test_the_result_of_protect_is_judged_like_its_folder(
    kind: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = sfumato.protect(f"{kind}.yaml")
    made.save("out")
    left = sfumato.ledger_overview("ledger.db").to_dict()
    plan = {"original": f"{kind}.yaml"} if kind == "tables" else {}
    folder_verdicts = {one.model: one.state for one in sfumato.check("out", **plan)}
    result_verdicts = {one.model: one.state for one in sfumato.check(made)}
    assert folder_verdicts
    assert all(folder_verdicts.get(name, state) == state for name, state in result_verdicts.items())
    code, document = run(capsys, "measure", "out", "--original", ORIGINALS.get(kind, f"{kind}.yaml"))
    assert code == 0
    measured = sfumato.measure(made)
    assert [one["measure"] for one in document["measures"]] == [one.measure for one in measured]
    assert any(one.value is not None for one in measured)
    if kind != "microdata":  # its measures draw samples
        assert [one["value"] for one in document["measures"]] == pytest.approx([one.value for one in measured])
    if kind in ("graph", "model", "tables"):
        assert sfumato.attack(made).to_dict()
    assert sfumato.ledger_overview("ledger.db").to_dict() == left  # what is judged does not leave


@pytest.mark.parametrize("kind", ["tables", "graph-statistics", "graph"])
def test_measuring_a_folder_needs_its_plan(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protect", f"{kind}.yaml", "--out", "out"]) == 0
    assert main(["measure", "out"]) == 2
    assert "--original is required" in capsys.readouterr().err


def test_a_short_document_that_answers_queries_is_one() -> None:
    short = {"sfumato": 1, "dataset": "ward", "unit": "row", "data": "ward.csv", "columns": {"age": "quasi"}}
    assert kind_of_release({**short, "answering": {"policy": {"size-control": 5}}}).part_name() == "answers"
    assert kind_of_release({**short, "answering": {}, "steps": ["remove"]}).part_name() == "microdata"
    assert kind_of_release(short).part_name() == "microdata"


def test_a_model_file_is_checked_measured_and_attacked_by_the_column_it_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["learn", "model.yaml", "--out", "ward-model.json", "--no-attacks"]) == 0
    code, document = run(capsys, "check", "ward-model.json")
    assert (code, document["verdicts"][0]["state"]) == (1, "not checked")
    code, document = run(capsys, "measure", "ward-model.json", "--original", "people.csv")
    found = {one["measure"]: one for one in document["measures"]}
    assert code == 0
    assert found["accuracy"]["low"] <= found["accuracy"]["value"] <= found["accuracy"]["high"]
    wards = pl.read_csv("people.csv")["ward"]
    share = max(wards.value_counts()["count"]) / len(wards)
    assert found["accuracy-of-largest-class"]["value"] == pytest.approx(share)
    code, document = run(capsys, "attack", "ward-model.json", "--original", "people.csv", "--attack", "loss-threshold")
    assert (code, document["attacks"][0]["attack"]) == (0, "loss-threshold")
    assert main(["measure", "ward-model.json", "--original", "people.csv", "--label", "nothing"]) == 2


def test_a_release_never_replaces_one_of_another_kind(folder: Path) -> None:
    assert main(["protect", "graph-statistics.yaml", "--out", "out"]) == 0
    paid = (folder / "out" / "counts.csv").read_bytes()
    for other in ("tables", "microdata"):
        assert main(["protect", f"{other}.yaml", "--out", "out", "--force"]) == 2
        with pytest.raises(OutputExists, match="graph-statistics"):
            sfumato.protect(f"{other}.yaml").save("out", force=True)
    assert (folder / "out" / "counts.csv").read_bytes() == paid


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("protect", "tables.yaml", "--seed", "1"), "--seed"),
        (("protect", "graph.yaml", "people.csv", "--engine", "duckdb"), "--engine"),
        (("attack", "out", "--knows", "age"), "--knows"),
        (("attack", "out", "--targets", "5"), "--targets"),
        (("check", "out", "--engine", "duckdb"), "--engine"),
    ],
)
def test_options_that_do_not_apply_are_refused_by_name(
    words: tuple[str, ...], option: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["protect", "tables.yaml", "--out", "out"]) == 0
    more = ["--out", "other"] if words[0] == "protect" else []
    assert main([*words, *more]) == 2
    assert f"{option} does not apply" in capsys.readouterr().err
    assert not (folder / "other").exists()


def test_tries_are_honoured_for_answers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(2)
    people = {"id": range(120), "sex": draw.choice(["F", "M"], 120)}
    pl.DataFrame(people).write_csv("ward.csv")
    Path("ward.yaml").write_text(
        "sfumato: 1\ndataset: ward\nperson: row\nledger: ward.db\nanswering: {policy: exact}\ntables:\n  ward:\n"
        "    data: ward.csv\n    columns: {id: {kind: integer}, sex: {kind: category, role: sensitive}}\n"
    )
    words = ("attack", "ward.yaml", "--attack", "differencing", "--knows", "id", "--secret", "sex", "--targets", "60")
    code, document = run(capsys, *words)
    assert (code, document["attacks"][0]["tried"]) == (0, 60)


def test_python_does_what_the_command_line_does(folder: Path) -> None:
    for kind, text in PLANS.items():
        assert kind_of_plan(text).part_name() == kind_of_plan(Path(f"{kind}.yaml")).part_name() == kind
    done = sfumato.protect("tables.yaml")
    assert done.data["tables"].columns == ["ward", "value"]
    assert done.judgement.standing == "publish"
    done.save("tables")
    assert sfumato.attack("tables").met
    assert sfumato.check("tables", original="tables.yaml").holds
    assert str(sfumato.check("tables")[0].state) == "not checked"
    with pytest.raises(BadParameter, match="does not apply"):
        sfumato.attack("tables", knows=["ward"])
    sfumato.protect("graph-statistics.yaml").save("statistics")
    with pytest.raises(BadParameter, match="cannot be attacked"):
        sfumato.attack("statistics")
    with pytest.raises(BadParameter, match="`original` is required"):
        sfumato.measure("tables")


def test_a_plan_of_two_kinds_is_refused() -> None:
    with pytest.raises(BadParameter, match="kinds"):
        kind_of_plan({"learn": "LogisticRegression", "tables": [["ward"]]})


def test_the_registry_lists_the_kinds() -> None:
    assert set(PLANS) <= set(registry("release-kind").names())


PAGE = (ROOT / "docs" / "add-a-part.md").read_text(encoding="utf-8")
[TOY] = re.findall(r"^`api/kinds/slogan/__init__\.py`.*?```python\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
"""The kind that the page shows."""


@pytest.mark.slow
def test_a_toy_kind_is_one_package(tmp_path: Path) -> None:
    """One new package, no other edit: the verbs, the reference and the command line know it."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    package = tmp_path / "src" / "sfumato" / "api" / "kinds" / "slogan"
    package.mkdir()
    (package / "__init__.py").write_text(TOY)
    (tmp_path / "plan.yaml").write_text("slogan: less is more\n")

    def run(*words: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
        done = subprocess.run(
            [sys.executable, "-m", "sfumato", *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert json.loads(run("protect", "plan.yaml", "--out", "out", "--json"))["text"] == "LESS IS MORE"
    assert json.loads(run("check", "out", "--json"))["verdicts"][0]["state"] == "holds"
    run("report", "out", "--out", "page.html")
    assert "LESS IS MORE" in (tmp_path / "page.html").read_text()
    assert "slogan" in run("methods", "--kind", "release-kind")
