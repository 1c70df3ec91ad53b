"""Minimum-cost assignment of targets to rows: every target gets a different row.

Linkage of one person at a time may name the same row for several people. An adversary who knows many people of a
release can exclude this. The cost of a pair of person and row is a distance of values or ranks, with categories
weighted by rarity: the attacker does not know how values were perturbed.

Columns whose released values are true (ranges, groups, unchanged values) decide which rows are possible, and the
perturbed ones how likely each of these is. In small files a pair that cannot be has a cost above all others; in larger
ones only the rows that fit (:mod:`sfumato.attacks.record_linkage._fitting_rows`) are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.attacks.candidate_rows import compare
from sfumato.attacks.features import numbers
from sfumato.attacks.record_linkage._fitting_rows import FittingRows, fitting_rows
from sfumato.attacks.record_linkage._near_rows import different_rows
from sfumato.deadline import batches, check_deadline
from sfumato.errors import NotApplicable
from sfumato.memory import require_memory
from sfumato.progress import Progress
from sfumato.rng import Rng

By = Literal["values", "ranks"]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

_CELLS = 20_000_000
"""Number of pairs of targets and rows, or of known and released values, in memory at a time."""
_DENSE = 4_000_000
"""Up to this many pairs, all rows are considered for each target; beyond it, the cheapest ones."""
_CHEAPEST = 50
"""Number of cheapest rows considered per target."""
_IMPOSSIBLE = 1000.0
"""Cost of a disagreement in a column that no published step changed."""
_FAR = 1e9
"""Upper bound of standardized differences, so that squares do not overflow."""
_TINY = 1e-150
"""Numbers with a smaller standard deviation than this, or larger than one over it, are compared by rank."""
_UNIFORM = 12**0.5
"""One over the standard deviation of the uniform distribution."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """The cost of pairs of target and row in one or several columns."""

    block: Callable[[slice], Singles]
    """The costs of some targets (a slice) with every released row."""
    pairs: Callable[[Ints, Ints], Singles]
    """The costs of single pairs: the numbers of targets and of rows."""


@dataclass(frozen=True, kw_only=True)
class AssignedRows:
    """The row assigned to each target that was processed in time."""

    row: Ints
    share: Floats
    """The weight of that row among the considered rows, as if the costs were those of normal noise."""
    columns: tuple[str, ...]
    """The compared columns."""


def min_cost_assignment(view: View, by: By, rng: Rng, progress: Progress) -> AssignedRows:
    """Assign every target a different row so that the sum of costs is minimal."""
    if not view.knows:
        raise NotApplicable("The attacker knows no column of the release.", fix="Name columns with `knows`.")
    prices, columns = _prices(view, by)
    rows = view.release.table.rows
    dense = rows * view.targets.height <= _DENSE
    fitting = None if dense else fitting_rows(view, _CELLS, progress)
    if fitting is not None:
        return _among_fitting_rows(fitting, prices, columns, rng, progress)
    count = rows if dense else min(rows, _CHEAPEST)
    near = np.empty((view.targets.height, count), dtype=np.int64)
    cost = np.empty((view.targets.height, count), dtype=np.float64)
    draw = rng.child("ties").generator
    done = 0
    for part in batches(progress, "comparing people with rows", len(near), max(1, _CELLS // max(1, rows))):
        block = sum((price.block(part) for price in prices), np.zeros((part.stop - part.start, rows), dtype=np.float32))
        near[part] = np.argpartition(block, count - 1, axis=1)[:, :count] if count < rows else np.arange(rows)
        # Ties are broken at random.
        cost[part] = np.take_along_axis(block, near[part], axis=1) + 1e-9 * draw.random(near[part].shape)
        done = part.stop
    near, cost = near[:done], cost[:done]
    if done == 0:
        return AssignedRows(row=np.empty(0, np.int64), share=np.empty(0), columns=columns)
    check_deadline(progress)
    place = _matched(near, cost, rows)
    weight = np.exp(-(cost - cost.min(axis=1, keepdims=True)) / 2)
    people = np.arange(done)
    return AssignedRows(row=near[people, place], share=weight[people, place] / weight.sum(axis=1), columns=columns)


def _among_fitting_rows(
    fitting: FittingRows, prices: Sequence[Price], columns: tuple[str, ...], rng: Rng, progress: Progress
) -> AssignedRows:
    """The assignment among the rows that fit each target in the columns whose released values are true."""
    person = np.repeat(np.arange(fitting.people), np.diff(fitting.starts))
    cost = fitting.vagueness.astype(np.float64)
    for price in prices:
        check_deadline(progress)
        cost += price.pairs(person, fitting.rows)
    order = np.lexsort((cost + 1e-9 * rng.child("ties").generator.random(len(cost)), person))
    place = np.arange(len(order)) - np.repeat(fitting.starts[:-1], np.diff(fitting.starts))
    kept = place < _CHEAPEST
    near = np.full((fitting.people, _CHEAPEST), -1, dtype=np.int64)
    distance = np.full((fitting.people, _CHEAPEST), np.inf)
    near[person[kept], place[kept]] = fitting.rows[order[kept]]
    distance[person[kept], place[kept]] = cost[order[kept]]
    check_deadline(progress)
    row = different_rows(near, distance, rng.child("different").generator)
    best = np.where(np.isfinite(distance[:, :1]), distance[:, :1], 0.0)
    weight = np.exp(-np.minimum((distance - best) / 2, 700.0))
    share = (weight * (near == row[:, None])).sum(axis=1) / np.maximum(weight.sum(axis=1), 1e-300)
    return AssignedRows(row=row, share=np.where(row >= 0, share, 0.0), columns=columns)


def _matched(near: Ints, cost: Floats, rows: int) -> Ints:
    """The position in ``near`` of each target's row; the cheapest one if all its rows went to others."""
    from scipy.optimize import linear_sum_assignment
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    people, count = near.shape
    if count == rows and people <= rows:
        return np.asarray(linear_sum_assignment(cost)[1], dtype=np.int64)
    # Every target has a private dummy row that costs more than any real row, so that a full matching exists. Costs
    # start at one, because a sparse matrix has no entries of zero.
    positive = cost - cost.min() + 1.0
    outside = positive.max() + 1.0
    first = np.repeat(np.arange(people), count)
    pairs = csr_array(
        (
            np.concatenate([positive.ravel(), np.full(people, outside)]),
            (np.concatenate([first, np.arange(people)]), np.concatenate([near.ravel(), rows + np.arange(people)])),
        ),
        shape=(people, rows + people),
    )
    taken = np.asarray(min_weight_full_bipartite_matching(pairs)[1], dtype=np.int64)
    inside = near == taken[:, None]
    place: Ints = np.where(inside.any(axis=1), inside.argmax(axis=1), cost.argmin(axis=1))
    return place


