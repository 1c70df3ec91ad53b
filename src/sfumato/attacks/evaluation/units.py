"""Evaluation of attacks on privacy units: a guess is correct if it names any row of the person.

The baseline is a random person. The control is the same attack with the knowledge about somebody else.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.attacks.base import UnitLinking, View
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.evaluation.trial import outcome_of, row_map_required, run_attack
from sfumato.attacks.scenario import AttackScenario, Targets
from sfumato.data.row_codes import sorted_codes
from sfumato.errors import NotApplicable
from sfumato.progress import Progress
from sfumato.rng import Rng


def evaluate_units(
    attack: UnitLinking, scenario: AttackScenario, rng: Rng, progress: Progress, n_targets: int
) -> Outcome:
    """Draw privacy units as targets; the attack itself simulates which of their rows the adversary knows."""
    unit = scenario.original.schema.unit
    if unit is None or unit not in scenario.release.table.columns:
        raise NotApplicable(
            "This attack needs several rows per person, grouped by the privacy unit in original and release.",
            fix="Declare the column that identifies a person as `unit`, and release it as a pseudonym.",
        )
    release_row = row_map_required(scenario)
    columns = attack.event_columns
    for table in (scenario.original.table, scenario.release.table):
        table.require(columns)
    owner = sorted_codes(scenario.original.table.column(unit))[0] + 1
    people = np.flatnonzero(np.bincount(owner[release_row >= 0]))
    people = rng.child("targets").generator.permutation(people)[:n_targets]
    frame = attack.known_events(scenario.original.table.frame, owner, people, rng.child("knowledge"))
    view = View(release=scenario.release, targets=frame, knows=columns, secret=unit, transparent=attack.transparent)
    guesses = run_attack(attack, view, rng.child("guess"), progress)
    assert guesses.row is not None
    planned, people = len(people), people[: len(guesses.made)]
    # The owner of a released row is the owner of its original row.
    release_owner = np.full(scenario.release.table.rows, -1, dtype=np.int64)
    present = release_row >= 0
    release_owner[release_row[present]] = owner[present]
    hit = guesses.made & (release_owner[np.maximum(guesses.row, 0)] == people)
    everybody = np.flatnonzero(np.bincount(release_owner[release_owner >= 0]))
    outcome = outcome_of(
        attack,
        Targets(frame=frame, rows=people, knows=columns),
        people,
        guesses,
        hit,
        Arm(hits=len(people) / len(everybody), trials=len(people)),
        planned=planned,
    )
    # The control is the same attack with the knowledge about another target, which needs no second run.
    other = np.roll(release_owner[np.maximum(guesses.row, 0)], 1), np.roll(guesses.made, 1)
    control = Arm(hits=int((other[1] & (other[0] == people)).sum()), trials=len(people)) if len(people) > 1 else None
    # No match is certain: the known events of a person may be somebody else's as well.
    return replace(outcome, certain=0, certain_hits=0, control=control)
