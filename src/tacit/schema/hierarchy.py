"""Generalization hierarchies: how a value becomes coarser, level by level, up to ``*``.

A :class:`Hierarchy` is the rule ("five-year bands, then ten", "mask a ZIP from the right"). Applied to the values of
a column it gives a :class:`Ladder`, the table of labels that searches, attacks and measures work with.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tacit.errors import HierarchyGap, HierarchyNotNested
from tacit.params import Part
from tacit.registry import registry

__all__ = ["ROOT", "Hierarchy", "Ladder", "Level", "hierarchy_from_plain", "root_only"]

ROOT = "*"
"""The label of "any value"."""

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Level:
    """One level of a ladder: for each leaf the number of its group, and the groups' labels."""

    codes: Codes
    labels: pl.Series
    """Label per code. Level 0 keeps the column's own type; higher levels are text."""
    low: npt.NDArray[np.float64] | None = None
    """Smallest number of each group, where groups are ranges of numbers."""
    high: npt.NDArray[np.float64] | None = None
    """Largest number of each group (not reached, if the column is not integer)."""

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.labels)

    @cached_property
    def leaves_under(self) -> npt.NDArray[np.int64]:
        """How many leaves each group holds."""
        return np.bincount(self.codes, minlength=self.size)


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """A hierarchy laid over concrete values. Level 0 is the value itself; codes of level 0 number the leaves."""

    column: str
    leaves: pl.Series
    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        for number, (finer, coarser) in enumerate(zip(self.levels, self.levels[1:], strict=False)):
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

    @property
    def height(self) -> int:
        """The highest level; 0 is the value itself."""
        return len(self.levels) - 1

    def encode(self, series: pl.Series) -> Codes:
        """Number of the leaf of each value; a value without a leaf is an error that names its row."""
        leaves = pl.DataFrame({"leaf": self.leaves, "code": np.arange(len(self.leaves), dtype=np.int32)})
        values = series.alias("leaf").to_frame()
        if values.schema["leaf"] != leaves.schema["leaf"]:
            values, leaves = values.cast(pl.String), leaves.cast({"leaf": pl.String})
        codes = values.join(leaves, on="leaf", how="left", nulls_equal=True, maintain_order="left")["code"]
        gaps = codes.is_null().arg_true()
        if len(gaps):
            distinct = series.gather(gaps).n_unique()
            raise HierarchyGap(
                f"The hierarchy of `{self.column}` has no line for {distinct} of the column's values "
                f"({len(gaps)} rows, first in row {gaps[0] + 1}).",
                fix="Add the missing lines; `tacit hierarchy check` lists the values for the data's owner.",
                column=self.column,
                rows=tuple(gaps.head(10).to_list()),
            )
        return codes.to_numpy().astype(np.int32, copy=False)

    def decode(self, codes: npt.NDArray[np.integer[Any]], level: int) -> pl.Series:
        """The labels of leaf numbers at a level."""
        chosen = self.levels[level]
        return chosen.labels.gather(chosen.codes[codes]).alias(self.column)

    def generalize(self, series: pl.Series, level: int) -> pl.Series:
        """Every value of the column replaced by its label at that level."""
        return series if level == 0 else self.decode(self.encode(series), level)

    def gaps(self, series: pl.Series) -> pl.Series:
        """The distinct values that have no leaf. These are data: for the owner's eyes only."""
        known = self.leaves.cast(pl.String)
        return series.cast(pl.String).unique().drop_nulls().filter(lambda s: ~s.is_in(known.implode()))  # type: ignore

    def rows(self) -> list[list[str]]:
        """One line per leaf: the value, then its label at each level. The form a hierarchy file has."""
        columns = [level.labels.gather(level.codes).cast(pl.String).fill_null("").to_list() for level in self.levels]
        return [list(line) for line in zip(*columns, strict=True)]

    def to_csv(self, path: Path, *, delimiter: str = ";") -> None:
        """Write the ladder as a hierarchy file: no header, one line per leaf, last column the root."""
        import csv

        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(self.rows())

    @classmethod
    def from_labels(
        cls,
        column: str,
        leaves: pl.Series,
        labels: Sequence[Sequence[str | None]],
        *,
        bounds: Sequence[tuple[Sequence[float], Sequence[float]] | None] | None = None,
    ) -> Ladder:
        """Build from one list of labels per level above the leaves.

        ``bounds[i]`` gives, per leaf, the (low, high) of its group at level ``i + 1``.
        """
        if leaves.n_unique() != len(leaves):
            twice = leaves.is_duplicated().arg_true()
            raise HierarchyNotNested(
                f"The hierarchy of `{column}` lists a value twice (lines {twice[0] + 1} and others).",
                fix="Keep one line per value.",
                column=column,
                lines=tuple(int(i) + 1 for i in twice.head(10)),
            )
        leaves = leaves.alias(column)
        levels = [Level(codes=np.arange(len(leaves), dtype=np.int32), labels=leaves)]
        for number, names in enumerate(labels):
            series = pl.Series(column, names, dtype=pl.String)
            distinct = series.unique(maintain_order=True)
            index = pl.DataFrame({"label": distinct, "code": np.arange(len(distinct), dtype=np.int32)})
            codes = (
                series.alias("label")
                .to_frame()
                .join(index, on="label", how="left", nulls_equal=True, maintain_order="left")["code"]
                .to_numpy()
            )
            low = high = None
            if bounds is not None and bounds[number] is not None:
                lows, highs = bounds[number]  # type: ignore[misc]
                low, high = np.empty(len(distinct)), np.empty(len(distinct))
                low[codes], high[codes] = lows, highs
            levels.append(Level(codes=codes, labels=distinct, low=low, high=high))
        return cls(column=column, leaves=leaves, levels=tuple(levels))