def _prices(view: View, by: By) -> tuple[list[Price], tuple[str, ...]]:
    by_column = {name: price for name in view.knows if (price := _column(view, name, by)) is not None}
    if not by_column:
        raise NotApplicable("No known column can be compared with the release.", columns=view.knows)
    return list(by_column.values()), tuple(by_column)


def _column(view: View, name: str, by: By) -> Price | None:
    """The cost of a column; None if it cannot be compared or is uninformative."""
    known, released = view.targets.get_column(name), view.release.table.column(name)
    ordered = known.dtype.is_numeric() or known.dtype.is_temporal()
    if ordered and released.dtype != pl.String:
        before, after = numbers(known), numbers(released)
        if before is not None and after is not None and view.steps and name in view.untouched:
            return _unequal(before, after, known=0.0 if view.blanks_unknown else _IMPOSSIBLE)
        if before is not None and after is not None:
            return _difference(before, after, by, missing=0.0 if view.blanks_unknown else 1.0)
    if known.n_unique() * released.n_unique() > _CELLS:
        return None
    return _disagreement(view, name)


def _difference(before: Floats, after: Floats, by: By, *, missing: float) -> Price | None:
    known, released = before[np.isfinite(before)], np.sort(after[np.isfinite(after)])
    if len(known) == 0 or len(released) == 0 or released[0] == released[-1]:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        many = 2 * len(known) >= len(released) and known.std() > 0
        own = known if many else released
        usual = all(_TINY < spread < 1 / _TINY for spread in (own.std(), released.std()))
    if by == "ranks" or not usual:
        left, right = _ranks(before, np.sort(known) if many else released), _ranks(after, released)
    else:
        left, right = (before - own.mean()) / own.std(), (after - released.mean()) / released.std()
    left, right = np.clip(left, -_FAR, _FAR), np.clip(right, -_FAR, _FAR)
    gone = np.isnan(right)

    def block(part: slice) -> Singles:
        some = left[part].astype(np.float32)
        gap = some[:, None] - right.astype(np.float32)[None, :]
        gap *= gap
        blank = np.isnan(some)
        gap[:, gone] = 0.5
        gap[blank] = np.where(gone, 0.0, missing)
        return gap

    def pairs(person: Ints, row: Ints) -> Singles:
        gap = (left[person] - right[row]) ** 2
        gap = np.where(gone[row], 0.5, gap)
        return np.where(np.isnan(left[person]), np.where(gone[row], 0.0, missing), gap).astype(np.float32)

    return Price(block=block, pairs=pairs)


