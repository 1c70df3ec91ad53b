"""Base class of information-loss metrics. A metric is one class in one file of ``masking/metrics``.

Metrics for search are sums over cells, sums over equivalence classes, or both: the loss of a generalized cell, the loss
by class size, and the loss of a suppressed row. A metric defines these losses; the search adds them up.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl
from pydantic import AfterValidator, Field

from sfumato.arrays import Floats, Ints
from sfumato.dataset.hierarchy import BoundHierarchy
from sfumato.errors import BadParameter, SfumatoError
from sfumato.masking.equivalence_classes import EquivalenceClasses
from sfumato.params import Part
from sfumato.registry import registry


class ClassTerm(IntEnum):
    """The term that is summed over equivalence classes."""

    NONE = 0
    SQUARES = 1
    """size squared"""
    XLOGX = 2
    """size times the binary logarithm of size"""
    MINORITY = 3
    """rows without the most frequent target value of their class"""
    ALL_SQUARES = 4
    """size squared, over suppressed classes too"""


@dataclass(frozen=True, kw_only=True)
class ColumnFacts:
    """The facts that a cell loss may depend on: the column's hierarchy and its value frequencies."""

    name: str
    rows: int
    """Rows of the original."""
    leaves: int
    """Leaves of the hierarchy."""
    height: int
    """Highest level."""
    frequency: Ints
    """Rows of the original per leaf."""
    numeric: bool
    """Whether its values are numbers, so that groups have widths."""


@dataclass(frozen=True, kw_only=True)
class ClassTotals:
    """Totals over the equivalence classes of a transformed table."""

    rows: int
    """Rows of the original."""
    suppressed: int
    classes: int
    """Kept classes."""
    term: float
    """The sum of :attr:`LossMetric.class_term` over the kept classes."""


@dataclass(frozen=True, kw_only=True)
class CellLosses:
    """A metric bound to a table: the loss of every cell value."""

    cells: tuple[tuple[Floats, ...], ...]
    """By column, level and code: the loss of one kept row with that value."""
    weights: Floats
    """Weight of each column. Default: 1."""
    star: Floats
    """By column: the loss of a suppressed row, at least as large as any other loss of the column."""
    constant: float = 0.0


