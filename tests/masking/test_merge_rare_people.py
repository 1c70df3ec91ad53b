"""merge-rare counts people where rows are not people, in memory and in an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sfumato
from sfumato.errors import NotApplicable


def _plan(*steps: object, unit: str = "pid", **strata: object) -> dict[str, object]:
    columns = {name: {"role": role} for name, role in (("pid", "identifier"), ("job", "quasi"), ("ill", "sensitive"))}
    merge = {"merge-rare": {"min_count": 10, "columns": ["job"], **strata}}
    return {"sfumato": 1, "unit": unit, "columns": columns, "steps": [*steps, merge]}


def _jobs(frame: pl.DataFrame, plan: dict[str, object], engine: str, folder: Path) -> dict[str, int]:
    file = folder / "people.csv"
    frame.write_csv(file)
    done: Any = sfumato.protect(plan, file, engine=engine, n_targets=10, seconds=0.001, seed=1, unmet=True)
    return dict(done.judged_release.table.frame.group_by("job").len().iter_rows())


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_category_of_one_person_with_many_rows_is_merged(engine: str, tmp_path: Path) -> None:
    spy = [(1, "SPY", "xy"[row % 2]) for row in range(15)]
    frame = pl.DataFrame([*spy, *((row + 2, "abc"[row % 3], "x") for row in range(105))], schema=["pid", "job", "ill"],
                         orient="row")  # fmt: skip
    found = _jobs(frame, _plan(), engine, tmp_path)
    # one person is too few, so the next rarest category joins
    assert found == {"other": 50, "b": 35, "c": 35}
    # power: where every row is a person, fifteen rows are enough
    assert _jobs(frame, _plan(unit="row"), engine, tmp_path) == {"SPY": 15, "a": 35, "b": 35, "c": 35}


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_person_in_several_rare_categories_counts_once(engine: str, tmp_path: Path) -> None:
    # nine people in each of two rare categories, the same ones: together nine and not eighteen
    rows = [*((p, job, "x") for job in ("r1", "r2") for p in range(9)), *((p, "b", "x") for p in range(20, 40))]
    rows += [(p, "c", "x") for p in range(40, 65)]
    frame = pl.DataFrame(rows, schema=["pid", "job", "ill"], orient="row")
    assert _jobs(frame, _plan(), engine, tmp_path) == {"other": 38, "c": 25}


def test_strata_count_people_apart(tmp_path: Path) -> None:
    rows = [(p, "r", "x") for p in range(9)] + [(p, "r", "y") for p in range(12)]
    rows += [(p, "s", ill) for ill in "xy" for p in range(20, 40)]
    frame = pl.DataFrame(rows, schema=["pid", "job", "ill"], orient="row")
    assert _jobs(frame, _plan(strata=["ill"]), "memory", tmp_path) == {"other": 29, "r": 12, "s": 20}


def test_people_who_were_removed_cannot_be_counted(tmp_path: Path) -> None:
    frame = pl.DataFrame({"pid": range(20), "job": ["a", "b"] * 10, "ill": ["x"] * 20})
    with pytest.raises(NotApplicable, match="an earlier step removed"):
        _jobs(frame, _plan({"remove": {"columns": ["pid"]}}), "memory", tmp_path)
