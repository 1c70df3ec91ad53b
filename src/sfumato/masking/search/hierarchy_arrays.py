"""Hierarchies as arrays for compiled clustering loops, and the lowest common groups of clusters.

All functions work on the distinct combinations of a compressed table ("units").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Floats, Integers, Ints
from sfumato.dataset import BoundHierarchy, Data
from sfumato.masking.equivalence_classes import EquivalenceClasses


@dataclass(frozen=True, kw_only=True)
class HierarchyArrays:
    """The hierarchies of all quasi-identifiers bound to the units, as arrays for compiled loops."""

    groups: npt.NDArray[np.int32]
    """(unit, column, level): code of the unit's group. Levels above a column's own height repeat its root."""
    loss: Floats
    """Loss of one row per group, for all columns and levels in sequence, weights applied."""
    offset: Ints
    """(column, level): where the losses of that level begin."""
    rows: Ints
    """Rows per unit."""

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def costliest(self) -> npt.NDArray[np.intp]:
        """Columns by the mean loss of full generalization, costliest first, so that loops can stop early."""
        top = self.groups.shape[2] - 1
        means = [
            float(np.average(self.loss[self.offset[c, top] + self.groups[:, c, top]], weights=self.rows))
            - float(np.average(self.loss[self.offset[c, 0] + self.groups[:, c, 0]], weights=self.rows))
            for c in range(self.groups.shape[1])
        ]
        return np.argsort(-np.array(means), kind="stable")

    def take(self, units: npt.NDArray[np.intp]) -> HierarchyArrays:
        """Select units."""
        return HierarchyArrays(groups=self.groups[units], loss=self.loss, offset=self.offset, rows=self.rows[units])


def with_spares(table: EquivalenceClasses, data: Data, k: int) -> tuple[EquivalenceClasses, Ints]:
    """Split classes of more than k rows into a core and spare rows that neighbours may use.

    Returns a table in which such a class is a core of at least k rows and up to k - 1 units of one row each, and for
    each unit its core (-1: not a spare row). Rows of a class are interchangeable.
    """
    assert table.of_row is not None
    spare = np.clip(table.sizes - k, 0, k - 1)
    classes = len(table)
    order = np.argsort(table.of_row, kind="stable")
    ends = np.cumsum(table.sizes)
    total = int(spare.sum())
    owner = np.repeat(np.arange(classes), spare)
    nth = np.arange(total) - np.repeat(np.cumsum(spare) - spare, spare)
    of_row = table.of_row.copy()
    of_row[order[ends[owner] - 1 - nth]] = classes + np.arange(total)
    sizes = np.concatenate([table.sizes - spare, np.ones(total, dtype=np.int64)])
    tracked = {}
    for name, column in table.tracked.items():
        width = len(column.hierarchy.leaves)
        values = column.hierarchy.encode(data.table.column(name))
        pair, counts = np.unique(of_row.astype(np.int64) * width + values, return_counts=True)
        tracked[name] = replace(
            column,
            cells=(pair // width).astype(np.int32),
            values=(pair % width).astype(np.int32),
            counts=counts.astype(np.int64),
        )
    codes = np.concatenate([table.codes, table.codes[owner]])
    home = np.concatenate([np.full(classes, -1, dtype=np.int64), owner])
    return replace(table, codes=codes, sizes=sizes, tracked=tracked, of_row=of_row), home


def hierarchy_arrays(table: EquivalenceClasses, cells: Sequence[Sequence[Floats]], weights: Floats) -> HierarchyArrays:
    """Bind hierarchies and losses (by column, level and code) to the units of a compressed table."""
    deepest = max(table.heights) + 1
    groups = np.empty((len(table), len(table.hierarchies), deepest), dtype=np.int32)
    offset = np.zeros((len(table.hierarchies), deepest), dtype=np.int64)
    losses: list[Floats] = []
    place = 0
    for column, hierarchy in enumerate(table.hierarchies):
        assert hierarchy.levels[-1].size == 1, "compiled loops climb until two values meet, at the root at the latest"
        for number in range(deepest):
            level = hierarchy.levels[min(number, hierarchy.height)]
            groups[:, column, number] = level.codes[table.codes[:, column]]
            if number <= hierarchy.height:
                offset[column, number] = place
                losses.append(np.asarray(cells[column][number], dtype=np.float64) * weights[column])
                place += level.size
            else:
                offset[column, number] = offset[column, number - 1]
    return HierarchyArrays(groups=groups, loss=np.concatenate(losses), offset=offset, rows=table.sizes)


def lowest_groups(trees: HierarchyArrays, cluster: Ints, count: int) -> npt.NDArray[np.int16]:
    """(cluster, column): the lowest level at which all units of the cluster share a group."""
    order = np.argsort(cluster, kind="stable")
    starts = np.searchsorted(cluster[order], np.arange(count))
    deepest = trees.groups.shape[2]
    levels = np.full((count, trees.groups.shape[1]), deepest - 1, dtype=np.int16)
    for column in range(trees.groups.shape[1]):
        for level in range(deepest - 2, -1, -1):
            codes = trees.groups[order, column, level]
            alike = np.minimum.reduceat(codes, starts) == np.maximum.reduceat(codes, starts)
            levels[alike, column] = level
    return levels


def cell_losses(trees: HierarchyArrays, levels: Integers) -> Floats:
    """(unit, column): the loss of a row of the unit at these levels."""
    out = np.empty(levels.shape)
    for column in range(levels.shape[1]):
        level = levels[:, column]
        codes = trees.groups[np.arange(len(levels)), column, level]
        out[:, column] = trees.loss[trees.offset[column, level] + codes]
    return out


def as_plain_text(values: pl.Series) -> pl.Series:
    """Values as text. Whole floats lose their ``.0``."""
    text = values.cast(pl.String)
    return text.str.strip_suffix(".0") if values.dtype.is_float() else text


def labels_of(hierarchy: BoundHierarchy, leaves: Integers, levels: Integers) -> pl.Series:
    """The label of each leaf at its own level. Keeps the column's type if nothing is generalized."""
    if not levels.any():
        return hierarchy.decode(leaves, 0)
    levels = np.minimum(levels, hierarchy.height)
    labels = pl.concat([as_plain_text(level.labels).alias(hierarchy.column) for level in hierarchy.levels])
    starts = np.concatenate([[0], np.cumsum([level.size for level in hierarchy.levels])])
    codes = np.stack([level.codes for level in hierarchy.levels])[levels, leaves]
    return labels.gather(starts[levels] + codes)
