"""The Adult excerpt with its hierarchies, for golden tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.masking.equivalence_classes import EquivalenceClasses, compress

FOLDER = Path(__file__).parents[1] / "samples" / "adult"
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
def adult(*sensitive: str) -> Data:
    columns = {
        name: Column(
            role=Role.SENSITIVE if name in sensitive else Role.QUASI,
            hierarchy={"file": str(FOLDER / f"adult_hierarchy_{name}.csv")},  # type: ignore[arg-type]
        )
        for name in COLUMNS
    }
    return Data.of(Table(frame=pl.read_csv(FOLDER / "adult.csv")), Schema(columns=columns))


@cache
def compressed(*sensitive: str) -> EquivalenceClasses:
    return compress(adult(*sensitive))
