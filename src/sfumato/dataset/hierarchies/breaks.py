"""Hierarchy of numbers: bands between given break points."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Annotated, ClassVar

import numpy as np
import polars as pl
from pydantic import Field, field_validator

from sfumato.dataset.hierarchy import ROOT, BoundHierarchy, Hierarchy, Level, number_leaves, range_label

Break = Annotated[int | float, Field(allow_inf_nan=False)]


class BreaksHierarchy(Hierarchy):
    """Bands between break points, for skewed numbers such as incomes: fewer break points at each level.

    A band begins at its break point and ends below the next one. Numbers below the first and from the last break point
    on form a band each. The break points of a level must be among those of the level before, so that bands nest.

    >>> BreaksHierarchy.build([[1000, 2000, 5000], [2000]]).bind("pay", pl.Series([900, 1500, 7000])).rows()
    [['900', '< 1000', '< 2000', '*'], ['1500', '1000–1999', '< 2000', '*'], ['7000', '>= 5000', '>= 2000', '*']]
    """

    main: ClassVar[str | None] = "levels"
    examples = (
        {"levels": [[1000, 2000, 5000], [2000]]},
        {"levels": [[0.5, 1.5, 10], [1.5]]},
        {"levels": [[-10, 0, 10]]},
    )
    sample = (-12, -10, 0, 1, 9, 10, 999, 1000, 1999, 2000, 4999, 5000, 12000)

    levels: Annotated[tuple[Annotated[tuple[Break, ...], Field(min_length=1)], ...], Field(min_length=1)]
    """The break points of each level, in ascending order; ``*`` is added."""

    @field_validator("levels")
    @classmethod
    def _nested(cls, levels: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
        for points in levels:
            if any(later <= earlier for earlier, later in pairwise(points)):
                raise ValueError("break points must increase")
        for finer, coarser in pairwise(levels):
            if not set(coarser) < set(finer):
                raise ValueError("the break points of a level must be some of those of the level before")
        return levels

    def level_in_words(self, level: int) -> str:
        if not 0 < level <= len(self.levels):
            return super().level_in_words(level) if level <= 0 else "all values removed (*)"
        return f"{len(self.levels[level - 1]) + 1} bands"

    def bind(self, column: str, values: pl.Series) -> BoundHierarchy:
        leaves, numbers = number_leaves(column, values)
        whole = values.dtype.is_integer() and all(point == int(point) for point in self.levels[0])
        least, most = float(numbers.min(initial=np.inf)), float(numbers.max(initial=-np.inf))
        levels = [Level(codes=np.arange(len(leaves), dtype=np.int32), labels=leaves)]
        for points in self.levels:
            bands = np.searchsorted(np.asarray(points, dtype=np.float64), numbers, side="right")
            used, codes = np.unique(bands, return_inverse=True)
            labels = [_label(points, int(band), whole=whole) for band in used]
            edges = (least, *points, most)
            low, high = (np.array([edges[band + end] for band in used], dtype=np.float64) for end in (0, 1))
            # the upper end of a band is exclusive, that of a band of whole numbers its last number
            high = np.where(used < len(points), high - whole, high)
            levels.append(
                Level(
                    codes=codes.astype(np.int32), labels=pl.Series(column, labels, dtype=pl.String), low=low, high=high
                )
            )
        root = pl.Series(column, [ROOT])
        everything = Level(
            codes=np.zeros(len(leaves), np.int32), labels=root, low=np.array([least]), high=np.array([most])
        )
        return BoundHierarchy(column=column, leaves=leaves, levels=(*levels, everything))


def _label(points: tuple[float, ...], band: int, *, whole: bool) -> str:
    if band == 0:
        return f"< {_show(points[0])}"
    if band == len(points):
        return f">= {_show(points[-1])}"
    begin, end = points[band - 1], points[band]
    if not whole:
        return f"[{_show(begin)}, {_show(end)})"
    if begin == end - 1:
        return _show(begin)
    return range_label(_show(begin), _show(end - 1))


def _show(value: float) -> str:
    return f"{Decimal(repr(value)).normalize():f}"
