"""The examiner of households: all members are known, and a guess is right when it names the row of the person."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.attacks.base import Attack, Guesses, View
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.evaluation.trial import guess, outcome_of
from sfumato.attacks.scenario import AttackScenario, people_of
from sfumato.errors import NotApplicable
from sfumato.progress import Progress
from sfumato.rng import Rng
from sfumato.schema import Dataset, Role

__all__ = ["examine_households", "household_of"]


def household_of(original: Dataset, released: tuple[str, ...]) -> str | None:
    """The released column that says which rows belong together: a household, else one person's rows."""
    columns = [*original.schema.names(Role.HOUSEHOLD), *([original.schema.unit] if original.schema.unit else [])]
    return next((name for name in columns if name in released and name in original.table.columns), None)


def examine_households(attack: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, tries: int) -> Outcome:
    """Households are drawn at random until ``tries`` people are sought; those left out of the release help to find."""
    place = scenario.release_row
    if place is None or scenario.made_up:
        raise NotApplicable(
            "Nobody knows which row of the release is whose, so no guess of identity can be judged.",
            fix="Give the row map (`lineage`) that was written with the release.",
        )
    column = getattr(attack, "household", None) or household_of(scenario.original, scenario.release.table.columns)
    if column is None:
        raise NotApplicable(
            "No released column says which rows belong together.",
            fix="Name it with `household`, or give a column the role `household`.",
        )
    scenario.original.table.require([column])
    scenario.release.table.require([column])
    people = people_of(attack, scenario)
    number = scenario.original.table.column(column).rank("dense").cast(pl.Int64).fill_null(0).to_numpy()[people.rows]
    inside = place[people.rows] >= 0
    sought = np.unique(number[inside & (number > 0)])
    if len(sought) == 0:
        raise NotApplicable("None of the people sought is in the release with a household.")
    turn = np.full(int(number.max()) + 1, -1, dtype=np.int64)
    turn[rng.child("targets").generator.permutation(sought)] = np.arange(len(sought))
    order = np.argsort(turn[number], kind="stable")
    order = order[turn[number[order]] >= 0]
    reached = np.cumsum(inside[order])
    last = turn[number[order[min(int(np.searchsorted(reached, tries)), len(order) - 1)]]]
    chosen = order[turn[number[order]] <= last]
    view = View(
        release=scenario.release,
        targets=people.frame[chosen],
        knows=people.knows,
        transparent=attack.transparent,
        household=(turn[number[chosen]], column),
    )
    guesses = guess(attack, view, rng.child("guess"), progress)
    assert guesses.row is not None
    judged = inside[chosen][: len(guesses.made)]
    rows = people.rows[chosen][: len(guesses.made)][judged]
    kept = Guesses(
        row=guesses.row[judged],
        made=guesses.made[judged],
        confidence=guesses.confidence[judged],
        detail=guesses.detail,
    )
    assert kept.row is not None
    hit = kept.made & (kept.row == place[rows])
    blind = rng.child("baseline").generator.integers(scenario.release.table.rows, size=len(rows)) == place[rows]
    how = "row map" if scenario.lineage is not None else "aligned rows"
    planned = int(inside[chosen].sum())
    return outcome_of(
        attack,
        scenario,
        people,
        rows,
        kept,
        hit,
        Arm(hits=int(blind.sum()), tries=len(rows)),
        truth=how,
        planned=planned,
    )
