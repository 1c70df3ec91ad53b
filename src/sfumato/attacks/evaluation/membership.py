"""Evaluation of membership inference: a guess is correct if it says whether the target is in the release."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Attack, Guesses, View
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.evaluation.trial import controlled_scenarios, non_members, outcome_of, run_attack, sample
from sfumato.attacks.scenario import AttackScenario, Targets, targets_of
from sfumato.deadline import split_deadline
from sfumato.errors import NotApplicable
from sfumato.progress import Progress
from sfumato.rng import Rng


def evaluate_membership(
    attack: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, n_targets: int
) -> Outcome:
    """Half of the targets are members of the release, half are not.

    Without a control file, both come from the folds of cross-fitting: members of the release of a fold, and the people
    held out of it. The result is then about the recipe, applied to most of the data.
    """
    targets = targets_of(attack, scenario)
    controlled = controlled_scenarios(scenario, targets)
    if not controlled:
        raise NotApplicable(
            scenario.why_no_control
            or "Membership risk needs people who are not in the release as well as people who are.",
            fix="Pass a file of held-out people (`control`).",
        )
    trials = [
        _run(
            attack,
            one,
            targets if one is scenario else targets_of(attack, one),
            rng if one is scenario else rng.child("fold", number),
            split_deadline(progress, len(controlled) - number),
            n_targets // len(controlled),
        )
        for number, one in enumerate(controlled)
    ]
    member, guessed = (np.concatenate([getattr(trial, name) for trial in trials]) for name in ("member", "guessed"))
    made = np.concatenate([trial.guesses.made for trial in trials])
    random = sum(trial.random for trial in trials)
    detail = {
        **trials[0].guesses.detail,
        "members recognized": float(guessed[member].mean()) if member.any() else 0.0,
        "others taken for members": float(guessed[~member].mean()) if not member.all() else 0.0,
    }
    confidence = np.concatenate([trial.guesses.confidence for trial in trials])
    inside = scenario.control is not None
    rows = trials[0].rows if inside else np.full(len(made), -1, dtype=np.int64)
    return outcome_of(
        attack,
        targets,
        rows,
        replace(trials[0].guesses, member=guessed, made=made, confidence=confidence, detail=detail, tried=None),
        made & (guessed == member),
        Arm(hits=random, trials=len(made)),
        truth="control file" if inside else "cross-fitting",
        planned=sum(trial.planned for trial in trials),
    )


@dataclass(frozen=True, kw_only=True)
class _Trial:
    """Guesses about members and others in random order."""

    guesses: Guesses
    guessed: npt.NDArray[np.bool_]
    member: npt.NDArray[np.bool_]
    random: int
    """Correct guesses of an adversary who says "member" equally often, for random targets."""
    rows: npt.NDArray[np.int64]
    planned: int


def _run(
    attack: Attack, scenario: AttackScenario, targets: Targets, rng: Rng, progress: Progress, n_targets: int
) -> _Trial:
    release_row = None if scenario.synthetic else scenario.release_row
    members = np.arange(len(targets.rows)) if release_row is None else np.flatnonzero(release_row[targets.rows] >= 0)
    assert scenario.control is not None
    frame = non_members(scenario.control, targets)[0].frame
    count = min(len(members), frame.height, max(1, n_targets // 2))
    if count == 0:
        raise NotApplicable("Membership risk needs people who are not in the release as well as people who are.")
    inside = sample(rng, "targets", members, count)
    outside = sample(rng, "control", np.arange(frame.height), count)
    values = pl.concat([targets.frame[inside], frame[outside].cast(targets.frame.schema, strict=False)])
    shuffle = rng.child("shuffle").generator.permutation(values.height)
    view = View(
        release=scenario.release,
        targets=values[shuffle],
        knows=targets.knows,
        transparent=attack.transparent,
        recodings=scenario.recodings,
    )
    guesses = run_attack(attack, view, rng.child("guess"), progress)
    assert guesses.member is not None
    shuffle = shuffle[: len(guesses.made)]
    member = shuffle < count
    random = rng.child("baseline").generator.permutation(guesses.member) == member
    return _Trial(
        guesses=guesses,
        guessed=guesses.member,
        member=member,
        random=int(random.sum()),
        rows=np.where(member, targets.rows[inside][np.minimum(shuffle, count - 1)], -1),
        planned=values.height,
    )
