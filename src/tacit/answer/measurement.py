"""What is measured of the rows: exact whole numbers per group, to which noise is added.

A measurement says how the engine computes one row's part of it and between which whole numbers that part lies.
``reach`` is how far one unit can move it within one group when at most ``rows`` of its rows count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log2

from tacit.answer.scalar import Scalar
from tacit.schema import Kind

__all__ = ["Cells", "Count", "Distinct", "Measurement", "Sum", "cells_of", "present", "sum_of"]

_FINE = 20
"""Sums are kept in at least 2**20 steps of the largest value, so rounding is a millionth of it."""
_MOST_CELLS = 4096


class Measurement(ABC):
    """One whole number per group."""

    @abstractmethod
    def reach(self, rows: int) -> int:
        """Most that one unit with up to ``rows`` rows in a group can add to or take from the number."""


@dataclass(frozen=True, kw_only=True)
class Count(Measurement):
    """Rows for which a condition holds; with ``once``, units that have such a row."""

    condition: str = "TRUE"
    once: bool = False

    def reach(self, rows: int) -> int:
        return 1 if self.once else rows


@dataclass(frozen=True, kw_only=True)
class Sum(Measurement):
    """Sum of a value in whole steps of a grid, each row's clipped to ``low`` .. ``high`` steps."""

    steps: str
    """Engine SQL for one row's steps; 0 where there is no value."""
    low: int
    high: int
    grid: Fraction

    def reach(self, rows: int) -> int:
        return rows * max(abs(self.low), abs(self.high))


@dataclass(frozen=True, kw_only=True)
class Distinct(Measurement):
    """Different values among the rows for which a condition holds."""

    value: str
    condition: str

    def reach(self, rows: int) -> int:
        return rows


@dataclass(frozen=True, kw_only=True)
class Cells(Measurement):
    """Rows per cell of a public range of values; a quantile is chosen from these."""

    cell: str
    condition: str
    low: Fraction
    grid: Fraction
    cells: int
    rank: Fraction

    def reach(self, rows: int) -> int:
        return rows


def present(scalar: Scalar) -> str:
    """The condition that a row has a value: neither missing nor "not a number"."""
    if scalar.kind is Kind.NUMBER:
        return f"({scalar.sql} IS NOT NULL AND NOT isnan({scalar.sql}))"
    return f"({scalar.sql} IS NOT NULL)"


def _bounds(scalar: Scalar) -> tuple[Fraction, Fraction]:
    if scalar.low is None or scalar.high is None:
        raise AssertionError("only bounded numbers are summed")
    return scalar.low, scalar.high


def _grid(largest: Fraction, whole: bool) -> Fraction:
    if whole and largest <= 1 << 40:
        return Fraction(1)
    return Fraction(2) ** (ceil(log2(largest)) - _FINE) if largest > 0 else Fraction(1)


def sum_of(scalar: Scalar, condition: str, *, centred: bool = False, squared: bool = False) -> tuple[Sum, Fraction]:
    """The measurement of a bounded number's sum, and the centre that was taken off each value.

    A mean needs the sum of distances from the middle of the range only, which moves half as far. ``squared`` sums the
    squares of these distances.
    """
    low, high = _bounds(scalar)
    grid = _grid(max(abs(low), abs(high)), scalar.kind is Kind.INTEGER)
    bottom, top = (low / grid).__floor__(), (high / grid).__ceil__()
    middle = (bottom + top) // 2 if centred or squared else 0
    x = scalar.as_double() if grid != 1 else scalar.sql
    ends = [f"CAST({float(end * grid)!r} AS DOUBLE)" if grid != 1 else str(end) for end in (bottom, top)]
    clipped = f"greatest(least({x}, {ends[1]}), {ends[0]})"
    inside = clipped if grid == 1 else f"CAST(floor({clipped} / CAST({float(grid)!r} AS DOUBLE)) AS BIGINT)"
    low_steps, high_steps, unit = bottom - middle, top - middle, grid
    inside = f"({inside} - {middle})" if middle else inside
    if squared:
        # Squares of whole steps, brought down to the same fineness by a division so that they fit the machine.
        far = max(abs(low_steps), abs(high_steps))
        shift = max(0, (far * far).bit_length() - 2 * _FINE)
        square = f"(CAST({inside} AS HUGEINT) * {inside}) // {1 << shift}" if shift else f"({inside} * {inside})"
        inside = f"CAST({square} AS BIGINT)"
        low_steps, high_steps, unit = 0, (far * far) >> shift, grid * grid * (1 << shift)
    steps = f"(CASE WHEN {condition} AND {present(scalar)} THEN {inside} ELSE 0 END)"
    return Sum(steps=steps, low=low_steps, high=high_steps, grid=unit), middle * grid


def cells_of(scalar: Scalar, condition: str, rank: Fraction) -> Cells:
    """The measurement a quantile is chosen from: up to 4,096 cells over the declared range."""
    low, high = _bounds(scalar)
    if scalar.kind is Kind.INTEGER and high - low < _MOST_CELLS:
        low, high = Fraction(low.__floor__()), Fraction(high.__ceil__())
        cells, grid = int(high - low) + 1, Fraction(1)
        cell = f"greatest(least({scalar.sql}, {int(high)}), {int(low)}) - ({int(low)})"
    else:
        cells, grid = _MOST_CELLS + 1, (high - low) / _MOST_CELLS or Fraction(1)
        share = f"(({scalar.as_double()} - CAST({float(low)!r} AS DOUBLE)) / CAST({float(grid)!r} AS DOUBLE))"
        cell = f"CAST(greatest(least(round({share}), {_MOST_CELLS}), 0) AS BIGINT)"
    condition = f"({condition} AND {present(scalar)})"
    return Cells(cell=cell, condition=condition, low=low, grid=grid, cells=cells, rank=rank)
