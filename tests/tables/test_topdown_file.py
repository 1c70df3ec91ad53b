"""TopDown tables from a plan file: the command, its ledger, and refusals before the budget is spent."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.cli import main
from sfumato.dp import concentrated
from sfumato.ledger import Ledger
from sfumato.tables import TopDownFile
from sfumato.tables.topdown_plan import CENSUS_2020_LEVELS

PLAN = """
sfumato: 1
dataset: census
data: people.csv
unit: row
ledger: ledger.db
columns: {block: {role: quasi, kind: category},
  sex: {role: quasi, domain: {values: [F, M]}}, age: {role: quasi, domain: {values: [0, 1, 2]}}}
budget: {rho: 1/2}
areas: {data: areas.csv, levels: [state, block]}
by: [sex, age]
levels: [1, 2, 2]
queries: [{by: [], share: 1}, {by: [sex, age], share: 3}]
tables: [{level: state, by: [sex]}, {by: [age]}]
exact_totals: state
impossible: [{sex: [M], age: [2]}]
area_bounds: [{where: {sex: F}, at_most: room}]
microdata: true
"""


NAMES = "[c0, c1, c2, c3, c4, c5]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw = np.random.default_rng(1)
    block, sex = draw.integers(0, 8, 200), draw.choice(["F", "M"], 200)
    age = np.where(sex == "M", draw.integers(0, 2, 200), draw.integers(0, 3, 200))
    pl.DataFrame({"block": [f"b{b}" for b in block], "sex": sex, "age": age}).write_csv(tmp_path / "people.csv")
    areas = {"state": ["s"] * 4 + ["t"] * 4, "block": [f"b{b}" for b in range(8)], "room": [50] * 8}
    pl.DataFrame(areas).write_csv(tmp_path / "areas.csv")
    (tmp_path / "plan.yaml").write_text(PLAN)
    ledger = Ledger.open(tmp_path / "ledger.db")
    ledger.set_cap(concentrated(1), dataset="census")
    return tmp_path


def run(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, Any]:
    code = main(["protect", str(folder / "plan.yaml"), "--out", str(folder / "out"), "--json", *more])
    said = capsys.readouterr()
    return code, json.loads(said.out) if code == 0 else said.err


def spent(folder: Path) -> Fraction:
    return Ledger.open(folder / "ledger.db").balance(dataset="census").spent.size


def test_the_command_publishes_tables_that_agree_with_the_microdata(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, account = run(folder, capsys)
    assert (code, account["guarantee"]["rho"], account["relaxed"]) == (0, 0.5, 0)
    assert spent(folder) == Fraction(1, 2)
    people, made = pl.read_csv(folder / "people.csv"), pl.read_csv(folder / "out" / "microdata.csv")
    assert made.height == people.height
    assert made.filter((pl.col("sex") == "M") & (pl.col("age") == 2)).height == 0
    table = pl.read_csv(folder / "out" / "state-sex.csv").sort("state", "sex")
    assert table["count"].to_list() == made.group_by("state", "sex").len().sort("state", "sex")["len"].to_list()
    assert pl.read_csv(folder / "out" / "all-age.csv")["count"].sum() == made.height
    # A second release fits into the budget, a third one does not.
    assert run(folder, capsys, "--force")[0] == 0
    code, said = run(folder, capsys, "--force")
    assert code != 0
    assert spent(folder) == 1
    assert "budget" in said.lower()


def test_exact_totals_are_part_of_the_neighbours(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Adding a person changes an exact total, so the guarantee is about inputs that agree in all of them."""
    stated = run(folder, capsys)[1]["guarantee"]
    assert "the total of every state stays as it is" in stated["neighbours"]
    assert any("totals of every state" in one for one in stated["not_covered"])
    plan = folder / "plan.yaml"
    plan.write_text(PLAN.replace("exact_totals: state\n", ""))
    assert "stays as it is" not in run(folder, capsys, "--force")[1]["guarantee"]["neighbours"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("levels: [1, 2, 2]", "levels: [1, -2, 2]", "negative"),
        ("levels: [1, 2, 2]", "levels: [0, 0, 0]", "no share"),
        ("levels: [1, 2, 2]", "levels: [1, 2]", "shares for 2 levels"),
        ("share: 3", "share: -3", "negative"),
        ("at_most: room", "at_least: room", "contradict"),
        ("[F, M]", "[M, X, Y]", "rule names a value"),
        (
            "age: {role: quasi, domain: {values: [0, 1, 2]}}",
            "age: {role: quasi, domain: {low: 0, high: 2}}",
            "declare the `values` of `age`",
        ),
        ("by: [sex, age]\nlevels", "by: [sex, aged]\nlevels", "age"),
        ("sex: {role: quasi", "sex: {role: drop", "role `drop`"),
        ("rho: 1/2", "rho: 1/1000000000000000", "too small"),
        ("rho: 1/2", "rho: 0", "above 0"),
        ("levels: [state, block]", "levels: [block, state]", "listed twice"),
        ("levels: [state, block]", "levels: [room, state, block]", "shares for 3 levels"),
        ("{level: state, by: [sex]}", "{level: planet}", "planet"),
        ("exact_totals: state", "exact_totals: planet", "planet"),
        ("microdata: true", "micro: true", "micro"),
        ("{by: [age]}", "{level: state, by: [sex]}", "same file name"),
        ("{by: [age]}", "{by: [age, age]}", "twice"),
        ("by: [sex, age]\nlevels", "by: [sex, age, count]\nlevels", "`count`"),
        ("by: [sex, age]\nlevels", "by: [sex, age, state]\nlevels", "different names"),
    ],
)
def test_bad_plans_are_refused_before_the_budget_is_spent(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    (folder / "plan.yaml").write_text(PLAN.replace(old, new))
    code, said = run(folder, capsys)
    assert code == 2
    assert message in said
    assert spent(folder) == 0
    assert not (folder / "out").exists()


def test_a_domain_of_a_trillion_cells_and_areas_that_do_not_nest_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = ", ".join(f"c{n}: {{role: quasi, domain: {{values: {list(range(100))}}}}}" for n in range(6))
    text = PLAN.replace("columns: {", f"columns: {{{wide}, ").replace("by: [sex, age]\nl", f"by: {NAMES}\nl")
    (folder / "plan.yaml").write_text(text)
    code, said = run(folder, capsys)
    assert (code, "1000000000000 cells" in said) == (2, True)
    (folder / "plan.yaml").write_text(
        PLAN.replace("[state, block]", "[state, county, block]").replace("[1, 2, 2]", "[1, 1, 2, 2]")
    )
    areas = pl.read_csv(folder / "areas.csv").with_columns(county=pl.lit("c"))
    areas.write_csv(folder / "areas.csv")
    code, said = run(folder, capsys)
    assert (code, "several areas" in said) == (2, True)
    assert spent(folder) == 0


def test_the_shares_of_the_2020_census_have_a_name(folder: Path) -> None:
    (folder / "plan.yaml").write_text(PLAN.replace("levels: [1, 2, 2]", "levels: census-2020"))
    assert TopDownFile.load(folder / "plan.yaml").plan().levels == CENSUS_2020_LEVELS
