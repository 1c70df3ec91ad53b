"""`sfumato check` judges every column of the file that it is given, and everything that it is told to judge."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.cli import main

ROLES = """\
sfumato: 1
columns:
  zip: {role: quasi}
  %s: {role: quasi}
  diag: {role: drop}
models: [{k-anonymity: {k: 5}}]
"""


def theirs(folder: Path) -> Path:
    """Fifty people of each sex and area, everybody with an age of their own."""
    rows = np.arange(200)
    frame = pl.DataFrame({"zip": rows % 2, "age": rows, "diag": ["a", "b"] * 100, "sex": ["f", "m"] * 100})
    frame.write_csv(folder / "theirs.csv")
    return folder / "theirs.csv"


def checked(
    file: Path, recipe: str, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, dict[str, dict[str, object]]]:
    (file.parent / "roles.yaml").write_text(recipe)
    code = main(["check", str(file), "--recipe", str(file.parent / "roles.yaml"), "--json", *options])
    shown = json.loads(capsys.readouterr().out)
    if "error" in shown:
        return code, {"refused": shown["error"]}
    return code, {verdict["model"]: verdict for verdict in shown["verdicts"]}


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_quasi_identifier_that_the_file_lacks_is_refused(tmp_path, capsys, engine):
    code, verdicts = checked(theirs(tmp_path), ROLES % "AGE", capsys, "--engine", engine)
    assert code == 2
    assert verdicts["refused"]["code"] == "SFU-201"
    assert "`AGE`" in str(verdicts["refused"])


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_column_that_the_recipe_does_not_name_is_undecided(tmp_path, capsys, engine):
    code, verdicts = checked(theirs(tmp_path), ROLES % "sex", capsys, "--engine", engine)
    assert code == 1
    assert verdicts["k-anonymity"]["state"] == "holds"
    assert verdicts["undecided columns"]["state"] == "fails"
    assert "`age`" in str(verdicts["undecided columns"]["reason"])
    assert "`diag`" not in str(verdicts["undecided columns"]["reason"])
