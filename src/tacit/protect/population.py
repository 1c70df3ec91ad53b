"""The population that a table is a part of, for models that count people who are not in it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from tacit.data import read
from tacit.errors import ColumnsDiffer, NotApplicable
from tacit.protect.classes import Classes
from tacit.schema import Dataset, Schema

__all__ = ["people_per_class", "read_population"]


@lru_cache(maxsize=2)
def _read(path: Path, changed: float) -> pl.DataFrame:
    return read(path).frame


def read_population(path: Path, data: Dataset) -> pl.DataFrame:
    """The quasi-identifiers of a population file, in the kinds that the schema declares."""
    frame = _read(path, path.stat().st_mtime if path.exists() else 0.0)
    missing = [name for name in data.quasi if name not in frame.columns]
    if missing:
        raise ColumnsDiffer(
            f"The population file has no column `{missing[0]}`.",
            fix="It needs every quasi-identifier of the table.",
            columns=tuple(missing),
        )
    schema = Schema(columns={name: data.schema.columns[name] for name in data.quasi})
    return pl.DataFrame([schema.columns[name].cast(frame.get_column(name)) for name in data.quasi])


def people_per_class(table: Classes, model: str) -> npt.NDArray[np.int64]:
    """People per class; a table that was compressed without its population is refused."""
    if table.population is None:
        raise NotApplicable(f"{model} needs a population table.", fix="Name it with `population`.", model=model)
    return table.population
