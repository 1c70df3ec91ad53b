"""The examiner of singling out: a description is right when exactly one person of the original fits it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from sfumato.attacks.base import Attack, Guesses, View
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.evaluation.predicates import isolated, shuffled
from sfumato.attacks.evaluation.trial import outcome_of
from sfumato.attacks.scenario import AttackScenario, people_of
from sfumato.deadline import split_deadline
from sfumato.errors import NotApplicable, OutOfTime
from sfumato.progress import Progress
from sfumato.rng import Rng

__all__ = ["examine_descriptions"]


def examine_descriptions(attack: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, tries: int) -> Outcome:
    """A description hits when exactly one person of the original fits it, whoever made the release."""
    people = people_of(attack, scenario)
    original = scenario.original.table.frame
    nobody = View(
        release=scenario.release, targets=people.frame.clear(), knows=people.knows, transparent=attack.transparent
    )
    guesses = attack.guess(nobody, rng.child("guess"), split_deadline(progress, 2))
    made = guesses.predicates[:tries]
    if not made:
        raise NotApplicable("No description was found that fits exactly one released row.")
    hit = isolated(made, original, scenario.release.table)
    # Without knowing which values go together: the same attack on a release whose columns were shuffled one by one.
    apart = replace(nobody, release=shuffled(scenario.release, people.knows, rng.child("baseline").generator))
    baseline = None
    with suppress(OutOfTime):
        unbounded_joins = attack.guess(apart, rng.child("guess baseline"), progress).predicates[:tries]
        blind = (
            isolated(unbounded_joins, original, apart.release.table)
            if unbounded_joins
            else np.zeros(len(made), dtype=np.bool_)
        )
        baseline = Arm(hits=int(blind.sum()), tries=len(blind))
    control = None
    if scenario.control is not None:
        scenario.control.require(people.knows)
        outside = isolated(made, scenario.control.frame, scenario.release.table)
        control = Arm(hits=int(outside.sum()), tries=len(outside))
    judged = Guesses(
        made=np.ones(len(made), dtype=np.bool_), confidence=guesses.confidence[: len(made)], detail=guesses.detail
    )
    rows = np.full(len(made), -1, dtype=np.int64)
    planned = min(tries, getattr(attack, "descriptions", tries)) if guesses.tried is not None else len(made)
    return outcome_of(
        attack, scenario, people, rows, judged, hit, baseline, control=control, truth="original values", planned=planned
    )
