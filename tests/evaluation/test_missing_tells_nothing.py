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


def refused(capsys: pytest.CaptureFixture[str], engine: str) -> bool:
    """Whether no release is made because none meets the models."""
    capsys.readouterr()
    code = main(["protect", "r.yaml", "--out", "refused", "--engine", engine, "--json"])
    return code == 1 and json.loads(capsys.readouterr().out)["error"]["code"] == "SFU-401"


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
    assert refused(capsys, engine)
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


# women: 3 flu, 1 hiv, 4 without a value; men: 1 flu, 3 hiv. Of the rows with a value each disease has half.
SEX = ["f"] * 8 + ["m"] * 4
DISEASES = ["flu"] * 3 + ["hiv"] + [None] * 4 + ["flu"] + ["hiv"] * 3
LIMITS = [
    ("alpha-k: {alpha: %s, k: 4}", 0.75, 0.7, 3 / 4),
    ("t-closeness: {t: %s}", 0.25, 0.24, 3 / 4 - 1 / 2),
    ("t-closeness: {t: %s, distance: ordered}", 0.25, 0.24, 3 / 4 - 1 / 2),
    ("t-closeness: {t: %s, reference: uniform}", 0.25, 0.24, 3 / 4 - 1 / 2),
    ("beta-likeness: {beta: %s}", 0.5, 0.4, (3 / 4 - 1 / 2) / (1 / 2)),
    ("delta-disclosure: {delta: %s}", 1.01, 1.0, 1.0),
]


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize(("model", "met", "unmet", "worst"), LIMITS)
def test_shares_are_those_of_the_rows_with_a_value(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    model: str,
    met: float,
    unmet: float,
    worst: float,
    engine: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"pid": range(12), "sex": SEX, "diag": DISEASES})
    frame.write_csv("o.csv")
    frame.drop("pid").write_csv("theirs.csv")
    name = model.split(":")[0]
    theirs = ("check", "theirs.csv", "--recipe", "r.yaml", "--engine", engine)
    Path("r.yaml").write_text(RECIPE % ("row", model % met))
    runs = [("protect", "r.yaml", "--out", "out", "--engine", engine), ("check", "out", "--original", "o.csv"), theirs]
    for words in runs:
        _, found = verdict(capsys, name, *words)
        assert (found["state"], found["failing"] or 0) == ("holds", 0)
        assert found["worst"] == pytest.approx(worst)
    Path("r.yaml").write_text(RECIPE % ("row", model % unmet))
    assert refused(capsys, engine)
    _, found = verdict(capsys, name, *theirs)
    assert (found["state"], found["failing"]) == ("fails", 12)
    assert found["worst"] == pytest.approx(worst)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize(("model", "met"), [limit[:2] for limit in LIMITS])
def test_a_class_with_missing_values_alone_fails(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    model: str,
    met: float,
    engine: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"pid": range(17), "sex": [*SEX, *"xxxxx"], "diag": [*DISEASES, *[None] * 5]})
    frame.write_csv("o.csv")
    frame.drop("pid").write_csv("theirs.csv")
    Path("r.yaml").write_text(RECIPE % ("row", model % met))
    name = model.split(":")[0]
    assert refused(capsys, engine)
    _, found = verdict(capsys, name, "check", "theirs.csv", "--recipe", "r.yaml", "--engine", engine)
    assert (found["state"], found["failing"]) == ("fails", 5)
