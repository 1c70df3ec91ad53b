"""A geographic hierarchy: the public list of the smallest areas with the larger areas around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.dataset import ValuesDomain
from sfumato.errors import BadParameter, HierarchyNotNested


@dataclass(frozen=True, kw_only=True)
class Geography:
    """Areas from the largest to the smallest. The list is public: it names areas without people too.

    >>> towns = pl.DataFrame({"state": ["A", "A", "B"], "town": ["a", "b", "c"]})
    >>> places = Geography(frame=towns, levels=("state", "town"))
    >>> [parent.tolist() for parent in places.parents]
    [[0, 0], [0, 0, 1]]
    """

    frame: pl.DataFrame
    """One row per smallest area, one column per level."""
    levels: tuple[str, ...]
    """Names of the levels, from the largest areas to the smallest; the whole is not named."""

    def __post_init__(self) -> None:
        if not self.levels or self.frame.height == 0:
            raise BadParameter("A geography needs at least one level and one area.")
        if any(self.frame[name].null_count() for name in self.levels):
            raise BadParameter("Every area needs a name on every level.")
        if self.frame[self.levels[-1]].n_unique() != self.frame.height:
            raise BadParameter(f"An area of the lowest level `{self.levels[-1]}` is listed twice.")
        for upper, lower in zip(self.levels, self.levels[1:], strict=False):
            pairs = self.frame.select(upper, lower).unique()
            if pairs.height != pairs[lower].n_unique():
                raise HierarchyNotNested(
                    f"An area of level `{lower}` lies in several areas of level `{upper}`.",
                    fix="Give areas names that occur once, such as a code with that of the larger area in front.",
                    column=lower,
                )

    def names(self, level: str) -> Sequence[Any]:
        """The areas of a level in the order of the tables."""
        return self.frame[level].unique(maintain_order=True).to_list()

    @cached_property
    def _numbers(self) -> list[Ints]:
        """For every level, with the whole first: the area of each smallest area."""
        numbers = [np.zeros(self.frame.height, dtype=np.int64)]
        for level in self.levels:
            areas = list(self.names(level))
            codes = self.frame[level].replace_strict(areas, list(range(len(areas))), return_dtype=pl.Int64)
            numbers.append(codes.to_numpy().astype(np.int64))
        return numbers

    def ancestors(self, number: int) -> Ints:
        """The area on a level (0 is the whole) of each smallest area."""
        return self._numbers[number]

    @property
    def parents(self) -> list[Ints]:
        """For each area of a level, its area one level up."""
        found = []
        for upper, lower in zip(self._numbers, self._numbers[1:], strict=False):
            parent = np.zeros(int(lower.max()) + 1, dtype=np.int64)
            parent[lower] = upper
            found.append(parent)
        return found

    def place(self, people: pl.DataFrame) -> Ints:
        """The smallest area of each person; -1 for one that is not listed."""
        return ValuesDomain(values=self.frame[self.levels[-1]].to_list()).codes(people[self.levels[-1]])
