"""Numbers of declared values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["declared_codes"]


def declared_codes(series: pl.Series, values: Sequence[Any]) -> npt.NDArray[np.int64]:
    """The place of each value in the declared ones, -1 for all others and for missing values.

    Values that were read as numbers are also found if they are declared as text, and the other way round; nothing else
    is converted.

    >>> declared_codes(pl.Series([1, 2, None]), ["2", "1.5", "1"]).tolist()
    [2, 0, -1]
    >>> declared_codes(pl.Series([1, 2]), [1.5, 2.0]).tolist()
    [-1, 1]
    """
    if series.dtype == pl.String:
        values = [str(value) for value in values]
    places = {value: number for number, value in enumerate(values)}
    distinct = series.drop_nulls().unique().to_list()
    codes = [places.get(value, places.get(str(value), -1)) for value in distinct]
    if not distinct:
        return np.full(len(series), -1, dtype=np.int64)
    found = series.replace_strict(pl.Series(distinct, dtype=series.dtype), codes, default=-1, return_dtype=pl.Int64)
    return found.to_numpy().astype(np.int64)
