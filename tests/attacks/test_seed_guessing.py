"""A seed alone never determines a release, and the battery tries the seeds that people type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato import protect
from sfumato.cli import main
from sfumato.demos.corpora.synthetic_friends import synthetic_friends
from sfumato.rng import KeyedRng, Rng
from sfumato.secret import SecretValue

RECIPE = """
sfumato: 1
data: people.csv
columns: {age: quasi, income: quasi, rent: quasi, height: quasi, ill: sensitive}
steps: [noise: {variance_ratio: 0.1, variant: correlated}]
attacks: [distance-linkage, seed-guessing]
measures: [marginals]
"""


def people(rows: int = 400) -> pl.DataFrame:
    draw = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "age": draw.integers(18, 90, rows),
            "income": np.round(draw.lognormal(10, 0.4, rows)),
            "rent": draw.integers(300, 2000, rows),
            "height": np.round(draw.normal(170, 9, rows)),
            "ill": draw.choice(["flu", "none"], rows),
        }
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    people().write_csv("people.csv")
    Path("recipe.yaml").write_text(RECIPE)
    return tmp_path


def risks(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["protect", "recipe.yaml", "--seed", "7", "--json", "--force", *more]) == 0
    return {attack["attack"]: attack for attack in json.loads(capsys.readouterr().out)["attacks"]}


def draw_by_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: streams of the seed and public names, without key, plan or contents."""
    monkeypatch.setattr(KeyedRng, "_entropy", Rng._entropy)
    monkeypatch.setattr(KeyedRng, "of_run", lambda self, plan, contents: self)


def test_a_typed_seed_is_found_without_the_key_mixed_in_and_not_with_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: of 400 people masked by seed 7 alone, all are named; one of 20 would be noticed."""
    real = risks(capsys)
    assert real["seed-guessing"]["detail"]["found"] is False
    assert real["seed-guessing"]["hits"] == 0
    draw_by_seed_alone(monkeypatch)
    mutant = risks(capsys)
    assert mutant["seed-guessing"]["detail"]["found"] is True
    assert mutant["seed-guessing"]["risk"] > 0.95
    assert mutant["distance-linkage"]["risk"] < 0.6


def test_a_release_that_kept_the_order_of_its_rows_is_tried_too(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("recipe.yaml").write_text(RECIPE + "order: kept\n")
    assert not risks(capsys)["seed-guessing"]["detail"]["found"]
    draw_by_seed_alone(monkeypatch)
    assert risks(capsys)["seed-guessing"]["risk"] > 0.95


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_seed_repeats_a_release_only_with_its_key(tmp_path: Path, engine: str) -> None:
    people().write_csv(tmp_path / "people.csv")
    options: dict[str, Any] = {"seed": 7, "engine": engine, "n_targets": 20}

    def released(**more: Any) -> Any:
        done = sfumato.protect(RECIPE, tmp_path / "people.csv", **options, **more)
        return done, done.release.table.frame

    done, first = released()
    assert released(key=done.key)[1].equals(first)
    assert not released()[1].equals(first)
    assert not released(key=b"another key of the owner")[1].equals(first)
    done.save(tmp_path / "release")
    assert released(key=tmp_path / "release-private" / "run.key")[1].equals(first)
    assert repr(done.key) == "<SecretValue>"


def test_a_graph_is_drawn_with_the_key_of_its_private_folder(tmp_path: Path) -> None:
    recipe = {"sfumato": 1, "graph": {"edges": "friends.csv"}, "steps": [{"switch-edges": {"share": 0.5}}]}
    graph = synthetic_friends(200, Rng(1))

    def edges(**more: Any) -> set[tuple[int, ...]]:
        done = protect(recipe, graph, seed=7, n_targets=20, **more)
        return {tuple(map(int, edge)) for edge in done.graph.edges()}

    key = SecretValue(bytes(range(32)))
    assert edges(key=key) == edges(key=key)
    assert edges() != edges(key=key)
