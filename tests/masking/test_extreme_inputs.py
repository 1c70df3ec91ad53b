"""Inputs at the edge of what a file can hold give a release or a refusal in words, never an internal error."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import BadParameter


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize(("high", "fits"), [(1e308, False), (1e151, False), (1e149, True)])
def test_numbers_whose_squares_overflow(high: float, fits: bool, engine: str, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    signs = [high if row // 2 % 2 else -high for row in range(60)]
    pl.DataFrame({"sex": ["F", "M"] * 30, "v": signs, "ill": ["x", "x", "y"] * 20}).write_csv(file)
    columns: dict[str, object] = {
        "sex": {"role": "quasi"},
        "v": {"role": "quasi", "kind": "number"},
        "ill": {"role": "sensitive"},
    }
    plan = {"sfumato": 1, "unit": "row", "columns": columns, "models": [{"k-anonymity": 5}],
            "steps": [{"generalize": {"suppression": 0.2}}]}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        if fits:
            done: Any = sfumato.protect(plan, file, engine=engine, n_targets=10, seed=1, unmet=True)
            assert done.rows == 60
            return
        with pytest.raises(BadParameter, match="Column `v` holds numbers beyond") as refused:
            sfumato.protect(plan, file, engine=engine, n_targets=10, seed=1, unmet=True)
    assert "308" not in str(refused.value)


def test_labels_of_texts_do_not_stop_a_stata_file(tmp_path: Path) -> None:
    import pandas as pd
    import pyreadstat

    people: Any = pd.DataFrame({"sex": ["m", "f"] * 20, "ill": ["a", "a", "b", "b"] * 10})
    words: dict[Any, str] = {"m": "male", "f": "female"}
    pyreadstat.write_sav(
        people, tmp_path / "people.sav", variable_value_labels={"sex": words}, column_labels={"sex": "Sex"}
    )  # fmt: skip
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "sfumato: 1\ndata: people.sav\nunit: row\ncolumns: {sex: {role: quasi}, ill: {role: sensitive}}\n"
        "models: [k-anonymity: 5]\nsteps: [generalize: {suppression: 0}]\n"
    )
    out = tmp_path / "release"
    assert main(["protect", str(plan), "--format", "dta", "--out", str(out), "--targets", "20", "--unmet"]) in (0, 1, 3)
    table = sfumato.read(out / "data.dta")
    assert sorted(table.frame["sex"].unique()) == ["f", "m"]
    assert table.labels["sex"].label == "Sex"
