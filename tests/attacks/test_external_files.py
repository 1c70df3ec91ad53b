"""External files: codes without leading zeros, and columns under other names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato import attack
from sfumato.attacks import Outcome, risk
from sfumato.attacks.candidate_rows import compare
from sfumato.cli import main
from sfumato.errors import BadParameter


def test_leading_zeros_are_put_back() -> None:
    known = pl.Series("zip", [2138, 2139, 10001])
    found = compare(known, pl.Series("zip", ["02138", "10001", "021**"]))
    labels = [found.labels[found.fits[found.starts[i] : found.starts[i + 1]].tolist()].to_list() for i in range(3)]
    assert labels == [["02138", "021**"], ["021**"], ["10001"]]


def test_leading_zeros_are_taken_off() -> None:
    found = compare(pl.Series("zip", ["02138", "10001"]), pl.Series("zip", [2138, 10001]))
    assert np.diff(found.starts).tolist() == [1, 1]


def test_numbers_that_are_no_codes_stay() -> None:
    found = compare(pl.Series("age", [7, 17]), pl.Series("age", ["7", "10-19", "0"]))
    assert np.diff(found.starts).tolist() == [1, 1]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    draw = np.random.default_rng(1)
    people = pl.DataFrame(
        {"id": range(100), "zip": [f"0{code}" for code in draw.permutation(1000)[:100] + 1000], "age": [40] * 100}
    )
    people.write_csv(tmp_path / "people.csv")
    people.drop("id").write_csv(tmp_path / "release.csv")
    theirs = people.select(pl.col("id").alias("who"), pl.col("zip").cast(pl.Int64).alias("PLZ"), "age")
    theirs.write_csv(tmp_path / "theirs.csv")
    (tmp_path / "roles.yaml").write_text("sfumato: 1\ncolumns: {id: identifier, zip: quasi, age: quasi}\n")
    return tmp_path


def test_columns_of_the_outside_file_are_renamed(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["attack", str(files / "release.csv"), "--original", str(files / "people.csv"), "--aligned", "--json"]
    arguments += ["--auxiliary", str(files / "theirs.csv"), "--recipe", str(files / "roles.yaml"), "--limit", "0.5"]
    arguments += ["--attack", "linkage"]
    assert main([*arguments, "--rename", "who=id,PLZ=zip"]) == 1
    assert json.loads(capsys.readouterr().out)["attacks"][0]["hits"] == 100
    assert main([*arguments, "--rename", "who"]) == 2


def test_renaming_needs_an_outside_file(files: Path) -> None:
    with pytest.raises(BadParameter, match="outside file"):
        attack(files / "release.csv", original=files / "people.csv", knows=["zip"], rename={"who": "id"})


def test_codes_of_a_release_are_found_by_numbers(files: Path) -> None:
    numbers = pl.read_csv(files / "people.csv", schema_overrides={"zip": pl.Int64})
    (found,) = attack(files / "release.csv", original=numbers, knows=["zip"], attacks=["linkage"], aligned=True, seed=1)
    assert isinstance(found, Outcome)
    assert risk(found).value == 1.0
