"""TopDown: differentially private tables of a geographic hierarchy that add up, without negative counts.

1. Measure marginals of every node of every level with exact discrete Gaussian noise.
2. Combine all noisy tables by generalized least squares (closed form).
3. From the top down, make the tables of the children of each node non-negative integers that add up to the node's and
   meet all public constraints.

If no tables of the children meet the constraints and add up to the node's (failsafe), they are estimated without the
node, which then becomes their sum, and so do the nodes above it.

Reference: Abowd et al. (2022), The 2020 census disclosure avoidance system TopDown algorithm,
doi:10.1162/99608f92.529e3cb9.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Array, Ints
from sfumato.dataset import ValuesDomain
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter, UnknownColumn
from sfumato.progress import SILENT, Progress
from sfumato.secret import MeasuredNumbers, SecretValue
from sfumato.tables.area_limits import AreaLimits
from sfumato.tables.geography import Geography
from sfumato.tables.hierarchical_gls import Effects, LevelResiduals, marginal_of, sum_children, tree_estimate
from sfumato.tables.hierarchical_tables import HierarchicalTables
from sfumato.tables.topdown_plan import MOST_CELLS, TopDownPlan
from sfumato.tables.transport_rounding import nearest_table, round_to_sum, round_with_sums


def topdown(
    people: pl.DataFrame, geography: Geography, plan: TopDownPlan, *, receipt: Receipt, progress: Progress = SILENT
) -> HierarchicalTables:
    """Private tables of all areas. ``receipt`` covers ``plan.loss``.

    Neighbouring tables differ by one person, with the exact totals and bounds as they are. People with a value or an
    area that is not declared, or with an impossible combination, are left out: a refusal would tell that there is one.
    Constraints that nothing meets, also together with exact totals, are refused before the receipt is used.
    """
    limits, true = check_data(people, geography, plan)
    with progress.task("topdown", 2 * len(plan.levels)) as tick:
        levels = []
        for number in range(len(plan.levels)):
            levels.append(_measured(true, number, geography, plan, receipt))
            tick(1)
        effects = tree_estimate(levels, geography.parents)
        exact = _exact_totals(true, geography, plan, receipt)
        del levels
        descent = _Descent(plan, geography, limits, effects, exact)
        for _ in descent.levels():
            tick(1)
    return HierarchicalTables(
        plan=plan, geography=geography, counts=tuple(descent.counts), relaxed=descent.relaxed, unsolved=descent.unsolved
    )


def check_data(
    people: pl.DataFrame, geography: Geography, plan: TopDownPlan
) -> tuple[AreaLimits, SecretValue[npt.NDArray[np.int32]]]:
    """Refuse what :func:`topdown` refuses, and return the limits of all areas and the counts of the smallest."""
    if len(plan.levels) != len(geography.levels) + 1:
        raise BadParameter(
            f"The plan has shares for {len(plan.levels)} levels; the geography has {len(geography.levels) + 1} with "
            "the whole."
        )
    if plan.exact_totals is not None and plan.exact_totals not in geography.levels:
        raise UnknownColumn(f"The geography has no level `{plan.exact_totals}`.")
    if plan.cells * len(geography.frame) > 1000 * MOST_CELLS:
        raise BadParameter("The tables have more than a billion cells.", fix="Use fewer columns or larger areas.")
    limits = AreaLimits.of(plan, geography)
    counts = _true_counts(people, geography, plan, limits)
    if plan.exact_totals is not None:
        limits.check_totals(_totals(counts, geography, plan.exact_totals))
    return limits, SecretValue(counts)


def _true_counts(
    people: pl.DataFrame, geography: Geography, plan: TopDownPlan, limits: AreaLimits
) -> npt.NDArray[np.int32]:
    """Counts of the smallest areas. A row that fits no cell is left out, whatever the other rows are."""
    for name in (*plan.columns, geography.levels[-1]):
        if name not in people.columns:
            raise UnknownColumn(f"The data have no column `{name}`.", column=name)
    cell, area = np.zeros(people.height, dtype=np.int64), geography.place(people)
    known = area >= 0
    for name, values in plan.columns.items():
        codes = ValuesDomain(values=values).codes(people[name])
        known &= codes >= 0
        cell = cell * len(values) + np.maximum(codes, 0)
    known &= limits.possible[cell]
    counts = np.bincount((area * plan.cells + cell)[known], minlength=len(geography.frame) * plan.cells)
    return counts.reshape(-1, plan.cells).astype(np.int32)


def _measured(
    true: SecretValue[Any], number: int, geography: Geography, plan: TopDownPlan, receipt: Receipt
) -> LevelResiduals:
    """Noisy marginals of all nodes of a level."""
    nodes, order = geography.ancestors(number), list(plan.columns)
    level = LevelResiduals(plan.shape)
    own = sum_children(true.open(receipt), nodes, int(nodes.max()) + 1)
    for query in plan.queries:
        variance = plan.variance(number, query)
        if variance is None:
            continue
        columns = tuple(sorted(order.index(name) for name in query))
        away = tuple(1 + axis for axis in range(len(order)) if axis not in columns)
        counts = own.reshape(-1, *plan.shape).sum(axis=away, dtype=np.int64)
        secret = SecretValue(counts.ravel(), measured=MeasuredNumbers(kind="cells"))
        noisy = Gaussian(variance=variance).release_at(secret, receipt=receipt, distance=1)
        level.add(columns, np.asarray(noisy).reshape(counts.shape), variance=float(variance))
    return level


def _exact_totals(
    true: SecretValue[Any], geography: Geography, plan: TopDownPlan, receipt: Receipt
) -> list[Ints | None]:
    """By level, the numbers of people that the plan publishes as they are."""
    if plan.exact_totals is None:
        return [None] * len(plan.levels)
    totals = _totals(true.open(receipt), geography, plan.exact_totals)
    return [*totals, *[None] * (len(plan.levels) - len(totals))]


def _totals(counts: Array, geography: Geography, level: str) -> list[Ints]:
    """Numbers of people in all areas, from the whole to a level."""
    people = counts.sum(axis=1).astype(np.int64)
    last = 1 + geography.levels.index(level)
    return [np.bincount(geography.ancestors(number), people).astype(np.int64) for number in range(last + 1)]


class _Descent:
    """From the estimates to integer tables, level by level. Nothing here sees the data, except exact totals."""

    def __init__(
        self,
        plan: TopDownPlan,
        geography: Geography,
        limits: AreaLimits,
        effects: list[Effects],
        exact: list[Ints | None],
    ) -> None:
        self.plan, self.geography, self.limits, self.effects, self.exact = plan, geography, limits, effects, exact
        self.counts: list[Ints] = []
        self.relaxed = self.unsolved = 0

    def levels(self) -> Iterator[int]:
        """Add the tables of one level after the other."""
        whole = self._alone(0, np.zeros(1, dtype=np.int64))
        self.counts.append(whole)
        yield 0
        for number, parent in enumerate(self.geography.parents):
            self._children(number + 1, parent)
            yield number + 1

    def _guess(self, level: int, nodes: Ints, depth: int) -> npt.NDArray[np.float64]:
        """Estimates of the combinations of leading columns: (node, combination)."""
        found = marginal_of(self.effects[level], tuple(range(depth)), self.plan.shape, nodes)
        return found.reshape(len(nodes), -1)

    def _alone(self, level: int, nodes: Ints) -> Ints:
        """Tables that meet all constraints but need not add up to a parent, refined column by column."""
        limits, exact, shape = self.limits, self.exact[level], self.plan.shape
        guess, low, high = self._guess(level, nodes, limits.depth), limits.low[level][nodes], limits.high[level][nodes]
        if exact is None:
            coarse = np.clip(np.rint(guess), low, high).astype(np.int64)
        else:
            coarse = round_to_sum(guess, exact[nodes], low=low, high=high)
        for depth in range(limits.depth, len(shape)):
            fine = self._guess(level, nodes, depth + 1).reshape(-1, shape[depth])
            most = np.tile(limits.highest(depth + 1), (len(nodes), 1))
            coarse = round_to_sum(fine, coarse.ravel(), high=most).reshape(len(nodes), -1)
        return coarse

    def _children(self, level: int, parent: Ints) -> None:
        above = self.counts[-1]
        counts = np.zeros((len(parent), self.plan.cells), dtype=above.dtype)
        order = np.argsort(parent, kind="stable")
        bounds = np.searchsorted(parent[order], np.arange(len(above) + 1))
        relaxed = 0
        for number, whole in enumerate(above):
            nodes = order[bounds[number] : bounds[number + 1]]
            table = self._shared(level, nodes, whole)
            if table is None:
                relaxed += 1
                table = self._alone(level, nodes)
            counts[nodes] = table
        self.counts.append(counts)
        if relaxed:
            self.relaxed += relaxed
            for upper in range(level - 1, -1, -1):
                size = len(self.counts[upper])
                self.counts[upper] = sum_children(self.counts[upper + 1], self.geography.parents[upper], size)

    def _shared(self, level: int, nodes: Ints, whole: Ints) -> Ints | None:
        """Tables of the children of one node that add up to it; None if none meet the constraints."""
        limits, exact, shape = self.limits, self.exact[level], self.plan.shape
        guess, low, high = self._guess(level, nodes, limits.depth), limits.low[level][nodes], limits.high[level][nodes]
        sums = whole.reshape(guess.shape[1], -1).sum(axis=1)
        if exact is None:
            total = self._guess(level, nodes, 0).T
            totals = round_to_sum(total, whole.sum()[None], low=low.sum(axis=1)[None], high=high.sum(axis=1)[None])[0]
        else:
            totals = exact[nodes]
        coarse: Ints = totals[:, None]
        if limits.depth:
            found = nearest_table(guess, totals, sums, low=low, high=high)
            if found is None and exact is not None:
                return None
            # Without exact totals there is always a table: those of the limits of a node are sums over its children.
            coarse = round_to_sum(guess.T, sums, low=low.T, high=high.T).T if found is None else found
        for depth in range(limits.depth, len(shape)):
            fine = self._guess(level, nodes, depth + 1).reshape(len(nodes), -1, shape[depth])
            sums = whole.reshape(fine.shape[1], shape[depth], -1).sum(axis=2)
            needed = sums.sum(axis=1) > 0
            table = np.zeros((fine.shape[1], len(nodes), shape[depth]), dtype=np.int64)
            if needed.any():
                table[needed], failed = round_with_sums(fine.swapaxes(0, 1)[needed], coarse.T[needed], sums[needed])
                self.unsolved += failed
            coarse = table.swapaxes(0, 1).reshape(len(nodes), -1)
        return coarse
