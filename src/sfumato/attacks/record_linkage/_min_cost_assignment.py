"""Every person has a row of her own: all people sought are given rows together, so that the total is cheapest.

A nearest row is looked for by each person alone, and several people may be told the same one. Somebody who knows many
of the people in a release knows more: a row that is clearly somebody's is nobody else's. What a pair of person and row
costs is either a distance (of values or of ranks, with categories by how rare they are), or the likelihood of the moves
that a published masking makes (:mod:`sfumato.attacks.likelihood`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from numba import njit, prange

from sfumato.attacks.base import Linking, View
from sfumato.attacks.candidate_rows import compare
from sfumato.attacks.features import numbers
from sfumato.attacks.likelihood import Likelihood, fill
from sfumato.attacks.remasking import coarsened, proxy, runnable_steps
from sfumato.deadline import batches, check_deadline
from sfumato.errors import NotApplicable
from sfumato.progress import Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

__all__ = ["AssignedRows", "Assigning", "By", "min_cost_assignment"]

By = Literal["values", "ranks", "likelihood"]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Price = Callable[[slice], Singles]
"""What each of some people costs with every released row."""

_DEFAULT_ROWS = 10_000
"""Up to this many rows the attack belongs to the default battery."""
_CELLS = 20_000_000
"""So many pairs of people and rows, or of known and released values, are held at a time."""
_DENSE = 4_000_000
"""Up to so many pairs all of them take part; beyond, the cheapest rows of each person."""
_CHEAPEST = 50
_CELL = 200
"""Ranks are counted in so many cells."""
_IMPOSSIBLE = 1000.0
"""What it costs when a column disagrees that no published step changed."""
_FAR = 1e9
"""Nothing is farther than so many standard deviations: the square of more would be more than a number can hold."""
_TINY = 1e-150
"""Numbers that spread less than this, or more than one over it, are compared by their ranks."""
_UNIFORM = 12**0.5
"""One over the standard deviation of ranks as shares."""


@dataclass(frozen=True, kw_only=True)
class AssignedRows:
    """The row that each person was given, of as many people as were reached in time."""

    row: Ints
    share: Floats
    """The weight of that row among the rows that the person could have had, as if costs were log-likelihoods."""
    columns: tuple[str, ...]
    """The columns that took part."""


class Assigning(Linking):
    """Base class of attacks that assign all targets to different rows at once."""

    pairwise: ClassVar[bool] = True
    min_targets: ClassVar[int] = 10_000
    main: ClassVar[str] = "by"
    examples: ClassVar = ({}, {"by": "ranks"})
    reference: ClassVar[str] = (
        "Herranz, J., Nin, J., Rodriguez, P., Tassa, T. (2015). Revisiting distance-based record linkage for privacy-"
        "preserving release of statistical datasets. Data & Knowledge Engineering 100. doi:10.1016/j.datak.2015.07.009"
    )

    by: By = "values"
    """Cost of a pair of person and row: ``values`` (squared differences of standardized values), ``ranks`` (squared
    differences of ranks), or ``likelihood`` (of the perturbation under the published steps, estimated by rerunning
    them)."""

    @classmethod
    def costs(cls, scenario: AttackScenario) -> tuple[By, ...]:
        """The costs of the default battery: none if no value may have been perturbed, or if there are many rows."""
        perturbed = not scenario.steps or len(scenario.unperturbed) < len(scenario.known)
        if not scenario.known or not perturbed or scenario.release.table.rows > _DEFAULT_ROWS:
            return ()
        simulable = any(method.simulable for method in scenario.methods)
        return ("values", "ranks", "likelihood") if simulable else ("values", "ranks")

    @property
    def setting(self) -> str:
        return f"by {self.by}"


def min_cost_assignment(view: View, by: By, rng: Rng, progress: Progress) -> AssignedRows:
    """Give every target a row of her own so that the sum of costs is smallest."""
    if not view.knows:
        raise NotApplicable("The intruder knows no column of the release.", fix="Name columns with `knows`.")
    prices, columns = _prices(view, by, rng, progress)
    rows = view.release.table.rows
    count = rows if rows * view.targets.height <= _DENSE else min(rows, _CHEAPEST)
    near = np.empty((view.targets.height, count), dtype=np.int64)
    cost = np.empty((view.targets.height, count), dtype=np.float64)
    draw = rng.child("ties").generator
    done = 0
    for part in batches(progress, "comparing people with rows", len(near), max(1, _CELLS // max(1, rows))):
        block = sum((price(part) for price in prices), np.zeros((part.stop - part.start, rows), dtype=np.float32))
        near[part] = np.argpartition(block, count - 1, axis=1)[:, :count] if count < rows else np.arange(rows)
        # Whoever cannot tell two rows apart tosses a coin.
        cost[part] = np.take_along_axis(block, near[part], axis=1) + 1e-9 * draw.random(near[part].shape)
        done = part.stop
    near, cost = near[:done], cost[:done]
    if done == 0:
        return AssignedRows(row=np.empty(0, np.int64), share=np.empty(0), columns=columns)
    check_deadline(progress)
    place = _matched(near, cost, rows)
    weight = np.exp(-(cost - cost.min(axis=1, keepdims=True)) / (1.0 if by == "likelihood" else 2.0))
    people = np.arange(done)
    return AssignedRows(row=near[people, place], share=weight[people, place] / weight.sum(axis=1), columns=columns)


def _matched(near: Ints, cost: Floats, rows: int) -> Ints:
    """Per person the place of the row given among ``near``, the cheapest one where every near row went to others."""
    from scipy.optimize import linear_sum_assignment
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    people, count = near.shape
    if count == rows and people <= rows:
        return np.asarray(linear_sum_assignment(cost)[1], dtype=np.int64)
    # A place of one's own outside the release, dearer than any row, so that everybody gets something. Costs start at
    # one, because a cost of nothing would be no pair at all.
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


def _prices(view: View, by: By, rng: Rng, progress: Progress) -> tuple[list[Price], tuple[str, ...]]:
    found: dict[str, Price] = {}
    prices: list[Price] = []
    done: set[str] = set()
    if by == "likelihood":
        # Labels that a step has made of values are read, not simulated.
        labels = {name for name in coarsened(view) if view.release.table.column(name).dtype == pl.String}
        moved = replace(view, knows=tuple(name for name in view.knows if name not in labels))
        if not moved.knows:
            raise NotApplicable(
                "Every column that the intruder knows was coarsened after it was moved, so that no move can be told.",
                fix="Use `linkage`, which reads labels.",
            )
        steps = runnable_steps(moved)
        learned = Likelihood.learn(moved, proxy(moved), steps, rng.child("moves"), progress, rounds=None, cells=_CELL)
        prices.append(_unlikely(learned, moved))
        done = {scale.name for scale in learned.scales}
    for name in view.knows:
        if name not in done:
            price = _column(view, name, by)
            if price is not None:
                found[name] = price
    if not found and not prices:
        raise NotApplicable("No known column can be compared with the release.", columns=view.knows)
    return [*prices, *found.values()], tuple(name for name in view.knows if name in done or name in found)


def _unlikely(learned: Likelihood, view: View) -> Price:
    table, joint = learned.table, learned.joint
    known, seen = learned.places(view.targets), learned.places(view.release.table.frame)
    return lambda part: _scores(table, joint.scores, joint.columns, joint.excess, known[part], seen)


@njit(cache=True, parallel=True)
def _scores(
    table: Singles, moves: Singles, tied: Ints, excess: Singles, known: Ints, seen: Ints
) -> Singles:  # pragma: no cover - compiled
    rows = len(seen)
    found = np.empty((len(known), rows), dtype=np.float32)
    for index in prange(len(known)):
        scores = np.empty(rows)
        fill(scores, table, moves, tied, excess, known[index], seen, 0, rows)
        for row in range(rows):
            found[index, row] = -scores[row]
    return found


def _column(view: View, name: str, by: By) -> Price | None:
    """What a column adds to the cost of a pair; nothing when it cannot be compared or says nothing."""
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
    held, shown = before[np.isfinite(before)], np.sort(after[np.isfinite(after)])
    if len(held) == 0 or len(shown) == 0 or shown[0] == shown[-1]:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        many = 2 * len(held) >= len(shown) and held.std() > 0
        own = held if many else shown
        usual = all(_TINY < spread < 1 / _TINY for spread in (own.std(), shown.std()))
    if by == "ranks" or not usual:
        left, right = _ranks(before, np.sort(held) if many else shown), _ranks(after, shown)
    else:
        left, right = (before - own.mean()) / own.std(), (after - shown.mean()) / shown.std()
    left, right = np.clip(left, -_FAR, _FAR), np.clip(right, -_FAR, _FAR)
    gone = np.isnan(right)

    def price(part: slice) -> Singles:
        some = left[part].astype(np.float32)
        gap = some[:, None] - right.astype(np.float32)[None, :]
        gap *= gap
        blank = np.isnan(some)
        gap[:, gone] = 0.5
        gap[blank] = np.where(gone, 0.0, missing)
        return gap

    return price


def _unequal(before: Floats, after: Floats, *, known: float) -> Price:
    """A number that no published step changed is the same in both files; an emptied cell says nothing."""
    gone = np.isnan(after)

    def price(part: slice) -> Singles:
        some = before[part]
        found = np.where(some[:, None] == after[None, :], 0.0, _IMPOSSIBLE).astype(np.float32)
        found[:, gone] = 0.5
        found[np.isnan(some)] = np.where(gone, 0.0, known)
        return found

    return price


def _ranks(values: Floats, among: Floats) -> Floats:
    """Places as shares of all, in units of their standard deviation."""
    middle = (np.searchsorted(among, values, "left") + np.searchsorted(among, values, "right")) / 2
    return np.where(np.isnan(values), np.nan, middle / len(among) * _UNIFORM)


def _disagreement(view: View, name: str) -> Price | None:
    """Categories: nothing where the label says the value, most where a rare value is not met."""
    published: Any = view.release.manifest.get("columns", {}) if view.transparent else {}
    found = compare(
        view.targets.get_column(name),
        view.release.table.column(name),
        published.get(name, {}).get("hierarchy"),
        blanks_unknown=view.blanks_unknown,
    )
    if not found.named or len(found.labels) < 2:
        return None
    fits = np.zeros((len(found.values), len(found.labels)), dtype=np.bool_)
    fits[np.repeat(np.arange(len(found.values)), np.diff(found.starts)), found.fits] = True
    frequent = np.bincount(found.released, minlength=len(found.labels)) * ~found.vague
    share = (fits @ frequent + 0.5) / (frequent.sum() + 1.0)
    truthful = bool(view.steps) and name in view.untouched
    miss = np.full(len(share), _IMPOSSIBLE) if truthful else np.clip(-np.log(share), 1.0, 8.0)
    table = np.where(fits, 0.5 * (1 - 1 / np.maximum(found.cover, 1.0))[None, :], miss[:, None])
    table[:, found.vague] = 0.5
    table = table.astype(np.float32)
    return lambda part: table[found.known[part]][:, found.released]
