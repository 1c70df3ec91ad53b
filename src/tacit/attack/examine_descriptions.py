"""The examiner of singling out: a description is right when exactly one person of the original fits it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from tacit.attack.attack import Attack, Guesses, View
from tacit.attack.outcome import Arm, Outcome
from tacit.attack.predicates import isolated, shuffled
from tacit.attack.scene import Scene, people_of
from tacit.attack.trial import outcome_of
from tacit.errors import NotApplicable, OutOfTime
from tacit.progress import Progress, share
from tacit.rng import Rng

__all__ = ["examine_descriptions"]


def examine_descriptions(attack: Attack, scene: Scene, rng: Rng, progress: Progress, tries: int) -> Outcome:
    """A description hits when exactly one person of the original fits it, whoever made the release."""
    people = people_of(attack, scene)
    original = scene.original.table.frame
    nobody = View(
        release=scene.release, targets=people.frame.clear(), knows=people.knows, transparent=attack.transparent
    )
    guesses = attack.guess(nobody, rng.child("guess"), share(progress, 2))
    made = guesses.predicates[:tries]
    if not made:
        raise NotApplicable("No description was found that fits exactly one released row.")
    hit = isolated(made, original, scene.release.table)
    # Without knowing which values go together: the same attack on a release whose columns were shuffled one by one.
    apart = replace(nobody, release=shuffled(scene.release, people.knows, rng.child("baseline").generator))
    baseline = None
    with suppress(OutOfTime):
        loose = attack.guess(apart, rng.child("guess baseline"), progress).predicates[:tries]
        blind = isolated(loose, original, apart.release.table) if loose else np.zeros(len(made), dtype=np.bool_)
        baseline = Arm(hits=int(blind.sum()), tries=len(blind))
    control = None
    if scene.control is not None:
        scene.control.require(people.knows)
        outside = isolated(made, scene.control.frame, scene.release.table)
        control = Arm(hits=int(outside.sum()), tries=len(outside))
    judged = Guesses(
        made=np.ones(len(made), dtype=np.bool_), confidence=guesses.confidence[: len(made)], detail=guesses.detail
    )
    rows = np.full(len(made), -1, dtype=np.int64)
    planned = min(tries, getattr(attack, "descriptions", tries)) if guesses.tried is not None else len(made)
    return outcome_of(
        attack, scene, people, rows, judged, hit, baseline, control=control, truth="original values", planned=planned
    )
