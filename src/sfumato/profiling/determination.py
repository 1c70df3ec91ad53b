"""How well one column determines another: leave-one-out prediction along the order of the first.

Rows are sorted by the known column. A row's value of the target is predicted from the other rows with the same known
value, or from its two neighbours if there is none. If the target is a function of the known column (equal, monotone,
recoded, squared), the prediction is right; if the columns are independent, it is as bad as a blind guess. This is the
idea of Chatterjee (2021), A new coefficient of correlation, doi:10.1080/01621459.2020.1758115, with ties and
categories.

A column of unique values determines nothing by itself: neighbours are other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Floats, Ints
from sfumato.kernels import kernel

_CATEGORIES = 20
"""A numeric column with at most this many values is predicted as a category."""
FEWEST = 50
"""With fewer rows nothing is predicted: chance would determine too much."""
_SUPPORT = 8
"""Fewest rows that a blind guess must get wrong. With fewer, a perfect prediction may be chance."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Coded:
    """A column as whole numbers in the order of its values, ready to be sorted by or to be predicted."""

    name: str
    codes: npt.NDArray[np.int32]
    """Rank of the value from 0; -1 where it is missing."""
    size: int
    """Number of distinct values."""
    numbers: Floats | None
    """The values as numbers, dates as days, NaN where missing; None for text."""
    dates: pl.Series | None = None
    """The values if they are dates."""

    @classmethod
    def of(cls, series: pl.Series) -> Coded:
        """Encode a column of any type. Text that consists of numbers is read as numbers."""
        numbers = _as_numbers(series)
        if numbers is None:
            text = series.cast(pl.String) if series.dtype != pl.String else series
            return cls._ranked(series.name, text, None, None)
        dates = series if series.dtype in (pl.Date, pl.Datetime) else None
        return cls._ranked(series.name, pl.Series(numbers, nan_to_null=True), numbers, dates)

    @classmethod
    def of_numbers(cls, name: str, numbers: Floats) -> Coded:
        """Encode numbers, NaN where missing."""
        return cls._ranked(name, pl.Series(numbers, nan_to_null=True), numbers, None)

    @classmethod
    def _ranked(cls, name: str, values: pl.Series, numbers: Floats | None, dates: pl.Series | None) -> Coded:
        codes = (values.rank("dense").cast(pl.Int64) - 1).fill_null(-1).to_numpy().astype(np.int32)
        return cls(name=name, codes=codes, size=int(codes.max(initial=-1)) + 1, numbers=numbers, dates=dates)

    @property
    def category(self) -> bool:
        """Whether the column is predicted as a category; otherwise by its ranks."""
        return self.numbers is None or self.size <= _CATEGORIES

    @cached_property
    def ranks(self) -> Floats:
        """Mean rank of each value between 0 and 1, NaN where missing: predictions then do not depend on outliers."""
        counts = np.bincount(self.codes[self.codes >= 0], minlength=self.size)
        middle = (np.cumsum(counts) - counts / 2) / max(counts.sum(), 1)
        return np.where(self.codes >= 0, np.append(middle, np.nan)[self.codes], np.nan)


def joint(columns: Sequence[Coded]) -> Coded:
    """Several columns as one, in lexicographic order."""
    codes = np.zeros(len(columns[0].codes), dtype=np.int64)
    for column in columns:
        codes = codes * (column.size + 1) + column.codes + 1
        codes = np.unique(codes, return_inverse=True)[1]
    size = int(codes.max(initial=-1)) + 1
    return Coded(name=" + ".join(c.name for c in columns), codes=codes.astype(np.int32), size=size, numbers=None)


