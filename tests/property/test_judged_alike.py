"""Generated recipes are judged alike: in memory, in an engine, and by ``check`` in both."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.errors import SfumatoError
from sfumato.release import Verdict

PLAIN = {"role": "plain", "decided_by": "A. Steward", "reason": "generated"}
STEPS: tuple[list[Any], ...] = (
    [], [{"generalize": {"suppression": 0.3}}], [{"generalize": {"suppression": 0.3, "suppressed": "star"}}],
    [{"rank-swap": {"p": 5, "columns": ["age"]}}], [{"noise": {"variance_ratio": 0.1, "columns": ["age"]}}],
    [{"pram": {"columns": ["town"], "keep": 0.8}}], [{"sample": {"fraction": 0.6}}],
    [{"top-bottom-code": {"columns": ["age"], "top_percent": 5}}], ["mondrian"], ["local-recode"],
    [{"microaggregate": {"k": 3, "columns": ["age"]}}], [{"round": {"columns": ["age"], "base": 5}}],
)  # fmt: skip
MODELS: tuple[list[Any], ...] = (
    [], [{"k-anonymity": 3}], [{"k-anonymity": 2}, {"average-risk": 0.4}], [{"k-anonymity": 2}, {"l-diversity": 2}],
    [{"k-anonymity": 3}, {"t-closeness": 0.5}],
)  # fmt: skip


def table(draw: random.Random, rows: int = 90) -> pl.DataFrame:
    """People with one or several rows, a column that tells the age, and sometimes missing values."""
    random_numbers = np.random.default_rng(draw.randrange(10**9))
    people = draw.choice([rows, rows // 3])
    person = random_numbers.permutation(np.arange(rows) % people)
    age = random_numbers.integers(20, 80, people)[person]
    frame = pl.DataFrame(
        {
            "person": [f"p{i}" for i in person],
            "age": age,
            "born": 2026 - age,
            "town": random_numbers.choice(["a", "b", "c"], rows),
            "ill": random_numbers.choice(["no", "yes", "?"], rows),
            "pay": random_numbers.normal(3000, 500, rows).round(0),
        }
    )
    every = {"age": 11, "town": 7, "ill": 5} if draw.random() < 0.4 else {}
    gaps = (
        pl.when(pl.int_range(pl.len()) % n == 0).then(None).otherwise(name).alias(name) for name, n in every.items()
    )
    return frame.with_columns(gaps)


def recipe(draw: random.Random, folder: Path) -> dict[str, Any]:
    """Roles, models and steps that fit together."""
    missing = draw.choice([{}, {}, {"missing": "wildcard"}, {"missing": "suppressed"}])
    columns: dict[str, Any] = {
        "person": draw.choice(["drop", "identifier", "household"]),
        "age": {"role": "quasi", **draw.choice([{}, {"hierarchy": {"intervals": [20, 60]}}]), **missing},
        "born": draw.choice(["drop", "drop", PLAIN, "quasi"]),
        "town": "quasi",
        "ill": "sensitive",
        "pay": draw.choice(["drop", PLAIN, "sensitive"]),
    }
    pseudonyms = [{"pseudonymize": {"key": str(folder / "key")}}] if columns["person"] == "identifier" else []
    return {
        "sfumato": 1,
        "columns": columns,
        "models": draw.choice(MODELS),
        "steps": [*pseudonyms, *draw.choice(STEPS)],
        "attacks": ["linkage"],
        "measures": ["class-sizes"],
        **draw.choice([{}, {"unit": "person"}, {"unit": "row"}]),
        **draw.choice([{}, {"order": "kept"}]),
    }


def told(verdicts: Iterable[Verdict]) -> list[tuple[Any, ...]]:
    return [
        (one.model, one.column, one.state, None if one.worst is None else round(one.worst, 9), one.failing)
        for one in verdicts
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_a_release_has_the_same_verdicts_everywhere(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    source, document = tmp_path / "people.parquet", recipe(draw, tmp_path)
    table(draw).write_parquet(source)
    key, found, refused = None, {}, {}
    for engine in ("memory", "duckdb"):
        try:
            done = sfumato.protect(document, source, engine=engine, seed=1, key=key, n_targets=3, unmet=True)
        except SfumatoError as refusal:
            refused[engine] = str(refusal)
            continue
        key, found[engine] = done.key, (told(done.verdicts), done.evaluation.manifest.get("unchanged"), done.rows)
        done.save(tmp_path / engine, unmet=True)
        for place in ("memory", "duckdb"):
            assert told(sfumato.check(tmp_path / engine, original=source, engine=place)) == found[engine][0]
    assert refused.get("memory") == refused.get("duckdb")
    assert found.get("memory") == found.get("duckdb")