class Hierarchy(Part):
    """A rule that makes values coarser."""

    @abstractmethod
    def ladder(self, column: str, values: pl.Series) -> Ladder:
        """Lay the rule over the distinct, non-null ``values`` of a column.

        A hierarchy with a domain of its own (a file, a taxonomy) ignores which values occur; the others cover just
        these.
        """

    def public(self) -> dict[str, Any]:
        """The rule as it may be published. Never the values that happen to occur in the data."""
        return {self.part_name(): self.to_plain()}


def with_missing(ladder: Ladder) -> Ladder:
    """The same ladder with one more leaf for "no value", which stays missing up to the root."""
    if ladder.leaves.null_count():
        return ladder
    leaves = pl.concat([ladder.leaves, pl.Series(ladder.column, [None], dtype=ladder.leaves.dtype)])
    labels: list[list[str | None]] = []
    bounds: list[tuple[list[float], list[float]] | None] = []
    for number, level in enumerate(ladder.levels[1:], start=1):
        names = level.labels.gather(level.codes).cast(pl.String).to_list()
        top = number == ladder.height and level.size == 1
        labels.append([*names, level.labels[0] if top else None])
        if level.low is None or level.high is None:
            bounds.append(None)
        else:
            lows, highs = level.low[level.codes].tolist(), level.high[level.codes].tolist()
            bounds.append(([*lows, min(lows, default=0.0)], [*highs, max(highs, default=0.0)]))
    return Ladder.from_labels(ladder.column, leaves, labels, bounds=bounds)


def root_only(column: str, values: pl.Series) -> Ladder:
    """The hierarchy of a column that has none: the value itself, or ``*``."""
    leaves = values.unique().sort()
    return Ladder.from_labels(column, leaves, [[ROOT] * len(leaves)])


def hierarchy_from_plain(value: object, *, base: Path | None = None) -> Hierarchy | None:
    """``{intervals: [5, 10]}`` as a hierarchy. None and hierarchies pass through."""
    if value is None or isinstance(value, Hierarchy):
        return value
    if not isinstance(value, Mapping) or len(value) != 1:
        names = ", ".join(registry("hierarchy").names())
        raise ValueError(f"a hierarchy is one of {names}, with its setting: {{intervals: [5, 10, 20]}}")
    [(name, setting)] = value.items()
    part = registry("hierarchy").get(str(name)).build(setting, base=base)
    assert isinstance(part, Hierarchy)
    return part
