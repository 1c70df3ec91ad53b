"""Fit a private model to a table: bound contributions, learn domains, measure marginals, estimate a distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import prod, sqrt
from typing import Literal

import numpy as np
import polars as pl

from sfumato.dp.analytic_gaussian import squared_for
from sfumato.dp.curve import gaussian_curve
from sfumato.dp.loss import PrivacyLoss, concentrated
from sfumato.dp.receipt import Receipt
from sfumato.dp.zcdp import rho_for
from sfumato.errors import BadParameter
from sfumato.progress import Progress
from sfumato.release.guarantee import Guarantee
from sfumato.synthesis.adaptive import measure_adaptively
from sfumato.synthesis.column_domain import ColumnCells, category_cells
from sfumato.synthesis.compression import MergedCells, merge_cells
from sfumato.synthesis.estimate import MarginalEstimates
from sfumato.synthesis.household_model import HouseholdModel, household_rows
from sfumato.synthesis.learned_domain import learn_cells
from sfumato.synthesis.model import SynthesisModel
from sfumato.synthesis.private_counts import NoisyMarginal, PrivateCounts, smallest
from sfumato.synthesis.residuals import Columns
from sfumato.synthesis.spanning_tree import measure_spanning_tree

_ONE_WAY = {"mst": Fraction(1, 5), "adaptive": Fraction(3, 20)}
"""Share of the budget for the one-way marginals."""
_TOTAL = Fraction(1, 100)
"""Share of the budget for the number of rows, from which the cells of ranges and the shares of columns follow."""
_CELL_DEVIATIONS = 4.0
"""Standard deviations of noise that the cell of a range has at least, if it has several values."""
_SCOUT = Fraction(1, 4)
"""Share of the budget of a range that finds its cells."""
_PAIR_NOISE = 0.5
"""A pair of numbers has so many cells that its largest singular value of noise is about a quarter of the rows."""
_BINS = (5, 40)
"""Fewest and most bins of a number that follow from the noise."""
_COLUMN_ERROR = 0.01
"""Total variation distance by which noise may move a column before its share grows."""
_COLUMN_SHARES = (0.1, 0.7)
_LEARNED_DELTA = Fraction(1, 4)
"""Share of delta for categories that are learned."""
_TREE_CELLS = 1_000_000
"""Largest size of the junction tree, and of one marginal."""
_WORKLOAD_CELLS = 10**9
"""Largest declared size of a combination of the workload; cells with few people are merged before it is counted."""
_WIDE = 40
"""Number of columns from which ``auto`` selects a tree."""
_LARGEST_DEVIATION = 1e6
"""A one-way marginal with more noise than this tells nothing about any table of people."""
_TARGET_WEIGHT = 3
"""Weight of marginals with the target column in selections."""


@dataclass(frozen=True, kw_only=True)
class HouseholdPlan:
    """A table of people in households: the unit of privacy is a household with at most ``max_contribution`` members."""

    id: str
    columns: tuple[str, ...]
    """Columns that are equal for all members."""
    size: str
    """The name of the number of members in the model."""
    released: str | None
    """The name of the released column with the number of members."""
    share: Fraction
    """Share of the budget for the table of households."""


@dataclass(frozen=True, kw_only=True)
class SynthesisPlan:
    """What a model is fitted to, with the budget in exact rationals. It does not depend on the data."""

    epsilon: Fraction
    delta: Fraction
    mechanism: Literal["auto", "mst", "adaptive"]
    declared: Mapping[str, ColumnCells | None]
    """The cells of every column, in order; None for a domain that is learned."""
    learned_categories: frozenset[str]
    learn: Fraction
    """Share of the budget for learning domains."""
    bins: int | None
    """The largest number of bins per number; None for as many as the noise allows."""
    max_contribution: int
    """The largest number of rows of one unit."""
    target: str | None = None
    workload: tuple[tuple[str, ...], ...] | None = None
    households: HouseholdPlan | None = None

    def __post_init__(self) -> None:
        one_way = float(self.squared * _ONE_WAY[self.chosen])
        deviation = self.max_contribution * len(self.declared) ** 0.5 / one_way**0.5
        if deviation > _LARGEST_DEVIATION:
            raise BadParameter(
                "private-synthesis: epsilon is too small: every count would carry noise of more than a million rows.",
                fix="Use a larger epsilon, fewer columns or a smaller `max_rows`.",
            )
        for names in self.workload or ():
            self._refuse_large(names, _WORKLOAD_CELLS, 1)
        if self.households is not None:
            self._refuse_large(self.households.columns, _TREE_CELLS, self.max_contribution + 1)

    def _refuse_large(self, names: tuple[str, ...], most: int, times: int) -> None:
        """Refuse columns that together have more cells than memory holds, before anything is charged."""
        known = [one for name in names if (one := self.declared[name]) is not None]
        cells = times * prod(min(c.size, 2 * (self.bins or _BINS[1]) + 2) if c.ordered else c.size for c in known)
        if cells > most:
            listed = " × ".join(f"`{name}`" for name in names)
            raise BadParameter(
                f"private-synthesis: {listed} has {cells:.1e} cells; at most {most:.0e} can be modelled together.",
                fix="Name fewer columns, or declare coarser values.",
            )

    @property
    def chosen(self) -> Literal["mst", "adaptive"]:
        """The mechanism that runs."""
        if self.mechanism == "auto":
            return "mst" if len(self.declared) > _WIDE else "adaptive"
        return self.mechanism

    @property
    def learned_delta(self) -> Fraction:
        """The part of delta for learned categories."""
        return self.delta * _LEARNED_DELTA if self.learned_categories else Fraction(0)

    @property
    def squared(self) -> Fraction:
        """The budget as the squared parameter of Gaussian differential privacy.

        Where the exact trade-off is not known (an epsilon of several hundred), by zero-concentrated differential
        privacy.
        """
        delta = self.delta - self.learned_delta
        try:
            return squared_for(self.epsilon, delta)
        except BadParameter:
            return 2 * rho_for(self.epsilon, delta)

    @property
    def loss(self) -> PrivacyLoss:
        """The loss that a fit may use."""
        curve = replace(gaussian_curve(self.squared), delta=self.learned_delta)
        return replace(concentrated(curve.rho, curve.delta), curve=curve)


@dataclass(frozen=True, kw_only=True)
class FitRun:
    """What a fit needs beside the rows. ``receipt`` covers the loss of the plan."""

    plan: SynthesisPlan
    receipt: Receipt
    random: np.random.Generator
    progress: Progress
    guarantee: Guarantee
    constraints: tuple[str, ...] = ()


def fit_model(frame: pl.DataFrame, run: FitRun) -> SynthesisModel:
    """Fit a model to rows with bounded contributions."""
    columns, squared = _prepared(frame, run)
    model = _fit_table(frame, columns, squared, run, max_contribution=run.plan.max_contribution)
    return replace(model, constraints=run.constraints)


def fit_households(frame: pl.DataFrame, run: FitRun, home: HouseholdPlan) -> HouseholdModel:
    """Fit a model to households with bounded members: first the table of households, then that of members."""
    columns, squared = _prepared(frame, run)
    max_contribution, dtype = run.plan.max_contribution, frame.schema[home.id]
    sizes = category_cells(home.size, pl.Int64(), range(1, max_contribution + 1))
    shared = {**{name: columns[name] for name in home.columns}, home.size: sizes}
    above, below = household_rows(frame, by=home.id, columns=home.columns, size=home.size)
    upper = _fit_table(above, shared, squared * home.share, run, max_contribution=1)
    given = dict(zip(shared, upper.merged, strict=True))
    lower = _fit_table(
        below,
        {**shared, **columns},
        squared * (1 - home.share),
        run,
        max_contribution=max_contribution,
        given=given,
    )
    named = {home.id, home.released, *columns}
    return HouseholdModel(
        households=upper, members=lower, id=home.id, size=home.released, constraints=run.constraints,
        id_type=dtype if dtype.is_integer() or dtype == pl.String else pl.Int64(),
        order=[name for name in frame.columns if name in named],
    )  # fmt: skip


def _prepared(frame: pl.DataFrame, run: FitRun) -> tuple[dict[str, ColumnCells], Fraction]:
    """The cells of all columns, and the budget that is left after learning some of them."""
    plan = run.plan
    return _all_cells(frame, plan, run.receipt), plan.squared * (1 - plan.learn) if _learned(plan) else plan.squared


def _fit_table(
    frame: pl.DataFrame,
    columns: Mapping[str, ColumnCells],
    squared: Fraction,
    run: FitRun,
    *,
    max_contribution: int,
    given: Mapping[str, MergedCells] | None = None,
) -> SynthesisModel:
    """Fit a model to one table on known cells. ``given``: columns whose values are known when rows are drawn.

    The number of rows is measured first. From it follow the cells of ranges, the share of the columns and the bins, so
    that a small budget is spent on few cells. What pairs do not need goes to all columns and to the pairs that depend
    on each other; if no pair does, the columns get all of it. Everything after a measurement depends on noisy results.
    """
    plan = run.plan
    known = given or {}
    rows = PrivateCounts(
        [np.zeros(frame.height, np.uint8)], [1], max_contribution=max_contribution, receipt=run.receipt
    )
    total = rows.measure((0,), squared * _TOTAL)
    squared *= 1 - _TOTAL
    number = max(1.0, float(total.noisy[0]))
    alone = len(columns) <= max(1, len(known))
    sizes = [cells.size for cells in columns.values()]
    one_way = squared * (1 if alone else _column_share(plan, sizes, number, squared, max_contribution))
    columns, spent = _cells_with_people(frame, columns, known, number, one_way, max_contribution, run.receipt)
    codes = [smallest(cells.encode(frame.get_column(name))) for name, cells in columns.items()]
    shape = [cells.size for cells in columns.values()]
    fine = PrivateCounts(codes, shape, max_contribution=max_contribution, receipt=run.receipt)
    one_way, squared = one_way - spent, squared - spent
    measured = _measured_columns(fine, one_way)
    bins = plan.bins or _bins(number, squared - one_way, _pairs(plan, columns), max_contribution)
    merged, estimates = _merged(measured, columns, bins, known)
    if one_way < squared:
        counts = fine.merged([groups.groups for groups in merged])
        left = _measure(run, counts, estimates, squared - one_way, list(columns))
        pairs = [marginal for marginal in estimates.measured if len(marginal) > 1 and estimates.dependent(marginal)]
        if left and pairs:
            sizes = [*counts.shape, *(prod(counts.shape[c] for c in m) for m in pairs)]
            shares = _shares(sizes)
            for marginal, share in zip([*((c,) for c in range(len(columns))), *pairs], shares, strict=True):
                estimates.add(counts.measure(marginal, left * share))
        elif left:
            again = _measured_columns(fine, left)
            measured = [_pooled(one, other) for one, other in zip(measured, again, strict=True)]
            merged, estimates = _merged(measured, columns, bins, known)
    tree = estimates.fitted(sweeps=60 if plan.chosen == "adaptive" else 2, max_cells=_TREE_CELLS)
    return SynthesisModel(columns=columns, merged=merged, estimates=estimates, tree=tree, guarantee=run.guarantee)


def _cells_with_people(
    frame: pl.DataFrame,
    columns: Mapping[str, ColumnCells],
    known: Mapping[str, MergedCells],
    rows: float,
    squared: Fraction,
    max_contribution: int,
    receipt: Receipt,
) -> tuple[dict[str, ColumnCells], Fraction]:
    """Ranges in cells that have some standard deviations of noise each, and what was spent to find them.

    A range is counted in equally wide cells that have so many people on average, with a part of the budget. Cells with
    more people are split.
    """
    deviation = max_contribution * sqrt(len(columns) / float(squared))
    least = _CELL_DEVIATIONS * deviation
    most = max(_BINS[0], int(min(rows / least, 1e6)))
    coarse = {name: cells.coarser(most) for name, cells in columns.items() if name not in known}
    coarse = {name: cells for name, cells in coarse.items() if cells is not columns[name]}
    if not coarse:
        return dict(columns), Fraction(0)
    codes = [smallest(cells.encode(frame.get_column(name))) for name, cells in coarse.items()]
    counts = PrivateCounts(
        codes, [cells.size for cells in coarse.values()], max_contribution=max_contribution, receipt=receipt
    )
    spent = squared * _SCOUT * len(coarse) / len(columns)
    found = dict(zip(coarse, _measured_columns(counts, spent), strict=True))
    return {
        name: cells.refined(coarse[name], found[name].noisy, least=least) if name in coarse else cells
        for name, cells in columns.items()
    }, spent


def _bins(rows: float, squared: Fraction, pairs: int, max_contribution: int) -> int:
    """The number of bins of a number at which every pair can be measured with some noise per row."""
    noise = max_contribution * sqrt(max(1, pairs) / max(float(squared), 1e-30))
    return int(np.clip(sqrt(_PAIR_NOISE * rows / noise), *_BINS))


def _column_share(plan: SynthesisPlan, shape: Sequence[int], rows: float, squared: Fraction, most: int) -> Fraction:
    """The share of the budget for the columns: as much as makes their noise small beside what columns depend."""
    if plan.chosen == "mst":
        return _ONE_WAY["mst"]
    sizes = np.minimum(shape, plan.bins or _BINS[1])
    error = float(np.mean(0.4 * most * sqrt(len(shape) / float(squared)) * sizes / rows))
    return Fraction(round(float(np.clip((error / _COLUMN_ERROR) ** 2, *_COLUMN_SHARES)) * 1000), 1000)


def _measured_columns(counts: PrivateCounts, squared: Fraction) -> list[NoisyMarginal]:
    """The noisy counts of every column."""
    return [counts.measure((number,), squared * share) for number, share in enumerate(_shares(counts.shape))]


def _pooled(one: NoisyMarginal, other: NoisyMarginal) -> NoisyMarginal:
    """Two measurements of the same counts as one: their average, weighted by inverse variances."""
    precision = 1 / one.variance + 1 / other.variance
    noisy = (one.noisy / one.variance + other.noisy / other.variance) / precision
    return NoisyMarginal(columns=one.columns, noisy=noisy, variance=1 / precision)


def _merged(
    measured: Sequence[NoisyMarginal],
    columns: Mapping[str, ColumnCells],
    bins: int,
    known: Mapping[str, MergedCells],
) -> tuple[list[MergedCells], MarginalEstimates]:
    """Cells whose noisy counts are too small are merged; what was measured, on the merged cells."""
    total = _total(measured)
    merged = [
        known.get(name)
        or merge_cells(one.noisy, deviation=one.variance**0.5, ordered=cells.ordered, bins=bins, total=total)
        for one, (name, cells) in zip(measured, columns.items(), strict=True)
    ]
    estimates = MarginalEstimates([groups.size for groups in merged], given=tuple(range(len(known))))
    for one, groups in zip(measured, merged, strict=True):
        estimates.add(_merged_measurement(one, groups))
    return merged, estimates


def _learned(plan: SynthesisPlan) -> list[str]:
    return [name for name, cells in plan.declared.items() if cells is None]


def _all_cells(frame: pl.DataFrame, plan: SynthesisPlan, receipt: Receipt) -> dict[str, ColumnCells]:
    """Declared cells, and learned ones where none are declared."""
    unknown, categories = _learned(plan), max(1, len(plan.learned_categories))
    columns: dict[str, ColumnCells] = {}
    for name, cells in plan.declared.items():
        columns[name] = cells or learn_cells(
            frame.get_column(name),
            squared=plan.squared * plan.learn / len(unknown),
            delta=plan.learned_delta / categories,
            max_contribution=plan.max_contribution,
            receipt=receipt,
        )
    return columns


def _shares(sizes: Sequence[int]) -> list[Fraction]:
    """Shares of the budget, proportional to sqrt(cells).

    cells^(2/3) would minimize the sum of the L1 norms of the noise. Cells that the noise hides are merged, so the error
    of a column with many cells grows more slowly than that.
    """
    weights = [Fraction(round(size ** (1 / 2) * 1000)) for size in sizes]
    return [weight / sum(weights) for weight in weights]


def _total(measured: Sequence[NoisyMarginal]) -> float:
    weights = [1 / (one.variance * one.noisy.size) for one in measured]
    return max(1.0, float(np.average([one.noisy.sum() for one in measured], weights=weights)))


def _merged_measurement(one: NoisyMarginal, merged: MergedCells) -> NoisyMarginal:
    noisy = np.bincount(merged.groups, weights=one.noisy, minlength=merged.size).astype(np.float64)
    sizes = np.bincount(merged.groups, minlength=merged.size)
    mean, most = one.variance * float(sizes.mean()), one.variance * float(sizes.max())
    return NoisyMarginal(columns=one.columns, noisy=noisy, variance=mean, most=most)


def _pairs(plan: SynthesisPlan, columns: Mapping[str, ColumnCells]) -> int:
    """The number of marginals of several columns that are measured at most."""
    return len(columns) - 1 if plan.chosen == "mst" else len(_candidates(plan, list(columns)))


def _measure(
    run: FitRun, counts: PrivateCounts, estimates: MarginalEstimates, squared: Fraction, order: list[str]
) -> Fraction:
    """Measure combinations of columns with at most ``squared``, and return what is left of it."""
    plan = run.plan
    candidates = [c for c in _candidates(plan, order) if not set(c) <= set(estimates.given)]
    # A column whose cells are all merged has no relation to another one.
    candidates = [c for c in candidates if sum(counts.shape[column] > 1 for column in c) > 1]
    candidates = [c for c in candidates if prod(counts.shape[column] for column in c) <= _TREE_CELLS]
    favoured = order.index(plan.target) if plan.target in order else -1
    weights = {columns: _TARGET_WEIGHT if favoured in columns else 1 for columns in candidates}
    if plan.chosen == "mst":
        measure_spanning_tree(counts, estimates, squared, weights=weights)
        return Fraction(0)
    if candidates:
        return measure_adaptively(
            counts, estimates, squared, candidates=candidates, weights=weights,
            max_cells=_TREE_CELLS, random=run.random, progress=run.progress,
        )  # fmt: skip
    return squared


def _candidates(plan: SynthesisPlan, order: list[str]) -> list[Columns]:
    """The marginals of the workload, by default all pairs."""
    if plan.workload is None:
        return list(combinations(range(len(order)), 2))
    known = [names for names in plan.workload if set(names) <= set(order)]
    return [tuple(sorted(order.index(name) for name in names)) for names in known]
