"""Canonical order of the rows of a table, so that nothing a policy decides or draws depends on the order of a file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl


def canonical_order(frame: pl.DataFrame) -> npt.NDArray[np.int64]:
    """The row numbers of a table, sorted by the values of all columns, columns in the order of their names.

    Rows that are left in the order of the file are equal in every column, so their order changes nothing.

    >>> canonical_order(pl.DataFrame({"b": [1, 0], "a": [5, 5]})).tolist()
    [1, 0]
    """
    keys = sorted(name for name, dtype in frame.schema.items() if not dtype.is_nested())
    if not keys:
        return np.arange(frame.height)
    return (
        frame.select(pl.arg_sort_by(keys, nulls_last=True, maintain_order=True)).to_series().to_numpy().astype(np.int64)
    )
