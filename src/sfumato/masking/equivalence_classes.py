"""Equivalence classes: distinct combinations of quasi-identifier values with counts (the compressed table).

Searches work on this table instead of on rows. It is built by one GROUP BY, here or in a database, and can be rolled
up: the classes of a coarser table are sums of the classes of a finer one, so the rows are read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Integers, Ints, Mask
from sfumato.data.row_codes import first_rows, number_rows
from sfumato.data.table import Table
from sfumato.dataset import Data, Schema
from sfumato.dataset.hierarchy import BoundHierarchy
from sfumato.errors import BadParameter, NotApplicable

Codes = npt.NDArray[np.int32]

_BLOCK = 1 << 22
"""Maximum cells of a histogram matrix in memory; larger sets of classes are evaluated in blocks."""


@dataclass(frozen=True, kw_only=True)
class ClassGroups:
    """A partition of the rows as privacy models see it: the size and the value histograms of each class."""

    sizes: Ints
    """Rows per class. Zero is possible only with a population: people who are not in the table."""
    histograms: Mapping[str, Ints] = field(default_factory=dict)
    """By tracked column, a matrix (class, value): the number of rows of the class with that value."""
    population: Ints | None = None
    """People of the population per class, if a population is given."""
    own_rows: Ints | None = None
    """Rows that show exactly the values of each class, where classes overlap; None where these are the sizes."""

    def __len__(self) -> int:
        return len(self.sizes)

    def take(self, chosen: Any) -> ClassGroups:
        """Select classes by mask or index."""
        return ClassGroups(
            sizes=self.sizes[chosen],
            histograms={name: matrix[chosen] for name, matrix in self.histograms.items()},
            population=None if self.population is None else self.population[chosen],
            own_rows=None if self.own_rows is None else self.own_rows[chosen],
        )


@dataclass(frozen=True, kw_only=True)
class TrackedColumn:
    """A column whose values are counted per class: a sensitive column, or the target of a metric."""

    hierarchy: BoundHierarchy
    """Its values (the leaves) and their hierarchy."""
    cells: Codes
    """Class of each (class, value) pair that occurs."""
    values: Codes
    """Leaf code of each pair."""
    counts: Ints
    """Rows with that pair."""
    reference: Ints | None = None
    """Rows per value of the reference table, if that is not this table."""

    @cached_property
    def present(self) -> Mask:
        """Which of the values are not the missing value."""
        return self.hierarchy.leaves.is_not_null().to_numpy()

    @cached_property
    def totals(self) -> Ints:
        """Rows per value of the reference table."""
        if self.reference is not None:
            return self.reference
        return np.bincount(self.values, weights=self.counts, minlength=len(self.hierarchy.leaves)).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class EquivalenceClasses:
    """Distinct combinations of the quasi-identifiers at given levels, with counts.

    The compressed table has level 0 in every column; :meth:`roll_up` returns the classes at coarser levels.
    """

    columns: tuple[str, ...]
    hierarchies: tuple[BoundHierarchy, ...]
    levels: tuple[int, ...]
    codes: Codes
    """(class, column): code of the value at the column's level."""
    sizes: Ints
    """Rows per class."""
    tracked: Mapping[str, TrackedColumn] = field(default_factory=dict)
    population: Ints | None = None
    """People of the population per class, if a population is given; classes of size 0 may then occur."""
    of_row: npt.NDArray[np.intp] | None = None
    """Class of each row of the table, if the rows are in memory."""

    @property
    def rows(self) -> int:
        return int(self.sizes.sum())

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def heights(self) -> tuple[int, ...]:
        return tuple(hierarchy.height for hierarchy in self.hierarchies)

    @cached_property
    def frequencies(self) -> tuple[Ints, ...]:
        """By column, rows per code."""
        return tuple(
            _sum(np.ascontiguousarray(self.codes[:, i]), self.sizes, hierarchy.levels[level].size)
            for i, (hierarchy, level) in enumerate(zip(self.hierarchies, self.levels, strict=True))
        )

    def track(self, name: str) -> TrackedColumn:
        """The counts of a tracked column."""
        if name not in self.tracked:
            raise BadParameter(
                f"Column `{name}` is not a sensitive column of this table.",
                fix=f"Sensitive here: {', '.join(self.tracked) or 'none'}.",
                column=name,
            )
        return self.tracked[name]

    def take(self, chosen: Mask) -> EquivalenceClasses:
        """Some of the classes; their rows are not told."""
        place = np.cumsum(chosen) - 1
        tracked = {}
        for name, column in self.tracked.items():
            inside = chosen[column.cells]
            cells = place[column.cells[inside]].astype(np.int32)
            tracked[name] = replace(column, cells=cells, values=column.values[inside], counts=column.counts[inside])
        people = None if self.population is None else self.population[chosen]
        kept = replace(self, codes=self.codes[chosen], sizes=self.sizes[chosen], tracked=tracked)
        return replace(kept, population=people, of_row=None)

    def combinations(self, schema: Schema, most: int | None = None) -> Data:
        """The classes of the compressed table as rows with their values: all of them, or the first."""
        columns = [
            hierarchy.leaves.gather(self.codes[:most, i]).alias(name)
            for i, (name, hierarchy) in enumerate(zip(self.columns, self.hierarchies, strict=True))
        ]
        return Data(table=Table(frame=pl.DataFrame(columns)), schema=schema)

    def spread_over(self, table: EquivalenceClasses) -> EquivalenceClasses:
        """Classes made of :meth:`combinations` as rows, with the counts of the true rows."""
        of = table.of_row
        assert of is not None
        tracked = {name: replace(one, cells=of[one.cells].astype(np.int32)) for name, one in self.tracked.items()}
        return replace(table, sizes=_sum(of, self.sizes, len(table)), tracked=tracked, of_row=None)

    def partition(self, levels: Sequence[int]) -> tuple[npt.NDArray[np.intp], int]:
        """The coarser class of each class at ``levels``, and the number of coarser classes."""
        coarse = self._coarser(levels)
        return number_rows([codes for _, codes in coarse], [size for size, _ in coarse])

    def _coarser(self, levels: Sequence[int]) -> list[tuple[int, Codes]]:
        out = []
        for position, (hierarchy, now, then) in enumerate(zip(self.hierarchies, self.levels, levels, strict=True)):
            if then < now:
                raise BadParameter(f"Column `{hierarchy.column}` is at level {now} and cannot go back to {then}.")
            step = np.zeros(hierarchy.levels[now].size, dtype=np.int32)
            step[hierarchy.levels[now].codes] = hierarchy.levels[then].codes
            out.append((hierarchy.levels[then].size, step[self.codes[:, position]]))
        return out

    def roll_up(self, levels: Sequence[int]) -> EquivalenceClasses:
        """The classes of the table generalized to ``levels``."""
        coarse = self._coarser(levels)
        of, count = number_rows([codes for _, codes in coarse], [size for size, _ in coarse])
        tracked = {}
        for name, column in self.tracked.items():
            width = len(column.hierarchy.leaves)
            pair, where = np.unique(of[column.cells] * width + column.values, return_inverse=True)
            counts = np.bincount(where, weights=column.counts, minlength=len(pair)).astype(np.int64)
            cells, values = (pair // width).astype(np.int32), (pair % width).astype(np.int32)
            tracked[name] = replace(column, cells=cells, values=values, counts=counts)
        return replace(
            self,
            levels=tuple(levels),
            codes=np.stack([codes for _, codes in coarse], axis=1)[first_rows(of, count)],
            sizes=_sum(of, self.sizes, count),
            tracked=tracked,
            population=None if self.population is None else _sum(of, self.population, count),
            of_row=None if self.of_row is None else of[self.of_row],
        )

    def groups(
        self,
        of: Integers | None = None,
        count: int | None = None,
        *,
        columns: Iterable[str] | None = None,
        chosen: Mask | None = None,
    ) -> ClassGroups:
        """Sizes and histograms of a partition ``of`` these classes into ``count`` sets (None: each class by itself).

        ``columns`` are the tracked columns to count (default: all). ``chosen`` selects sets, so that no histogram is
        built for the others.
        """
        of = np.arange(len(self)) if of is None else of
        count = len(self) if count is None else count
        sizes = _sum(of, self.sizes, count)
        people = None if self.population is None else _sum(of, self.population, count)
        names = tuple(self.tracked) if columns is None else tuple(columns)
        if chosen is None:
            return ClassGroups(
                sizes=sizes,
                population=people,
                histograms={name: self._histogram(self.track(name), of, count) for name in names},
            )
        place = np.cumsum(chosen) - 1
        place[~chosen] = -1
        kept = int(chosen.sum())
        return ClassGroups(
            sizes=sizes[chosen],
            population=None if people is None else people[chosen],
            histograms={name: self._histogram(self.track(name), place[of], kept) for name in names},
        )

    @staticmethod
    def _histogram(column: TrackedColumn, of: Integers, count: int) -> Ints:
        width = len(column.hierarchy.leaves)
        where, values, counts = of[column.cells].astype(np.int64), column.values, column.counts
        if where.size and where.min() < 0:
            inside = where >= 0
            where, values, counts = where[inside], values[inside], counts[inside]
        flat = np.bincount(where * width + values, weights=counts, minlength=count * width)
        return flat.astype(np.int64).reshape(count, width)

    def in_blocks(
        self, of: Integers, chosen: Mask, columns: Sequence[str]
    ) -> Iterator[tuple[npt.NDArray[np.intp], ClassGroups]]:
        """Iterate over the chosen sets of a partition in blocks, with their numbers, to limit the size of
        histograms."""
        numbers = np.flatnonzero(chosen)
        step = self.blocks(len(numbers), columns)
        for start in range(0, len(numbers), step):
            block = np.zeros_like(chosen)
            block[numbers[start : start + step]] = True
            yield numbers[start : start + step], self.groups(of, len(chosen), columns=columns, chosen=block)

    def blocks(self, count: int, columns: Iterable[str]) -> int:
        """Number of classes per block, so that histograms stay small."""
        widest = max((len(self.track(name).hierarchy.leaves) for name in columns), default=1)
        return max(1, min(count, _BLOCK // max(widest, 1)))


def _sum(of: Integers, counts: Ints, count: int) -> Ints:
    # float64 sums are exact below 2**53, more rows than any table has
    return np.bincount(of, weights=counts, minlength=count).astype(np.int64)


def compress(
    data: Data,
    *,
    columns: Sequence[str] | None = None,
    track: Sequence[str] | None = None,
    population: pl.DataFrame | None = None,
) -> EquivalenceClasses:
    """Group the rows of a table by its quasi-identifiers (or by ``columns``) and count.

    ``track`` are the columns counted per class (default: the sensitive ones). With a ``population`` (a frame with the
    same quasi-identifier columns), people of the population are counted per class too.
    """
    names = tuple(data.quasi if columns is None else columns)
    if not names:
        raise NotApplicable("There is no quasi-identifier column.", fix="Give at least one column the role `quasi`.")
    frame = data.table.frame
    if population is not None:
        data = _with_population(data, population, names)
    hierarchies = tuple(data.bound_hierarchy(name) for name in names)
    both = data.table.frame
    codes = [hierarchy.encode(both.get_column(name)) for hierarchy, name in zip(hierarchies, names, strict=True)]
    number, count = number_rows(codes, [len(hierarchy.leaves) for hierarchy in hierarchies])
    of_row = number[: frame.height]
    tracked = {}
    for name in data.sensitive if track is None else track:
        hierarchy = data.bound_hierarchy(name)
        values = hierarchy.encode(frame.get_column(name))
        width = len(hierarchy.leaves)
        pair, counts = np.unique(of_row * width + values, return_counts=True)
        tracked[name] = TrackedColumn(
            hierarchy=hierarchy,
            cells=(pair // width).astype(np.int32),
            values=(pair % width).astype(np.int32),
            counts=counts.astype(np.int64),
        )
    return EquivalenceClasses(
        columns=names,
        hierarchies=hierarchies,
        levels=(0,) * len(names),
        codes=np.ascontiguousarray(np.stack(codes, axis=1)[first_rows(number, count)]),
        sizes=np.bincount(of_row, minlength=count).astype(np.int64),
        tracked=tracked,
        population=None
        if population is None
        else np.bincount(number[frame.height :], minlength=count).astype(np.int64),
        of_row=of_row,
    )


def _with_population(data: Data, population: pl.DataFrame, names: tuple[str, ...]) -> Data:
    """Concatenate both tables, the data first, so that they share leaves and codes."""
    missing = [name for name in names if name not in population.columns]
    if missing:
        raise BadParameter(
            f"The population table has no column `{missing[0]}`.",
            fix="It needs every quasi-identifier of the table.",
            columns=tuple(missing),
        )
    wanted = {name: data.table.column(name).dtype for name in names}
    people = population.select(names).cast(wanted, strict=False)  # type: ignore[arg-type]
    return data.with_frame(pl.concat([data.table.frame, people], how="diagonal"))
