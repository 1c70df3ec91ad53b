"""`sfumato check --earlier`: what several releases tell together, at the door that a user takes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.cli import main

RECIPE = """\
sfumato: 1
data: o.csv
unit: row
columns:
  name: {role: identifier}
  town: {role: TOWN}
  job: {role: JOB}
  lab: {role: LAB}
  diag: {role: DIAG}
models: [{k-anonymity: {k: 3}}]
steps: [{generalize: {suppression: 0}}]
attacks: []
measures: []
"""
PLAIN = "plain, decided_by: A, reason: of no interest"
ROLES = {"DIAG": "sensitive", "LAB": "drop"}


def frame() -> pl.DataFrame:
    """Every pair of one of ten towns and one of ten jobs has three people, and everybody a measurement of their own."""
    person = np.arange(300)
    return pl.DataFrame(
        {
            "name": [f"P{i}" for i in person],
            "town": [f"t{i // 30}" for i in person],
            "job": [f"j{i // 3 % 10}" for i in person],
            "lab": person * 7 % 300 + 0.5,
            "diag": [("flu", "cold", "none")[i % 3] for i in person],
        }
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    frame().write_csv(tmp_path / "o.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def release(place: Path, name: str, **roles: str) -> None:
    text = RECIPE
    for key, role in {**ROLES, **roles}.items():
        text = text.replace(f"role: {key}}}", f"role: {role}}}")
    (place / f"{name}.yaml").write_text(text)
    main(["protect", f"{name}.yaml", "--out", name])
    assert (place / name / "data.csv").exists()


def together(capsys: pytest.CaptureFixture[str], now: str, earlier: str) -> tuple[int, list[dict[str, object]]]:
    capsys.readouterr()
    code = main(["check", now, "--earlier", earlier, "--original", "o.csv", "--json"])
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    return code, [verdict for verdict in verdicts if verdict["model"] == "intersection"]


def test_different_quasi_identifiers_are_judged(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release(place, "a", TOWN="quasi", JOB="drop")
    release(place, "b", TOWN="drop", JOB="quasi")
    _, [verdict] = together(capsys, "b", "a")
    # everybody shares town and job with people who have the other two values
    assert (verdict["state"], verdict["worst"]) == ("holds", 3)


def test_a_plain_column_in_both_releases_links_their_rows(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shared = frame().with_columns(diag=pl.Series([("flu", "cold", "none")[i // 3 % 3] for i in range(300)]))
    shared.write_csv(place / "o.csv")
    release(place, "a", TOWN="quasi", JOB="drop", LAB=PLAIN)
    release(place, "b", TOWN="drop", JOB="quasi", LAB=PLAIN)
    a, b = (pl.read_csv(place / name / "data.csv") for name in "ab")
    joined = a.join(b, on=["lab", "diag"]).select("town", "job", "diag").unique()
    assert joined.height == 100  # one value for each pair of town and job: everybody is disclosed
    code, [verdict] = together(capsys, "b", "a")
    assert code == 1
    assert (verdict["state"], verdict["worst"], verdict["failing"]) == ("fails", 1, 300)


def test_what_is_secret_in_an_earlier_release_stays_judged(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shared = frame().with_columns(diag=pl.Series([("flu", "cold", "none")[i // 3 % 3] for i in range(300)]))
    shared.write_csv(place / "o.csv")
    release(place, "a", TOWN="quasi", JOB="drop", LAB=PLAIN)
    release(place, "b", TOWN="drop", JOB="quasi", LAB=PLAIN, DIAG=PLAIN)
    code, [verdict] = together(capsys, "b", "a")
    assert (code, verdict["state"], verdict["worst"]) == (1, "fails", 1)


def test_a_secret_that_is_not_released_again_is_not_judged(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release(place, "a", TOWN="quasi", JOB="drop", LAB=PLAIN)
    release(place, "b", TOWN="drop", JOB="quasi", LAB=PLAIN, DIAG="drop")
    code, [verdict] = together(capsys, "b", "a")
    assert (code, verdict["state"]) == (1, "not checked")


def test_rows_linked_by_a_changed_column_are_not_judged(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release(place, "a", TOWN="quasi", JOB="drop", LAB=PLAIN)
    text = (place / "a.yaml").read_text().replace("steps: [", "steps: [{top-bottom-code: {columns: [lab], top: 200}}, ")
    (place / "c.yaml").write_text(text)
    main(["protect", "c.yaml", "--out", "c"])
    code, [verdict] = together(capsys, "c", "a")
    assert (code, verdict["state"]) == (1, "not checked")
    assert "`lab`" in str(verdict["reason"])
