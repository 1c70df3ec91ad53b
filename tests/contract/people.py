"""A made-up population for the contract tests of attacks and measures: everybody is unique, nobody exists."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import polars as pl

from sfumato.data.table import Table
from sfumato.schema import Column, Dataset, Role, Schema

QUASI = ("zip", "birth", "sex", "height", "income", "rent", "commute")
NUMBERS = ("height", "income", "rent", "commute")


def frame(count: int = 400, seed: int = 1) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    income = np.round(draw.lognormal(10, 0.5, count), 2)
    return pl.DataFrame(
        {
            "name": [f"person {seed} {number}" for number in range(count)],
            "zip": [f"{code:05d}" for code in draw.integers(2100, 2160, count)],
            "birth": [date(1930, 1, 1) + timedelta(days=int(day)) for day in draw.integers(0, 25_000, count)],
            "sex": draw.choice(["F", "M"], count),
            "height": np.round(draw.normal(170, 9, count), 3),
            "income": income,
            "rent": np.round(0.3 * income + draw.normal(0, 900, count), 3),
            "commute": np.round(draw.gamma(2, 15, count), 3),
            "diagnosis": draw.choice(["asthma", "flu", "none"], count, p=[0.2, 0.2, 0.6]),
        }
    )


def dataset(count: int = 400, seed: int = 1) -> Dataset:
    roles = {name: Column(role=Role.QUASI) for name in QUASI}
    schema = Schema(columns={"name": Column(role=Role.IDENTIFIER), **roles, "diagnosis": Column(role=Role.SENSITIVE)})
    return Dataset.of(Table(frame=frame(count, seed)), schema)
