"""The ordinary mixed recipe: generalized quasi-identifiers beside perturbed amounts, attacked with everything known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment

from sfumato.attacks import AttackScenario, evaluate_attack
from sfumato.attacks.record_linkage import _min_cost_assignment as one_to_one
from sfumato.attacks.record_linkage.assignment import Assignment
from sfumato.cli import main
from sfumato.data.table import Table
from sfumato.dataset import Data
from sfumato.evaluation.make_release import make_release
from sfumato.recipe import Recipe
from sfumato.release.folder import load_lineage, load_release
from sfumato.rng import Rng

AMOUNTS = ("income", "rent", "savings")
RECIPE = """\
sfumato: 1
data: people.csv
columns: {age: quasi, height: quasi, income: sensitive, rent: sensitive, savings: sensitive}
models: [{k-anonymity: 5}]
steps: [mondrian, %s]
limits: {risk: 0.45}
attacks: [linkage]
"""
STEPS = {
    "noise": "noise: {variance_ratio: 1.0, columns: [income, rent, savings]}",
    "swap": "rank-swap: {p: 30, columns: [income, rent, savings]}",
}


def people(rows: int) -> pl.DataFrame:
    draw = np.random.default_rng(8)
    age, height = draw.integers(18, 90, rows), draw.normal(170, 10, rows).round(1)
    amounts = {name: draw.gamma(2, 1000, rows).round(2) for name in AMOUNTS}
    return pl.DataFrame({"age": age, "height": height, **amounts})


def ends(label: str) -> tuple[float, float]:
    low, _, high = label.strip("[]").replace(", ", "–").partition("–")
    return float(low), float(high or low)


def found_by_hand(original: pl.DataFrame, released: pl.DataFrame) -> float:
    """Ranges first, then nearest, one to one: a lower bound that shares no code with the attacks.

    Row i of both files is the same person.
    """
    cost = np.zeros((original.height, released.height))
    for name in ("age", "height"):
        bounds = np.array([ends(str(label)) for label in released[name]])
        known = original[name].to_numpy()[:, None]
        cost += 1e6 * ((known < bounds[:, 0]) | (known > bounds[:, 1]))
    for name in AMOUNTS:
        known, masked = (frame[name].rank().to_numpy() / frame.height for frame in (original, released))
        cost += (known[:, None] - masked[None, :]) ** 2
    person, row = linear_sum_assignment(cost)
    return float((person == row).mean())


@pytest.mark.parametrize("step", STEPS)
def test_protect_reports_at_least_what_a_script_finds(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table = people(150)
    table.write_csv("people.csv")
    Path("sfumato.yaml").write_text(RECIPE % f"{{{STEPS[step]}}}")
    command = ["protect", "sfumato.yaml", "--out", "release", "--unmet", "--json", "--seed", "5"]
    assert main(command) == 1
    document = json.loads(capsys.readouterr().out)
    lineage = load_lineage(Path("release"))
    assert lineage is not None
    found = found_by_hand(table[lineage.rows], load_release(Path("release")).table.frame)
    assert found > 0.4
    [widest] = [entry for entry in document["attacks"] if entry.get("setting") == "all"]
    assert widest["high"] >= found
    assert widest["knows"] == ["age", "height", *AMOUNTS]
    [limit] = document["limits"]
    assert (limit["met"], limit["attack"]) == (False, "any-columns")


def test_rows_that_fit_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """In large files only the rows that fit are compared; as many people are found as among all pairs."""
    recipe = Recipe.parse(RECIPE % f"{{{STEPS['swap']}}}")
    original = Data.of(Table(frame=people(300)), recipe.schema)
    made = make_release(recipe, original, rng=Rng(2))
    scenario = AttackScenario(original=original, release=made.release, lineage=made.masked.lineage)
    for by in ("ranks", "values"):
        attack = Assignment(knows=("age", "height", *AMOUNTS), by=by)
        whole = evaluate_attack(attack, scenario, rng=Rng(1)).main.rate
        with monkeypatch.context() as large:
            large.setattr(one_to_one, "_DENSE", 0)
            part = evaluate_attack(attack, scenario, rng=Rng(1)).main.rate
        assert part == pytest.approx(whole, abs=0.03)
        assert part > 0.4
