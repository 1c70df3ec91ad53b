"""What is missing is neither a further sensitive value nor a further person, where a release is made and checked."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from sfumato.cli import main

RECIPE = """\
sfumato: 1
data: o.csv
unit: %s
columns:
  pid: {role: identifier}
  sex: {role: quasi}
  diag: {role: sensitive}
models: [%s]
steps: [{generalize: {suppression: 0, highest: {sex: 0}}}]
attacks: []
measures: []
"""
DIVERSE = [
    "l-diversity: {l: 2}",
    "l-diversity: {l: 1.5, kind: entropy}",
    "l-diversity: {l: 2, kind: recursive, c: 3}",
    "p-sensitive: {p: 2, k: 2}",
]


def verdict(capsys: pytest.CaptureFixture[str], model: str, *words: str) -> tuple[int, dict[str, object]]:
    capsys.readouterr()
    code = main([*words, "--json"])
    [found] = [one for one in json.loads(capsys.readouterr().out)["verdicts"] if one["model"] == model]
    return code, found


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("model", DIVERSE)
def test_a_missing_value_adds_no_diversity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: str, engine: str
) -> None:
    monkeypatch.chdir(tmp_path)
    # the women have one value or none, the men two
    diag = ["hiv", None] * 10 + ["flu", "hiv"] * 10
    frame = pl.DataFrame({"pid": range(40), "sex": ["f"] * 20 + ["m"] * 20, "diag": diag})
    frame.write_csv("o.csv")
    Path("r.yaml").write_text(RECIPE % ("row", model))
    name = model.split(":")[0]
    capsys.readouterr()
    assert main(["protect", "r.yaml", "--out", "out", "--engine", engine, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "SFU-401"
    frame.drop("pid").write_csv("theirs.csv")
    code, checked = verdict(capsys, name, "check", "theirs.csv", "--recipe", "r.yaml", "--engine", engine)
    assert (code, checked["state"], checked["failing"]) == (1, "fails", 20)
    if "recursive" not in model:
        assert checked["worst"] == pytest.approx(1)


@pytest.mark.parametrize("model", DIVERSE)
def test_two_values_beside_missing_ones_are_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: str
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"sex": ["f"] * 20, "diag": ["hiv", "flu", None, None] * 5})
    frame.write_csv("theirs.csv")
    Path("r.yaml").write_text(RECIPE % ("row", model))
    _, checked = verdict(capsys, model.split(":")[0], "check", "theirs.csv", "--recipe", "r.yaml")
    assert checked["state"] == "holds"


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_rows_without_a_person_are_at_most_one_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    monkeypatch.chdir(tmp_path)
    pids = [f"u{i}" for i in range(20)] + [None] * 12
    frame = pl.DataFrame({"pid": pids, "sex": ["f"] * 20 + ["m"] * 12, "diag": ["flu", "none"] * 16})
    frame.write_csv("o.csv")
    Path("r.yaml").write_text(RECIPE % ("pid", "k-anonymity: {k: 5}"))
    name = "people per equivalence class"
    code, made = verdict(capsys, name, "protect", "r.yaml", "--out", "out", "--engine", engine, "--unmet")
    assert (code, made["state"], made["worst"], made["failing"]) == (1, "fails", 1, 12)
    words = ("check", "out", "--original", "o.csv", "--engine", engine)
    code, checked = verdict(capsys, name, *words)
    assert (code, checked["state"], checked["worst"]) == (1, "fails", 1)
