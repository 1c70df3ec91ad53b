"""Sums of squared errors that sdcMicro 5.8.1's MDAV reaches on the CASC reference files, in percent of the total."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.masking.base import Context
from sfumato.masking.methods.microaggregate import Microaggregate
from sfumato.rng import Rng

FOLDER = Path(__file__).parents[1] / "samples" / "sdcmicro"
TEXT = ("UTILNAME", "STATE", "YEAR", "MONTH")
REACHED = {
    "Tarragona": {3: 16.93259, 4: 19.54596, 5: 22.46186, 10: 33.19288},
    "CASCrefmicrodata": {3: 5.692186, 4: 7.494700, 5: 9.088435, 10: 14.15593},
    "EIA": {3: 0.4829387, 4: 0.6713451, 5: 1.666675, 10: 3.839670},
}


def load(name: str) -> pl.DataFrame:
    table = pl.read_csv(FOLDER / f"{name}.csv", infer_schema_length=None)
    return table.drop([column for column in TEXT if column in table.columns])


def loss(name: str, **parameters: object) -> float:
    table = load(name)
    data = Data.of(Table(frame=table), Schema(columns={c: Column(role=Role.QUASI) for c in table.columns}))
    masked = Microaggregate.build(parameters).apply(data, Context(rng=Rng(1))).table.frame
    before, after = table.to_numpy().astype(float), masked.to_numpy().astype(float)
    scale = before.std(axis=0)
    total = (((before - before.mean(axis=0)) / scale) ** 2).sum()
    return float(100 * (((before - after) / scale) ** 2).sum() / total)


@pytest.mark.parametrize(("name", "k"), [(name, k) for name, row in REACHED.items() for k in row])
def test_loss_is_that_of_sdcmicro_or_less(name: str, k: int) -> None:
    assert loss(name, k=k) <= REACHED[name][k] * (1 + 1e-6)


@pytest.mark.parametrize(
    ("name", "k", "most"),
    [
        ("Tarragona", 3, 14.92), ("Tarragona", 5, 20.92), ("Tarragona", 10, 30.79),
        ("CASCrefmicrodata", 3, 5.24), ("CASCrefmicrodata", 5, 8.15), ("CASCrefmicrodata", 10, 12.29),
        ("EIA", 3, 0.371), ("EIA", 5, 0.746), ("EIA", 10, 2.04),
    ],
)  # fmt: skip
def test_local_search_lowers_the_loss_of_mdav(name: str, k: int, most: float) -> None:
    assert loss(name, k=k, refine=True) <= most < 0.94 * REACHED[name][k]


def test_groups_of_columns_with_a_k_each() -> None:
    names = load("CASCrefmicrodata").columns
    together = loss("CASCrefmicrodata", k=3)
    apart = loss("CASCrefmicrodata", groups=[{"columns": names[:6], "k": 3}, {"columns": names[6:], "k": 8}])
    assert 0 < apart < 3 * together


def test_univariate_optimum_loses_no_more_than_individual_ranking() -> None:
    fixed = loss("CASCrefmicrodata", k=3, algorithm="individual")
    best = loss("CASCrefmicrodata", k=3, algorithm="optimal")
    assert best < fixed < 1
    assert np.isfinite(best)
