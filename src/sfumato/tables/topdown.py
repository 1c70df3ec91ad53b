"""TopDown: differentially private tables of a geographic hierarchy that add up, without negative counts.

1. Measure marginals of every node of every level with exact discrete Gaussian noise.
2. Combine all noisy tables by generalized least squares (closed form).
3. From the top down, make the tables of the children of each node non-negative integers that add up to the node's.

Reference: Abowd et al. (2022), The 2020 census disclosure avoidance system TopDown algorithm,
doi:10.1162/99608f92.529e3cb9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.dp.loss import PrivacyLoss, concentrated
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter, UnknownColumn
from sfumato.progress import SILENT, Progress
from sfumato.secret import SecretValue
from sfumato.tables.geography import Geography
from sfumato.tables.hierarchical_gls import Effects, Ints, LevelResiduals, marginal_of, tree_estimate
from sfumato.tables.transport_rounding import round_to_sum, round_with_sums

__all__ = ["CENSUS_2020_LEVELS", "CENSUS_2020_RHO", "HierarchicalTables", "TopDownPlan", "topdown"]

CENSUS_2020_LEVELS = tuple(Fraction(part, 4099) for part in (104, 1440, 447, 687, 1256, 165))
"""Shares of the budget by level in the 2020 census: nation, state, county, tract, block group, block."""
CENSUS_2020_RHO = Fraction(2556, 1000)
"""The budget of the 2020 census for people, in zero-concentrated differential privacy."""

_MOST_CELLS = 1_000_000
"""Largest number of cells of a node, and in thousands of all nodes of a level."""


@dataclass(frozen=True, kw_only=True)
class TopDownPlan:
    """What is measured, with which shares of the budget. It does not depend on the data."""

    columns: Mapping[str, tuple[Any, ...]]
    """The columns of the tables with all their values. Tables are refined in this order: coarse columns come first."""
    rho: Fraction
    """The budget, in zero-concentrated differential privacy. There is no default."""
    levels: tuple[Fraction, ...]
    """Shares of the budget from the whole to the smallest areas; they add up to 1."""
    queries: Mapping[tuple[str, ...], Fraction]
    """Shares of a level's budget by marginal; ``()`` is the number of people. They add up to 1."""
    exact_totals: str | None = None
    """The lowest level whose numbers of people are published exactly. **They are not protected.**"""

    def __post_init__(self) -> None:
        for name, values in self.columns.items():
            if not values or len(set(values)) != len(values):
                raise BadParameter(f"`{name}` needs values, each listed once.")
        if self.rho <= 0:
            raise BadParameter("rho must be above 0.")
        for what, shares in (("levels", self.levels), ("queries", tuple(self.queries.values()))):
            if not shares or min(shares) < 0 or sum(shares) != 1:
                raise BadParameter(f"The shares of {what} must not be negative and must add up to 1.")
        for names in self.queries:
            unknown = [name for name in names if name not in self.columns]
            if unknown:
                raise UnknownColumn(f"The query `{', '.join(names)}` names an unknown column `{unknown[0]}`.")
        if self.cells > _MOST_CELLS:
            raise BadParameter(
                f"A table has {self.cells} cells per area; at most {_MOST_CELLS} are possible.",
                fix="Use fewer columns or coarser values.",
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of every column."""
        return tuple(len(values) for values in self.columns.values())

    @property
    def cells(self) -> int:
        """The number of cells of a node."""
        return prod(self.shape)

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of one person."""
        return concentrated(self.rho)

    def variance(self, level: int, query: tuple[str, ...]) -> Fraction | None:
        """The variance of the noise of a query: a person is in one cell of one node per level."""
        rho = self.rho * self.levels[level] * self.queries[query]
        return 1 / (2 * rho) if rho else None


@dataclass(frozen=True, kw_only=True)
class HierarchicalTables:
    """Tables of all areas: non-negative integers, and the children of an area add up to it."""

    plan: TopDownPlan
    geography: Geography
    counts: tuple[Ints, ...]
    """By level, from the whole down: one line per area, one column per cell."""
    failsafe: int
    """Number of parts for which the solver failed; they add up, but are not the closest tables."""

    def table(self, level: str | None, *names: str) -> pl.DataFrame:
        """A published table: one row per area and combination of values. ``None`` is the whole."""
        order = list(self.plan.columns)
        number = 0 if level is None else 1 + self.geography.levels.index(level)
        away = tuple(1 + axis for axis, name in enumerate(order) if name not in names)
        counts = self.counts[number].reshape(-1, *self.plan.shape).sum(axis=away)
        kept = [name for name in order if name in names]
        index = np.indices(counts.shape).reshape(counts.ndim, -1)
        areas = [] if level is None else [pl.Series(level, self.geography.names(level)).gather(index[0])]
        values = [pl.Series(name, self.plan.columns[name]).gather(index[1 + axis]) for axis, name in enumerate(kept)]
        return pl.DataFrame([*areas, *values, pl.Series("count", counts.ravel())])

    def microdata(self) -> pl.DataFrame:
        """One row per person of the smallest areas, with exactly these tables."""
        areas, cells = np.nonzero(self.counts[-1])
        times = self.counts[-1][areas, cells]
        codes = np.unravel_index(np.repeat(cells, times), self.plan.shape)
        places = self.geography.frame[np.repeat(areas, times)]
        columns = [
            pl.Series(name, values).gather(code)
            for (name, values), code in zip(self.plan.columns.items(), codes, strict=True)
        ]
        return places.with_columns(columns)


def topdown(
    people: pl.DataFrame, geography: Geography, plan: TopDownPlan, *, receipt: Receipt, progress: Progress = SILENT
) -> HierarchicalTables:
    """Private tables of all areas. ``receipt`` covers ``plan.loss``.

    Neighbouring tables differ by one person, with the exact totals as they are. Values and areas that are not declared
    are refused before the receipt is used.
    """
    if len(plan.levels) != len(geography.levels) + 1:
        raise BadParameter(
            f"The plan has shares for {len(plan.levels)} levels; the geography has {len(geography.levels) + 1} with "
            "the whole."
        )
    if plan.exact_totals is not None and plan.exact_totals not in geography.levels:
        raise UnknownColumn(f"The geography has no level `{plan.exact_totals}`.")
    if plan.cells * len(geography.frame) > 1000 * _MOST_CELLS:
        raise BadParameter("The tables have more than a billion cells.", fix="Use fewer columns or larger areas.")
    true = SecretValue(_true_counts(people, geography, plan))
    with progress.task("topdown", 2 * len(plan.levels)) as tick:
        levels = []
        for number in range(len(plan.levels)):
            levels.append(_measured(true, number, geography, plan, receipt))
            tick(1)
        effects = tree_estimate(levels, geography.parents)
        exact = _exact_totals(true, geography, plan, receipt)
        del levels
        counts, failed = [_root(effects[0], exact[0], plan)], 0
        tick(1)
        for number, parent in enumerate(geography.parents):
            below, more = _children(counts[-1], effects[number + 1], exact[number + 1], parent, plan)
            counts.append(below)
            failed += more
            tick(1)
    return HierarchicalTables(plan=plan, geography=geography, counts=tuple(counts), failsafe=failed)


def _true_counts(people: pl.DataFrame, geography: Geography, plan: TopDownPlan) -> npt.NDArray[np.int32]:
    """Counts of the smallest areas."""
    cell = np.zeros(people.height, dtype=np.int64)
    for name, values in plan.columns.items():
        codes = people[name].replace_strict(list(values), list(range(len(values))), default=None, return_dtype=pl.Int64)
        if codes.null_count():
            raise BadParameter(f"`{name}` has {codes.null_count()} values that are not declared.", column=name)
        cell = cell * len(values) + codes.to_numpy()
    place = geography.place(people) * plan.cells + cell
    counts = np.bincount(place, minlength=len(geography.frame) * plan.cells)
    return counts.reshape(-1, plan.cells).astype(np.int32)


def _measured(
    true: SecretValue[Any], number: int, geography: Geography, plan: TopDownPlan, receipt: Receipt
) -> LevelResiduals:
    """Noisy marginals of all nodes of a level."""
    nodes, order = geography.ancestors(number), list(plan.columns)
    level = LevelResiduals(plan.shape)
    own = np.zeros((int(nodes.max()) + 1, plan.cells), dtype=np.int64)
    np.add.at(own, nodes, true.open(receipt))
    for query in plan.queries:
        variance = plan.variance(number, query)
        if variance is None:
            continue
        columns = tuple(sorted(order.index(name) for name in query))
        away = tuple(1 + axis for axis in range(len(order)) if axis not in columns)
        counts = own.reshape(-1, *plan.shape).sum(axis=away)
        noisy = Gaussian(variance=variance).release_at(SecretValue(counts.ravel()), receipt=receipt, distance=1)
        level.add(columns, np.asarray(noisy, dtype=np.float64).reshape(counts.shape), variance=float(variance))
    return level


def _exact_totals(
    true: SecretValue[Any], geography: Geography, plan: TopDownPlan, receipt: Receipt
) -> list[Ints | None]:
    """By level, the numbers of people that the plan publishes as they are."""
    if plan.exact_totals is None:
        return [None] * len(plan.levels)
    last = 1 + geography.levels.index(plan.exact_totals)
    people = true.open(receipt).sum(axis=1).astype(np.int64)
    totals = [np.bincount(geography.ancestors(n), people).astype(np.int64) for n in range(last + 1)]
    return [*totals, *[None] * (len(plan.levels) - last - 1)]


def _prefixes(plan: TopDownPlan) -> list[tuple[tuple[int, ...], int]]:
    """The chain of refinements: columns so far, and the number of values of the column that is added."""
    return [(tuple(range(number + 1)), size) for number, size in enumerate(plan.shape)]


def _root(effects: Effects, exact: Ints | None, plan: TopDownPlan) -> Ints:
    """The table of the whole: refined column by column, rounded to the sums so far."""
    only = np.zeros(1, dtype=np.int64)
    guess = marginal_of(effects, (), plan.shape, only)
    coarse = exact if exact is not None else np.maximum(np.rint(guess), 0).astype(np.int64)
    for columns, size in _prefixes(plan):
        fine = marginal_of(effects, columns, plan.shape, only).reshape(-1, size)
        coarse = round_to_sum(fine, coarse.ravel())
    return coarse.reshape(1, -1)


def _children(above: Ints, effects: Effects, exact: Ints | None, parent: Ints, plan: TopDownPlan) -> tuple[Ints, int]:
    """The tables of all nodes of a level, parent by parent."""
    counts, failed = np.zeros((len(parent), plan.cells), dtype=np.int64), 0
    order = np.argsort(parent, kind="stable")
    bounds = np.searchsorted(parent[order], np.arange(len(above) + 1))
    for number, whole in enumerate(above):
        nodes = order[bounds[number] : bounds[number + 1]]
        guess = marginal_of(effects, (), plan.shape, nodes)
        coarse = exact[nodes] if exact is not None else round_to_sum(guess[None, :], whole.sum()[None])[0]
        coarse = coarse.reshape(len(nodes), 1)
        for columns, size in _prefixes(plan):
            fine = marginal_of(effects, columns, plan.shape, nodes).reshape(len(nodes), -1, size)
            sums = whole.reshape(fine.shape[1], size, -1).sum(axis=2)
            needed = sums.sum(axis=1) > 0
            table = np.zeros((fine.shape[1], len(nodes), size), dtype=np.int64)
            if needed.any():
                table[needed], more = round_with_sums(fine.swapaxes(0, 1)[needed], coarse.T[needed], sums[needed])
                failed += more
            coarse = table.swapaxes(0, 1).reshape(len(nodes), -1)
        counts[nodes] = coarse
    return counts, failed
