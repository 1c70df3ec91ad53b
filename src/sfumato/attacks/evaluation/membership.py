"""Evaluation of membership inference: a guess is correct if it says whether the target is in the release."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.attacks.base import Attack, View
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.evaluation.trial import non_members, outcome_of, run_attack, sample
from sfumato.attacks.scenario import AttackScenario, targets_of
from sfumato.errors import NotApplicable
from sfumato.progress import Progress
from sfumato.rng import Rng

__all__ = ["evaluate_membership"]


def evaluate_membership(
    attack: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, n_targets: int
) -> Outcome:
    """Half of the targets are members of the release, half are not."""
    targets = targets_of(attack, scenario)
    release_row = None if scenario.synthetic else scenario.release_row
    members = np.arange(len(targets.rows)) if release_row is None else np.flatnonzero(release_row[targets.rows] >= 0)
    others = non_members(scenario, targets, None, release_row)
    if others is None or len(members) == 0:
        raise NotApplicable(
            "Membership risk needs people who are not in the release as well as people who are.",
            fix="Pass a file of held-out people (`control`), or release a sample.",
        )
    frame = others[0]
    count = min(len(members), frame.height, max(1, n_targets // 2))
    inside = sample(rng, "targets", members, count)
    outside = sample(rng, "control", np.arange(frame.height), count)
    values = pl.concat([targets.frame[inside], frame[outside].cast(targets.frame.schema, strict=False)])
    shuffle = rng.child("shuffle").generator.permutation(values.height)
    view = View(release=scenario.release, targets=values[shuffle], knows=targets.knows, transparent=attack.transparent)
    guesses = run_attack(attack, view, rng.child("guess"), progress)
    assert guesses.member is not None
    shuffle = shuffle[: len(guesses.made)]
    member = shuffle < count
    hit = guesses.made & (guesses.member == member)
    # Without the release, the adversary can only say "member" equally often, for random targets.
    random = rng.child("baseline").generator.permutation(guesses.member) == member
    rows = np.where(member, targets.rows[inside][np.minimum(shuffle, count - 1)], -1)
    recognized = float(guesses.member[member].mean()) if member.any() else 0.0
    mistaken = float(guesses.member[~member].mean()) if not member.all() else 0.0
    detail = {**guesses.detail, "members recognized": recognized, "others taken for members": mistaken}
    return outcome_of(
        attack,
        targets,
        rows,
        replace(guesses, detail=detail),
        hit,
        Arm(hits=int(random.sum()), trials=len(hit)),
        truth="control file" if scenario.control is not None else "row map",
        planned=values.height,
    )
