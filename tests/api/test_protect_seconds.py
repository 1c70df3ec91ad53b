"""``protect --seconds``: what was not reached is stated, and a limit whose attack did not run is not met."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main

RECIPE: dict[str, Any] = {
    "sfumato": 1,
    "columns": {"age": "quasi", "city": "quasi", "ill": "sensitive"},
    "models": [{"k-anonymity": 5}],
    "steps": ["mondrian"],
    "limits": {"risk": 0.9, "attribute": 0.99},
}


def _people(rows: int = 260) -> pl.DataFrame:
    draw = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "age": draw.integers(18, 90, rows),
            "city": draw.choice(["Alba", "Bonn", "Como"], rows),
            "ill": draw.choice(["no", "yes"], rows),
        }
    )


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_no_time_at_all_gives_a_release_whose_limits_are_not_met(engine: str, tmp_path: Path) -> None:
    _people().write_csv(tmp_path / "people.csv")
    done = sfumato.protect(RECIPE, tmp_path / "people.csv", engine=engine, seed=1, seconds=0)
    document = done.to_dict()
    assert done.rows == 260
    assert [verdict["state"] for verdict in document["verdicts"]] == ["holds"]
    assert document["attacks"]
    assert all(entry["risk"] is None and entry["stopped"] for entry in document["attacks"])
    assert [entry["met"] for entry in document["limits"]] == [None, None]
    assert len(done.unmet) == 2
    assert all(entry["value"] is None and "time" in entry["reason"] for entry in document["measures"])


def test_inexpensive_attacks_come_first() -> None:
    """A clock that moves a millisecond per reading: linkage has a result before the time is up, learned attacks not."""
    now = iter(range(10**9))
    done = sfumato.protect(RECIPE, _people(), seed=1, seconds=0.08, clock=lambda: next(now) / 1000)
    attacks = done.to_dict()["attacks"]
    reached = [number for number, entry in enumerate(attacks) if entry["risk"] is not None]
    assert reached
    assert reached[0] == 0
    assert any(entry.get("stopped") for entry in attacks)


def test_enough_time_changes_nothing() -> None:
    plain = sfumato.protect(RECIPE, _people(), seed=1)
    bounded = sfumato.protect(RECIPE, _people(), seed=1, key=plain.key, seconds=3600)
    assert json.dumps(plain.evaluation.to_dict()) == json.dumps(bounded.evaluation.to_dict())


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_the_command_refuses_to_write_what_it_could_not_judge(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _people().write_csv("people.csv")
    Path("recipe.yaml").write_text(json.dumps({**RECIPE, "data": "people.csv"}), encoding="utf-8")
    assert main(["protect", "recipe.yaml", "--engine", engine, "--seconds", "0"]) == 1
    assert not Path("release").exists()
