"""Record linkage of whole households: a family is rarer than any of its members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Attack, Discloses, Guesses, Stage, View
from sfumato.attacks.candidate_rows import Candidates, Match, match
from sfumato.deadline import batches
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_FAR = 1e6
"""Cost of assigning a row to a member whom it does not match."""


class HouseholdLinkage(Attack):
    """An attacker who knows all members of a household looks for a released household that matches all of them.

    The attack needs a released column that groups the rows of a household, even if its values are meaningless numbers.
    Then k-anonymity of single rows protects little: women aged 30 to 40 are common, but few families consist of a woman
    aged 30 to 40, a man of 50 and three children of given ages. A released household matches if each of its rows can be
    assigned to a different member. Among the matches, those with the most members and the most specific rows are
    preferred; one of them is chosen at random, and in it the row that matches the person. Several rows of one person
    under a pseudonym are treated in the same way, with the privacy unit as household.

    Values that a published step perturbed are not used.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.LOOKUP
    order_in_stage: ClassVar[int] = 2
    by_household: ClassVar[bool] = True
    bounded_by_k: ClassVar[bool] = False
    main: ClassVar[str] = "household"
    examples = ({}, {"household": "household"})
    reference: ClassVar[str] = (
        "Franconi, L., Polettini, S. (2004). Individual risk estimation in mu-Argus: a review. Privacy in Statistical "
        "Databases, LNCS 3050. doi:10.1007/978-3-540-25955-8_20 (on households); the attack is ours"
    )

    household: str | None = None
    """Released column that groups the rows of a household; the column with role household if omitted, else the
    privacy unit."""

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        matchable = scenario.unperturbed or not scenario.known
        return (cls(),) if matchable and scenario.household is not None else ()

    @classmethod
    def remedy(cls, detail: Mapping[str, object]) -> str:
        column = detail.get("column")
        named = f"“{column}”" if column else "the household column"
        return (
            f"Remove {named}, which links the rows of a household: a whole household is often unique even if each of "
            "its members is not. Or generalize until whole households look alike."
        )

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assert view.household is not None
        owner, column = view.household
        released = view.release.table.column(column)
        group = released.rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
        if group.max(initial=-1) < 0:
            raise NotApplicable(f"The released column `{column}` is empty.")
        size = np.bincount(group[group >= 0])
        matched = match(view, in_release=True)
        rows_of = _MatchingRows(matched)
        draw = rng.generator
        row = np.full(view.targets.height, -1, dtype=np.int64)
        confidence = np.zeros(view.targets.height)
        starts = np.flatnonzero(np.diff(owner, prepend=-1))
        ends = np.append(starts[1:], len(owner))
        done = 0
        for part in batches(progress, "households", len(starts)):
            first, stop = int(starts[part.start]), int(ends[part.start])
            assigned = _households(rows_of.members(first, stop), group, size, stop - first)
            if assigned:
                best = max(score for score, _ in assigned)
                chosen = [rows for score, rows in assigned if score >= best - 1e-9]
                # A member without a row in any chosen household is not in the release.
                for place in range(stop - first):
                    options = [rows[place] for rows in chosen if rows[place] >= 0]
                    if options:
                        row[first + place] = options[int(draw.integers(len(options)))]
                        confidence[first + place] = 1 / len(options)
            done = stop
        return Guesses.of_rows(row[:done], confidence[:done], {"column": column}, tried=done)


class _MatchingRows:
    """The released rows that match each person, with their weights; stored as equivalence classes."""

    def __init__(self, matched: Match) -> None:
        self._matched = matched
        self._candidates: list[Candidates | None] = [None] * matched.persons
        for targets, candidates in matched.candidates():
            if len(candidates.classes):
                self._candidates[int(matched.person[targets[0]])] = candidates

    def members(self, first: int, stop: int) -> list[tuple[Ints, Floats]]:
        return [self._rows(self._candidates[int(number)]) for number in self._matched.person[first:stop]]

    def _rows(self, candidates: Candidates | None) -> tuple[Ints, Floats]:
        if candidates is None:
            return np.empty(0, np.int64), np.empty(0)
        rows = np.concatenate([self._matched.rows(int(number)) for number in candidates.classes])
        return rows, np.repeat(candidates.weight, candidates.sizes)


def _households(members: list[tuple[Ints, Floats]], group: Ints, size: Ints, count: int) -> list[tuple[float, Ints]]:
    """The released households whose rows can all be assigned to different members: score, and row of each member."""
    from scipy.optimize import linear_sum_assignment

    rows = np.concatenate([fit[0] for fit in members])
    weight = np.concatenate([fit[1] for fit in members])
    who = np.repeat(np.arange(count), [len(fit[0]) for fit in members])
    known = group[rows] >= 0
    rows, weight, who = rows[known], weight[known], who[known]
    if len(rows) == 0:
        return []
    # Households in which every row matches a member and that are not larger than the known one.
    distinct = np.unique(rows)
    whole = np.bincount(group[distinct], minlength=len(size)) == size
    able = (whole & (size <= count))[group[rows]]
    rows, weight, who = rows[able], weight[able], who[able]
    order = np.lexsort((rows, group[rows]))
    rows, weight, who = rows[order], weight[order], who[order]
    edges = np.flatnonzero(np.diff(group[rows], prepend=-1, append=-1))
    households = []
    for start, stop in pairwise(edges):
        some, place = np.unique(rows[start:stop], return_inverse=True)
        cost = np.full((len(some), count), _FAR)
        cost[place, who[start:stop]] = -np.log(weight[start:stop])
        left, right = linear_sum_assignment(cost)
        total = float(cost[left, right].sum())
        if total < _FAR:
            row = np.full(count, -1, dtype=np.int64)
            row[right] = some[left]
            # An additional member counts more than any difference in specificity.
            households.append((1e3 * len(some) - total, row))
    return households