def windows(known: Coded, most: int) -> Ints:
    """Rows with a known value in its order: all, or windows of consecutive ones spread over the whole order.

    Windows keep rows with equal and neighbouring values together, which a random sample of rows would not.
    """
    order = np.argsort(known.codes, kind="stable")
    order = order[np.searchsorted(known.codes[order], 0) :]
    if len(order) <= most:
        return order
    width = 250
    starts = np.linspace(0, len(order) - width, most // width).astype(np.int64)
    chosen: Ints = order[(starts[:, None] + np.arange(width)).ravel()]
    return chosen


def error_of(known: Coded, target: Coded, order: Ints) -> float:
    """The error of predicting the target, relative to a blind guess: 0 if it is determined, about 1 if independent.

    ``order`` are rows sorted by the known column. For numbers the error is the share of the variance of the ranks that
    remains; for categories the share of the blind guess's mistakes.
    """
    if len(order) < FEWEST:
        return 1.0
    keys = known.codes[order]
    if target.category:
        codes = target.codes[order]
        counts = np.bincount(codes[codes >= 0], minlength=target.size)
        blind = float(counts.sum() - counts.max(initial=0))
        return _relative(_mistakes(keys, codes, target.size), blind) if blind >= _SUPPORT else 1.0
    ranks = target.ranks[order]
    seen = ranks[~np.isnan(ranks)]
    spread = float(seen.var()) if len(seen) else 0.0
    enough = spread > 0 and len(seen) >= _SUPPORT
    return _relative(_squared_error(keys, ranks), spread * len(seen)) if enough else 1.0


def _relative(errors: tuple[float, int, float, int], blind: float) -> float:
    """The error relative to a blind guess's, of the rows that share their known value if these are the majority.

    The others are predicted from neighbouring values, which says little about a table of codes.
    """
    shared, rows_shared, alone, rows_alone = errors
    rows = rows_shared + rows_alone
    if 2 * rows_shared >= rows:
        return float(shared / (blind * rows_shared / rows))
    return float((shared + alone) / blind)


def _as_numbers(series: pl.Series) -> Floats | None:
    dtype = series.dtype
    if dtype == pl.Boolean or dtype.is_numeric():
        numbers = series.cast(pl.Float64)
    elif dtype in (pl.Date, pl.Datetime, pl.Time, pl.Duration):
        numbers = series.to_physical().cast(pl.Float64)
    elif dtype == pl.String and len(series) > series.null_count():
        numbers = series.cast(pl.Float64, strict=False)
        if numbers.null_count() > series.null_count():
            return None
    else:
        return None
    values = numbers.to_numpy().astype(np.float64)
    return np.where(np.isfinite(values), values, np.nan)


@kernel(nogil=True)
def _mistakes(keys, codes, size):  # type: ignore[no-untyped-def]
    """Mistakes and number of the rows that share their key, then of those that do not: each row is predicted by the
    most frequent code of the others with its key, or by its neighbours."""
    counts = np.zeros(size + 1, dtype=np.int64)
    shared, alone, rows_shared, rows_alone = 0.0, 0.0, 0, 0
    rows = len(keys)
    start = 0
    while start < rows:
        end = start + 1
        while end < rows and keys[end] == keys[start]:
            end += 1
        if end - start == 1:
            own = codes[start]
            if own >= 0:
                right, near = 0, 0
                for other in (start - 1, start + 1):
                    if 0 <= other < rows and codes[other] >= 0:
                        near += 1
                        right += codes[other] == own
                alone += 1.0 - right / near if near > 0 else 1.0
                rows_alone += 1
        else:
            best, second = -1, -1
            for row in range(start, end):
                if codes[row] >= 0:
                    counts[codes[row]] += 1
            for row in range(start, end):
                code = codes[row]
                if code >= 0 and code != best and code != second:
                    if best < 0 or counts[code] > counts[best]:
                        best, second = code, best
                    elif second < 0 or counts[code] > counts[second]:
                        second = code
            for row in range(start, end):
                own = codes[row]
                if own < 0:
                    continue
                rows_shared += 1
                rival = second if own == best else best
                mine = counts[own] - 1
                theirs = counts[rival] if rival >= 0 else 0
                if mine < theirs or (mine == 0 and theirs == 0):
                    shared += 1.0
                elif mine == theirs:
                    shared += 0.5
            for row in range(start, end):
                if codes[row] >= 0:
                    counts[codes[row]] = 0
        start = end
    return shared, rows_shared, alone, rows_alone


def _squared_error(keys: npt.NDArray[np.int32], ranks: Floats) -> tuple[float, int, float, int]:
    """As :func:`_mistakes`, for ranks: predicted by the mean of the others with the same key, or of the neighbours."""
    starts = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    ends = np.append(starts[1:], len(keys))
    group = np.repeat(np.arange(len(starts)), ends - starts)
    known = ~np.isnan(ranks)
    amount = np.add.reduceat(np.where(known, ranks, 0.0), starts)[group]
    count = np.add.reduceat(known.astype(np.int64), starts)[group]
    several = np.flatnonzero(known & (count > 1))
    mean_of_others = (amount[several] - ranks[several]) / (count[several] - 1)
    alone = np.flatnonzero(known & (count == 1))
    padded = np.append(ranks, np.nan)  # before the first row and behind the last one
    near = np.column_stack([padded[starts[group[alone]] - 1], padded[ends[group[alone]]]])
    sides = (~np.isnan(near)).sum(axis=1)
    guess = np.where(sides > 0, np.nansum(near, axis=1) / np.maximum(sides, 1), 0.5)
    return (
        float(((ranks[several] - mean_of_others) ** 2).sum()),
        len(several),
        float(((ranks[alone] - guess) ** 2).sum()),
        len(alone),
    )
