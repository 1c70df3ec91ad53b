"""A generalization hierarchy bound to concrete values: the label of every value at every level."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Floats, Integers
from sfumato.data.row_codes import positions, value_codes
from sfumato.errors import HierarchyGap, HierarchyNotNested
from sfumato.wording import counted

ROOT = "*"
"""The label of the root: any value."""

RANGE_DASH = "–"
"""Between the ends of a range of whole numbers. With a hyphen a spreadsheet reads ``10-19`` as a date."""

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """One level of a hierarchy: the group code of each leaf and the labels of the groups."""

    codes: Codes
    labels: pl.Series
    """Label per code. Level 0 keeps the column's own type; higher levels are text."""
    low: Floats | None = None
    """Lower end of each group, if groups are numeric ranges."""
    high: Floats | None = None
    """Upper end of each group, if groups are numeric ranges (exclusive unless the column is integer)."""

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.labels)

    @cached_property
    def leaves_under(self) -> npt.NDArray[np.int64]:
        """Number of leaves per group."""
        return np.bincount(self.codes, minlength=self.size)

    @cached_property
    def text(self) -> pl.Series:
        """The label of each leaf at this level, as text."""
        return self.labels.gather(self.codes).cast(pl.String)


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundHierarchy:
    """Leaves and levels of a hierarchy. Level 0 is the value itself; its codes number the leaves.

    Invariants: leaves are distinct, labels are distinct within a level, and values that share a group share every group
    above it.

    >>> hierarchy = BoundHierarchy.from_labels("sex", pl.Series(["f", "m"]), [["*", "*"]])
    >>> hierarchy.generalize(pl.Series("sex", ["m", "m", "f"]), 1).to_list()
    ['*', '*', '*']
    """

    column: str
    leaves: pl.Series
    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        self._refuse_repeated_leaves()
        for number, (finer, coarser) in enumerate(zip(self.levels, self.levels[1:], strict=False)):
            assert coarser.labels.n_unique() == coarser.size, "two groups of a level share a label"
            parent = np.full(finer.size, -1, dtype=np.int64)
            parent[finer.codes] = coarser.codes
            split = np.flatnonzero(parent[finer.codes] != coarser.codes)
            if len(split):
                raise HierarchyNotNested(
                    f"The hierarchy of `{self.column}` merges values at level {number} and splits them again at level "
                    f"{number + 1} (see line {int(split[0]) + 1} of the hierarchy).",
                    fix="Values that share a label must share every label above it.",
                    column=self.column,
                    level=number,
                    lines=tuple(int(i) + 1 for i in split[:10]),
                )

    def _refuse_repeated_leaves(self) -> None:
        if self.leaves.n_unique() == len(self.leaves):
            return
        twice = self.leaves.is_duplicated().arg_true()
        raise HierarchyNotNested(
            f"The hierarchy of `{self.column}` lists a value twice (line {twice[0] + 1} and a later one).",
            fix="Keep one line per value.",
            column=self.column,
            lines=tuple(int(i) + 1 for i in twice.head(10)),
        )

    @property
    def height(self) -> int:
        """The highest level. Level 0 is the value itself."""
        return len(self.levels) - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundHierarchy) and (
            self.column == other.column
            and self.height == other.height
            and self.leaves.dtype == other.leaves.dtype
            and all(a.text.equals(b.text) for a, b in zip(self.levels, other.levels, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def _find(self, series: pl.Series) -> pl.Series:
        """Leaf code of each value, null if it has no leaf."""
        if series.dtype == self.leaves.dtype:
            return positions(series, self.leaves)
        # only the distinct values are converted to text; the rows are then joined in their own type
        distinct = series.unique()
        leaf = positions(distinct.cast(pl.String), self.leaves.cast(pl.String))
        return leaf.gather(positions(series, distinct))

    def encode(self, series: pl.Series, *, of_rows: bool = True) -> Codes:
        """Leaf code of each value. A value without a leaf is refused; the error names its row.

        ``of_rows`` is false for the distinct values of a column, whose places are no rows.
        """
        codes = self._find(series)
        if codes.null_count():
            self._refuse_gaps(series, codes.is_null().arg_true(), of_rows=of_rows)
        return codes.to_numpy().astype(np.int32, copy=False)

    def check(self, series: pl.Series) -> None:
        """Refuse a column with a value that has no leaf. Empty cells are ignored."""
        rows = (self._find(series).is_null() & series.is_not_null()).arg_true()
        if len(rows):
            self._refuse_gaps(series, rows)

    def _refuse_gaps(self, series: pl.Series, rows: pl.Series, *, of_rows: bool = True) -> NoReturn:
        absent = series.gather(rows)
        what = f"{absent.n_unique()} of the column's values"
        raise HierarchyGap(
            f"The hierarchy of `{self.column}` has no line for "
            f"{'empty cells' if absent.null_count() == len(absent) else what}"
            + (f" ({counted(len(rows), 'row')}, first in row {rows[0] + 1})." if of_rows else "."),
            fix="Add the missing lines; `sfumato hierarchy check` lists the values for the data's owner.",
            column=self.column,
            rows=tuple(rows.head(10).to_list()) if of_rows else (),
        )

    def gaps(self, series: pl.Series) -> pl.Series:
        """Distinct values without a leaf. These are data values: show them to the data owner only."""
        distinct = series.drop_nulls().unique(maintain_order=True)
        return distinct.filter(self._find(distinct).is_null())

    def decode(self, codes: Integers, level: int) -> pl.Series:
        """The labels of leaf codes at a level."""
        chosen = self.levels[level]
        return chosen.labels.gather(chosen.codes[codes]).alias(self.column)

    def generalize(self, series: pl.Series, level: int) -> pl.Series:
        """Replace every value by its label at that level."""
        return series if level == 0 else self.decode(self.encode(series), level)

    def rows(self) -> list[list[str]]:
        """One line per leaf: the value, then its label at each level, as in a hierarchy file."""
        columns = [level.text.fill_null("").to_list() for level in self.levels]
        return [list(line) for line in zip(*columns, strict=True)]

    def to_csv(self, path: Path) -> None:
        """Write a hierarchy file: no header, one line per leaf, the root in the last column."""
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=";", lineterminator="\n").writerows(self.rows())

    @classmethod
    def from_labels(
        cls,
        column: str,
        leaves: pl.Series,
        labels: Sequence[Sequence[str | None] | pl.Series],
    ) -> BoundHierarchy:
        """Build from one list of labels per level above the leaves."""
        leaves = leaves.alias(column)
        levels = [Level(codes=np.arange(len(leaves), dtype=np.int32), labels=leaves)]
        for names in labels:
            series = pl.Series("label", names, dtype=pl.String)
            codes, distinct = value_codes(series)
            levels.append(Level(codes=codes.astype(np.int32), labels=distinct.alias(column)))
        return cls(column=column, leaves=leaves, levels=tuple(levels))


def with_missing(hierarchy: BoundHierarchy) -> BoundHierarchy:
    """The hierarchy with one more leaf for the missing value, which stays missing up to the root.

    If groups are ranges, the missing value is a group of its own that covers the whole range.
    """
    if hierarchy.leaves.null_count():
        return hierarchy
    leaves = hierarchy.leaves.extend_constant(None, 1)
    levels = [Level(codes=np.arange(len(leaves), dtype=np.int32), labels=leaves)]
    for number, level in enumerate(hierarchy.levels[1:], start=1):
        top = number == hierarchy.height and level.size == 1
        labels = level.labels if top else level.labels.extend_constant(None, 1)
        own = np.int32(0 if top else level.size)
        low, high = level.low, level.high
        if not top and low is not None and high is not None:
            low, high = np.append(low, min(low, default=0.0)), np.append(high, max(high, default=0.0))
        levels.append(Level(codes=np.append(level.codes, own), labels=labels, low=low, high=high))
    return BoundHierarchy(column=hierarchy.column, leaves=leaves, levels=tuple(levels))


def range_label(low: str, high: str) -> str:
    """The label of a range of whole numbers.

    >>> range_label("10", "19"), range_label("-5", "-1")
    ('10–19', '-5 to -1')
    """
    return f"{low} to {high}" if low.startswith("-") else f"{low}{RANGE_DASH}{high}"


def root_only(column: str, values: pl.Series) -> BoundHierarchy:
    """The default hierarchy: the value itself, then ``*``."""
    leaves = values.unique().sort()
    return BoundHierarchy.from_labels(column, leaves, [[ROOT] * len(leaves)])
