"""Fit a private model to a table: bound contributions, learn domains, measure marginals, estimate a distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import Literal

import numpy as np
import polars as pl

from sfumato.dp.analytic_gaussian import squared_for
from sfumato.dp.curve import gaussian_curve
from sfumato.dp.loss import PrivacyLoss, concentrated
from sfumato.dp.os_random import words
from sfumato.dp.receipt import Receipt
from sfumato.dp.zcdp import rho_for
from sfumato.errors import BadParameter
from sfumato.progress import Progress
from sfumato.synthesis.adaptive import measure_adaptively
from sfumato.synthesis.column_domain import ColumnCells
from sfumato.synthesis.compression import MergedCells, merge_cells
from sfumato.synthesis.estimate import MarginalEstimates
from sfumato.synthesis.learned_domain import learn_cells
from sfumato.synthesis.model import Guarantee, SynthesisModel
from sfumato.synthesis.private_counts import NoisyMarginal, PrivateCounts
from sfumato.synthesis.residuals import Columns
from sfumato.synthesis.spanning_tree import measure_spanning_tree

__all__ = ["SynthesisPlan", "bounded_rows", "fit_model"]

_ONE_WAY = {"mst": Fraction(1, 5), "adaptive": Fraction(3, 20)}
"""Share of the budget for the one-way marginals."""
_LEARNED_DELTA = Fraction(1, 4)
"""Share of delta for categories that are learned."""
_TREE_CELLS = 1_000_000
"""Largest size of the junction tree, and of one marginal."""
_WIDE = 40
"""Number of columns from which ``auto`` selects a tree."""
_LARGEST_DEVIATION = 1e6
"""A one-way marginal with more noise than this tells nothing about any table of people."""
_TARGET_WEIGHT = 3
"""Weight of marginals with the target column in selections."""


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
    bins: int
    reach: int
    """The largest number of rows of one unit."""
    target: str | None = None
    workload: tuple[tuple[str, ...], ...] | None = None

    def __post_init__(self) -> None:
        deviation = self.reach * len(self.declared) ** 0.5 / float(self.squared * _ONE_WAY[self.chosen]) ** 0.5
        if deviation > _LARGEST_DEVIATION:
            raise BadParameter(
                "private-synthesis: epsilon is too small: every count would carry noise of more than a million rows.",
                fix="Use a larger epsilon, fewer columns or a smaller `max_rows`.",
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


def bounded_rows(frame: pl.DataFrame, unit: str | None, reach: int) -> pl.DataFrame:
    """At most ``reach`` rows of every unit, chosen at random; rows without a unit are left out."""
    if unit is None:
        return frame
    keyed = frame.filter(pl.col(unit).is_not_null())
    order = keyed[np.argsort(words(keyed.height))]
    return order.filter(pl.int_range(pl.len()).over(unit) < reach)


def fit_model(
    frame: pl.DataFrame,
    plan: SynthesisPlan,
    *,
    receipt: Receipt,
    random: np.random.Generator,
    progress: Progress,
    guarantee: Guarantee,
    constraints: tuple[str, ...] = (),
) -> SynthesisModel:
    """Fit a model to rows with bounded contributions. ``receipt`` covers the loss of the plan."""
    columns = _all_cells(frame, plan, receipt)
    squared = plan.squared * (1 - plan.learn) if _learned(plan) else plan.squared
    codes = np.array([cells.encode(frame.get_column(name)) for name, cells in columns.items()], dtype=np.int32)
    fine = PrivateCounts(codes, [c.size for c in columns.values()], reach=plan.reach, receipt=receipt)
    one_way = squared * _ONE_WAY[plan.chosen]
    measured = [
        fine.measure((number,), one_way * share)
        for number, share in enumerate(_shares([c.size for c in columns.values()]))
    ]
    total = _total(measured)
    merged = [
        merge_cells(one.noisy, deviation=one.variance**0.5, ordered=cells.ordered, bins=plan.bins, total=total)
        for one, cells in zip(measured, columns.values(), strict=True)
    ]
    counts = fine.merged([groups.groups for groups in merged])
    estimates = MarginalEstimates(counts.shape)
    for one, groups in zip(measured, merged, strict=True):
        estimates.add(_merged_measurement(one, groups))
    order = list(columns)
    if len(order) > 1:
        _measure(plan, counts, estimates, squared - one_way, order, random, progress)
    tree = estimates.tree(sweeps=60 if plan.chosen == "adaptive" else 2)
    return SynthesisModel(
        columns=columns, merged=merged, estimates=estimates, tree=tree, guarantee=guarantee, constraints=constraints
    )


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
            reach=plan.reach,
            receipt=receipt,
        )
    return columns


def _shares(sizes: Sequence[int]) -> list[Fraction]:
    """Shares of the budget that minimize the sum of L1 errors: proportional to cells^(2/3)."""
    weights = [Fraction(round(size ** (2 / 3) * 1000)) for size in sizes]
    return [weight / sum(weights) for weight in weights]


def _total(measured: Sequence[NoisyMarginal]) -> float:
    weights = [1 / (one.variance * one.noisy.size) for one in measured]
    return max(1.0, float(np.average([one.noisy.sum() for one in measured], weights=weights)))


def _merged_measurement(one: NoisyMarginal, merged: MergedCells) -> NoisyMarginal:
    noisy = np.bincount(merged.groups, weights=one.noisy, minlength=merged.size).astype(np.float64)
    sizes = np.bincount(merged.groups, minlength=merged.size)
    mean, most = one.variance * float(sizes.mean()), one.variance * float(sizes.max())
    return NoisyMarginal(columns=one.columns, noisy=noisy, variance=mean, most=most)


def _measure(
    plan: SynthesisPlan, counts: PrivateCounts, estimates: MarginalEstimates, squared: Fraction, order: list[str],
    random: np.random.Generator, progress: Progress,
) -> None:  # fmt: skip
    candidates = _candidates(plan, order)
    candidates = [c for c in candidates if prod(counts.shape[column] for column in c) <= _TREE_CELLS]
    favoured = -1 if plan.target is None else order.index(plan.target)
    weights = {columns: _TARGET_WEIGHT if favoured in columns else 1 for columns in candidates}
    if plan.chosen == "mst":
        measure_spanning_tree(counts, estimates, squared, weights=weights, max_cells=_TREE_CELLS)
    elif candidates:
        measure_adaptively(
            counts, estimates, squared, candidates=candidates, weights=weights, rounds=3 * len(order),
            max_cells=_TREE_CELLS, random=random, progress=progress,
        )  # fmt: skip


def _candidates(plan: SynthesisPlan, order: list[str]) -> list[Columns]:
    """The marginals of the workload, by default all pairs."""
    if plan.workload is None:
        return list(combinations(range(len(order)), 2))
    return [tuple(sorted(order.index(name) for name in names)) for names in plan.workload]
