"""Hierarchy of numbers: intervals of equal width."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Annotated, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field, field_validator, model_validator

from sfumato.dataset.hierarchy import ROOT, BoundHierarchy, Hierarchy, Level, number_leaves, range_label
from sfumato.errors import BadParameter

_SNAP = 8 * float(np.finfo(np.float64).eps)
"""Relative tolerance for interval boundaries: 0.3 lies on a multiple of 0.1."""

_MOST_BANDS = 2**52
"""Largest number of intervals for which a float still determines its interval."""


class IntervalsHierarchy(Hierarchy):
    """Intervals of equal width, wider at each level: 23, then 20–24, then 20–29.

    Intervals of whole numbers are labelled by their first and last number (``20–24``), others are half open (``[20,
    25)``). Each width must be a multiple of the one before, so that intervals nest.

    >>> IntervalsHierarchy.build([5, 10, 20]).bind("age", pl.Series([23])).rows()
    [['23', '20–24', '20–29', '20–39', '*']]
    >>> bound = IntervalsHierarchy.build({"widths": [5], "top": 90}).bind("age", pl.Series([88, 90, 97]))
    >>> bound.levels[1].labels.to_list()
    ['85–89', '>= 90']
    """

    main: ClassVar[str | None] = "widths"
    examples = (
        {"widths": [5, 10, 20]},
        {"widths": [10, 50], "origin": 5, "bottom": 18, "top": 90},
        {"widths": [0.1, 0.5]},
    )
    sample = (0, 17, 18, 23, 24, 25, 64, 89, 90, 101)

    widths: Annotated[tuple[Annotated[int | float, Field(gt=0, allow_inf_nan=False)], ...], Field(min_length=1)]
    """Interval width at each level; ``*`` is added."""
    origin: Annotated[int | float, Field(allow_inf_nan=False)] = 0
    """A number at which an interval begins on every level."""
    bottom: Annotated[int | float, Field(allow_inf_nan=False)] | None = None
    """Numbers below this form one group on every level."""
    top: Annotated[int | float, Field(allow_inf_nan=False)] | None = None
    """Numbers from this on form one group on every level; HIPAA requires 90 for ages."""

    @field_validator("widths")
    @classmethod
    def _multiples(cls, widths: tuple[float, ...]) -> tuple[float, ...]:
        for narrow, wide in pairwise(widths):
            if wide / narrow > _MOST_BANDS:
                raise ValueError(f"each width must be a multiple of the one before; {wide:g} is too many of {narrow:g}")
            if wide <= narrow or _exact(wide) % _exact(narrow) != 0:
                raise ValueError(f"each width must be a multiple of the one before; {wide:g} is none of {narrow:g}")
        return widths

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.bottom is not None and self.top is not None and self.bottom >= self.top:
            raise ValueError("bottom must be below top")
        return self

    def level_in_words(self, level: int) -> str:
        if not 0 < level <= len(self.widths):
            return super().level_in_words(level) if level <= 0 else "all values removed (*)"
        words = [f"bands of {self.widths[level - 1]:g}"]
        words += [f"below {self.bottom:g} together"] if self.bottom is not None else []
        words += [f"top {self.top:g}+"] if self.top is not None else []
        return ", ".join(words)

    def bind(self, column: str, values: pl.Series) -> BoundHierarchy:
        leaves, numbers = number_leaves(column, values)
        if np.abs(numbers - self.origin).max(initial=0) / self.widths[0] > _MOST_BANDS:
            raise BadParameter(
                f"The intervals of `{column}` are too narrow for its largest numbers.",
                fix="Use wider intervals.",
                column=column,
            )
        whole = values.dtype.is_integer() and all(v == int(v) for v in (*self.widths, *self._borders()))
        finest = self._whole_cells(leaves) if whole and leaves.dtype != pl.UInt64 else self._cells(numbers)
        levels = [Level(codes=np.arange(len(leaves), dtype=np.int32), labels=leaves)]
        for width in self.widths:
            levels.append(self._level(column, numbers, finest // self._ratio(width), width, whole=whole))
        ends = levels[-1]
        low, high = ends.low, ends.high
        assert low is not None
        assert high is not None
        levels.append(
            Level(
                codes=np.zeros(len(leaves), dtype=np.int32),
                labels=pl.Series(column, [ROOT]),
                low=np.array([low.min(initial=np.inf)]),
                high=np.array([high.max(initial=-np.inf)]),
            )
        )
        return BoundHierarchy(column=column, leaves=leaves, levels=tuple(levels))

    def _borders(self) -> tuple[float, ...]:
        return tuple(v for v in (self.origin, self.bottom, self.top) if v is not None)

    def _ratio(self, width: float) -> int:
        return int(_exact(width) / _exact(self.widths[0]))

    def _whole_cells(self, leaves: pl.Series) -> npt.NDArray[np.int64]:
        """The same for whole numbers and whole boundaries, in integer arithmetic."""
        return np.asarray((leaves.cast(pl.Int64).to_numpy() - int(self.origin)) // int(self.widths[0]))

    def _cells(self, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Index of the finest-level interval of each number, counted from the origin."""
        position = (numbers - self.origin) / self.widths[0]
        border = np.rint(position)
        size = (np.abs(numbers) + abs(self.origin)) / self.widths[0]
        near = np.abs(position - border) <= _SNAP * np.maximum(1.0, size)
        return np.where(near, border, np.floor(position)).astype(np.int64)

    def _level(
        self, column: str, numbers: npt.NDArray[np.float64], cells: npt.NDArray[np.int64], width: float, *, whole: bool
    ) -> Level:
        # values below `bottom` and from `top` on each form one cell outside the range of all others
        first, last = cells.min(initial=0) - 1, cells.max(initial=0) + 1
        if self.bottom is not None:
            cells = np.where(numbers < self.bottom, first, cells)
        if self.top is not None:
            cells = np.where(numbers >= self.top, last, cells)
        distinct, codes = np.unique(cells, return_inverse=True)
        labels, low, high = [], np.empty(len(distinct)), np.empty(len(distinct))
        for i, cell in enumerate(distinct.tolist()):
            if self.bottom is not None and cell == first:
                labels.append(f"< {_show(_exact(self.bottom))}")
                low[i], high[i] = numbers.min(), self.bottom - whole
            elif self.top is not None and cell == last:
                labels.append(f">= {_show(_exact(self.top))}")
                low[i], high[i] = self.top, numbers.max()
            else:
                label, low[i], high[i] = self._band(cell, width, whole=whole)
                labels.append(label)
        return Level(
            codes=codes.astype(np.int32), labels=pl.Series(column, labels, dtype=pl.String), low=low, high=high
        )

    def _band(self, cell: int, width: float, *, whole: bool) -> tuple[str, float, float]:
        begin = _exact(self.origin) + cell * _exact(width)
        end = begin + _exact(width)
        if self.bottom is not None:
            begin = max(begin, _exact(self.bottom))
        if self.top is not None:
            end = min(end, _exact(self.top))
        if not whole:
            return f"[{_show(begin)}, {_show(end)})", float(begin), float(end)
        end -= 1
        if begin == end:
            return _show(begin), float(begin), float(end)
        return range_label(_show(begin), _show(end)), float(begin), float(end)


def _exact(value: float) -> Decimal:
    """The decimal number as written: 0.1 is exactly one tenth."""
    return Decimal(repr(value))


def _show(value: Decimal) -> str:
    return f"{value.normalize():f}"
