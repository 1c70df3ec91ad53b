"""Evaluation of attacks on households: all members are known; a guess is correct if it names the target's row."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.attacks.base import Attack, Guesses, View
from sfumato.attacks.evaluation.outcome import Outcome
from sfumato.attacks.evaluation.trial import (
    draw_groups,
    named_people,
    outcome_of,
    random_row,
    release_people,
    row_map_required,
    run_attack,
)
from sfumato.attacks.scenario import AttackScenario, targets_of
from sfumato.errors import NotApplicable
from sfumato.progress import Progress
from sfumato.rng import Rng


def evaluate_households(
    attack: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, n_targets: int
) -> Outcome:
    """Draw households at random until they have ``n_targets`` members in the release.

    Members who are not in the release are known to the adversary but are not counted.
    """
    release_row = row_map_required(scenario)
    column = getattr(attack, "household", None) or scenario.household
    if column is None:
        raise NotApplicable(
            "No released column groups the rows of a household.",
            fix="Name it with `household`, or give a column the role `household`.",
        )
    scenario.original.table.require([column])
    scenario.release.table.require([column])
    targets = targets_of(attack, scenario)
    number = scenario.original.table.column(column).rank("dense").cast(pl.Int64).fill_null(0).to_numpy()[targets.rows]
    inside = release_row[targets.rows] >= 0
    if not (inside & (number > 0)).any():
        raise NotApplicable("None of the targets is in the release with a household.")
    chosen, turn = draw_groups(rng, number - 1, inside, n_targets)
    view = View(
        release=scenario.release,
        targets=targets.frame[chosen],
        knows=targets.knows,
        transparent=attack.transparent,
        household=(turn, column),
        recodings=scenario.recodings,
    )
    guesses = run_attack(attack, view, rng.child("guess"), progress)
    assert guesses.row is not None
    counted = inside[chosen][: len(guesses.made)]
    rows = targets.rows[chosen][: len(guesses.made)][counted]
    row = guesses.row[counted]
    kept = Guesses(row=row, made=guesses.made[counted], confidence=guesses.confidence[counted], detail=guesses.detail)
    people = None if scenario.people is None else scenario.people[rows]
    hit = (
        kept.hit_probability(release_row[rows])
        if people is None
        else named_people(kept, people, release_people(scenario))
    )
    planned = targets.rows[chosen][inside[chosen]]
    return outcome_of(
        attack,
        targets,
        rows,
        kept,
        hit,
        random_row(len(rows), scenario.release.table.rows, people),
        truth="row map" if scenario.lineage is not None else "aligned rows",
        planned=len(planned) if scenario.people is None else len(np.unique(scenario.people[planned])),
        people=people,
    )
