"""Private learning of a column's domain, where none is declared: frequent categories, and the range of numbers."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from math import log, sqrt

import numpy as np
import polars as pl

from sfumato.dp.analytic_gaussian import pure_within
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.dp.mechanisms.thresholded_laplace import ThresholdedLaplace
from sfumato.dp.receipt import Receipt
from sfumato.errors import TooFewRows
from sfumato.secret import MeasuredNumbers, SecretValue
from sfumato.synthesis.column_domain import ColumnCells, category_cells, range_cells
from sfumato.synthesis.private_counts import COUNT_GRID

_POWERS = 62
"""Largest power of two of the cells of an unknown range."""
_SMALLEST = -20
"""Smallest power of two of the cells for real numbers."""


def learn_cells(
    series: pl.Series, *, squared: Fraction, delta: Fraction, max_contribution: int, receipt: Receipt
) -> ColumnCells:
    """The domain of a column, at a squared Gaussian parameter and a delta; of each person ``max_contribution`` rows.

    Categories: those whose noisy count exceeds a threshold (:class:`ThresholdedLaplace`); rarer ones count as missing.
    Numbers and dates: the smallest range of powers of two outside of which noisy counts show nobody.
    """
    if series.dtype.is_numeric() or series.dtype.is_temporal():
        return _learn_range(series, squared, max_contribution, receipt)
    tally = series.drop_nulls().value_counts(sort=False, name="count")
    most = max_contribution  # rows of a person: in as many keys, or all in one
    noise = ThresholdedLaplace.for_budget(
        pure_within(squared), delta, sensitivity=most, max_contribution=most, keys=most
    )
    counts = SecretValue(tally["count"].to_numpy().astype(np.int64), measured=MeasuredNumbers(kind="values"))
    noisy = noise.release(counts, receipt=receipt, sensitivity=max_contribution)
    values = tally.get_column(series.name).filter(pl.Series(np.isfinite(noisy))).sort().to_list()
    if not values:
        raise _nothing(series.name, "category")
    return category_cells(series.name, series.dtype, values)


def _learn_range(series: pl.Series, squared: Fraction, max_contribution: int, receipt: Receipt) -> ColumnCells:
    physical = series.to_physical()
    numbers = physical.drop_nulls().cast(pl.Float64).to_numpy()
    numbers = numbers[np.isfinite(numbers)]
    powers = np.arange(0 if physical.dtype.is_integer() else _SMALLEST, _POWERS + 1)
    ends = np.concatenate([-(2.0 ** powers[::-1]), [0.0], 2.0**powers])
    cells = np.clip(np.searchsorted(ends, numbers, side="right") - 1, 0, len(ends) - 2)
    noise = RoundedGaussian.for_rho(squared / 2, squared=max_contribution**2, grid=COUNT_GRID)
    tally = np.bincount(cells, minlength=len(ends) - 1).astype(np.int64)
    counts = SecretValue(tally * COUNT_GRID.denominator, measured=MeasuredNumbers(kind="cells"))
    noisy = noise.release_at(counts, receipt=receipt, distance=max_contribution**2)
    seen = np.flatnonzero(noisy > sqrt(2 * float(noise.variance) * log(len(ends) / 0.001)))
    if not len(seen):
        raise _nothing(series.name, "number")
    low, high = ends[seen[0]], ends[seen[-1] + 1]
    if physical.dtype.is_integer():
        low, high = max(low, -(2.0**60)), min(high, 2.0**60)
    if series.dtype.is_temporal():
        calendar = pl.Series([date(1, 1, 2), date(9999, 12, 30)]).cast(series.dtype, strict=False).to_physical()
        first, last = (int(end) if end is not None else None for end in calendar)
        low = low if first is None else max(low, first)
        high = high if last is None else min(high, last)
        ends_of = pl.Series([int(low), int(high)], dtype=physical.dtype).cast(series.dtype)
        return range_cells(series.name, series.dtype, ends_of[0], ends_of[1])
    return range_cells(series.name, series.dtype, low, high)


def _nothing(name: str, kind: str) -> TooFewRows:
    return TooFewRows(
        f"private-synthesis: no {kind} of `{name}` is frequent enough to be learned at this epsilon.",
        fix="Declare the domain of the column, leave it out, or use a larger epsilon.",
        column=name,
    )
