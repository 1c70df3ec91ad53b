"""Values that the adversary knows already, from a CSV file with the columns that identify people and their values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.errors import BadParameter, FileMissing

_LINE, _ROW = "sfumato line", "sfumato row"
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def known_rows(file: Path, frame: pl.DataFrame, secrets: Sequence[str]) -> dict[str, Ints]:
    """The rows of the people whose values a file names, by sensitive column.

    Sensitive columns of the file hold values, where an empty field is a value that is not known; the other columns
    identify the people. A line that matches nobody, or whose value is not that of everybody it matches, is an error:
    the audit would assume another adversary than the declared one.
    """
    if not file.is_file():
        raise FileMissing(f"There is no file `{file.name}` of known values.", fix="Check the path.")
    try:
        told = pl.read_csv(file, infer_schema=False)
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        raise BadParameter(f"`{file.name}` cannot be read as CSV.") from None
    columns = [name for name in told.columns if name in secrets]
    keys = [name for name in told.columns if name not in secrets]
    strange = [name for name in keys if name not in frame.columns]
    if not columns or not keys or strange:
        raise BadParameter(
            f"`{file.name}` " + (f"has a column `{strange[0]}` that the table lacks." if strange else
                                 "needs a column that identifies people and a sensitive column with their values."),
            fix=f"Its first line names columns of the table, at least one of: {', '.join(secrets)}.",
        )  # fmt: skip
    told = told.with_columns(_typed(told[name], frame.schema[name], file) for name in told.columns)
    lines = told.with_row_index(_LINE, offset=2)
    rows = frame.with_row_index(_ROW)
    matched = lines.join(rows, on=keys, how="left", suffix=" of the table", nulls_equal=True)
    _require(file, matched.filter(pl.col(_ROW).is_null()), "matches nobody in the table")
    found: dict[str, Ints] = {}
    for name in columns:
        known = matched.filter(pl.col(name).is_not_null())
        wrong = known.filter(pl.col(name).ne_missing(pl.col(f"{name} of the table")))
        _require(file, wrong, f"has another `{name}` than the table for somebody it matches")
        found[name] = np.unique(known[_ROW].to_numpy()).astype(np.int64)
    return found


def _typed(texts: pl.Series, dtype: Any, file: Path) -> pl.Series:
    """Texts as values of a column of the table."""
    if dtype == pl.Boolean:
        typed = texts.str.to_lowercase().replace_strict(_FLAGS, default=None, return_dtype=pl.Boolean)
    else:
        typed = texts.cast(dtype, strict=False)
    wrong = (typed.is_null() & texts.is_not_null()).arg_max()
    if wrong is not None and typed.is_null()[wrong] and texts[wrong] is not None:
        raise BadParameter(f"`{file.name}`, line {wrong + 2}: the value of `{texts.name}` is not of the column's kind.")
    return typed


def _require(file: Path, wrong: pl.DataFrame, words: str) -> None:
    if wrong.height:
        raise BadParameter(
            f"`{file.name}`, line {int(wrong[_LINE][0])} {words}.",
            fix="Name what the attacker knows about people in this table, as it is in the table.",
        )
