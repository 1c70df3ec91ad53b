"""The attack on exact summary statistics: which people, and which small groups, do published sums determine?

Totals, means with counts, and regression coefficients are linear equations of the unknown values of a column. The
attacker knows who is in which group, and the values of the regressors. Rows with the same groups and regressors cannot
be told apart, so that the unknowns are the sums over such cells. A sum over a set of rows is determined if its
indicator lies in the row space of the equations. Where variances are published too, the same holds for squares. Every
person also attacks with the own values, which are those of the cells without other people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Floats, Ints, Mask

_EXACT = 1e-7


@dataclass(frozen=True, kw_only=True)
class DisclosedSums:
    """What somebody can calculate although it is about fewer people than the threshold."""

    persons: frozenset[int]
    """People whose own value is determined, or whose leverage in all equations is above a half."""
    cells: int
    """Cells of rows with the same groups and regressors, below the threshold, whose sum is determined."""
    differences: int
    """Pairs of published groups of which one is part of the other and lacks fewer people than the threshold."""
    hidden: tuple[bool, ...]
    """For each suppressed group: whether its sum is determined."""
    determined: tuple[Ints, ...] = ()
    """Rows of the cells with enough people whose sum is determined."""

    @property
    def people(self) -> int:
        """The number of these people."""
        return len(self.persons)

    @property
    def any(self) -> bool:
        return bool(self.people or self.cells or self.differences or sum(self.hidden))


def disclosed_sums(
    groups: Sequence[Mask],
    *,
    threshold: int,
    units: Ints | None = None,
    regressors: Sequence[Floats] = (),
    hidden: Sequence[Mask] = (),
) -> DisclosedSums:
    """Attack the sums of one column over ``groups`` and its inner products with ``regressors``.

    ``units`` are the people behind the rows; each row is another one otherwise.

    >>> everybody, all_but_one = np.array([True, True, True]), np.array([True, True, False])
    >>> disclosed_sums([everybody, all_but_one], threshold=2).people
    1
    """
    lines = np.array([*groups, *regressors], dtype=np.float64)
    if not len(lines):
        return DisclosedSums(persons=frozenset(), cells=0, differences=0, hidden=(False,) * len(hidden))
    rows = lines.shape[1]
    who = np.arange(rows) if units is None else np.unique(units, return_inverse=True)[1].ravel()
    marks = np.array([*lines, *hidden], dtype=np.float64)
    distinct, place = np.unique(marks, axis=1, return_inverse=True)
    place = place.ravel()
    pairs = np.unique(np.column_stack([place, who]), axis=0)
    people = np.bincount(pairs[:, 0], minlength=distinct.shape[1])
    # Unknowns are scaled by the root of their number of rows: the diagonal of the projection on the row space is then
    # the leverage of a cell, 1 if its sum is determined.
    weight = np.sqrt(np.bincount(place, minlength=distinct.shape[1]))
    equations = distinct[: len(lines)] * weight
    scale = np.abs(equations).max(axis=1, keepdims=True)
    _, strength, basis = np.linalg.svd(equations / np.maximum(scale, 1e-300), full_matrices=False)
    basis = basis[strength > 1e-9 * strength.max(initial=1.0)]
    leverage = (basis**2).sum(axis=0)
    determined = leverage > 1 - _EXACT
    small = people < threshold
    targets = [np.flatnonzero(line) for line in distinct[len(lines) :]]
    known = [_inside(basis, _unit(cells, weight)) for cells in targets]
    told = determined & small
    lonely = np.flatnonzero(people == 1)
    owner = np.zeros(distinct.shape[1], dtype=np.int64)
    owner[pairs[:, 0]] = pairs[:, 1]
    for person in np.unique(owner[lonely]):
        own = lonely[owner[lonely] == person]
        # A combination of cells that the equations determine has a total leverage of at least 1.
        rest = 1 - _EXACT - leverage[own].sum()
        candidates = [n for n in np.flatnonzero(small & ~told & (leverage >= rest)) if n not in own]
        open_groups = [n for n, cells in enumerate(targets)
                       if not known[n] and leverage[cells].sum() >= rest and not np.isin(cells, own).all()]  # fmt: skip
        if not candidates and not open_groups:
            continue
        wider = _with_cells(basis, own)
        for cell in candidates:
            told[cell] = _inside(wider, _unit(np.array([cell]), weight))
        for number in open_groups:
            known[number] = _inside(wider, _unit(targets[number], weight))
    alone = people == 1
    return DisclosedSums(
        persons=frozenset(owner[alone & (told | (leverage > 0.5))].tolist()),
        cells=int(told.sum()),
        differences=_small_differences(groups, who, threshold),
        hidden=tuple(known),
        determined=tuple(np.flatnonzero(place == cell) for cell in np.flatnonzero(determined & ~small)),
    )


def _unit(cells: Ints, weight: Floats) -> Floats:
    """The sum over cells as a vector of length 1 in the scaled unknowns."""
    line = np.zeros(len(weight))
    line[cells] = weight[cells]
    return line / max(float(np.sqrt((line**2).sum())), 1e-300)


def _inside(basis: Floats, line: Floats) -> bool:
    """Whether a vector lies in the space of an orthonormal basis."""
    rest = line - basis.T @ (basis @ line)
    return bool(line.any()) and bool((rest**2).sum() < _EXACT)


def _with_cells(basis: Floats, cells: Ints) -> Floats:
    """The basis together with single cells."""
    more = np.zeros((len(cells), basis.shape[1]))
    more[np.arange(len(cells)), cells] = 1.0
    for line in more:
        for _ in range(2):
            line -= basis.T @ (basis @ line)
        size = float(np.sqrt((line**2).sum()))
        if size > 1e-6:
            basis = np.vstack([basis, line / size])
    return basis


def _small_differences(groups: Sequence[Mask], who: Ints, threshold: int) -> int:
    """Pairs of groups of which one is part of the other, with few people in the difference."""
    inside = np.array(groups, dtype=np.float64)
    if not len(inside):
        return 0
    size = inside.sum(axis=1)
    nested = (inside @ inside.T == size[:, None]) & (size[:, None] < size[None, :])
    few = 0
    for part, whole in zip(*np.nonzero(nested), strict=True):
        few += len(np.unique(who[np.asarray(groups[whole]) & ~np.asarray(groups[part])])) < threshold
    return few


def leverage_points(regressors: Sequence[Floats], units: Ints, *, threshold: int) -> frozenset[int]:
    """People on whose own values the fitted values of a regression rest too much.

    A fitted value rests on about as many people as the inverse of its leverage, the diagonal of the hat matrix (Huber
    1981, Robust Statistics, Section 7.2): near a leverage of 1 the coefficients give the value of a person away. The
    inverse must be at least the threshold. Of a person with several rows it is the largest eigenvalue of their part of
    the hat matrix. All regressors of a column are taken together: coefficients of several regressions are as many
    equations.
    """
    columns = []
    for column in regressors:
        spread = float(column.std())
        if spread > 0:
            columns.append((column - column.mean()) / spread)
    design = np.column_stack([np.ones(len(units)), *columns])
    basis, strength, _ = np.linalg.svd(design, full_matrices=False)
    basis = basis[:, strength > 1e-9 * strength.max()]
    _, people = np.unique(units, return_inverse=True)
    people = people.ravel()
    most = np.bincount(people, weights=(basis**2).sum(axis=1))  # of one row the leverage, of several a bound
    limit = 1 / threshold + _EXACT
    high = np.flatnonzero(most > limit).tolist()
    return frozenset(one for one in high if float(np.linalg.norm(basis[people == one], 2)) ** 2 > limit)
