"""Candidates that cannot be made, found before anything is attacked."""

from __future__ import annotations

import time

import polars as pl

from sfumato.dataset import Data
from sfumato.deadline import Deadline
from sfumato.errors import OutOfTime, SfumatoError
from sfumato.evaluation import make_release
from sfumato.recipe import Recipe
from sfumato.rng import Rng

__all__ = ["refusal_of"]

_SAMPLE = 200
_SECONDS = 5.0
"""A candidate that takes longer is not judged here."""


def refusal_of(recipe: Recipe, data: Data) -> SfumatoError | None:
    """The refusal of a candidate whose steps cannot run on the data, or None.

    The steps are tried on a few rows. A refusal there may be due to the few rows, so it is confirmed on all rows. None
    therefore proves nothing: a candidate may still be refused when it runs.
    """
    if data.rows > _SAMPLE:
        rows = pl.Series(range(0, data.rows, data.rows // _SAMPLE))
        few = Data.of(data.table.with_frame(data.table.frame[rows]), recipe.schema)
        if _try(recipe, few) is None:
            return None
    return _try(recipe, data)


def _try(recipe: Recipe, data: Data) -> SfumatoError | None:
    try:
        make_release(recipe, data, rng=Rng(recipe.seed), progress=Deadline(until=time.monotonic() + _SECONDS))
    except OutOfTime:
        return None
    except SfumatoError as refusal:
        return refusal
    return None
