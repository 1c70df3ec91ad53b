"""The examiner of identity: a guess is right when it names the row of the person sought."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Attack, View
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.evaluation.trial import guess, in_release, outcome_of, sample, view_of
from sfumato.attacks.scenario import AttackScenario, People, people_of
from sfumato.deadline import split_deadline
from sfumato.errors import NotApplicable, OutOfTime
from sfumato.progress import Progress
from sfumato.rng import Rng

__all__ = ["examine_identity"]

Rows = npt.NDArray[np.int64]


def examine_identity(attack: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, tries: int) -> Outcome:
    place = scenario.release_row
    if place is None and not scenario.truthful:
        raise NotApplicable(
            "Nobody knows which row of the release is whose, so no guess of identity can be judged.",
            fix="Give the row map (`lineage`) that was written with the release, say that its rows are in the order of "
            "the original (`aligned`), or name a column that identifies rows in both (`key`).",
        )
    if scenario.made_up:
        raise NotApplicable(
            "Every row of the release is made up, so none is anybody's.",
            fix="Attack a secret (`model-inference`), or membership with people who are not in the data (`control`).",
        )
    people = people_of(attack, scenario)
    inside = in_release(place, people)
    known = getattr(attack, "taught", None)
    lesson = None
    if known is not None:
        if place is None:
            raise NotApplicable(
                "Nothing can be learned without knowing whose rows some are.", fix="Give the row map (`lineage`)."
            )
        inside, lesson = _taught(scenario, people, inside, known, rng, tries)
        if known >= 1:
            tries = min(tries, getattr(attack, "most", tries))
    chosen = sample(rng, "targets", inside, tries)
    if lesson is None and known is not None and place is not None:
        lesson = (people.frame[chosen], place[people.rows[chosen]])
    view = replace(view_of(attack, scenario, people, chosen), taught=lesson)
    fitted = known is not None and known >= 1
    guesses = guess(attack, view, rng.child("guess"), split_deadline(progress, 2 if fitted else 1))
    assert guesses.row is not None
    rows = people.rows[chosen][: len(guesses.made)]
    size = scenario.release.table.rows
    baseline: Arm | None
    if place is not None:
        hit = guesses.made & (guesses.row == place[rows])
        if fitted:
            baseline = _fitted_baseline(attack, view, place[people.rows[chosen]], rng, progress)
        else:
            blind = rng.child("baseline").generator.integers(size, size=len(rows)) == place[rows]
            baseline = Arm(hits=int(blind.sum()), tries=len(rows))
    else:
        # The method only coarsens, so the true row is one of those that fit, and the pick among them was random:
        # whether it was right is a coin with the attack's own confidence.
        hit = guesses.made & (rng.child("coin").generator.random(len(rows)) < guesses.confidence)
        blind = rng.child("baseline").generator.random(len(rows)) < 1 / size
        baseline = Arm(hits=int(blind.sum()), tries=len(rows))
    how = (
        "row map" if scenario.lineage is not None else "aligned rows" if place is not None else "size of matching class"
    )
    return outcome_of(attack, scenario, people, rows, guesses, hit, baseline, truth=how, planned=len(chosen))


def _fitted_baseline(attack: Attack, view: View, truth: Rows, rng: Rng, progress: Progress) -> Arm | None:
    """The same learner taught a random assignment, judged by that assignment.

    Taught from the very people it is tried on, a learner is right about some by fitting alone.
    """
    assert view.taught is not None
    invented = rng.child("baseline").generator.permutation(truth)
    try:
        pretended = replace(view, taught=(view.taught[0], invented))
        told = guess(attack, pretended, rng.child("guess baseline"), progress).row
    except OutOfTime:
        return None
    assert told is not None
    return Arm(hits=int((told == invented[: len(told)]).sum()), tries=len(told))


def _taught(
    scenario: AttackScenario, people: People, inside: Rows, split_deadline: float, rng: Rng, tries: int
) -> tuple[Rows, tuple[pl.DataFrame, Rows] | None]:
    """Split those in the release into the people sought and people whose rows the intruder knows already."""
    if split_deadline >= 1:
        return inside, None
    place = scenario.release_row
    assert place is not None
    order = rng.child("taught").generator.permutation(inside)
    count = max(1, round(split_deadline * len(inside)))
    if count >= len(inside):
        raise NotApplicable(f"Of {len(inside)} people {count} are known, so that nobody is left to be sought.")
    known = np.sort(order[:count][: max(tries, 1)])
    return np.sort(order[count:]), (people.frame[known], place[people.rows[known]])
