"""A synthetic table for checks of masking methods: every type, missing values, weights, households, strata."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import numpy as np
import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema

QUASI = ("zip", "birth", "sex", "age", "height", "region", "married")
SENSITIVE = ("income", "rent", "diagnosis", "admitted")
UNTOUCHED = ("weight", "household", "stratum", "note")
"""Columns that a method changes only if its public account names them."""


def masking_frame(count: int = 240, seed: int = 1) -> pl.DataFrame:
    """The rows as a frame."""
    draw = np.random.default_rng(seed)
    income = np.round(draw.lognormal(10, 0.5, count), 2) + 0.003
    table = pl.DataFrame(
        {
            "name": [f"person {seed} {number}" for number in range(count)],
            "zip": [f"{code:05d}" for code in draw.integers(2140, 2150, count)],
            "birth": [date(1930, 1, 1) + timedelta(days=int(day)) for day in draw.integers(0, 25_000, count)],
            "sex": draw.choice(["F", "M"], count),
            "age": draw.integers(18, 90, count),
            "height": np.round(draw.normal(170, 9, count), 3) + 0.0007,
            "region": draw.choice(["north", "south", "east"], count, p=[0.6, 0.3, 0.1]),
            "married": draw.random(count) < 0.5,
            "income": income,
            "rent": np.round(0.3 * income + draw.normal(0, 900, count), 3) + 0.0003,
            "diagnosis": draw.choice(["asthma", "flu", "none"], count, p=[0.2, 0.2, 0.6]),
            "admitted": [datetime(2024, 1, 1, 8) + timedelta(hours=int(h)) for h in draw.integers(0, 9000, count)],
            "weight": np.round(draw.uniform(1, 9, count), 4),
            "household": np.sort(draw.integers(0, max(count // 2, 1), count)),
            "stratum": draw.choice(["urban", "rural"], count),
            "note": draw.choice(["alpha", "beta", "gamma"], count),
        }
    )
    # Missing values in two columns only: each pattern of missing values then has enough rows to be masked together.
    for name, share in (("income", 0.15), ("region", 0.1)):
        holes = pl.Series(draw.random(count) < share) if count > 1 else pl.Series([False])
        table = table.with_columns(pl.when(~holes).then(pl.col(name)).alias(name))
    return table


def masking_sample(table: pl.DataFrame | None = None) -> Data:
    """The rows with roles, or another frame of the same columns."""
    roles = {
        "name": Role.IDENTIFIER,
        **dict.fromkeys(QUASI, Role.QUASI),
        **dict.fromkeys(SENSITIVE, Role.SENSITIVE),
        "weight": Role.WEIGHT,
        "household": Role.HOUSEHOLD,
    }
    schema = Schema(columns={name: Column(role=role) for name, role in roles.items()})
    return Data.of(Table(frame=masking_frame() if table is None else table), schema)


def constant() -> Data:
    """All rows are the same."""
    one = masking_frame(2).head(1)
    return masking_sample(
        pl.concat([one] * 40).with_columns(pl.lit("north").alias("region"), pl.lit(5.5).alias("income"))
    )


def all_missing() -> Data:
    """Four columns have no value at all."""
    gone = [
        pl.lit(None, dtype=masking_frame().schema[name]).alias(name) for name in ("income", "age", "region", "admitted")
    ]
    return masking_sample(masking_frame(40).with_columns(gone))
