"""Lower bound on the score of every combination of levels, for lattices too large for exact search."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sfumato.data.row_codes import number_rows
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.metric import ClassTotals
from sfumato.masking.model import ModelRule, Monotonicity
from sfumato.masking.search.lattice.level_range import LevelRange
from sfumato.masking.search.lattice.optimal import floors, search
from sfumato.masking.search.lattice.space import LatticeSpace, Node
from sfumato.rng import Rng

_FIRST, _LARGEST = 4_000, 2_000_000
"""Combinations of levels of the first groups of columns, and of the largest ones that are tried."""


class _AtLeast(ModelRule):
    """Relaxation of all models: the minimum class size."""

    monotonicity = Monotonicity.ANY
    sizes_only = True

    def __init__(self, least: int) -> None:
        self.name, self.min_class_size = "k-anonymity", least

    def values(self, groups: ClassGroups) -> npt.NDArray[np.float64]:
        return groups.sizes.astype(np.float64)


def lower_bound(
    space: LatticeSpace,
    within: LevelRange,
    bottom: Node,
    *,
    seconds: float,
    rng: Rng,
    clock: Callable[[], float] = time.monotonic,
) -> float:
    """A lower bound on all scores; infinity if no combination of levels can meet the models.

    A table with large enough classes keeps them when columns are dropped, because classes only grow. The exact optimum
    over a few columns therefore bounds their loss in any solution. Many groups of columns give linear constraints; the
    optimum of the linear program is the bound.
    """
    metric = space.metric
    if space.counts_classes:
        sums = np.array(sum(float(part.min()) for part in floors(space, within)))
        return float(metric.above(sums, space.losses, bottom.shape, least=space.least, stay=False))
    alone = np.array([float(part.min()) for part in floors(space, within)])
    groups: list[tuple[list[int], float]] = []
    stop = clock() + seconds
    nodes = _FIRST
    while clock() < stop:
        for columns in _partition(within, rng, nodes):
            value = _best_of(space, within, columns, left=max(stop - clock(), 0.01), clock=clock)
            if value == float("inf"):
                return value
            groups.append((columns, value))
            if clock() > stop:
                break
        if any(len(columns) == len(alone) for columns, _ in groups):
            break
        # larger groups give tighter bounds; small ones come first, so that a bound is available at any time
        nodes = min(5 * nodes, _LARGEST)
    total = _cheapest(alone, groups)
    return float(metric.below(np.array(total), space.losses, replace(bottom.shape, suppressed=0), least=space.least))


def _partition(within: LevelRange, rng: Rng, most: int) -> list[list[int]]:
    """Random groups of columns, each with a limited number of combinations of levels."""
    groups: list[list[int]] = [[]]
    nodes = 1
    for column in rng.generator.permutation(len(within.low)).tolist():
        levels = within.high[column] - within.low[column] + 1
        if groups[-1] and nodes * levels > most:
            groups.append([])
            nodes = 1
        groups[-1].append(column)
        nodes *= levels
    return groups


def _best_of(
    space: LatticeSpace, within: LevelRange, columns: list[int], *, left: float, clock: Callable[[], float]
) -> float:
    """The minimum joint loss of these columns over all tables that meet the relaxed models."""
    table = _only(space.table, columns)
    weights = dict(zip(table.columns, space.losses.weights[columns].tolist(), strict=True))
    if not any(weights.values()):
        return 0.0
    small = LatticeSpace(table, (_AtLeast(space.least),), space.metric, limit=space.limit, weights=weights)
    part = LevelRange(low=tuple(within.low[i] for i in columns), high=tuple(within.high[i] for i in columns))
    result = search(small, part, seconds=left, clock=clock)
    if result.optimal:
        return float("inf") if result.best is None else result.best.parts
    return _parts_below(small, result.bound, float(sum(float(p.min()) for p in floors(small, part))))


def _parts_below(space: LatticeSpace, score: float, low: float) -> float:
    """The inverse of the score: a lower bound on the sum of column scores at this score."""
    if not np.isfinite(score):
        return low
    shape = ClassTotals(rows=space.rows, suppressed=0, classes=1, term=0.0)

    def total(parts: float) -> float:
        return float(space.metric.total(np.asarray(parts), space.losses, shape))

    high = low + 1.0
    while total(high) < score:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if total(middle) <= score else (low, middle)
    return low


def _only(table: EquivalenceClasses, columns: list[int]) -> EquivalenceClasses:
    """The compressed table of some of the columns."""
    codes = [table.codes[:, i] for i in columns]
    number, count = number_rows(codes, [len(table.hierarchies[i].leaves) for i in columns])
    first = np.zeros(count, dtype=np.intp)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return EquivalenceClasses(
        columns=tuple(table.columns[i] for i in columns),
        hierarchies=tuple(table.hierarchies[i] for i in columns),
        levels=(0,) * len(columns),
        codes=np.ascontiguousarray(table.codes[first][:, columns]),
        sizes=np.bincount(number, weights=table.sizes, minlength=count).astype(np.int64),
    )


def _cheapest(alone: npt.NDArray[np.float64], groups: list[tuple[list[int], float]]) -> float:
    """Solve the linear program: the minimum sum of column losses that satisfies every group."""
    from scipy.optimize import linprog

    if not groups:
        return float(alone.sum())
    matrix = np.zeros((len(groups), len(alone)))
    for row, (columns, _) in enumerate(groups):
        matrix[row, columns] = -1.0
    answer = linprog(
        np.ones(len(alone)),
        A_ub=matrix,
        b_ub=[-value for _, value in groups],
        bounds=[(value, None) for value in alone],
        method="highs",
    )
    # slightly below, because the solver works in floating point
    return max(float(answer.fun) * (1 - 1e-7), float(alone.sum())) if answer.status == 0 else float(alone.sum())
