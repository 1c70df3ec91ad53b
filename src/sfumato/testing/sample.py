"""Synthetic people for contract checks: every kind of column, missing values, weights, households, rare values."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema


def sample(rows: int = 300, *, seed: int = 1, missing: bool = True) -> Data:
    """A mixed table of people who do not exist.

    >>> sample(50).quasi
    ('zip', 'birth', 'sex', 'age', 'height')
    """
    draw = np.random.default_rng(seed)
    income = np.round(draw.lognormal(10, 0.5, rows), 2)
    birth = [date(1930, 1, 1) + timedelta(days=int(day)) for day in draw.integers(0, 25_000, rows)]
    frame = pl.DataFrame(
        {
            "name": [f"person {number}" for number in range(rows)],
            "household": draw.integers(1, max(2, rows // 3), rows),
            "weight": np.round(draw.uniform(1, 200, rows), 1),
            "zip": [f"{code:05d}" for code in draw.integers(2100, 2160, rows)],
            "birth": birth,
            "sex": draw.choice(["F", "M"], rows),
            "age": [2000 - day.year for day in birth],
            "height": np.round(draw.normal(170, 9, rows), 1),
            "region": draw.choice(["north", "south", "west"], rows, p=[0.5, 0.4, 0.1]),
            "income": income,
            "rent": np.round(0.3 * income + draw.normal(0, 900, rows), 2),
            "diagnosis": draw.choice(["asthma", "flu", "none", "rare"], rows, p=[0.2, 0.2, 0.58, 0.02]),
        }
    )
    if missing:
        for name in ("zip", "height", "income", "diagnosis"):
            frame = frame.with_columns(
                pl.when(pl.lit(pl.Series(draw.random(rows) < 0.05))).then(None).otherwise(pl.col(name)).alias(name)
            )
    columns = {
        "name": Column(role=Role.IDENTIFIER),
        "household": Column(role=Role.HOUSEHOLD),
        "weight": Column(role=Role.WEIGHT),
        "zip": Column.model_validate({"role": "quasi", "hierarchy": {"mask": "right"}}),
        "birth": Column.model_validate({"role": "quasi", "hierarchy": {"dates": ["month", "year", "decade"]}}),
        "sex": Column(role=Role.QUASI),
        "age": Column.model_validate({"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}}),
        "height": Column.model_validate({"role": "quasi", "hierarchy": {"intervals": [5, 20]}}),
        "region": Column(role=Role.PLAIN),
        "income": Column(role=Role.SENSITIVE),
        "rent": Column(role=Role.SENSITIVE),
        "diagnosis": Column(role=Role.SENSITIVE),
    }
    return Data.of(Table(frame=frame), Schema(columns=columns))
