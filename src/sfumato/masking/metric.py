"""The contract of an information-loss metric: one class per metric in ``protect/metrics``.

Every metric of the literature that searches use is a sum over cells, a sum over classes, or both: what it costs a row
to show a coarser value in a column, what it costs to stand in a class of some size, and what a suppressed row costs.
A metric says these losses; whoever transforms the table adds them up.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import AfterValidator, Field

from sfumato.errors import BadParameter, SfumatoError
from sfumato.masking.equivalence_classes import EquivalenceClasses
from sfumato.params import Part
from sfumato.registry import registry
from sfumato.schema.hierarchy import BoundHierarchy

__all__ = ["CellLosses", "ClassTerm", "ClassTotals", "ColumnFacts", "LossMetric", "MetricName", "metric_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class ClassTerm(IntEnum):
    """What is summed over the kept classes (over all of them where it says so)."""

    NONE = 0
    SQUARES = 1
    """size squared"""
    XLOGX = 2
    """size times the binary logarithm of size"""
    MINORITY = 3
    """rows that do not hold the class's most frequent value of the target column"""
    ALL_SQUARES = 4
    """size squared, over suppressed classes too"""


@dataclass(frozen=True, kw_only=True)
class ColumnFacts:
    """What a loss may depend on: the column's hierarchy and how its values occur in the original."""

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
    """Whether its values are numbers, so that ranges have widths."""


@dataclass(frozen=True, kw_only=True)
class ClassTotals:
    """The classes of a transformed table in sums."""

    rows: int
    """Rows of the original."""
    suppressed: int
    classes: int
    """Kept classes."""
    term: float
    """The sum over the kept classes that the metric's :attr:`LossMetric.class_term` asks for."""


@dataclass(frozen=True, kw_only=True)
class CellLosses:
    """A metric laid over a table."""

    cells: tuple[tuple[Floats, ...], ...]
    """By column, level and code: what one kept row pays that shows it."""
    weights: Floats
    """By column, how much it counts; 1 when the user said nothing."""
    star: Floats
    """By column: what a suppressed row pays. Never less than any loss of the column."""
    constant: float = 0.0


class LossMetric(Part):
    """How much a transformation loses: lower is better."""

    class_term: ClassVar[ClassTerm] = ClassTerm.NONE
    grows: ClassVar[bool] = True
    """Without suppression, a coarser table never scores lower than a finer one."""
    by_width: ClassVar[bool] = False
    """CellLosses of numbers depend on the width of their range."""

    @property
    def target(self) -> str | None:
        """A column that must be tracked beside the sensitive ones."""
        return None

    @abstractmethod
    def loss(
        self, facts: ColumnFacts, leaves: Ints, rows: Ints, level: int | None, widths: Floats | None = None
    ) -> Floats:
        """What one row pays for a value that covers ``leaves`` leaves and ``rows`` rows of the original.

        Vectorized over values. ``level`` is the level of all of them, or None for a partition without levels.
        ``widths`` are their widths as shares of the column's range, for columns of numbers.
        """

    def star(self, facts: ColumnFacts) -> float:
        """What a suppressed row pays in the column; as much as the root unless the metric says otherwise."""
        leaves, rows, widths = np.array([facts.leaves]), np.array([facts.rows]), np.array([1.0])
        return float(self.loss(facts, leaves, rows, facts.height, widths if facts.numeric else None)[0])

    def columns(self, cells: Floats, losses: CellLosses) -> Floats:
        """The columns' parts of the score, from the sums of losses over all rows, suppressed ones included.

        The last axis of ``cells`` are the columns. A part must not fall when its sum rises. All parts are added.
        """
        return losses.weights * cells

    @abstractmethod
    def total(self, columns: Floats, losses: CellLosses, shape: ClassTotals) -> Floats:
        """The score from the sum of the columns' parts; it must not fall when that sum rises."""

    def above(self, columns: Floats, losses: CellLosses, finer: ClassTotals, *, least: int, stay: bool) -> Floats:
        """A lower bound of the score of every table at or above ``finer``, whatever it suppresses.

        ``columns`` are lower bounds of the sums of columns' parts there. No class has fewer than ``least`` rows. With
        ``stay``, rows that ``finer`` keeps are kept by the coarser tables too. A metric with a class term says more.
        """
        return self.total(columns, losses, finer)

    def below(self, columns: Floats, losses: CellLosses, coarser: ClassTotals, *, least: int) -> Floats:
        """A lower bound of the score of every table below ``coarser`` that suppresses at least the same rows.

        ``columns`` are lower bounds of the sums of columns' parts there, with those rows suppressed.
        """
        return self.total(columns, losses, coarser)

    def score(self, cells: Floats, losses: CellLosses, shape: ClassTotals) -> float:
        """The score from the sums of losses over the kept rows, by column."""
        everyone = cells + shape.suppressed * losses.star
        return float(self.total(self.columns(everyone, losses).sum(), losses, shape))

    def bind(self, table: EquivalenceClasses, weights: Mapping[str, float] | None = None) -> CellLosses:
        """All losses of a table, ready for a search."""
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
        """A number of the whole table that :meth:`total` needs."""
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
    """Width of each group of a level as a share of the range of all leaves; an empty cell has none."""
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


def metric_of(written: str | Mapping[str, Any]) -> LossMetric:
    """A metric written as its name, or as one name with its parameters: ``{classification: {column: risk}}``."""
    if not isinstance(written, str) and len(written) != 1:
        raise BadParameter("a metric is a name, or one name with its parameters: {classification: {column: risk}}")
    name, parameters = (written, None) if isinstance(written, str) else next(iter(written.items()))
    part = registry("metric").get(name).build(parameters)
    assert isinstance(part, LossMetric)
    return part


def _buildable(written: str | dict[str, Any]) -> str | dict[str, Any]:
    try:
        metric_of(written)
    except SfumatoError as refusal:
        raise ValueError(str(refusal)) from None
    return written


MetricName = Annotated[str | dict[str, Any], AfterValidator(_buildable), Field(json_schema_extra={"part": "metric"})]
"""A field that names a metric, which is refused at once if there is none of that name with such parameters."""
