"""Adaptive selection of marginals: measure what the current model fits worst, refit, repeat."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod, sqrt

import numpy as np

from sfumato.progress import Progress
from sfumato.rationals import rational
from sfumato.synthesis.estimate import MarginalEstimates
from sfumato.synthesis.junction_tree import tree_cells, triangulate
from sfumato.synthesis.private_counts import PrivateCounts, count_cells
from sfumato.synthesis.residuals import Columns

_SELECTION = Fraction(3, 100)
"""Share of the budget for selections."""
_SWEEPS = 8
"""Sweeps of proportional fitting between two rounds."""
_WORTH = 0.7
"""A marginal is measured if its noise has at most this L1 norm, as a share of the rows. What independence gets wrong
about a pair is rarely more."""
_ENOUGH = 0.002
"""L1 norm of the noise, as a share of the rows, below which a marginal gets no more budget before all are measured."""
_BOLDER = 2
"""Factor by which shares grow if no marginal is worth its noise."""


def measure_adaptively(
    counts: PrivateCounts,
    estimates: MarginalEstimates,
    squared: Fraction,
    *,
    candidates: Sequence[Columns],
    weights: dict[Columns, int],
    rounds: int,
    max_cells: int,
    random: np.random.Generator,
    progress: Progress,
) -> Fraction:
    """Spend ``squared`` on marginals that are selected one after the other, and return what is left of it.

    A round fits the maximum entropy model to all noisy marginals, compares a sample of it with the data on every
    candidate, and measures the one that the exponential mechanism selects. The score is the L1 error minus the error
    that the noise would cause (McKenna, Mullins, Sheldon, Miklau 2022, doi:10.14778/3551793.3551817). Larger marginals
    get a larger share of the budget, proportional to the square root of their cells. Shares start at about
    1/``rounds``. They grow while no candidate is worth its noise, so that a small budget measures few marginals or
    none. Candidates that would make the junction tree exceed ``max_cells`` are left out; all of these decisions depend
    on noisy results only.
    """
    shape = counts.shape
    selection = squared * _SELECTION / rounds
    typical = float(np.median([prod(shape[c] for c in columns) for columns in candidates]))
    left, bold = squared, 1

    def share(columns: Columns) -> Fraction:
        cells = prod(shape[c] for c in columns)
        wanted = squared * (1 - _SELECTION) / rounds * Fraction(round((cells / typical) ** 0.5 * 1000), 1000) * bold
        enough = rational(2 / np.pi * (cells / (_ENOUGH * estimates.total)) ** 2)
        return min(wanted, max(enough, squared / 1000), left - selection)

    with progress.task("private-synthesis", rounds) as tick:
        while left > selection + squared / rounds / 8:
            open_candidates = [
                columns
                for columns in candidates
                if columns not in estimates.measured
                and _fits(shape, [*estimates.measured, estimates.given, columns], max_cells)
            ]
            if not open_candidates:
                break
            noise = {columns: _noise_error(columns, shape, share(columns)) for columns in open_candidates}
            worth = [columns for columns in open_candidates if noise[columns] <= _WORTH * estimates.total]
            if not worth:
                if bold > rounds:
                    break
                bold *= _BOLDER
                continue
            rows = int(np.clip(estimates.total, 10_000, 100_000))
            sample = estimates.tree(sweeps=_SWEEPS).sample(rows, random)
            scale = estimates.total / rows
            number = counts.select(
                worth,
                [np.asarray(count_cells(sample, c, shape) * scale, dtype=np.float64) for c in worth],
                penalties=[noise[columns] for columns in worth],
                weights=[weights.get(columns, 1) for columns in worth],
                squared=selection,
            )
            chosen = worth[number]
            cost = share(chosen)
            estimates.add(counts.measure(chosen, cost))
            left -= selection + cost
            tick(1)
    return left


def _noise_error(columns: Columns, shape: Sequence[int], squared: Fraction) -> float:
    """The expected L1 norm of the noise of a marginal that costs ``squared``, for one row per person."""
    return sqrt(2 / np.pi / float(squared)) * prod(shape[c] for c in columns)


def _fits(shape: Sequence[int], marginals: Sequence[Columns], max_cells: int) -> bool:
    return tree_cells(shape, triangulate(shape, marginals)) <= max_cells
