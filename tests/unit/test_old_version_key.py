"""Files of version 0.1, whose version key has the old name: they are read, with a notice."""

from __future__ import annotations

import warnings
from pathlib import Path

import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import OldVersionKey
from sfumato.query.metadata import load
from sfumato.recipe import Recipe
from sfumato.studies import StudyPlan

RECIPE = "tacit: 1\ndata: people.csv\ncolumns: {age: quasi, illness: sensitive}\nsteps: [remove]\n"
METADATA = """\
tacit: 1
dataset: trial
ledger: ledger.db
tables:
  people: {data: people.csv, unit: row, columns: {age: {kind: integer, domain: {low: 0, high: 120}}}}
"""
NOTICE = "`tacit: 1` is the version key of 0.1. Write `sfumato: 1` instead."
PEOPLE = pl.DataFrame({"age": [30, 40] * 20, "illness": ["flu", "none"] * 20})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    (tmp_path / "trial.yaml").write_text(METADATA)
    PEOPLE.write_csv(tmp_path / "people.csv")
    return tmp_path


def test_a_recipe_is_read_with_a_notice(folder: Path) -> None:
    with pytest.warns(OldVersionKey) as caught:
        recipe = Recipe.load(folder / "recipe.yaml")
    assert [str(item.message) for item in caught] == [NOTICE]
    assert recipe.to_dict()["sfumato"] == 1
    assert recipe == Recipe.parse(RECIPE.replace("tacit", "sfumato"), base=folder)


def test_a_study_gives_one_notice() -> None:
    with pytest.warns(OldVersionKey) as caught:
        StudyPlan.parse(RECIPE + "study: {candidates: [remove]}\n")
    assert len(caught) == 1


def test_metadata_are_read_with_a_notice(folder: Path) -> None:
    with pytest.warns(OldVersionKey) as caught:
        metadata = load(folder / "trial.yaml")
    assert [str(item.message) for item in caught] == [NOTICE]
    assert metadata.sfumato == 1


def test_metadata_as_a_mapping_are_read_with_a_notice() -> None:
    columns = {"age": {"kind": "integer", "domain": {"low": 0, "high": 120}}}
    described = {"tacit": 1, "dataset": "trial", "tables": {"people": {"unit": "row", "columns": columns}}}
    with pytest.warns(OldVersionKey, match="sfumato: 1"):
        sfumato.session(described, {"people": PEOPLE}, epsilon=1)


def test_the_command_line_prints_the_notice_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protect", str(folder / "recipe.yaml"), "--out", str(folder / "release"), "--seed", "1"]) == 0
    assert capsys.readouterr().err.count(f"Note: {NOTICE}") == 1


def test_the_current_key_gives_no_notice() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        recipe = Recipe.parse(RECIPE.replace("tacit", "sfumato"))
    assert not caught
    assert recipe.to_dict()["sfumato"] == 1
