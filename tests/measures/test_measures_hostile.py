"""Utility and disclosure measures on columns without spread or with numbers beyond squaring: a number or a reason."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.measures.base import Measure, ReleasePair, judge
from sfumato.registry import registry
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

DRAW = np.random.default_rng(2)
ROWS = 60
FRAME = pl.DataFrame(
    {
        "x": DRAW.normal(size=ROWS),
        "c": DRAW.choice(list("abc"), ROWS),
        "holey": [None if row % 3 else 7.0 for row in range(ROWS)],
        "empty": pl.Series([None] * ROWS, dtype=pl.Float64),
    }
)
HUGE = FRAME.with_columns(x=pl.col("x") * 1e300)
NEEDED: dict[str, dict[str, Any]] = {
    "population-uniqueness": {"fraction": 0.1},
    "log-linear-risk": {"fraction": 0.1},
    "individual-risk": {"fraction": 0.1},
    "household-risk": {"fraction": 0.1},
    "neighbour-risk": {"k": 2},
    "item-uniqueness": {"item": "c", "events": 2},
    "recommender": {"item": "c"},
    "text-classification": {"column": "c", "target": "c"},
    "text-recall": {"column": "c"},
    "text-retrieval": {"column": "c"},
    "custom": {"function": "builtins:len"},
}


@pytest.mark.parametrize("name", registry("measure").names())
@pytest.mark.parametrize("case", ["as it was", "released huge", "both huge"])
def test_a_measure_gives_a_number_or_a_reason(name: str, case: str) -> None:
    original = HUGE if case == "both huge" else FRAME
    released = HUGE if case == "released huge" else original
    schema = Schema(columns={column: Column(role=Role.QUASI) for column in FRAME.columns})
    pair = ReleasePair(
        original=Data.of(Table(frame=original), schema),
        release=Release(table=Table(frame=released), manifest={}),
        lineage=Lineage.identity(ROWS),
    )
    measure = registry("measure").get(name).build(NEEDED.get(name, {}))
    assert isinstance(measure, Measure)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = judge(measure, pair, rng=Rng(1))
    json.dumps(found.to_dict(), allow_nan=False)
    assert (found.value is None) == bool(found.reason)


@pytest.mark.parametrize("name", ["pairs", "associations", "mutual-information"])
def test_a_wide_table_is_judged_by_a_sample_of_its_pairs(name: str) -> None:
    draw = np.random.default_rng(4)
    original = pl.DataFrame({f"c{column}": draw.integers(0, 3, 50) for column in range(70)})
    released = original.with_columns(c0=original["c0"].shuffle(seed=1))
    schema = Schema(columns={column: Column(role=Role.QUASI) for column in original.columns})
    measure = registry("measure").get(name).build({})
    assert isinstance(measure, Measure)
    pair = ReleasePair(
        original=Data.of(Table(frame=original), schema), release=Release(table=Table(frame=released), manifest={})
    )
    found = judge(measure, pair, rng=Rng(1))
    assert len(found.columns) == 2000
    assert found.detail["pairs_in_all"] == 2415
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low < found.value < found.high
    few = judge(
        measure,
        ReleasePair(
            original=pair.original, release=Release(table=Table(frame=released.select("c0", "c1", "c2")), manifest={})
        ),
        rng=Rng(1),
    )
    assert len(few.columns) == 3
    assert few.low is None
