"""Population tables, for models that count people who are not in the data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.data import read
from sfumato.dataset import Data, Schema
from sfumato.errors import BadParameter, ColumnsDiffer, NotApplicable
from sfumato.masking.equivalence_classes import EquivalenceClasses

if TYPE_CHECKING:
    from sfumato.masking.model import PrivacyModel


@lru_cache(maxsize=2)
def _read(path: Path, changed: float) -> pl.DataFrame:
    return read(path).frame


def read_population(path: Path, data: Data) -> pl.DataFrame:
    """Read the quasi-identifiers of a population file, cast to their declared kinds."""
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


def shared_population(models: Sequence[PrivacyModel], data: Data) -> pl.DataFrame | None:
    """The population that the models name, or None. Two different populations in one search are refused."""
    frames = [frame for model in models if (frame := model.population_frame(data)) is not None]
    if len(frames) > 1 and not all(frame.equals(frames[0]) for frame in frames):
        raise BadParameter("generalize: the models name different populations.", fix="Use one population for all.")
    return frames[0] if frames else None


def people_per_class(table: EquivalenceClasses, model: str) -> npt.NDArray[np.int64]:
    """People of the population per equivalence class; refused if the classes were built without a population."""
    if table.population is None:
        raise NotApplicable(f"{model} needs a population table.", fix="Name it with `population`.", model=model)
    return table.population
