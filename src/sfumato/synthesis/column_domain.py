"""The public cells of a column: declared categories or ranges of numbers, and the way back to values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import isfinite, log10
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Array
from sfumato.errors import BadParameter

Codes = npt.NDArray[np.int32]
_CELLS = 128
"""Largest number of equally wide cells of a range."""
_LARGEST = 100_000
"""Largest number of cells of a column."""


@dataclass(frozen=True, kw_only=True)
class ColumnCells:
    """The cells of one column. Cell 0 is the missing value; values outside the domain count as missing."""

    dtype: pl.DataType
    values: tuple[Any, ...] | None = None
    """The categories, one cell each; None for a range."""
    edges: Array | None = None
    """Cell i + 1 is edges[i] <= x < edges[i + 1], in the physical numbers of the column."""

    @property
    def size(self) -> int:
        """The number of cells with the one for missing values."""
        return 1 + (len(self.values) if self.values is not None else len(self.edges) - 1)  # type: ignore[arg-type]

    @property
    def ordered(self) -> bool:
        """Whether neighbouring cells are similar."""
        return self.edges is not None

    def encode(self, series: pl.Series) -> Codes:
        """The cell of every row; numbers beyond the range are clipped."""
        if self.values is not None:
            known = pl.Series(self.values, dtype=self.dtype, strict=False)
            numbers = pl.Series(np.arange(1, len(known) + 1, dtype=np.int32))
            coded = series.cast(self.dtype).replace_strict(known, numbers, default=0, return_dtype=pl.Int32)
            return coded.fill_null(0).to_numpy().astype(np.int32)
        assert self.edges is not None
        physical = series.to_physical()
        missing = physical.is_null() | (physical.is_nan() if physical.dtype.is_float() else pl.Series([False]))
        cells = np.clip(
            np.searchsorted(self.edges, physical.fill_null(0).to_numpy(), side="right"), 1, len(self.edges) - 1
        ).astype(np.int32)
        cells[missing.to_numpy()] = 0
        return cells

    def decode(self, name: str, codes: Codes, random: np.random.Generator) -> pl.Series:
        """A value of every cell: the category, or a number drawn evenly from the range of the cell."""
        if self.values is not None:
            known = pl.Series(name, [None, *self.values], dtype=self.dtype, strict=False)
            return known.gather(codes)
        assert self.edges is not None
        low, high = self.edges[np.maximum(codes, 1) - 1], self.edges[np.maximum(codes, 1)]
        if np.issubdtype(self.edges.dtype, np.integer):
            numbers = low + (random.random(len(codes)) * (high - low)).astype(np.int64)
            physical = pl.Series(name, np.minimum(numbers, high - 1))
        else:
            physical = pl.Series(name, _rounded(low + random.random(len(codes)) * (high - low), low, high))
        series = physical.cast(self.dtype, strict=False)
        return series.set(pl.Series(codes == 0), None)

    def coarser(self, most: int) -> ColumnCells:
        """The same range in at most about ``most`` cells; cells of a single value stay alone. Categories stay."""
        if self.edges is None or len(self.edges) - 1 <= most:
            return self
        widths = np.diff(self.edges.astype(np.float64))
        alone = widths < 1e-6 * widths.max() if self.edges.dtype.kind == "f" else (widths == 1) & (widths.max() > 1)
        stretch = np.arange(len(widths)) // -(-len(widths) // most)
        starts = np.append(True, (np.diff(stretch) > 0) | alone[1:] | alone[:-1])
        return replace(self, edges=np.append(self.edges[:-1][starts], self.edges[-1]))

    def refined(self, coarse: ColumnCells, noisy: npt.NDArray[np.float64], *, least: float) -> ColumnCells:
        """Cells between these and coarser ones: as many in a coarse cell as have ``least`` of its noisy count each."""
        if self.edges is None or coarse.edges is None:
            return self
        ends = np.searchsorted(self.edges, coarse.edges)
        kept = [ends[-1:]]
        for first, last, count in zip(ends[:-1], ends[1:], noisy[1:], strict=True):
            parts = int(np.clip(count / least, 1, last - first))
            kept.append(first + np.arange(parts) * (last - first) // parts)
        return replace(self, edges=self.edges[np.sort(np.concatenate(kept))])


def category_cells(name: str, dtype: pl.DataType, values: Sequence[object]) -> ColumnCells:
    """Cells for declared or learned categories."""
    kept = pl.Series(list(values), dtype=dtype, strict=False).drop_nulls().unique(maintain_order=True)
    if not len(kept):
        raise BadParameter(f"The domain of `{name}` has no value of its kind.", fix="Check the declared values.")
    _refuse_large(name, len(kept))
    return ColumnCells(dtype=dtype, values=tuple(kept.to_list()))


def range_cells(name: str, dtype: pl.DataType, low: object, high: object) -> ColumnCells:
    """Cells for a range of numbers or dates: equally wide, with cells of their own for both ends and for zero."""
    bottom, top = _physical(name, dtype, low), _physical(name, dtype, high)
    if not bottom <= top:
        raise BadParameter(f"The domain of `{name}` has a low end above its high end.", fix="Swap low and high.")
    if dtype.is_float() or dtype.is_decimal():
        inner = np.linspace(bottom, top, _CELLS + 1)
        alone = [x for x in (bottom, 0.0, top) if bottom <= x <= top]
        edges = np.unique(np.concatenate([inner, alone, np.nextafter(alone, np.inf)]))
        return ColumnCells(dtype=dtype, edges=edges)
    first, last = int(bottom), int(top)
    width = -(-(last - first + 1) // _CELLS)
    if width == 1:
        return ColumnCells(dtype=dtype, edges=np.arange(first, last + 2, dtype=np.int64))
    points = {*range(first, last + 1, width), first + 1, last, last + 1, *({0, 1} if first < 0 < last else ())}
    return ColumnCells(dtype=dtype, edges=np.array(sorted(points), dtype=np.int64))


def _physical(name: str, dtype: pl.DataType, value: Any) -> float | int:
    try:
        if dtype.is_temporal():
            parsed = date.fromisoformat(value) if isinstance(value, str) else value
            return int(pl.Series([parsed]).cast(dtype).to_physical()[0])
        number = float(value)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise BadParameter(
            f"The domain of `{name}` has an end that is not of its kind.", fix="Write numbers, or dates as 1990-01-31."
        ) from None
    if not isfinite(number) or (dtype.is_integer() and abs(number) >= 2**62):
        raise BadParameter(f"The domain of `{name}` must have finite ends.", fix="Declare low and high.")
    return number


def _refuse_large(name: str, cells: int) -> None:
    if cells > _LARGEST:
        raise BadParameter(
            f"The domain of `{name}` has {cells} values; at most {_LARGEST} can be modelled.",
            fix="Leave the column out, or declare coarser values.",
            column=name,
        )


def _rounded(numbers: Array, low: Array, high: Array) -> Array:
    """Numbers with about three digits below the width of their cell; those of a single-value cell stay exact."""
    wide = high - low > 1e-12 * np.maximum(1.0, np.abs(low))
    if not wide.any():
        return low
    digits = max(0, 3 - int(np.floor(log10(float((high - low)[wide].min())))))
    return np.where(wide, np.clip(np.round(numbers, digits), low, high), low)
