"""Evaluation of re-identification: a guess is correct if it names the released row of the target.

Where people have several rows, people are drawn with all of their rows. A guess about one of the rows is correct if it
names any row of the person, and a person is found if one of the guesses is correct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Attack, Guesses, View
from sfumato.attacks.column_codes import consistent_columns
from sfumato.attacks.column_search import class_sizes
from sfumato.attacks.evaluation.model_selection import strongest
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.evaluation.trial import (
    draw_groups,
    in_release,
    named_people,
    outcome_of,
    random_row,
    release_people,
    run_attack,
    sample,
    view_of,
    with_everything,
)
from sfumato.attacks.scenario import AttackScenario, Targets, targets_of
from sfumato.data.row_codes import number_rows, value_codes
from sfumato.deadline import split_deadline
from sfumato.errors import NotApplicable, OutOfTime
from sfumato.progress import Progress
from sfumato.rng import Rng

Rows = npt.NDArray[np.int64]

_ALL_TARGETS = 2000
"""Up to this many targets, an attack is selected with all of them."""


def evaluate_identity(
    attack: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, n_targets: int
) -> Outcome:
    """Draw targets from the people in the release and compare the guessed rows with the row correspondence."""
    release_row = scenario.release_row
    if release_row is None and not scenario.truthful and not _may_be_true(attack, scenario):
        raise correspondence_missing()
    if scenario.synthetic:
        raise NotApplicable(
            "All rows of the release are synthetic, so none belongs to a person.",
            fix="Attack a sensitive column (`model-inference`), or membership with people who are not in the data "
            "(`control`).",
        )
    targets = targets_of(attack, scenario)
    inside = in_release(release_row, targets)
    person = None if scenario.people is None else scenario.people[targets.rows]
    taught: float | None = getattr(attack, "taught", None)
    known_matches = None
    if taught is not None:
        if release_row is None:
            raise NotApplicable(
                "Learning needs the row correspondence between original and release.",
                fix="Pass the row map (`lineage`).",
            )
        if taught < 1:
            inside, known_matches = _split(release_row, targets, inside, taught, rng, n_targets, person)
        else:
            n_targets = min(n_targets, getattr(attack, "most", n_targets))
    together = _rows_together(scenario, targets, person) if attack.uses_everything else None
    if together is not None:
        chosen = _rows_of(rng, together, inside, n_targets)
    elif person is not None:
        chosen = _rows_of(rng, person, inside, n_targets)
    else:
        chosen = sample(rng, "targets", inside, n_targets)
    fitted = taught is not None and taught >= 1
    if fitted:
        assert release_row is not None
        known_matches = (targets.frame[chosen], release_row[targets.rows[chosen]])
    view = replace(view_of(attack, scenario, targets, chosen), known_matches=known_matches)
    if attack.uses_everything:
        view = with_everything(view, scenario, targets, inside, chosen)
        if together is not None and scenario.household is not None:
            view = replace(view, household=(together[chosen], scenario.household))

    def trial(attack: Attack, some: Rows, progress: Progress) -> Guesses:
        # In a small file the adversary uses all targets for the selection as well: people compete for rows.
        used = view
        if len(chosen) > _ALL_TARGETS:
            used = replace(view_of(attack, scenario, targets, some), people=view.targets)
        return run_attack(attack, used, rng.child("guess"), progress).part(slice(len(some)))

    def correct(guesses: Guesses, some: Rows) -> npt.NDArray[np.float64]:
        assert release_row is not None
        if person is not None:
            return named_people(guesses, person[some], release_people(scenario))
        return guesses.hit_probability(release_row[targets.rows[some]])

    best, selected_on, selection = attack, 0, dict[str, Any]()
    if release_row is not None and attack.alternatives:
        best, rest, selection = strongest(attack, chosen, len(chosen), trial, correct, progress)
        best, selected_on = attack.thorough(best), len(chosen) - len(rest)
        if person is not None:
            selected_on = _end_of_person(person[chosen], selected_on)
    guesses = run_attack(best, view, rng.child("guess"), split_deadline(progress, 2 if fitted else 1))
    # The adversary uses all targets, but those on which the attack was selected are not counted.
    guesses = replace(guesses.part(slice(selected_on, None)), detail={**guesses.detail, **selection})
    chosen = chosen[selected_on:]
    if len(guesses.made) == 0:
        raise OutOfTime("Stopped: time was up before any target was processed.", fix="Allow more time.")
    assert guesses.row is not None
    if person is not None and 0 < (end := _start_of_last(person[chosen], len(guesses.made))) < len(guesses.made):
        guesses = guesses.part(slice(end))  # time was up before all rows of the last person were processed
    rows = targets.rows[chosen][: len(guesses.made)]
    own = None if person is None else person[chosen][: len(rows)]
    baseline: Arm | None = random_row(len(rows), scenario.release.table.rows, own)
    if release_row is not None:
        hit = correct(guesses, chosen[: len(rows)])
        if fitted:
            baseline = _fitted_baseline(attack, view, release_row[targets.rows[chosen]], own, rng, progress)
    else:
        # Released values are true. If the person is in the release, their row is among the matching ones, and the
        # attack chose one of them at random: the guess is then correct with the probability that the attack states
        # as its confidence. People who look alike and have fewer rows than they are may not be in the release.
        hit = np.where(guesses.made, np.minimum(guesses.confidence, _at_most(scenario, targets.knows, rows)), 0.0)
        if person is not None and own is not None:
            # at most all rows of the person are among the matching ones
            hit = np.minimum(1.0, hit * np.bincount(person)[own])
    if release_row is None:
        truth = "size of matching class"
    else:
        truth = "row map" if scenario.lineage is not None else "aligned rows"
    planned = len(chosen) if person is None else len(np.unique(person[chosen]))
    return outcome_of(attack, targets, rows, guesses, hit, baseline, truth=truth, planned=planned, people=own)


def _at_most(scenario: AttackScenario, knows: Sequence[str], rows: Rows) -> npt.NDArray[np.float64]:
    """For each of these rows of the original the largest share of guesses that can be right: one over the number of
    people who look alike, without row correspondence."""
    found = None if scenario.auxiliary is not None else consistent_columns(scenario, knows)
    share = np.ones(scenario.original.rows)
    if found is not None:
        share[found.rows] = 1 / np.maximum(class_sizes(found, found.columns), 1)
    return share[rows]


def _rows_together(scenario: AttackScenario, targets: Targets, person: Rows | None) -> Rows | None:
    """The number of each target's household, or else person, if a released column groups its rows."""
    column = scenario.household
    if column is None or targets.external:
        return None
    if person is not None and column == scenario.original.schema.unit:
        return person
    codes = value_codes(scenario.original.table.column(column))[0].astype(np.int64)[targets.rows]
    missing = scenario.original.table.column(column).is_null().to_numpy()[targets.rows]
    return np.where(missing, codes.max(initial=0) + 1 + np.arange(len(codes)), codes)


