"""Evaluation of singling out: a predicate is correct if exactly one person of the original satisfies it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.attacks.base import Attack, Guesses, View
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.evaluation.predicates import isolated, shuffled
from sfumato.attacks.evaluation.trial import outcome_of
from sfumato.attacks.scenario import AttackScenario, targets_of
from sfumato.deadline import split_deadline
from sfumato.errors import NotApplicable, OutOfTime
from sfumato.progress import Progress
from sfumato.rng import Rng


def evaluate_singling_out(
    attack: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, n_targets: int
) -> Outcome:
    """Count the predicates, at most ``n_targets``, that isolate one person of the original."""
    targets = targets_of(attack, scenario)
    original = scenario.original.table.frame
    view = View(
        release=scenario.release, targets=targets.frame.clear(), knows=targets.knows, transparent=attack.transparent
    )
    guesses = attack.guess(view, rng.child("guess"), split_deadline(progress, 2))
    predicates = guesses.predicates[:n_targets]
    count = len(predicates)
    if not predicates:
        raise NotApplicable("No predicate was found that matches exactly one released row.")
    hit = isolated(predicates, original, scenario.release)
    baseline = _baseline(attack, view, guesses, original, rng, progress, n_targets)
    control = None
    if scenario.control is not None:
        scenario.control.require(targets.knows)
        control_hit = isolated(predicates, scenario.control.frame, scenario.release)
        control = Arm(hits=int(control_hit.sum()), trials=len(control_hit))
    counted = Guesses(made=np.ones(count, dtype=np.bool_), confidence=guesses.confidence[:count], detail=guesses.detail)
    planned = min(n_targets, getattr(attack, "descriptions", n_targets)) if guesses.tried is not None else count
    return outcome_of(
        attack,
        targets,
        np.full(count, -1, dtype=np.int64),
        counted,
        hit,
        baseline,
        control=control,
        truth="original values",
        planned=planned,
    )


def _baseline(
    attack: Attack, view: View, guesses: Guesses, original: pl.DataFrame, rng: Rng, progress: Progress, n_targets: int
) -> Arm | None:
    """Success without what the attack exploits: as the attack states it, or without joint values, by the same attack on
    a release whose columns were shuffled independently. None if time is up."""
    count = min(len(guesses.predicates), n_targets)
    if guesses.by_chance is not None:
        return Arm(hits=float(guesses.by_chance[:count].sum()), trials=count)
    changed = getattr(attack, "baseline_release", shuffled)(view.release, view.knows, rng.child("baseline").generator)
    try:
        random = attack.guess(replace(view, release=changed), rng.child("guess baseline"), progress)
    except OutOfTime:
        return None
    predicates = random.predicates[:n_targets]
    hit = isolated(predicates, original, changed) if predicates else np.zeros(count, dtype=np.bool_)
    return Arm(hits=int(hit.sum()), trials=len(hit))
