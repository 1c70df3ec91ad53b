"""Quasi-identifiers as axes of a Mondrian partition: values in an order in which every group is an interval.

Numbers and dates have their natural order. Values of a hierarchy have the order of its branches, so that a group is an
interval and a box of the partition is an interval on every axis. The missing value comes last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Array, Floats
from sfumato.dataset import ROOT, BoundHierarchy, Kind
from sfumato.dataset.bound_hierarchy import RANGE_DASH
from sfumato.masking.search.hierarchy_arrays import as_plain_text, labels_of

Codes = npt.NDArray[np.int32]

_ORDERED = frozenset({Kind.INTEGER, Kind.NUMBER, Kind.DATE, Kind.DATETIME})
_UNSAFE = r"[,{}]|^[\s'\x22]|[\s'\x22]$"
"""Values that cannot be written as a set and parsed back."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One column as an axis."""

    hierarchy: BoundHierarchy
    kind: Kind
    rank: Codes
    """Position of each leaf on the axis."""
    leaf: Codes
    """Leaf at each position."""
    groups: Codes
    """(level, place): group, numbered along the axis. Empty for an axis that is cut anywhere, not along a hierarchy."""
    position: Floats
    """By place: where the value lies between 0 and 1, for axes that are cut anywhere. "No value" lies far out."""

    @property
    def by_hierarchy(self) -> bool:
        return len(self.groups) > 0

    @property
    def ordered(self) -> bool:
        """Whether the axis is a number, date or timestamp, so that an interval has ends and a mean."""
        return self.kind in _ORDERED

    @property
    def numeric(self) -> bool:
        return self.kind in (Kind.INTEGER, Kind.NUMBER)

    def spans(self, low: Array, high: Array) -> pl.Series:
        """Labels of intervals between two positions: the value itself, a range, or a group of the hierarchy."""
        size = len(self.leaf)
        pairs, number = np.unique(low.astype(np.int64) * size + high, return_inverse=True)
        first, last = pairs // size, pairs % size
        if self.by_hierarchy:
            level = np.zeros(len(first), dtype=np.intp)
            for codes in self.groups[:-1]:
                level += codes[first] != codes[last]
            labels = labels_of(self.hierarchy, self.leaf[first], level)
        else:
            labels = self._ranges(first, last)
        return labels.gather(number).alias(self.hierarchy.column)

    def _ranges(self, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]) -> pl.Series:
        leaves = self.hierarchy.leaves
        low, high = leaves.gather(self.leaf[first]), leaves.gather(self.leaf[last])
        if (first == last).all():
            return low
        if self.kind is Kind.DATETIME:
            low, high = low.dt.date(), high.dt.date()
        frame = pl.DataFrame({"low": as_plain_text(low), "high": as_plain_text(high)})
        a, b = pl.col("low"), pl.col("high")
        if self.kind is Kind.INTEGER:
            joint = pl.when(a.str.starts_with("-")).then(pl.lit(" to ")).otherwise(pl.lit(RANGE_DASH))
            text = pl.concat_str(a, joint, b)
        else:
            text = pl.concat_str(pl.lit("["), a, pl.lit(", "), b, pl.lit("]"))
        same = pl.Series(first == last)
        # a stretch that also holds "no value" says nothing
        return frame.select(pl.when(same).then(a).when(b.is_null()).then(pl.lit(ROOT)).otherwise(text)).to_series()

    def sets(self, cell: Array, place: Array) -> pl.Series:
        """What each cell holds: the value itself, ``{a, b}``, or ``*`` where all values or "no value" is among them.

        ``cell`` numbers 0, 1, ... each occur with at least one place.
        """
        pairs = np.unique(cell.astype(np.int64) * len(self.leaf) + place)
        words = as_plain_text(self.hierarchy.leaves)
        frame = pl.DataFrame({"cell": pairs // len(self.leaf), "word": words.gather(self.leaf[pairs % len(self.leaf)])})
        held = frame.group_by("cell", maintain_order=True).agg("word")["word"]
        size, gap = held.list.len(), held.list.eval(pl.element().is_null()).list.any()
        vague = (gap | (size == len(words))) & (size > 1)
        if words.str.contains(_UNSAFE).any():
            vague |= size > 1
        several = pl.concat_str(pl.lit("{"), pl.col("word").list.join(", "), pl.lit("}"))
        chosen = pl.when(vague).then(pl.lit(ROOT)).when(size > 1).then(several).otherwise(pl.col("word").list.first())
        return held.to_frame().select(chosen.alias(self.hierarchy.column)).to_series()

    def means(self, cell: Array, place: Array, weight: Array, count: int) -> pl.Series:
        """The mean of each cell, over the rows that have a value; empty where none has."""
        leaves = self.hierarchy.leaves
        values = leaves.gather(self.leaf).to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()[place]
        known = ~np.isnan(values)
        rows = np.bincount(cell[known], weights=weight[known], minlength=count)
        sums = np.bincount(cell[known], weights=weight[known] * values[known], minlength=count)
        mean = pl.Series(self.hierarchy.column, np.divide(sums, rows, out=np.full(count, np.nan), where=rows > 0))
        mean = mean.fill_nan(None)
        if self.numeric:
            return mean
        return mean.round(0).cast(pl.Int64).cast(leaves.to_physical().dtype).cast(leaves.dtype)


@dataclass(frozen=True, kw_only=True)
class Axes:
    """All axes as arrays for compiled loops."""

    axes: tuple[Axis, ...]
    hierarchical: npt.NDArray[np.bool_]
    height: npt.NDArray[np.int64]
    """Levels of each hierarchy; 0 for axes cut anywhere."""
    start: npt.NDArray[np.int64]
    """(axis, level): where its groups begin in ``groups``, or its positions in ``position``."""
    groups: Codes
    loss: Floats
    """By group: share of the column's detail that is lost when it is shown. Parallel to ``groups`` by place."""
    position: Floats
    weight: Floats
    """Weight of each column in the choice of the cut."""


def axes_of(hierarchies: tuple[BoundHierarchy, ...], kinds: tuple[Kind, ...], weights: Floats) -> Axes:
    """Build the axes of all columns."""
    axes = tuple(_axis(hierarchy, kind) for hierarchy, kind in zip(hierarchies, kinds, strict=True))
    deepest = max(max(len(axis.groups) for axis in axes), 1)
    start = np.zeros((len(axes), deepest), dtype=np.int64)
    groups, losses, positions = [np.zeros(0, np.int32)], [np.zeros(0)], [np.zeros(0)]
    at = place = 0
    for i, axis in enumerate(axes):
        if axis.by_hierarchy:
            size = len(axis.leaf)
            for level, codes in enumerate(axis.groups):
                start[i, level] = at
                groups.append(codes)
                covered = np.bincount(codes)[codes]
                losses.append((covered - 1) / max(size - 1, 1))
                at += size
        else:
            start[i, :] = place
            positions.append(axis.position)
            place += len(axis.position)
    return Axes(
        axes=axes,
        hierarchical=np.array([axis.by_hierarchy for axis in axes]),
        height=np.array([max(len(axis.groups) - 1, 0) for axis in axes], dtype=np.int64),
        start=start,
        groups=np.concatenate(groups),
        loss=np.concatenate(losses),
        position=np.concatenate(positions),
        weight=weights,
    )


def _axis(hierarchy: BoundHierarchy, kind: Kind) -> Axis:
    leaves = hierarchy.leaves
    count = len(leaves)
    missing = leaves.is_null().to_numpy()
    if kind in _ORDERED:
        leaf = leaves.arg_sort(nulls_last=True).to_numpy().astype(np.int32)
        places = leaves.gather(leaf).to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()
        width = np.nanmax(places) - np.nanmin(places) if not missing.all() else 0.0
        position = (places - np.nanmin(places)) / width if width > 0 else np.zeros(count)
        groups = np.zeros((0, count), dtype=np.int32)
    elif hierarchy.height < 2:  # no groups below the root: cut anywhere
        leaf = leaves.cast(pl.String).arg_sort(nulls_last=True).to_numpy().astype(np.int32)
        position = np.arange(count) / max(count - 1, 1)
        groups = np.zeros((0, count), dtype=np.int32)
    else:
        assert hierarchy.levels[-1].size == 1, "two values must meet, at the root at the latest"
        keys = [level.codes for level in hierarchy.levels]
        leaf = np.lexsort(keys).astype(np.int32)
        position = np.zeros(0)
        stacked = [codes[leaf] for codes in keys]
        groups = np.stack([np.concatenate([[0], np.cumsum(np.diff(codes) != 0)]) for codes in stacked]).astype(np.int32)
    if len(position):
        # "no value" lies so far out that a stretch with it counts as everything
        position = np.where(missing[leaf], 2.0, position)
    rank = np.empty(count, dtype=np.int32)
    rank[leaf] = np.arange(count, dtype=np.int32)
    return Axis(hierarchy=hierarchy, kind=kind, rank=rank, leaf=leaf, groups=groups, position=position)