class LossMetric(Part):
    """An information-loss metric. Lower is better."""

    class_term: ClassVar[ClassTerm] = ClassTerm.NONE
    grows: ClassVar[bool] = True
    """Without suppression, a coarser table never scores lower than a finer one."""
    by_level: ClassVar[bool] = False
    """Losses depend on the level alone, and a suppressed row costs as much as a kept one."""
    by_width: ClassVar[bool] = False
    """Losses of numbers depend on the width of their range."""

    @property
    def target(self) -> str | None:
        """A column that must be tracked in addition to the sensitive ones."""
        return None

    @abstractmethod
    def loss(
        self, facts: ColumnFacts, leaves: Ints, rows: Ints, level: int | None, widths: Floats | None = None
    ) -> Floats:
        """The loss of one row for a value that covers ``leaves`` leaves and ``rows`` rows of the original.

        Vectorized over values. ``level`` is the level of all of them, or None for a partition without levels.
        ``widths`` are their widths as shares of the column's range, for columns of numbers.
        """

    def star(self, facts: ColumnFacts) -> float:
        """The loss of a suppressed row in the column. Default: that of the root."""
        leaves, rows, widths = np.array([facts.leaves]), np.array([facts.rows]), np.array([1.0])
        return float(self.loss(facts, leaves, rows, facts.height, widths if facts.numeric else None)[0])

    def columns(self, cells: Floats, losses: CellLosses) -> Floats:
        """The score of each column from its sum of losses over all rows, including suppressed ones.

        The last axis of ``cells`` are the columns. Scores must be non-decreasing in the sums; they are added up.
        """
        return losses.weights * cells

    @abstractmethod
    def total(self, columns: Floats, losses: CellLosses, shape: ClassTotals) -> Floats:
        """The total score from the sum of column scores; it must be non-decreasing in that sum."""

    def above(self, columns: Floats, losses: CellLosses, finer: ClassTotals, *, least: int, stay: bool) -> Floats:
        """A lower bound of the score of every table at or above ``finer``, whatever it suppresses.

        ``columns`` are lower bounds of the sums of column scores there. No class has fewer than ``least`` rows. With
        ``stay``, rows that ``finer`` keeps are kept by the coarser tables too. Metrics with a class term give a tighter
        bound.
        """
        return self.total(columns, losses, finer)

    def below(self, columns: Floats, losses: CellLosses, coarser: ClassTotals, *, least: int) -> Floats:
        """A lower bound of the score of every table below ``coarser`` that suppresses at least the same rows.

        ``columns`` are lower bounds of the sums of column scores there, with those rows suppressed.
        """
        return self.total(columns, losses, coarser)

    def score(self, cells: Floats, losses: CellLosses, shape: ClassTotals) -> float:
        """The score from the sums of losses over the kept rows, by column."""
        if self.by_level:
            everyone = cells * (shape.rows / max(shape.rows - shape.suppressed, 1))
        else:
            everyone = cells + shape.suppressed * losses.star
        return float(self.total(self.columns(everyone, losses).sum(), losses, shape))

    def bind(self, table: EquivalenceClasses, weights: Mapping[str, float] | None = None) -> CellLosses:
        """Bind the metric to a table: compute the losses of all cell values."""
        weights = dict(weights or {})
        unknown = [name for name in weights if name not in table.columns]
        chosen = np.array([float(weights.get(name, 1.0)) for name in table.columns])
        if unknown or not (chosen >= 0).all() or not chosen.any():
            said = f"no quasi-identifier is called `{unknown[0]}`" if unknown else "must be 0 or more, and not all 0"
            raise BadParameter(f"weights: {said}.", fix=f"Quasi-identifiers: {', '.join(table.columns)}.")
        cells = []
        star = np.zeros(len(table.columns))
        for position, facts in enumerate(column_facts(table)):
            levels = []
            for number, level in enumerate(table.hierarchies[position].levels):
                covered = np.bincount(level.codes, weights=facts.frequency, minlength=level.size).astype(np.int64)
                widths = _widths(table.hierarchies[position], number) if self.by_width and facts.numeric else None
                loss = self.loss(facts, level.leaves_under, covered, number, widths)
                levels.append(np.asarray(loss, dtype=np.float64))
            cells.append(tuple(levels))
            star[position] = self.star(facts)
        return CellLosses(cells=tuple(cells), weights=chosen, star=star, constant=self.constant(table))

    def constant(self, table: EquivalenceClasses) -> float:
        """A constant of the table that :meth:`total` needs."""
        return 0.0


def column_facts(table: EquivalenceClasses) -> tuple[ColumnFacts, ...]:
    """The facts of each quasi-identifier of a compressed table (all at level 0)."""
    return tuple(
        ColumnFacts(
            name=hierarchy.column,
            rows=table.rows,
            leaves=len(hierarchy.leaves),
            height=hierarchy.height,
            numeric=hierarchy.leaves.dtype.is_numeric(),
            frequency=table.frequencies[i],
        )
        for i, hierarchy in enumerate(table.hierarchies)
    )


def _widths(hierarchy: BoundHierarchy, number: int) -> Floats:
    """Width of each group of a level as a share of the range of all leaves; 0 for the missing value."""
    level = hierarchy.levels[number]
    values = hierarchy.leaves.cast(pl.Float64).fill_null(np.nan).to_numpy()
    known = ~np.isnan(values)
    low, high = np.full(level.size, np.inf), np.full(level.size, -np.inf)
    if level.low is not None and level.high is not None:
        low, high = level.low, level.high
    else:
        np.minimum.at(low, level.codes[known], values[known])
        np.maximum.at(high, level.codes[known], values[known])
    if not known.any():
        return np.zeros(level.size)
    least, most = float(values[known].min()), float(values[known].max())
    width = np.minimum(high, most) - np.maximum(low, least)
    return np.clip(width, 0.0, None) / (most - least) if most > least else np.zeros(level.size)


def metric_of(written: str | Mapping[str, object]) -> LossMetric:
    """Build a metric from its name, or from a name with parameters: ``{classification: {column: risk}}``."""
    return registry("metric").part(written, LossMetric)


def _buildable(written: str | dict[str, object]) -> str | dict[str, object]:
    try:
        metric_of(written)
    except SfumatoError as refusal:
        raise ValueError(str(refusal)) from None
    return written


MetricName = Annotated[str | dict[str, Any], AfterValidator(_buildable), Field(json_schema_extra={"part": "metric"})]
"""A field that names a metric, validated when the recipe is read."""
