"""Equivalence classes of coarser tables, each grouped from the smallest finer table that is stored."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.dataset.hierarchy import BoundHierarchy
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses, TrackedColumn
from sfumato.masking.search.lattice import kernels

_STORED_TABLES = 600
"""Maximum number of stored tables to roll up from."""
_FEW_TABLES = 16
_STORED_BYTES = 1 << 28
"""Maximum memory of the stored tables."""
_WORTH_STORING = 0.9
"""A table is stored if it has at most this share of the classes of its parent."""
_NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class GroupedRows:
    """The equivalence classes at some levels: their keys and counts."""

    levels: Ints
    keys: npt.NDArray[np.uint64]
    size: Ints
    people: Ints
    of_parent: npt.NDArray[np.int32]
    """Class of each class of the parent; without a parent, of each combination."""
    parent: GroupedRows | None = None
    _pairs: dict[str, TrackedColumn] = field(default_factory=dict)

    @cached_property
    def of(self) -> npt.NDArray[np.int32]:
        """For each combination of the compressed table the class it lies in."""
        return self.of_parent if self.parent is None else self.of_parent[self.parent.of]

    def pairs(self, name: str, column: TrackedColumn) -> TrackedColumn:
        """The column's counts by class of this table."""
        if name not in self._pairs:
            finer = column if self.parent is None else self.parent.pairs(name, column)
            size = len(finer.cells)
            cells, values = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
            counts = np.empty(size, dtype=np.int64)
            left = kernels.merge_pairs(
                finer.cells, finer.values, finer.counts, self.of_parent, len(self.size), len(column.hierarchy.leaves),
                cells, values, counts,
            )  # fmt: skip
            self._pairs[name] = replace(
                finer, cells=cells[:left].copy(), values=values[:left].copy(), counts=counts[:left].copy()
            )
        return self._pairs[name]


class RollUp:
    """Groups a table at given levels. The arrays of the last table are overwritten by the next one."""

    def __init__(self, table: EquivalenceClasses, *, suppresses: bool) -> None:
        self.table = table
        self.packing = Packing(table.hierarchies)
        self._heights = np.array(table.heights, dtype=np.int64)
        size = len(table)
        bits = max(12, int(np.ceil(np.log2(max(2 * size, 2)))))
        self._slots = np.zeros(1 << bits, dtype=np.int64)
        self._stamp = 0
        # one place more than classes: the kernel writes a key before it knows whether it is new
        self.keys = np.zeros((size + 1, self.packing.words), dtype=np.uint64)
        self.size = np.zeros(size, dtype=np.int64)
        self.people = np.zeros(size if table.population is not None else 0, dtype=np.int64)
        self.of = np.zeros(size, dtype=np.int32)
        """Class of each class of the table that was grouped."""
        self._root = self._finest()
        self._stored: dict[tuple[int, ...], GroupedRows] = {}
        self._bytes = 0
        self._order = self._first_columns(suppresses)

    def _finest(self) -> GroupedRows:
        with_population = self.table.population is not None
        present = np.arange(len(self.table)) if with_population else np.flatnonzero(self.table.sizes > 0)
        of = np.zeros(len(self.table), dtype=np.int32)
        of[present] = np.arange(len(present))
        people = _NOTHING if self.table.population is None else self.table.population[present]
        return GroupedRows(
            levels=np.zeros_like(self._heights),
            keys=self.packing.pack(self.table.codes[present]),
            size=self.table.sizes[present],
            people=people,
            of_parent=of,
        )

    def _first_columns(self, suppresses: bool) -> list[int]:
        """The first columns of the roll-up order: those that contribute most classes, as far as their tables fit."""
        if suppresses:
            left = [self.merge(self._root, at) for at in np.diag(self._heights)]
        else:
            left = [-int(np.count_nonzero(rows)) for rows in self.table.frequencies]
        # without suppression, witnesses reject most tables before they are grouped
        most = _STORED_TABLES if suppresses else _FEW_TABLES
        order, tables = [], 1
        for column in sorted(range(len(left)), key=left.__getitem__):
            tables *= int(self._heights[column]) + 1
            if tables > most:
                break
            order.append(column)
        return order

    def merge(self, source: GroupedRows, at: Ints) -> int:
        """Group a stored table at coarser levels; returns the number of classes."""
        self._stamp += 1
        count: int = kernels.group(
            source.keys, source.size, source.people, *self.packing.changes(source.levels, at), self.packing.maps,
            self._slots, self._stamp, self.keys, self.size, self.people, self.of,
        )  # fmt: skip
        return count

    def source(self, at: Ints) -> GroupedRows:
        """The stored table with these levels in the first columns of the roll-up order; built on demand.

        Combinations with the same levels in the widest columns share these tables.
        """
        levels = at.tolist()
        source = self._root
        name: tuple[int, ...] = ()
        for position, column in enumerate(self._order):
            name = (*name, levels[column])
            stored = self._stored.get(name)
            if stored is None:
                partly = np.zeros_like(at)
                used = self._order[: position + 1]
                partly[used] = at[used]
                stored = source if levels[column] == 0 else self._store(source, partly)
                self._stored[name] = stored
            source = stored
        return source

    def _store(self, source: GroupedRows, at: Ints) -> GroupedRows:
        count = self.merge(source, at)
        needed = count * 20 + 4 * len(source.size) + 4 * len(self.table)
        if count > _WORTH_STORING * len(source.size) or self._bytes + needed > _STORED_BYTES:
            return source
        self._bytes += needed
        return GroupedRows(
            levels=at,
            keys=self.keys[:count].copy(),
            size=self.size[:count].copy(),
            people=self.people[:count].copy() if len(self.people) else _NOTHING,
            parent=source,
            of_parent=self.of[: len(source.size)].copy(),
        )

    def groups(self, source: GroupedRows, numbers: npt.NDArray[np.intp], columns: tuple[str, ...]) -> ClassGroups:
        """Sizes and histograms of the given classes."""
        place = np.full(len(self.size), -1, dtype=np.int32)
        place[numbers] = np.arange(len(numbers), dtype=np.int32)
        histograms = {}
        for name in columns:
            column = self.table.track(name)
            histograms[name] = np.zeros((len(numbers), len(column.hierarchy.leaves)), dtype=np.int64)
            pairs = source.pairs(name, column)
            kernels.count_values(pairs.cells, pairs.values, pairs.counts, self.of, place, histograms[name])
        return ClassGroups(
            sizes=self.size[numbers],
            histograms=histograms,
            population=self.people[numbers] if len(self.people) else None,
        )


