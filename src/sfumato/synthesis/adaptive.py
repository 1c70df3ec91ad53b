"""Adaptive selection of marginals: measure what the current model fits worst, refit, repeat."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod, sqrt

import numpy as np

from sfumato.progress import Progress
from sfumato.rationals import rational
from sfumato.synthesis.estimate import MarginalEstimates
from sfumato.synthesis.private_counts import PrivateCounts, count_cells
from sfumato.synthesis.residuals import Columns

_SELECTION = Fraction(3, 100)
"""Share of the budget for selections."""
_SWEEPS, _RAKES = 8, 4
"""Sweeps of proportional fitting and of raking between two rounds."""
_NOISE = 0.1
"""A marginal is measured if the L1 norm of its noise is at most this times cells^(1/4), as a share of the rows."""
_MISSES = 3
"""The search for pairs ends when so many more of them were independent, as far as the noise shows, than not."""


def measure_adaptively(
    counts: PrivateCounts,
    estimates: MarginalEstimates,
    squared: Fraction,
    *,
    candidates: Sequence[Columns],
    weights: dict[Columns, int],
    max_cells: int,
    random: np.random.Generator,
    progress: Progress,
) -> Fraction:
    """Spend ``squared`` on marginals that are selected one after the other, and return what is left of it.

    If all candidates can be measured well enough, they are, with shares proportional to cells^(2/3), which minimize the
    sum of the L1 errors. Otherwise a round fits the maximum entropy model to all noisy marginals, compares a sample of
    it with the data on every candidate that can still be measured well enough, and measures the one that the
    exponential mechanism selects. The score is the L1 error minus the error that the noise would cause (McKenna,
    Mullins, Sheldon, Miklau 2022, doi:10.14778/3551793.3551817). All of these decisions depend on noisy results only.

    Well enough is noise under which the dependence of two columns can be seen: the largest singular value of noise
    grows with the fourth root of the cells, in units of its mean over the cells.
    """
    shape, total, most = counts.shape, estimates.total, counts.max_contribution
    weight = {columns: Fraction(round(prod(shape[c] for c in columns) ** (2 / 3) * 1000)) for columns in candidates}
    needed = {columns: _needed(columns, shape, total / most) for columns in candidates}
    everything, left, misses = squared / sum(weight.values()), squared, 0
    if all(everything * weight[columns] >= needed[columns] for columns in candidates):
        for columns in candidates:
            estimates.add(counts.measure(columns, everything * weight[columns]))
        return Fraction(0)
    rounds = max(1, min(len(candidates), int(len(candidates) * squared / sum(needed.values()))))
    selection = squared * _SELECTION / rounds
    open_candidates = list(candidates)
    with progress.task("private-synthesis", rounds) as tick:
        while misses <= _MISSES:
            left -= selection
            together = sum(weight[columns] for columns in open_candidates)
            share = {columns: max(needed[columns], left * weight[columns] / together) for columns in open_candidates}
            open_candidates = [columns for columns in open_candidates if share[columns] <= left]
            if not open_candidates:
                left += selection
                break
            noise = {columns: _noise_error(columns, shape, share[columns], most) for columns in open_candidates}
            rows = int(np.clip(total, 10_000, 100_000))
            sample = estimates.fitted(sweeps=_SWEEPS, max_cells=max_cells).sample(rows, random, sweeps=_RAKES)
            number = counts.select(
                open_candidates,
                [np.asarray(count_cells(sample, c, shape) * (total / rows), dtype=np.float64) for c in open_candidates],
                penalties=[noise[columns] for columns in open_candidates],
                weights=[weights.get(columns, 1) for columns in open_candidates],
                squared=selection,
            )
            chosen = open_candidates.pop(number)
            estimates.add(counts.measure(chosen, share[chosen]))
            left -= share[chosen]
            misses += -1 if estimates.dependent(chosen) else 1
            tick(1)
    return left


def _needed(columns: Columns, shape: Sequence[int], rows: float) -> Fraction:
    """The budget at which the noise of a marginal is small enough to be of use."""
    cells = prod(shape[c] for c in columns)
    return rational(2 / np.pi * (cells**0.75 / (_NOISE * rows)) ** 2)


def _noise_error(columns: Columns, shape: Sequence[int], squared: Fraction, most: int) -> float:
    """The expected L1 norm of the noise of a marginal that costs ``squared``, for ``most`` rows of a person."""
    return most * sqrt(2 / np.pi / float(squared)) * prod(shape[c] for c in columns)
