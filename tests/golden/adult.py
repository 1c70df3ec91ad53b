"""The Adult excerpt with its hierarchies, for golden tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl

from sfumato.data.table import Table
from sfumato.masking.equivalence_classes import EquivalenceClasses, compress
from sfumato.schema import Column, Dataset, Role, Schema

FOLDER = Path(__file__).parents[1] / "data" / "adult"
COLUMNS = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)


@cache
def adult(*sensitive: str) -> Dataset:
    columns = {
        name: Column(
            role=Role.SENSITIVE if name in sensitive else Role.QUASI,
            hierarchy={"file": str(FOLDER / f"adult_hierarchy_{name}.csv")},  # type: ignore[arg-type]
        )
        for name in COLUMNS
    }
    return Dataset.of(Table(frame=pl.read_csv(FOLDER / "adult.csv")), Schema(columns=columns))


@cache
def compressed(*sensitive: str) -> EquivalenceClasses:
    return compress(adult(*sensitive))