def _rows_of(rng: Rng, person: Rows, inside: Rows, n_targets: int) -> Rows:
    """Targets in the release, person after person in random order, until there are ``n_targets``."""
    counted = np.zeros(len(person), dtype=np.bool_)
    counted[inside] = True
    chosen, _ = draw_groups(rng, person, counted, n_targets)
    return chosen[counted[chosen]]


def _end_of_person(person: Rows, start: int) -> int:
    """The next position at which another person begins, so that nobody is counted by a part of their rows."""
    if start == 0:
        return 0
    later = np.flatnonzero(person[start:] != person[start - 1])
    return start + int(later[0]) if len(later) else start


def _start_of_last(person: Rows, processed: int) -> int:
    """Where the rows of the last processed person begin if they are not complete; else ``processed``."""
    if processed >= len(person) or person[processed] != person[processed - 1]:
        return processed
    return int(np.flatnonzero(person[:processed] == person[processed - 1])[0])


def correspondence_missing() -> NotApplicable:
    """The refusal of an attack that cannot be judged without the row correspondence."""
    return NotApplicable(
        "Identity risk needs the row correspondence between original and release.",
        fix="Pass the row map (`lineage`) that was written with the release, state that its rows are in the order "
        "of the original (`aligned`), or name a column that identifies rows in both (`key`).",
    )


def _may_be_true(attack: Attack, scenario: AttackScenario) -> bool:
    """Whether a lookup can be judged by the number of fitting rows: the released values are consistent with the
    original in all known columns, and no published step says otherwise."""
    if not attack.looks_up or scenario.steps or scenario.auxiliary is not None:
        return False
    knows = targets_of(attack, scenario).knows
    people = consistent_columns(scenario, knows)
    return people is not None and len(people.columns) + len(people.constant) == len(knows)


def _fitted_baseline(
    attack: Attack, view: View, true_rows: Rows, person: Rows | None, rng: Rng, progress: Progress
) -> Arm | None:
    """The same attack with random known matches, compared with these. With ``person`` a hit is a person, not a row.

    An attack that learns from its own targets is correct for some of them by overfitting alone. The random rows agree
    with the true ones in the columns that no published step perturbed, which need not be learned.
    """
    assert view.known_matches is not None
    random_rows = _random_rows(view, true_rows, rng.child("baseline").generator)
    try:
        random_view = replace(view, known_matches=(view.known_matches[0], random_rows))
        guessed = run_attack(attack, random_view, rng.child("guess baseline"), progress).row
    except OutOfTime:
        return None
    assert guessed is not None
    hit = guessed == random_rows[: len(guessed)]
    if person is not None:
        person = person[: len(hit)]
        return Arm(hits=len(np.unique(person[hit[: len(person)]])), trials=len(np.unique(person)))
    return Arm(hits=int(hit.sum()), trials=len(hit))


def _random_rows(view: View, true_rows: Rows, draw: np.random.Generator) -> Rows:
    """For each of these release rows a random one with the same values in all columns that were not perturbed."""
    exact = view.untouched if view.steps else ()
    if not exact or len(exact) == len(view.knows):
        return draw.permutation(true_rows)
    frame = view.release.table.frame
    number, count = number_rows([value_codes(frame[name])[0] for name in exact])
    order = np.argsort(number, kind="stable")
    starts = np.searchsorted(number[order], np.arange(count + 1))
    own = number[true_rows]
    size = starts[own + 1] - starts[own]
    return order[starts[own] + (draw.random(len(own)) * size).astype(np.int64)]


def _split(
    release_row: Rows, targets: Targets, inside: Rows, share: float, rng: Rng, n_targets: int, person: Rows | None
) -> tuple[Rows, tuple[pl.DataFrame, Rows]]:
    """Split the people in the release into targets, and people whose rows the adversary knows."""
    number = inside if person is None else person[inside]
    people = inside if person is None else np.unique(number)
    order = rng.child("taught").generator.permutation(people)
    count = max(1, round(share * len(people)))
    if count >= len(people):
        raise NotApplicable(f"{count} of {len(people)} people are known, so no targets are left.")
    taught = order[:count][: max(n_targets, 1)]
    known = np.sort(inside[np.isin(number, taught)])[: max(n_targets, 1)]
    return inside[np.isin(number, order[count:])], (targets.frame[known], release_row[targets.rows[known]])
