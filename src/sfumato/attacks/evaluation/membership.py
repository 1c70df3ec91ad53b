"""The examiner of membership: a guess is right when it says whether the person is in the release."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.attacks.base import Attack, Guesses, View
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.evaluation.trial import guess, outcome_of, outside_of, sample
from sfumato.attacks.scenario import AttackScenario, people_of
from sfumato.errors import NotApplicable
from sfumato.progress import Progress
from sfumato.rng import Rng

__all__ = ["examine_membership"]


def examine_membership(attack: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, tries: int) -> Outcome:
    """Members must be recognized and others not: half of the targets are in the release, half are not."""
    people = people_of(attack, scenario)
    place = None if scenario.made_up else scenario.release_row
    members = np.arange(len(people.rows)) if place is None else np.flatnonzero(place[people.rows] >= 0)
    outside = outside_of(scenario, people, None, place)
    if outside is None or len(members) == 0:
        raise NotApplicable(
            "Membership can only be judged with people who are not in the release beside people who are.",
            fix="Give a file of held-out people (`control`), or release a sample.",
        )
    frame = outside[0]
    count = min(len(members), frame.height, max(1, tries // 2))
    inside = sample(rng, "targets", members, count)
    absent = sample(rng, "control", np.arange(frame.height), count)
    targets = pl.concat([people.frame[inside], frame[absent].cast(people.frame.schema, strict=False)])
    shuffle = rng.child("shuffle").generator.permutation(targets.height)
    view = View(release=scenario.release, targets=targets[shuffle], knows=people.knows, transparent=attack.transparent)
    guesses = guess(attack, view, rng.child("guess"), progress)
    assert guesses.member is not None
    shuffle = shuffle[: len(guesses.made)]
    member = shuffle < count
    hit = guesses.made & (guesses.member == member)
    # Without the release the intruder can only say "member" as often, of people at random.
    blind = rng.child("baseline").generator.permutation(guesses.member) == member
    rows = np.where(member, people.rows[inside][np.minimum(shuffle, count - 1)], -1)
    said = float(guesses.member[member].mean()) if member.any() else 0.0
    false = float(guesses.member[~member].mean()) if not member.all() else 0.0
    return outcome_of(
        attack,
        scenario,
        people,
        rows,
        Guesses(
            member=guesses.member,
            made=guesses.made,
            confidence=guesses.confidence,
            detail={**guesses.detail, "members recognized": said, "others taken for members": false},
        ),
        hit,
        Arm(hits=int(blind.sum()), tries=len(hit)),
        truth="control file" if scenario.control is not None else "row map",
        planned=targets.height,
    )
