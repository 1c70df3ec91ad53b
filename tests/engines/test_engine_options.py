"""Engines of ``protect``: named by the registry, so that another distribution can add one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import sfumato
from sfumato.engines.choice import engine_options, masking_engines
from sfumato.engines.engine import Engine
from sfumato.errors import BadParameter
from sfumato.registry import registry

ROOT = Path(__file__).parents[2]
ENGINE = '''
from sfumato.engines.backends.duckdb import Duckdb


class FarAway(Duckdb):
    """An engine of another distribution."""
'''
RECIPE = """
sfumato: 1
data: people.csv
seed: 1
columns: {age: {role: quasi, hierarchy: {intervals: [10]}}, ill: sensitive}
models: [{k-anonymity: 3}]
steps: [generalize]
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with two distributions: one registers an engine, the other one that cannot be imported."""
    place = tmp_path / "site"
    for name, entry in {"faraway": "far-away = faraway:FarAway", "broken": "broken = not_installed:Broken"}.items():
        metadata = place / f"{name}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[sfumato.engine]\n{entry}\n")
    (place / "faraway.py").write_text(ENGINE)
    return place


def test_the_options_are_the_registered_engines_that_write_files() -> None:
    able = [cls.part_name() for cls in registry("engine") if issubclass(cls, Engine) and cls.writes]
    assert engine_options() == ("auto", "memory", *able)
    assert {"duckdb", "spark"} <= set(masking_engines())
    assert "postgres" not in masking_engines()


@pytest.mark.parametrize("name", ["oracle", "postgres"])
def test_another_name_is_refused_with_the_known_ones(name: str, tmp_path: Path) -> None:
    source = tmp_path / "people.csv"
    pl.DataFrame({"age": [1, 2, 3], "ill": ["a", "b", "c"]}).write_csv(source)
    recipe = {"sfumato": 1, "columns": {"age": "quasi"}, "models": [{"k-anonymity": 3}], "steps": ["generalize"]}
    with pytest.raises(BadParameter, match=f"`{name}`") as refusal:
        sfumato.protect(recipe, source, engine=name)
    assert "duckdb" in refusal.value.fix


def test_an_engine_of_another_distribution_is_selected_by_its_name(installed: Path, tmp_path: Path) -> None:
    pl.DataFrame({"age": [20, 21, 22, 40, 41, 42], "ill": list("ababab")}).write_csv(tmp_path / "people.csv")
    (tmp_path / "sfumato.yaml").write_text(RECIPE)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(installed)])}

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "sfumato", "protect", *arguments]
        return subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert "[auto|memory|duckdb|far-away|spark]" in command("--help").stdout
    done = command("sfumato.yaml", "--engine", "far-away", "--targets", "6", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdicts"][0]["state"] == "holds"
    assert pl.read_parquet(tmp_path / "release" / "data.parquet")["age"].n_unique() == 2
    refused = command("sfumato.yaml", "--engine", "oracle", "--out", "other")
    assert refused.returncode == 2
    assert "far-away" in refused.stderr
