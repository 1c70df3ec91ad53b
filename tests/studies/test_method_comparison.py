"""The comparison of methods by `init`: all k-anonymous, the least loss first, the same in every run."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.cli import main
from sfumato.data import Table
from sfumato.recipe import Recipe
from sfumato.studies import compare_methods
from sfumato.studies import method_comparison as comparing

DRAW = np.random.default_rng(3)
ROWS = 300
PEOPLE = pl.DataFrame(
    {
        "age": DRAW.integers(18, 90, ROWS),
        "sex": DRAW.choice(["f", "m"], ROWS),
        "zip": DRAW.choice(["94110", "94117", "02139", "60601"], ROWS),
        "income": DRAW.lognormal(10, 1, ROWS).round(),
        "diagnosis": DRAW.choice(["flu", "asthma", "none"], ROWS),
    }
)
COLUMNS = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
    "sex": "quasi",
    "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
    "diagnosis": "sensitive",
}
RECIPE = Recipe.parse({"sfumato": 1, "columns": COLUMNS, "steps": []})


def test_all_methods_are_compared_and_the_least_loss_is_first() -> None:
    compared = compare_methods(RECIPE, Table(frame=PEOPLE), k=5, rows=200)
    assert compared is not None
    assert {trial.method for trial in compared.trials} == {"generalize", "local-recode", "mondrian", "microaggregate"}
    losses = [trial.losses["pairs"] for trial in compared.trials]
    assert losses == sorted(losses)
    assert compared.rows == 200
    assert compared.best is compared.trials[0]
    assert sum("proposed" in line for line in compared.lines()) == 1
    assert not any("optimal" in line for line in compared.lines())
    again = compare_methods(RECIPE, Table(frame=PEOPLE), k=5, rows=200)
    assert again is not None
    assert again.to_dict() == compared.to_dict()


def test_a_method_whose_result_is_not_k_anonymous_is_never_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    # noise loses almost nothing and is not k-anonymous
    steps = ({"noise": {"variance_ratio": 1e-6, "columns": ["age"]}}, {"mondrian": {}})
    monkeypatch.setattr(comparing, "_steps", lambda k: steps)
    compared = compare_methods(RECIPE, Table(frame=PEOPLE), k=5)
    assert compared is not None
    assert compared.best is not None
    assert compared.best.method == "mondrian"
    assert "not 5-anonymous" in compared.trials[-1].reason


def test_nothing_to_compare() -> None:
    assert compare_methods(RECIPE, Table(frame=PEOPLE.head(8)), k=5) is None
    no_quasi = Recipe.parse({"sfumato": 1, "columns": {"diagnosis": "sensitive"}, "steps": []})
    assert compare_methods(no_quasi, Table(frame=PEOPLE), k=5) is None


def test_a_slow_machine_gets_the_same_proposal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = pl.DataFrame(
        {f"age_{n}": DRAW.integers(18, 90, ROWS) for n in range(9)}
    )  # too many levels to prove the best
    wide.write_csv(tmp_path / "wide.csv")
    PEOPLE.write_csv(tmp_path / "people.csv")
    monkeypatch.chdir(tmp_path)

    def proposals() -> list[str]:
        for name in ("wide", "people"):
            assert main(["init", f"{name}.csv", "--k", "5", "--force", "--json"]) == 0
        return capsys.readouterr().out.splitlines()

    quick = proposals()
    passed = itertools.count(0, 600)  # ten minutes between two looks at the clock
    monkeypatch.setattr(time, "monotonic", lambda: float(next(passed)))
    assert proposals() == quick


def test_init_proposes_the_best_method_and_shows_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    PEOPLE.write_csv(tmp_path / "people.csv")
    monkeypatch.chdir(tmp_path)
    assert main(["init", "people.csv", "--k", "5", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)["comparison"]
    recipe = Recipe.load("sfumato.yaml")
    assert recipe.steps[0].part_name() == document["chosen"]
    text = Path("sfumato.yaml").read_text()
    assert all(f"#   {trial['step'].popitem()[0]}" in text for trial in document["methods"])
    assert main(["init", "people.csv", "--k", "5", "--force", "--details"]) == 0
    assert "Methods compared on all rows at k = 5" in capsys.readouterr().out
    assert main(["init", "people.csv", "--k", "5", "--force", "--no-compare", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["comparison"] is None
    assert Recipe.load("sfumato.yaml").steps[0].part_name() == "generalize"


def test_one_setting_proves_few_combinations_and_searches_among_many() -> None:
    """The recipe does not have to change when a person decides that more columns are quasi-identifiers."""
    from sfumato.masking.methods.generalize import Generalize
    from sfumato.profiling import propose
    from sfumato.recipe.presets import preset_names, preset_text

    few = Recipe.parse(propose(PEOPLE).recipe(k=5)).steps[0]
    wide = pl.DataFrame({f"age_{n}": DRAW.integers(18, 90, ROWS) for n in range(14)})
    many = Recipe.parse(propose(wide).recipe(k=5)).steps[0]
    assert isinstance(few, Generalize)
    assert few == many
    assert few.search == "auto"
    assert all("search: auto" in preset_text(name) for name in preset_names() if "generalize" in preset_text(name))
