"""A synthetic population in which everybody is unique, for checks of attacks, measures and metrics."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema

QUASI = ("zip", "birth", "sex", "height", "income", "rent", "commute")
"""Quasi-identifiers of the population."""
NUMBERS = ("height", "income", "rent", "commute")
"""Those that are numbers."""


def population_frame(rows: int = 400, *, seed: int = 1) -> pl.DataFrame:
    """The rows as a frame; another seed gives other people."""
    draw = np.random.default_rng(seed)
    income = np.round(draw.lognormal(10, 0.5, rows), 2)
    return pl.DataFrame(
        {
            "name": [f"person {seed} {number}" for number in range(rows)],
            "zip": [f"{code:05d}" for code in draw.integers(2100, 2160, rows)],
            "birth": [date(1930, 1, 1) + timedelta(days=int(day)) for day in draw.integers(0, 25_000, rows)],
            "sex": draw.choice(["F", "M"], rows),
            "height": np.round(draw.normal(170, 9, rows), 3),
            "income": income,
            "rent": np.round(0.3 * income + draw.normal(0, 900, rows), 3),
            "commute": np.round(draw.gamma(2, 15, rows), 3),
            "diagnosis": draw.choice(["asthma", "flu", "none"], rows, p=[0.2, 0.2, 0.6]),
        }
    )


def population(rows: int = 400, *, seed: int = 1, sensitive: str = "diagnosis") -> Data:
    """The rows with roles: ``name`` identifies, ``diagnosis`` is sensitive, all others are quasi-identifiers.

    ``sensitive`` is another name for the sensitive column.
    """
    roles = {name: Column(role=Role.QUASI) for name in QUASI}
    schema = Schema(columns={"name": Column(role=Role.IDENTIFIER), **roles, sensitive: Column(role=Role.SENSITIVE)})
    frame = population_frame(rows, seed=seed).rename({"diagnosis": sensitive})
    return Data.of(Table(frame=frame), schema)
