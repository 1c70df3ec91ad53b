"""Counts of public candidates, from which a quantile or a mode is selected."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.arrays import Ints
from sfumato.dataset import Kind
from sfumato.dp.mechanism import Mechanism
from sfumato.dp.mechanisms.exponential import Exponential
from sfumato.dp.mechanisms.quantile import Quantile
from sfumato.dp.mechanisms.quantiles import Quantiles
from sfumato.engines.expressions import NOTHING, Arithmetic, Case, Cast, Expression, all_of, constant, equal
from sfumato.engines.functions import Function
from sfumato.query.plan.aggregate import Selected, Writer, clipped, present, public_bounds
from sfumato.query.plan.candidate_values import DaysSince, Levels, TimesSince
from sfumato.query.plan.scalar import Scalar, literal
from sfumato.rationals import Number, rational

_MOST_CELLS = 1 << 22
"""Number of candidate values of a quantile over a declared range that does not reach as far."""


@dataclass(frozen=True, kw_only=True)
class BinCounts(Selected):
    """Rows per cell of a public range of values; a quantile is chosen from these."""

    cell: Expression
    condition: Expression
    low: Fraction
    grid: Fraction
    cells: int
    rank: Fraction
    scale: Levels | DaysSince | TimesSince | None = None
    """What a selected number stands for; None: itself."""

    @property
    def high(self) -> Fraction:
        return self.low + (self.cells - 1) * self.grid

    def value(self, number: float) -> float | int | date:
        """The answer that a selected number stands for, of a type that follows from the declaration alone."""
        if self.scale is not None:
            return self.scale.value(int(number))
        whole = self.low.denominator == 1 and self.grid.denominator == 1
        return round(number) if whole else float(number)

    def mechanism(self, epsilon: Fraction, rows: int, ranks: tuple[Fraction, ...]) -> Mechanism:
        reach = self.sensitivity(rows)
        if len(ranks) > 1:
            return Quantiles.for_epsilon(
                epsilon, ranks=ranks, low=self.low, high=self.high, grid=self.grid, sensitivity=reach
            )
        return Quantile.for_epsilon(
            epsilon, rank=self.rank, low=self.low, high=self.high, grid=self.grid, sensitivity=reach
        )

    @property
    def title(self) -> str:  # type: ignore[override]
        if self.rank in (0, 1):
            return f"{'Maximum' if self.rank else 'Minimum'} (error in rows of rank)"
        return f"Quantile {float(self.rank):g} (error in rows of rank)"

    def described(self, written: Writer) -> str:
        return f"Histogram of {written(self.cell)} in {self.cells} cells"


@dataclass(frozen=True, kw_only=True)
class ValueCounts(Selected):
    """Rows per value of a public list; MODE is selected from these counts by the exponential mechanism.

    Sensitivity: of each unit at most ``rows`` rows count within a group, and which of them count depends on the unit's
    own rows alone. Adding a unit therefore raises each count by 0 to ``rows`` and lowers none. For such monotone
    utilities the weight exp(rate·count) of each value is multiplied by a factor between 1 and exp(rate·rows), and so is
    their sum: no probability changes by more than a factor exp(rate·rows), and the loss within one group is rate·rows
    (not twice that). A unit in several groups pays once for each. Rows whose value is not in the list count nowhere.
    """

    title = "Mode (error in rows: how many fewer than the most frequent value)"

    cell: Expression
    """The place of a row's value in the list."""
    condition: Expression
    candidates: tuple[Any, ...]
    """The public values, sorted."""

    def mechanism(self, epsilon: Fraction, rows: int, ranks: tuple[Fraction, ...]) -> Mechanism:
        return Exponential.for_epsilon(epsilon, sensitivity=self.sensitivity(rows), monotone=True)

    def counts(self, cells: Ints, counts: Ints) -> Ints:
        every = np.zeros(len(self.candidates), dtype=np.int64)  # the mechanism selects among all of them
        every[cells] = counts
        return every

    def error(self, mechanism: Mechanism, confidence: Number) -> float:
        """The most rows that the selected value may have fewer than the most frequent one."""
        assert isinstance(mechanism, Exponential)
        return mechanism.error(confidence=confidence, candidates=len(self.candidates))

    def described(self, written: Writer) -> str:
        return f"Counts of {len(self.candidates)} public values"


def bin_counts_aggregate(
    scalar: Scalar, condition: Expression, rank: Fraction, scale: DaysSince | TimesSince | None = None
) -> BinCounts:
    """The aggregate for a quantile: counts of the cells of the declared range, or of levels if it reaches millions.

    With ``scale`` the number counts days or times.
    """
    low, high = public_bounds(scalar)
    cell: Expression
    found: Levels | DaysSince | TimesSince | None = scale
    far = max(abs(low), abs(high))
    if low == high:
        cells, grid, cell = 1, Fraction(1), constant(0)
    elif scalar.kind is Kind.INTEGER and high - low < _MOST_CELLS:
        low, high = Fraction(low.__floor__()), Fraction(high.__ceil__())
        cells, grid = int(high - low) + 1, Fraction(1)
        cell = Arithmetic("-", clipped(scalar.node, constant(int(low)), constant(int(high))), constant(int(low)))
    elif far >= _MOST_CELLS:
        step = Fraction(1) if scalar.kind is Kind.INTEGER else Fraction(1, 1024)
        found = Levels(step=step, low=low, high=high)
        first, last = found.number(low), found.number(high)
        cells, grid = last - first + 1, Fraction(1)
        inside = clipped(scalar.as_double(), constant(float(low)), constant(float(high)))
        cell = Arithmetic("-", found.place(inside), constant(first))
        low = Fraction(first)
    else:
        cells, grid = _MOST_CELLS + 1, (high - low) / _MOST_CELLS
        above = Arithmetic("-", scalar.as_double(), constant(float(low)))
        place = Function(Arithmetic("/", above, constant(float(grid))), "round")
        cell = Cast(clipped(place, constant(0.0), constant(float(_MOST_CELLS))), "int")
    condition = all_of(condition, present(scalar))
    return BinCounts(cell=cell, condition=condition, low=low, grid=grid, cells=cells, rank=rank, scale=found)


def value_counts_aggregate(scalar: Scalar, condition: Expression, candidates: tuple[object, ...]) -> ValueCounts:
    """The counts that MODE is selected from."""
    nodes = [literal(rational(value) if isinstance(value, float) else value).node for value in candidates]
    places = tuple((equal(scalar.node, value), constant(place)) for place, value in enumerate(nodes))
    return ValueCounts(cell=Case(places, NOTHING), condition=condition, candidates=candidates)
