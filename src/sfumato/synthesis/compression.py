"""Public merging of cells whose noisy counts are too small to tell apart, and its inverse for synthetic rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats
from sfumato.synthesis.junction_tree import evenly
from sfumato.synthesis.residuals import project_to_simplex

Groups = npt.NDArray[np.int32]
_DEVIATIONS = 6.0
"""Cells below that many standard deviations of the noise are merged."""
_FEW = 5
"""Columns with at most so many cells add little noise to a pair: their cells are merged below two deviations."""


@dataclass(frozen=True, kw_only=True)
class MergedCells:
    """The cells of one column in groups. Everything here follows from noisy counts."""

    groups: Groups
    """The group of every cell."""
    shares: Floats
    """The estimated share of every cell."""
    noise: float
    """The sum of the squared noise as a share of that of the noisy counts: above one half, noise exceeds counts."""

    @property
    def size(self) -> int:
        """The number of groups."""
        return int(self.groups.max()) + 1

    def split(self, codes: Groups, random: np.random.Generator) -> Groups:
        """A cell for every group number, spread evenly by the estimated shares."""
        cells = np.empty(len(codes), dtype=np.int32)
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(self.size + 1))
        for group in range(self.size):
            rows, members = order[bounds[group] : bounds[group + 1]], np.flatnonzero(self.groups == group)
            if len(members) == 1:
                cells[rows] = members[0]
            elif len(rows):
                weights = self.shares[members]
                if not weights.sum() > 0:
                    weights = (members > 0).astype(np.float64)  # cell 0 is the missing value
                edges = np.cumsum(weights) / weights.sum()
                cells[rows] = members[np.searchsorted(edges[:-1], evenly(len(rows), random), side="right")]
        return cells


def merge_cells(noisy: Floats, *, deviation: float, ordered: bool, bins: int, total: float) -> MergedCells:
    """Merge the cells of a column. Cell 0 is the missing value; neighbours are merged if the others are ordered.

    >>> counts = np.array([1.0, 500.0, 12.0, 14.0, 13.0, 900.0, 2.0])
    >>> merge_cells(counts, deviation=5.0, ordered=True, bins=20, total=1500.0).groups.tolist()
    [1, 0, 1, 1, 1, 2, 1]
    """
    least = (_DEVIATIONS if len(noisy) > _FEW else 2) * deviation
    groups = np.full(len(noisy), -1, dtype=np.int32)
    if ordered:
        _merge_neighbours(noisy, groups, least=least)
        if groups.max() >= bins:
            _merge_neighbours(noisy, groups, least=max(least, total / bins))
    else:
        kept = np.flatnonzero(noisy >= least)
        groups[kept] = np.arange(len(kept))
    if noisy[0] >= least and groups[0] < 0:
        groups[0] = groups.max() + 1
    rare = groups < 0
    if rare.any():
        own = float(noisy[rare].sum()) >= least * np.sqrt(rare.sum()) or groups.max() < 0
        groups[rare] = groups.max() + 1 if own else _smallest(noisy, groups)
    shrunk = _shrunk(noisy, groups, deviation)
    shares = project_to_simplex(shrunk, max(total, 1.0)) / max(total, 1.0)
    noise = len(noisy) * deviation**2 / max(float(noisy @ noisy), 1e-300)
    return MergedCells(groups=groups, shares=shares, noise=min(1.0, noise))


def _shrunk(noisy: Floats, groups: Groups, deviation: float) -> Floats:
    """Noisy counts of the cells of a group, shrunk towards their mean as far as they differ by noise alone.

    The positive-part estimator of James and Stein (Efron, Morris 1973, doi:10.2307/2284155). A missing value that the
    noise could have made is left out of its group.
    """
    counts = noisy.copy()
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        members = members[members > 0]
        if len(members) > 3:
            mean = counts[members].mean()
            around = counts[members] - mean
            kept = max(0.0, 1 - (len(members) - 3) * deviation**2 / max(float(around @ around), 1e-300))
            counts[members] = mean + kept * around
    if np.count_nonzero(groups == groups[0]) > 1 and noisy[0] < 2 * deviation:
        counts[0] = -np.inf
    return counts


def _merge_neighbours(noisy: Floats, groups: Groups, *, least: float) -> None:
    """Number stretches of neighbouring cells that reach ``least`` together; a cell that does alone stands alone."""
    groups[1:] = -1
    held: list[int] = []
    number, sum_held = 0, 0.0
    for cell in range(1, len(noisy)):
        if noisy[cell] >= least and held:
            groups[held] = number
            number, held, sum_held = number + 1, [], 0.0
        held.append(cell)
        sum_held += noisy[cell]
        if sum_held >= least:
            groups[held] = number
            number, held, sum_held = number + 1, [], 0.0
    if held and sum_held >= least / 2:
        groups[held] = number


def _smallest(noisy: Floats, groups: Groups) -> int:
    counts = np.bincount(groups[groups >= 0], weights=noisy[groups >= 0])
    return int(counts.argmin())
