"""Rows in memory and in an engine: ``check``, ``attack`` and ``measure`` print the same of both."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from test_checks import panel

import sfumato
from sfumato.cli import main
from sfumato.dataset import Data, Schema
from sfumato.engines.choice import masking_engine
from sfumato.engines.stored_table import StoredTable
from sfumato.errors import BadParameter
from sfumato.recipe import Recipe

ROWS = 300
MODELS: dict[str, list[dict[str, Any]]] = {
    "sizes": [{"k-anonymity": 3}, {"average-risk": 0.2}, {"maximum-risk": 0.2}],
    "values": [
        {"k-anonymity": 2},
        {"l-diversity": {"l": 2}},
        {"t-closeness": {"t": 0.4}},
        {"alpha-k": {"alpha": 0.8, "k": 2}},
    ],
}


def _table(seed: int = 7) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": draw.integers(20, 80, ROWS),
            "town": draw.choice(["a", "b", "c"], ROWS),
            "ill": draw.choice(["no", "yes", "unknown"], ROWS),
        }
    )


def _gaps(frame: pl.DataFrame) -> pl.DataFrame:
    holes = {"age": 11, "town": 7, "ill": 5}
    return frame.with_columns(
        pl.when(pl.int_range(pl.len()) % every == 0).then(None).otherwise(pl.col(name)).alias(name)
        for name, every in holes.items()
    )


def _odd() -> pl.DataFrame:
    draw = np.random.default_rng(11)
    names = ["", " ", "**", "NA", "ü", "\U0001f600", 'quote " and , comma', "1", "01", "true"]
    return pl.DataFrame(
        {
            "zahl, \"odd' name": draw.choice([-0.0, 0.0, 1e149, 5e-324, 0.1, 2.0**53], ROWS),
            "rows": draw.choice([2**62, -(2**62), 0, 1], ROWS),
            "person": draw.choice(names, ROWS),
            "c0": [date(1 + 999 * int(i), 1, 1) for i in draw.integers(0, 9, ROWS)],
            "ill": [datetime(1970, 1, 1, 0, 0, int(i)) for i in draw.integers(0, 3, ROWS)],
        }
    )


DECIDED = {"role": "plain", "decided_by": "A. Steward", "reason": "synthetic"}
BANDS = {"role": "quasi", "hierarchy": {"intervals": [20, 60]}}
PLAIN = {"age": BANDS, "town": "quasi", "ill": "sensitive"}
PANEL = {"person": "drop", **PLAIN, "born": "drop", "pay": "drop"}
FILES: dict[str, tuple[pl.DataFrame, dict[str, Any]]] = {
    "several rows a person": (panel(), {"unit": "person", "columns": {**PANEL, "age": "quasi"}, "steps": []}),
    "pseudonyms": (
        panel(),
        {
            "unit": "person",
            "columns": {**PANEL, "person": "identifier"},
            "steps": [{"pseudonymize": {"key": "k"}}, "generalize"],
        },
    ),
    "derived columns": (panel(), {"columns": {**PANEL, "born": DECIDED}}),
    "households": (panel(), {"columns": {**PANEL, "person": "household"}}),
    "weights": (
        panel().with_columns(pay=pl.col("pay").clip(1)),
        {"columns": {**PANEL, "pay": "weight"}, "steps": [{"generalize": {"suppression": 0.1, "suppressed": "star"}}]},
    ),
    "missing values": (_gaps(_table()), {"columns": PLAIN}),
    "missing values that match every value": (
        _gaps(_table()),
        {
            "columns": {"age": {"role": "quasi", "missing": "wildcard"}, "town": {"role": "quasi", "missing":
                        "suppressed"}, "ill": "sensitive"},
            "steps": [],
        },
    ),
    "altered values": (
        _table(),
        {"columns": {**PLAIN, "age": "quasi"}, "steps": [{"rank-swap": {"p": 5, "columns": ["age"]}}]},
    ),
    "copied rows": (
        _table().with_columns(pay=pl.int_range(pl.len()) * 1.5),
        {"columns": {**PLAIN, "pay": DECIDED}, "steps": [{"synthesize": {"keep_values": True}}], "models": []},
    ),
    "odd values": (
        _odd(),
        {"columns": {**dict.fromkeys(_odd().columns, "quasi"), "ill": "sensitive"}, "steps": []},
    ),
}  # fmt: skip
"""A file, and what its recipe says beside the models."""


def _protected(folder: Path, name: str, models: str) -> Path:
    frame, plan = FILES[name]
    frame.write_parquet(folder / "people.parquet")
    document = {
        "sfumato": 1,
        "data": "people.parquet",
        "seed": 1,
        "models": MODELS[models],
        "steps": [{"generalize": {"suppression": 0.3}}],
        "attacks": ["linkage"],
        "measures": ["class-sizes"],
        **plan,
    }
    (folder / "plan.yaml").write_text(json.dumps(document))
    words = ["protect", str(folder / "plan.yaml"), "--out", str(folder / "out"), "--targets", "5", "--unmet", "--json"]
    assert main([*words, "--engine", "memory"]) in (0, 1)
    if (folder / "out" / "data.parquet").exists():
        return folder / "out"
    raise AssertionError("the release has no Parquet file")


def _printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("models", MODELS)
@pytest.mark.parametrize("name", FILES)
def test_check_prints_the_same_in_memory_and_in_an_engine(
    name: str, models: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    out = _protected(tmp_path, name, models)
    for more in ([], ["--original", "people.parquet"]):
        small, large = (
            _printed(capsys, "check", str(out), *more, "--engine", engine) for engine in ("memory", "duckdb")
        )
        assert small == large
        assert large[1]["verdicts"]
    (tmp_path / "out-private" / "lineage.parquet").unlink()  # without the row map
    small, large = (
        _printed(capsys, "check", str(out), "--original", "people.parquet", "--engine", engine)
        for engine in ("memory", "duckdb")
    )
    assert small == large


@pytest.mark.parametrize("name", ["several rows a person", "missing values"])
def test_attack_and_measure_print_the_same_of_what_fits_into_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    out = str(_protected(tmp_path, name, "sizes"))
    for verb, more in (("attack", ["--attack", "linkage", "--limit", "0.2"]), ("measure", ["--measure", "uniqueness"])):
        words = [verb, out, "--original", "people.parquet", "--seed", "1", *more]
        small, large = (_printed(capsys, *words, "--engine", engine) for engine in ("memory", "duckdb"))
        assert small == large


def test_what_exceeds_memory_is_counted_or_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    out = str(_protected(tmp_path, "missing values", "sizes"))
    monkeypatch.setattr("sfumato.evaluation.class_risk.CELL_BYTES", 10**9)
    words = ["--original", "people.parquet", "--engine", "duckdb"]
    released = pl.read_parquet(tmp_path / "out" / "data.parquet")
    classes = released.group_by("age", "town").len()
    code, found = _printed(capsys, "attack", out, *words, "--limit", "0.9")
    risks = {entry["attack"]: entry for entry in found["attacks"]}
    assert risks["linkage"]["risk"] == pytest.approx(classes.height / released.height)
    assert code == 0
    code, found = _printed(capsys, "attack", out, *words, "--limit", "0.9", "--attack", "distance-linkage")
    [entry] = found["attacks"]
    assert entry["risk"] is None
    assert "needs all rows in memory" in entry["reason"]
    assert [limit["met"] for limit in found["limits"]] == [None]
    assert code == 1
    assert main(["attack", out, *words, "--row", "1"]) == 2
    assert "--row needs all rows in memory" in capsys.readouterr().err
    _, found = _printed(capsys, "measure", out, *words, "--measure", "class-sizes", "--measure", "ncp")
    sizes, loss = found["measures"]
    assert sizes["value"] == classes["len"].min()
    assert loss["value"] is None
    assert "needs all rows in memory" in loss["reason"]


def test_a_check_that_exceeds_memory_is_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    out = str(_protected(tmp_path, "several rows a person", "sizes"))
    monkeypatch.setattr(StoredTable, "bytes_of", lambda self, names: 10**15)
    code, found = _printed(capsys, "check", out, "--original", "people.parquet", "--engine", "duckdb")
    states = {verdict["model"]: verdict["state"] for verdict in found["verdicts"]}
    assert code == 1
    assert set(states.values()) == {"not checked"}
    assert {"k-anonymity", "people per equivalence class", "derived columns"} <= set(states)


def test_groups_are_the_same_where_the_rows_lie(tmp_path: Path) -> None:
    frame, people = (
        _odd().with_columns(pl.col(pl.Float64) + 0.0),
        pl.Series([i % 40 if i % 9 else None for i in range(ROWS)]),
    )
    frame.write_parquet(tmp_path / "x.parquet")
    with masking_engine("duckdb", memory="1GB").workspace(tmp_path / "x.parquet", numbered=True) as workspace:
        stored = StoredTable.open(workspace, Schema(columns={}), original=False)
        for names in (["rows"], ["person", "c0"], list(frame.columns)):
            for whose in (None, people):
                here, there = (rows.group(names, whose) for rows in (Data.plain(frame), stored))
                assert _listed(here) == _listed(there)
        chosen = np.array([5, 5, 299, 0])
        assert stored.load(["person", "rows"], chosen).equals(Data.plain(frame).load(["person", "rows"], chosen))


def _listed(groups: Any) -> list[tuple[Any, ...]]:
    figures = zip(groups.rows, groups.of_people, groups.people, groups.person, strict=True)
    values = ([0.0 if one == 0 else one for one in row] for row in groups.values.rows())  # zero has no sign
    return sorted((*map(str, value), *figure) for value, figure in zip(values, figures, strict=True))


def test_an_engine_reads_files_only() -> None:
    with pytest.raises(BadParameter, match="reads files"):
        sfumato.check(_table(), recipe=Recipe.parse({"sfumato": 1, "columns": PLAIN}), engine="duckdb")
