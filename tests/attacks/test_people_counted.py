"""Identity risk counts people: with several rows each, a person is found if a guess names any of their rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main

PEOPLE, ROWS = 240, 5


def visits() -> pl.DataFrame:
    """Five rows a person; all rows of a person have the same zip, which a few people share."""
    home = np.random.default_rng(1).integers(0, PEOPLE // 2, PEOPLE)
    frame = pl.DataFrame({"person": np.repeat(np.arange(PEOPLE), ROWS), "zip": np.repeat(home, ROWS)})
    return frame.sample(fraction=1, shuffle=True, seed=3)


RECIPE: dict[str, Any] = {
    "sfumato": 1,
    "unit": "person",
    "columns": {"person": "drop", "zip": "quasi"},
    "models": [{"k-anonymity": 5}],
    "steps": [],
    "attacks": ["linkage", "distance-linkage"],
}


@pytest.mark.parametrize("engine", ["memory", "duckdb", "duckdb, class counts"])
def test_the_share_of_people_found_is_that_of_distinct_zips(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = visits()
    frame.write_csv(tmp_path / "visits.csv")
    (tmp_path / "r.yaml").write_text(json.dumps({**RECIPE, "data": "visits.csv"}))
    if "counts" in engine:
        monkeypatch.setattr("sfumato.evaluation.class_risk.CELL_BYTES", 10**9)
    words = ["protect", str(tmp_path / "r.yaml"), "--out", str(tmp_path / "out"), "--unmet", "--seed", "1"]
    assert main([*words, "--engine", engine.split(",")[0]]) == 1  # a class of k rows holds fewer than k people
    expected = frame["zip"].n_unique() / PEOPLE
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(f"Of every 100 people, attackers who know the quasi-identifiers find {100 * expected:.0f}")
    report = json.loads((tmp_path / "out-private" / "report.json").read_text())
    attacks = {entry["attack"]: entry for entry in report["attacks"] if entry["risk"] is not None}
    for entry in attacks.values():
        assert entry["tried"] == PEOPLE
        assert entry["low"] <= expected <= entry["high"]
    assert attacks["linkage"]["risk"] == pytest.approx(expected)
    assert attacks["linkage"]["baseline"] == pytest.approx(1 / PEOPLE)


def test_a_limit_is_about_people_and_a_sample_has_whole_people() -> None:
    frame = visits()
    done = sfumato.protect({**RECIPE, "limits": {"risk": 0.2}}, frame, seed=1, n_targets=200, unmet=True)
    [limit] = done.limits
    assert not limit.met  # a tenth of the rows, but nearly half of the people
    entry = next(entry for entry in done.to_dict()["attacks"] if entry["attack"] == "linkage")
    assert entry["tried"] == 200 // ROWS
    assert entry["low"] < frame["zip"].n_unique() / PEOPLE < entry["high"]
    assert "counts" not in entry


def test_one_row_that_tells_is_enough_to_find_a_person() -> None:
    """Everybody has four rows like those of all others and one with a value of their own."""
    own = [*["common"] * (ROWS - 1)] * PEOPLE
    names = [f"p{i}" for i in range(PEOPLE)]
    person = [i for i in range(PEOPLE) for _ in range(ROWS - 1)] + [*range(PEOPLE)]
    frame = pl.DataFrame({"person": person, "zip": [*own, *names]})
    done = sfumato.protect({**RECIPE, "models": []}, frame, seed=1, n_targets=5000, unmet=True)
    entry = next(entry for entry in done.to_dict()["attacks"] if entry["attack"] == "linkage")
    assert (entry["risk"], entry["tried"]) == (pytest.approx(1.0), PEOPLE)


def test_an_attack_that_learns_from_its_targets_has_a_baseline_of_people() -> None:
    """With random known matches a hit is a person, too: there are never more hits than people."""
    draw = np.random.default_rng(4)
    frame = pl.DataFrame(
        {"person": np.repeat(np.arange(4), 15), "age": draw.integers(20, 80, 60), "born": draw.integers(1940, 2000, 60)}
    )
    document = {
        **{key: value for key, value in RECIPE.items() if key != "models"},
        "columns": {"person": "drop", "age": "quasi", "born": "quasi"},
        "steps": [{"noise": {"variance_ratio": 0.1, "columns": ["age"]}}],
        "attacks": ["linkage"],
        "limits": {"risk": 0.2},
    }
    done = sfumato.protect(document, frame, seed=1, n_targets=20, unmet=True)
    learned = [entry for entry in done.to_dict()["attacks"] if entry["attack"] == "learned-linkage"]
    assert learned
    for entry in learned:
        assert entry["risk"] is None or 0 <= entry["baseline"] <= 1
        assert entry["risk"] is None or entry["tried"] <= 4
