"""The lattice of generalizations: evaluates combinations of levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints, Mask
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.metric import CellLosses, ClassTerm, ClassTotals, LossMetric
from sfumato.masking.model import ModelRule, Monotonicity
from sfumato.masking.search.lattice import kernels
from sfumato.masking.search.lattice.rare_rows import Witnesses
from sfumato.masking.search.lattice.roll_up import GroupedRows, RollUp


@dataclass(frozen=True, kw_only=True)
class Node:
    """An evaluated combination of levels."""

    levels: tuple[int, ...]
    shape: ClassTotals
    smallest: int
    """Rows of the smallest kept class."""
    score: float
    parts: float
    """Sum of the column scores."""
    meets: bool
    """Whether all models hold within the suppression limit."""
    hopeless: bool
    """Whether every finer combination fails too."""
    settled: bool
    """Whether nothing is suppressed here and in any coarser table."""
    certain: int = 0
    """Number of rows that every finer table must suppress too."""
    extra: npt.NDArray[np.float64] | None = None
    """By column and level: extra loss of these rows."""


class LatticeSpace:
    """Evaluates combinations of levels of one table, each from the smallest finer stored table."""

    def __init__(
        self,
        table: EquivalenceClasses,
        rules: tuple[ModelRule, ...],
        metric: LossMetric,
        *,
        limit: int,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self.table, self.rules, self.metric, self.limit = table, rules, metric, limit
        self.losses: CellLosses = metric.bind(table, weights)
        self.rows = table.rows
        self.heights = np.array(table.heights, dtype=np.int64)
        columns, deepest = len(table.columns), int(self.heights.max()) + 1
        self._starts = np.zeros((columns, deepest), dtype=np.int64)
        self._leaf_starts = np.zeros_like(self._starts)
        at = leaf_at = 0
        for i, hierarchy in enumerate(table.hierarchies):
            for number, level in enumerate(hierarchy.levels):
                self._starts[i, number], self._leaf_starts[i, number] = at, leaf_at
                at, leaf_at = at + level.size, leaf_at + len(level.codes)
        flat = [cells for column in self.losses.cells for cells in column]
        levels = [level for hierarchy in table.hierarchies for level in hierarchy.levels]
        self._first_leaf = np.cumsum([0, *(len(hierarchy.leaves) for hierarchy in table.hierarchies)])
        self._losses = np.concatenate(flat)
        self._leaf_prices = np.concatenate([p[level.codes] for p, level in zip(flat, levels, strict=True)])
        self._every = np.arange(columns)
        self.least = max([rule.min_class_size for rule in rules], default=1)
        self._others = tuple(rule for rule in rules if not rule.sizes_only)
        self._columns = tuple(dict.fromkeys(name for rule in self._others for name in rule.columns))
        if metric.class_term is ClassTerm.MINORITY:
            assert metric.target is not None
            self._columns = tuple(dict.fromkeys((*self._columns, metric.target)))
        self.monotonicity = min((rule.monotonicity for rule in rules), default=Monotonicity.ANY)
        self.counts_classes = type(metric).above is not LossMetric.above
        """Whether the metric bounds coarser tables by the classes of finer ones, including failing ones."""
        self._absent = any(rule.about_absent for rule in rules)
        if self._absent:
            # a suppressed class would be a class without rows, which such a rule forbids
            self.limit = 0
        self.base = self._base()
        """By column and level: the sum of losses over all rows without suppression."""
        self._roll_up = RollUp(table, suppresses=self.limit > 0)
        self._kept = np.zeros(len(table), dtype=np.bool_)
        self._cells = np.zeros(columns)
        self._witnesses = Witnesses(table, self.least if self.limit == 0 else 1)
        self.evaluated = 0

    def _base(self) -> npt.NDArray[np.float64]:
        base = np.zeros(self._starts.shape)
        for i, hierarchy in enumerate(self.table.hierarchies):
            rows = self.table.frequencies[i]
            for level in range(hierarchy.height + 1):
                start = self._leaf_starts[i, level]
                base[i, level] = rows @ self._leaf_prices[start : start + len(rows)]
        return base

    def evaluate(self, levels: npt.ArrayLike, *, explain: bool = False) -> Node:
        """Group, test and score the table at ``levels``. ``explain`` adds :attr:`Node.extra`."""
        at = np.asarray(levels, dtype=np.int64)
        if self.limit == 0 and self._witnesses.refute(at):
            self.evaluated += 1
            return self._refuted(at)
        return self._evaluate(at, explain=explain)

    def skip(self, bounds: npt.NDArray[np.float64], order: Ints, start: int, limit: float, *lattice: Ints) -> int:
        """Without suppression: close combinations that rare rows reject, up to the next open one."""
        if self.limit:
            return start
        place, refuted = self._witnesses.skip(bounds, order, start, limit, *lattice)
        self.evaluated += refuted
        return place

    def _evaluate(self, at: Ints, *, explain: bool = False) -> Node:
        source, count = self._grouped(at)
        size, kept = self._roll_up.size[:count], self._kept[:count]
        self.evaluated += 1
        certain = int(kernels.small(size, self.least, kept))
        meets = certain <= self.limit
        if self.limit == 0 and not meets:
            self._witnesses.remember(self._smallest(source, size))
        if not meets and not self.counts_classes:
            return self._refuted(at)
        lost = np.where(kept, 0, size)
        term = 0.0
        if meets and (self._others or self._columns):
            meets, term = self._test(source, kept, lost, explain=explain and self.limit > 0)
            certain = int(lost.sum())
        costs = explain and not self.metric.by_level
        extra = self._extra(at, source, lost) if costs and 0 < certain <= self.limit else None
        pack = self._roll_up.packing
        suppressed, classes, smallest, summed = kernels.sums(
            self._roll_up.keys, pack.word, pack.shift, pack.mask, self._starts[self._every, at], self._losses,
            size, kept, int(self.metric.class_term), self._cells,
        )  # fmt: skip
        shape = ClassTotals(rows=self.rows, suppressed=suppressed, classes=classes, term=summed or term)
        # an empty table is not a solution
        meets = meets and suppressed <= self.limit and classes > 0
        everyone = self.base[self._every, at] if self.metric.by_level else self._cells + suppressed * self.losses.star
        parts = float(self.metric.columns(everyone, self.losses).sum())
        closed = Monotonicity.PASSING if self.limit == 0 else Monotonicity.ANY
        monotone = self.monotonicity >= closed
        return Node(
            levels=tuple(at.tolist()),
            shape=shape,
            smallest=smallest,
            score=float(self.metric.total(np.asarray(parts), self.losses, shape)) if meets else float("inf"),
            parts=parts,
            meets=meets,
            hopeless=certain > self.limit or (monotone and not meets),
            settled=meets and suppressed == 0 and self.monotonicity is not Monotonicity.NONE,
            certain=certain,
            extra=extra,
        )

    def _refuted(self, at: Ints) -> Node:
        """A node that is known to fail, as does every finer one."""
        shape = ClassTotals(rows=self.rows, suppressed=0, classes=self.rows, term=0.0)
        return Node(
            levels=tuple(at.tolist()),
            shape=shape,
            smallest=0,
            score=float("inf"),
            parts=0.0,
            meets=False,
            hopeless=True,
            settled=False,
        )

    def _smallest(self, source: GroupedRows, size: Ints) -> int:
        """A combination that lies in the smallest class."""
        rare = int(np.argmin(np.where(size > 0, size, self.rows + 1)))
        return int(kernels.member(source.of, self._roll_up.of, self.table.sizes, rare))

    def assign(self, levels: npt.ArrayLike) -> tuple[npt.NDArray[np.int32], Mask]:
        """The class of each combination at ``levels``, and whether that class is kept."""
        at = np.asarray(levels, dtype=np.int64)
        self._evaluate(at)
        source, count = self._grouped(at)
        return self._roll_up.of[source.of], self._kept[:count].copy()

    def worst(self, rule: ModelRule, levels: npt.ArrayLike) -> float:
        """The worst value of a model over all classes at ``levels``, without suppression."""
        of, count = self.table.partition(tuple(np.asarray(levels).tolist()))
        sizes = np.bincount(of, weights=self.table.sizes, minlength=count)
        chosen = np.ones(count, dtype=np.bool_) if rule.about_absent else sizes > 0
        return rule.worst_of([rule.worst(groups) for _, groups in self.table.in_blocks(of, chosen, rule.columns)])

    def _grouped(self, at: Ints) -> tuple[GroupedRows, int]:
        source = self._roll_up.source(at)
        return source, self._roll_up.merge(source, at)

    def _extra(self, at: Ints, source: GroupedRows, lost: Ints) -> npt.NDArray[np.float64]:
        extra = np.zeros(self._starts.shape)
        made, pack = self._roll_up, self._roll_up.packing
        kernels.certain_extra(
            self.table.codes, self.table.sizes, source.of, made.of[: len(source.size)], lost, made.size[: len(lost)],
            self._first_leaf, self._leaf_starts, self._leaf_prices, self.losses.star, at,
            made.keys, pack.word, pack.shift, pack.mask, *self._highest, extra,
        )  # fmt: skip
        return extra

    @cached_property
    def _highest(self) -> tuple[Ints, npt.NDArray[np.float64]]:
        """By column, level, finer level and code: the highest loss of a value of the code at the finer level; the
        starts in the array, and the array."""
        deepest = self._starts.shape[1]
        starts = np.zeros((len(self.heights), deepest, deepest), dtype=np.int64)
        flat, at = [], 0
        for i, hierarchy in enumerate(self.table.hierarchies):
            for number, level in enumerate(hierarchy.levels):
                for finer in range(number + 1):
                    highest = np.zeros(level.size)
                    start = self._leaf_starts[i, finer]
                    np.maximum.at(highest, level.codes, self._leaf_prices[start : start + len(level.codes)])
                    starts[i, number, finer] = at
                    flat.append(highest)
                    at += level.size
        return starts, np.concatenate(flat)

    def _test(self, source: GroupedRows, kept: Mask, lost: Ints, *, explain: bool) -> tuple[bool, float]:
        """Unmark the classes that fail, and write to ``lost`` how many of their rows every finer table must suppress.

        Returns whether the rest can pass, and the class term that needs histograms.
        """
        size = self._roll_up.size[: len(kept)]
        numbers = np.flatnonzero(kept | (size == 0) if self._absent else kept)
        step = self.table.blocks(len(numbers), self._columns)
        for start in range(0, len(numbers), step):
            block = numbers[start : start + step]
            groups = self._roll_up.groups(source, block, self._columns)
            good = np.ones(len(block), dtype=np.bool_)
            due = np.zeros(len(block), dtype=np.int64)
            for rule in self._others:
                passed = rule.passes(groups)
                good &= passed
                if explain and not passed.all():
                    due = np.maximum(due, rule.min_suppressed_rows(groups, passed))
            if self._absent and (groups.sizes[~good] == 0).any():
                return False, 0.0
            kept[block[~good]] = False
            # what a finer table keeps of a class are classes of at least the minimum size
            lost[block] = np.where(groups.sizes - due < self.least, groups.sizes, due)
        together = tuple(rule for rule in self._others if rule.about_table)
        if together and not self._suppress_smallest(together, kept):
            return False, 0.0
        return True, self._minority(source, kept) if self.metric.class_term is ClassTerm.MINORITY else 0.0

    def _suppress_smallest(self, rules: tuple[ModelRule, ...], kept: Mask) -> bool:
        """Unmark the smallest classes until the rules on the whole table hold."""
        numbers = np.flatnonzero(kept)
        numbers = numbers[np.argsort(self._roll_up.size[numbers], kind="stable")]
        sizes = self._roll_up.size[numbers]

        def holds(dropped: int) -> bool:
            groups = ClassGroups(sizes=sizes[dropped:])
            return all(rule.table_holds(groups) for rule in rules)

        allowed = self.limit - (self.rows - int(sizes.sum()))
        low, high = 0, int(np.searchsorted(np.cumsum(sizes), allowed, side="right")) if allowed >= 0 else -1
        if high < 0 or not holds(high):
            return False
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle + 1, high)
        kept[numbers[:high]] = False
        return True

    def _minority(self, source: GroupedRows, kept: Mask) -> float:
        target = self.metric.target
        assert target is not None
        numbers = np.flatnonzero(kept)
        step = self.table.blocks(len(numbers), (target,))
        total = 0
        for start in range(0, len(numbers), step):
            matrix = self._roll_up.groups(source, numbers[start : start + step], (target,)).histograms[target]
            total += int(matrix.sum() - matrix.max(axis=1, initial=0).sum())
        return float(total)