Words = npt.NDArray[np.uint64]


class Packing:
    """Bit layout of keys, with tables from every level to every coarser one."""

    def __init__(self, hierarchies: tuple[BoundHierarchy, ...]) -> None:
        bits = [max(1, int(len(hierarchy.leaves) - 1).bit_length()) for hierarchy in hierarchies]
        self.word = np.zeros(len(hierarchies), dtype=np.int64)
        self.shift = np.zeros(len(hierarchies), dtype=np.uint64)
        self.mask = np.array([(1 << width) - 1 for width in bits], dtype=np.uint64)
        word = used = 0
        for i, width in enumerate(bits):
            if used + width > 64:
                word, used = word + 1, 0
            self.word[i], self.shift[i] = word, used
            used += width
        self.words = word + 1
        deepest = max(hierarchy.height for hierarchy in hierarchies) + 1
        self.start = np.zeros((len(hierarchies), deepest, deepest), dtype=np.int64)
        tables: list[Words] = []
        at = 0
        for i, hierarchy in enumerate(hierarchies):
            for old in range(hierarchy.height + 1):
                for new in range(old + 1, hierarchy.height + 1):
                    table = np.zeros(hierarchy.levels[old].size, dtype=np.uint64)
                    table[hierarchy.levels[old].codes] = hierarchy.levels[new].codes.astype(np.uint64) << self.shift[i]
                    self.start[i, old, new] = at
                    tables.append(table)
                    at += len(table)
        self.maps = np.concatenate(tables) if tables else np.zeros(1, dtype=np.uint64)

    def pack(self, codes: npt.NDArray[np.int32]) -> Words:
        """Keys of rows of leaf codes."""
        keys = np.zeros((len(codes), self.words), dtype=np.uint64)
        for i in range(codes.shape[1]):
            keys[:, self.word[i]] |= codes[:, i].astype(np.uint64) << self.shift[i]
        return keys

    def changes(self, old: Ints, new: Ints) -> tuple[Ints, Words, Words, Ints]:
        """Word, shift, mask and table of each column whose level differs."""
        which = np.flatnonzero(old != new)
        return self.word[which], self.shift[which], self.mask[which], self.start[which, old[which], new[which]]