def _unequal(before: Floats, after: Floats, *, known: float) -> Price:
    """A number that no published step changed is equal in both files; a suppressed cell is no evidence."""
    gone = np.isnan(after)

    def block(part: slice) -> Singles:
        some = before[part]
        cost = np.where(some[:, None] == after[None, :], 0.0, _IMPOSSIBLE).astype(np.float32)
        cost[:, gone] = 0.5
        cost[np.isnan(some)] = np.where(gone, 0.0, known)
        return cost

    def pairs(person: Ints, row: Ints) -> Singles:
        cost = np.where(gone[row], 0.5, np.where(before[person] == after[row], 0.0, _IMPOSSIBLE))
        return np.where(np.isnan(before[person]), np.where(gone[row], 0.0, known), cost).astype(np.float32)

    return Price(block=block, pairs=pairs)


def _ranks(values: Floats, among: Floats) -> Floats:
    """Ranks as quantiles, in units of their standard deviation."""
    middle = (np.searchsorted(among, values, "left") + np.searchsorted(among, values, "right")) / 2
    return np.where(np.isnan(values), np.nan, middle / len(among) * _UNIFORM)


def _disagreement(view: View, name: str) -> Price | None:
    """Cost of categories: zero if the label is the value, largest if a rare value is not matched."""
    published: Any = view.release.manifest.get("columns", {}) if view.transparent else {}
    comparison = compare(
        view.targets.get_column(name),
        view.release.table.column(name),
        published.get(name, {}).get("hierarchy"),
        blanks_unknown=view.blanks_unknown,
        recoding=view.recodings.get(name),
    )
    if not comparison.named or len(comparison.labels) < 2:
        return None
    size = float(len(comparison.values)) * len(comparison.labels)
    require_memory(24 * size, f"the cost of every pair of values of `{name}`")
    fits = np.zeros((len(comparison.values), len(comparison.labels)), dtype=np.bool_)
    fits[np.repeat(np.arange(len(comparison.values)), np.diff(comparison.starts)), comparison.fits] = True
    frequent = np.bincount(comparison.released, minlength=len(comparison.labels)) * ~comparison.vague
    share = (fits @ frequent + 0.5) / (frequent.sum() + 1.0)
    truthful = bool(view.steps) and name in view.untouched
    miss = np.full(len(share), _IMPOSSIBLE) if truthful else np.clip(-np.log(share), 1.0, 8.0)
    table = np.where(fits, 0.5 * (1 - 1 / np.maximum(comparison.cover, 1.0))[None, :], miss[:, None])
    table[:, comparison.vague] = 0.5
    table = table.astype(np.float32)
    return Price(
        block=lambda part: table[comparison.known[part]][:, comparison.released],
        pairs=lambda person, row: table[comparison.known[person], comparison.released[row]],
    )
