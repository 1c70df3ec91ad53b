"""Smoothing of drawn values: a rare number is replaced by one between its neighbours in the sorted column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Array

_STEPS = (86_400, 3_600, 60, 1)
"""Days, hours, minutes and seconds: the resolution of times that is kept."""
_DIGITS = 6
"""Up to this many digits behind the decimal point are kept."""


def smoothed(column: pl.Series, drawn: Array, common: int, random: np.random.Generator) -> pl.Series:
    """The values of a column at the ``drawn`` rows; numbers and dates that are rare in the column are not among them.

    A value that at least ``common`` rows have is kept. Any other is replaced by a number drawn uniformly between the
    rare values ``common`` / 2 places below and above it, with the decimals (or the time unit) of the column. It may
    equal a value of the column by coincidence, as the number of another person may.

    >>> pay = pl.Series("pay", [0.0] * 5 + [1000.0, 1800.0, 2600.0, 4100.0])
    >>> made = smoothed(pay, np.arange(9), 5, np.random.default_rng(1))
    >>> made[:5].to_list(), set(made[5:]) & set(pay)
    ([0.0, 0.0, 0.0, 0.0, 0.0], set())
    """
    values = column.gather(drawn)
    if not (column.dtype.is_numeric() or column.dtype.is_temporal()):
        return values
    counts = column.drop_nulls().to_physical().alias("value").value_counts().sort("value")
    rare = counts.filter(pl.col("count") < common)["value"].cast(pl.Float64).to_numpy()
    if len(rare) == 0:
        return values
    physical = values.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()
    place = np.minimum(np.searchsorted(rare, physical), len(rare) - 1)
    moved = rare[place] == physical
    if len(rare) == 1:
        # A single rare value has no neighbours to hide between.
        return values.set(pl.Series(moved), None)
    # Uniform between values some places apart, not between ranks: close neighbours would be hit too often.
    reach, last = max(1, common // 2), len(rare) - 1
    low, high = rare[np.maximum(place[moved] - reach, 0)], rare[np.minimum(place[moved] + reach, last)]
    made = _rounded(low + (high - low) * random.random(len(low)), column)
    result = physical.copy()
    result[moved] = made
    return _as_column(result, values, moved)


def _rounded(made: npt.NDArray[np.float64], column: pl.Series) -> npt.NDArray[np.float64]:
    """Numbers with as many decimals as the column has, times in its unit."""
    present = column.drop_nulls()
    if isinstance(column.dtype, pl.Datetime | pl.Duration | pl.Time):
        second = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[getattr(column.dtype, "time_unit", "ns")]
        physical = present.to_physical()
        step = next((unit * second for unit in _STEPS if (physical % (unit * second) == 0).all()), 1)
        return np.rint(made / step) * step
    if not column.dtype.is_float():
        return made if column.dtype.is_decimal() else np.rint(made)
    level = present.to_numpy()
    for digits in range(_DIGITS + 1):
        if np.array_equal(np.round(level, digits), level):
            return np.round(made, digits)
    return made


def _as_column(result: npt.NDArray[np.float64], values: pl.Series, moved: npt.NDArray[np.bool_]) -> pl.Series:
    """The moved values in the type of the column; all others as they were."""
    numbers = pl.Series(values.name, result, nan_to_null=True)
    if not values.dtype.is_float() and not values.dtype.is_decimal():
        numbers = numbers.cast(pl.Int64, strict=False)
    return pl.select(
        pl.when(pl.Series(moved)).then(numbers.cast(values.dtype, strict=False)).otherwise(values)
    ).to_series()
