"""Attacks with parameters, at the command line and in Python; the attacks of a recipe; lines that differ."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.attacks import DistanceLinkage
from sfumato.cli import main
from sfumato.errors import BadParameter

DRAW = np.random.default_rng(4)
PEOPLE = pl.DataFrame({"age": DRAW.integers(20, 80, 200), "pay": DRAW.gamma(2, 900, 200).round(2)})
EUCLIDEAN = ("distance-linkage", "metric euclidean")
MAHALANOBIS = ("distance-linkage", "metric mahalanobis")
ROLES = {"original": PEOPLE, "knows": ["age", "pay"], "aligned": True, "seed": 1}


def settings(results: sfumato.AttackResults) -> list[tuple[str, str]]:
    return [(entry["attack"], entry.get("setting", "")) for entry in results.to_dict()["attacks"]]


def test_an_attack_is_a_name_a_mapping_or_a_part() -> None:
    named = sfumato.attack(PEOPLE, attacks=["linkage", {"distance-linkage": "mahalanobis"}, DistanceLinkage()], **ROLES)
    assert settings(named) == [
        ("linkage", ""),
        MAHALANOBIS,
        EUCLIDEAN,
    ]
    with pytest.raises(BadParameter, match="no attack"):
        sfumato.attack(PEOPLE, attacks=[7], **ROLES)
    with pytest.raises(BadParameter, match="no measure"):
        sfumato.measure(PEOPLE, original=PEOPLE, knows=["age"], measures=[{"a": 1, "b": 2}])


def test_one_name_is_a_list_of_one() -> None:
    one = sfumato.attack(PEOPLE, original=PEOPLE, knows="age", attacks="linkage", aligned=True, seed=1)
    assert (
        one.to_dict()
        == sfumato.attack(PEOPLE, original=PEOPLE, knows=["age"], attacks=["linkage"], aligned=True, seed=1).to_dict()
    )


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    PEOPLE.write_csv(tmp_path / "people.csv")
    PEOPLE.write_csv(tmp_path / "theirs.csv")
    (tmp_path / "roles.yaml").write_text(
        "sfumato: 1\ndata: people.csv\ncolumns: {age: quasi, pay: quasi}\n"
        "steps: [{rank-swap: {columns: [pay], p: 5}}]\n"
        "attacks: [{distance-linkage: euclidean}, {distance-linkage: mahalanobis}]\n"
    )
    return ["attack", str(tmp_path / "theirs.csv"), "--original", str(tmp_path / "people.csv"), "--aligned", "--json"]


def entries(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    assert main(words) == 0
    return [(one["attack"], one.get("setting", "")) for one in json.loads(capsys.readouterr().out)["attacks"]]


def test_the_command_line_gives_parameters(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        *files,
        "--knows",
        "age,pay",
        "--attack",
        "distance-linkage=mahalanobis",
        "--attack",
        "distance-linkage={metric: euclidean}",
    ]
    assert entries(words, capsys) == [
        MAHALANOBIS,
        EUCLIDEAN,
    ]


def test_the_attacks_of_a_recipe_are_run(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = [*files, "--recipe", str(tmp_path / "roles.yaml")]
    assert entries(recipe, capsys) == [
        EUCLIDEAN,
        MAHALANOBIS,
    ]
    assert entries([*recipe, "--attack", "linkage"], capsys) == [("linkage", "")]


def test_without_the_original_a_recipe_states_the_roles(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Its attacks cannot be judged then; an attack that the user names is refused."""
    folder = Path(files[1]).parent
    PEOPLE.rename({"pay": "income"}).write_csv(folder / "outside.csv")
    words = ["attack", files[1], "--auxiliary", str(folder / "outside.csv"), "--recipe", str(folder / "roles.yaml")]
    assert main([*words, "--rename", "income=pay", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main([*words[:4], "--rename", "income=pay", "--knows", "age,pay", "--json"]) == 0
    assert found == json.loads(capsys.readouterr().out)
    assert main([*words, "--attack", "linkage"]) == 2
    assert "--attack does not apply to linking without --original" in capsys.readouterr().err
