"""Labels of a released file speak of released values only, and a refusal names a row only where it knows it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from sfumato.cli import main
from sfumato.data import read, write
from sfumato.data.table import ColumnLabels, Table

RECIPE = """\
sfumato: 1
data: o.parquet
unit: row
columns:
  town: {role: quasi, kind: integer}
models: [k-anonymity: {k: 3}]
steps: [{generalize: {suppression: 0.1, highest: {town: 0}}}]
attacks: []
measures: []
"""


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "sav", "dta"])
def test_words_for_a_value_that_was_removed_do_not_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    words = {1: "Bonn", 2: "Trier", 77: "Hiddenford"}
    towns = pl.DataFrame({"town": [1, 2] * 20 + [77]})
    write(Table(frame=towns, labels={"town": ColumnLabels(label="Town", value_labels=words)}), "o.parquet")
    Path("r.yaml").write_text(RECIPE)
    assert main(["protect", "r.yaml", "--out", "out", "--format", suffix]) == 0
    file = Path("out", f"data.{suffix}")
    labels = read(file).labels["town"]
    assert labels.label == "Town"
    assert dict(labels.value_labels) == {1: "Bonn", 2: "Trier"}
    assert b"Hiddenford" not in file.read_bytes()


@pytest.mark.parametrize(("engine", "place"), [("memory", "1 row, first in row 31"), ("duckdb", None)])
def test_a_refusal_names_a_row_only_where_it_is_the_row(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    engine: str,
    place: str | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"town": ["a", "b"] * 15 + ["Hiddenford"]}).write_csv("o.csv")
    known = 'hierarchy: {table: [[a, "*"], [b, "*"]]}'
    Path("r.yaml").write_text(RECIPE.replace("o.parquet", "o.csv").replace("kind: integer", known))
    assert main(["protect", "r.yaml", "--out", "out", "--engine", engine, "--json"]) != 0
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "SFU-203"
    assert "1 of the column's values" in error["message"]
    assert "Hiddenford" not in str(error)
    if place is None:
        assert "row" not in error["message"]
    else:
        assert place in error["message"]
