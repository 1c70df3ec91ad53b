"""The attack on exact summary statistics: which people, and which small groups, do published sums determine?

Totals, means with counts, and regression coefficients are linear equations of the unknown values of a column. The
attacker knows who is in which group, and the values of the regressors. People with the same groups and regressors
cannot be told apart, so that the unknowns are the sums over such cells. A sum over a set of people is determined if its
indicator lies in the row space of the equations. Where variances are published too, the same holds for squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["DisclosedSums", "disclosed_sums"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class DisclosedSums:
    """What a reader can calculate although it is about fewer people than the threshold."""

    people: int
    """People whose own value is determined."""
    cells: int
    """Cells of people with the same groups and regressors, below the threshold, whose sum is determined."""
    differences: int
    """Pairs of published groups of which one is part of the other and lacks fewer people than the threshold."""
    hidden: tuple[bool, ...]
    """For each suppressed group: whether its sum is determined."""

    @property
    def any(self) -> bool:
        return bool(self.people or self.cells or self.differences or sum(self.hidden))


def disclosed_sums(
    groups: Sequence[Mask], *, regressors: Sequence[Floats] = (), hidden: Sequence[Mask] = (), threshold: int
) -> DisclosedSums:
    """Attack the sums of one column over ``groups`` and its inner products with ``regressors``.

    >>> everybody, all_but_one = np.array([True, True, True]), np.array([True, True, False])
    >>> disclosed_sums([everybody, all_but_one], threshold=2).people
    1
    """
    lines = np.array([*groups, *regressors], dtype=np.float64)
    marks = np.array([*lines, *hidden], dtype=np.float64)
    if not len(lines):
        return DisclosedSums(people=0, cells=0, differences=0, hidden=(False,) * len(hidden))
    distinct, sizes = np.unique(marks, axis=1, return_counts=True)
    equations = distinct[: len(lines)]
    scale = np.abs(equations).max(axis=1, keepdims=True)
    _, strength, basis = np.linalg.svd(equations / np.maximum(scale, 1e-300), full_matrices=False)
    basis = basis[strength > 1e-9 * strength.max(initial=1.0)]
    # The squared length of the projection of a unit vector on the row space is 1 if it lies in it.
    determined = (basis**2).sum(axis=0) > 1 - 1e-7
    inside = distinct[: len(groups)] > 0
    people = inside @ sizes
    common = (inside * sizes) @ inside.T
    part = (common == people[:, None]) & (people[:, None] < people[None, :])
    small = part & (people[None, :] - people[:, None] < threshold)
    known = []
    for line in distinct[len(lines) :]:
        rest = line - basis.T @ (basis @ line)
        known.append(bool((rest**2).sum() < 1e-7 * max(1.0, (line**2).sum())) and bool(line.any()))
    return DisclosedSums(
        people=int((determined & (sizes == 1)).sum()),
        cells=int((determined & (sizes < threshold)).sum()),
        differences=int(small.sum()),
        hidden=tuple(known),
    )
