"""Recoded numbers: bands that are released as one number, such as ages floored to fives, midpoints and top codes.

``40`` in a release may be the age 40, or all ages from 40 to 44. The released numbers themselves are the grid: a known
number that is not released belongs to the next lower released one (floors, lower ends, top codes), to the next higher
(ceilings, upper ends) or to the nearest (rounding, midpoints). The rule is inferred from the frequencies: under the
right one the numbers of people and of released rows agree, value by value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_UNEXPLAINED = 0.02
"""Share of people whom the frequencies under the right rule may misplace, beside those whose value is not released."""


class Recoding(StrEnum):
    """To which released number a known number belongs that is not released itself."""

    FLOOR = "floor"
    CEILING = "ceiling"
    HALF_UP = "nearest, halves up"
    HALF_DOWN = "nearest, halves down"
    NEAREST = "nearest"
    """In the middle of two, either: halves to even, or at random."""


def as_numbers(values: pl.Series) -> Floats:
    """Numbers and dates as numbers, NaN for everything else.

    >>> as_numbers(pl.Series(["40", "42.5", "young"])).tolist()
    [40.0, 42.5, nan]
    """
    if values.dtype == pl.Date:
        values = values.cast(pl.Int32)
    elif isinstance(values.dtype, pl.Datetime):
        values = values.dt.epoch("s")
    elif values.dtype == pl.String:
        dates = values.str.to_date("%Y-%m-%d", strict=False)
        values = dates.cast(pl.Int32) if dates.null_count() < len(dates) else values
    if values.dtype == pl.Boolean or not (values.dtype.is_numeric() or values.dtype == pl.String):
        return np.full(len(values), np.nan)
    numbers = values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    return np.where(np.isfinite(numbers), numbers, np.nan)


@dataclass(frozen=True, kw_only=True)
class Bands:
    """Distinct known and released numbers of a column, NaN for those that are none."""

    known: Floats
    released: Floats

    def assigned(self, rule: Recoding) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
        """Pairs of a released and a known number that may belong together, and whether they do so for certain.

        A known number that is released belongs to itself.
        """
        order = np.argsort(self.released, kind="stable")[: int(np.isfinite(self.released).sum())]
        value = np.flatnonzero(np.isfinite(self.known))
        if len(order) == 0 or len(value) == 0:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)
        grid, number = self.released[order], self.known[value]
        low = np.clip(np.searchsorted(grid, number, "right") - 1, 0, len(grid) - 1)
        high = np.clip(np.searchsorted(grid, number, "left"), 0, len(grid) - 1)
        below, above = np.abs(number - grid[low]), np.abs(grid[high] - number)
        split = np.empty(0, dtype=np.int64)
        match rule:
            case Recoding.FLOOR:
                first = low
            case Recoding.CEILING:
                first = high
            case Recoding.HALF_UP:
                first = np.where(below < above, low, high)
            case Recoding.HALF_DOWN:
                first = np.where(below <= above, low, high)
            case Recoding.NEAREST:
                first = np.where(below <= above, low, high)
                split = np.flatnonzero((below == above) & (low != high))
        certain = np.ones(len(value), dtype=np.bool_)
        certain[split] = False
        return (
            order[np.concatenate([first, high[split]])],
            np.concatenate([value, value[split]]),
            np.concatenate([certain, certain[split]]),
        )

    def infer(self, people: Ints, rows: Ints) -> Recoding | None:
        """The rule under which frequencies agree best; None if known values need none, or if no rule explains them.

        A recoding merges values: as many released as known numbers, or numbers from elsewhere, are a shift or noise.

        ``people`` and ``rows`` are the frequencies of the known and the released values.
        """
        numeric, counted = np.isfinite(self.known), np.where(np.isfinite(self.released), rows, 0)
        total, released = int(people[numeric].sum()), int(counted.sum())
        unreleased = numeric & ~np.isin(self.known, self.released)
        if total == 0 or released == 0 or not people[unreleased].any():
            return None
        grid, values = self.released[counted > 0], self.known[numeric & (people > 0)]
        inside = (grid >= values.min()) & (grid <= values.max())
        if not 1 < len(grid) < len(values) or 2 * int(inside.sum()) < len(grid):
            return None
        by = np.argsort(self.released, kind="stable")[: int(np.isfinite(self.released).sum())]
        target, left_out = counted / released, max(0.0, 1 - released / total)
        misplaced = {}
        for rule in Recoding:
            label, value, certain = self.assigned(rule)
            placed = np.bincount(label[certain], weights=people[value[certain]], minlength=len(rows))
            misplaced[rule] = float(np.maximum(placed / total - target, 0.0).sum())
        best = min(list(Recoding)[:-1], key=lambda rule: misplaced[rule])
        if misplaced[best] > _UNEXPLAINED + left_out:
            best = Recoding.NEAREST
        own = numeric & ~unreleased
        equal = np.bincount(np.searchsorted(self.released[by], self.known[own]), people[own], len(by)) / total
        as_is = float((np.abs(equal - target[by]).sum() + people[unreleased].sum() / total) / 2)
        # Leaving people out moves each frequency by at most their share. Numbers of these people may be missing.
        explained = misplaced[best] <= _UNEXPLAINED + left_out and as_is > misplaced[best] + left_out + 1e-9
        return best if explained else None


@dataclass(frozen=True, kw_only=True)
class ColumnReading:
    """How the released values of a column were read, where its steps are not published."""

    column: str
    occurs: float
    """Share of the people whose known value a released value equals or, as a range or group, contains."""
    recoding: Recoding | None
    """The rule by which the other numbers are matched; None if none explains the frequencies."""

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> ColumnReading:
        """The reading from plain data."""
        rule = entry["recoding"]
        recoding = None if rule is None else Recoding(rule)
        return cls(column=entry["column"], occurs=entry["occurs"], recoding=recoding)

    def to_dict(self) -> dict[str, object]:
        """The reading as plain data."""
        return {"column": self.column, "occurs": self.occurs, "recoding": self.recoding}

    def __str__(self) -> str:
        said = f"`{self.column}`: {100 * self.occurs:.3g} % of the known values occur in the release"
        if self.recoding is None:
            return f"{said}, and no recoding explains the others: attacks that look values up cannot use them."
        return f"{said}; the others are matched by bands ({_IN_WORDS[self.recoding]})."


_IN_WORDS = {
    Recoding.FLOOR: "each released number stands for those from it up to the next",
    Recoding.CEILING: "each released number stands for those down to the one before it",
    **dict.fromkeys(
        (Recoding.HALF_UP, Recoding.HALF_DOWN, Recoding.NEAREST),
        "each released number stands for those that are nearest to it",
    ),
}
