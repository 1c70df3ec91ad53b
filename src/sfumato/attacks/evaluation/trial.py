"""Steps shared by all evaluations: draw targets, build the adversary's view, run the attack, record the outcome."""

from __future__ import annotations

from dataclasses import replace
from math import fsum

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Attack, Guesses, View
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.scenario import AttackScenario, Targets
from sfumato.data.table import Table
from sfumato.errors import NotApplicable, OutOfTime
from sfumato.progress import Progress
from sfumato.rng import Rng

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_RANGES = 5
"""Ranges of stated probabilities in which guesses are compared with the truth."""


def sample(rng: Rng, name: str, candidates: Rows, count: int) -> Rows:
    """At most ``count`` of the candidates in random order, so that every prefix is a random sample."""
    return rng.child(name).generator.permutation(candidates)[:count]


def draw_groups(rng: Rng, group: Rows, counted: Bools, count: int) -> tuple[Rows, Rows]:
    """All candidates of random groups until ``count`` of the ``counted`` ones are drawn, and the turn of their groups.

    ``group`` is the number of each candidate's group, negative for none. Groups come in random order, one after the
    other, so that every prefix of whole groups is a random sample of groups.
    """
    groups = np.unique(group[counted & (group >= 0)])
    turns = np.full(int(group.max(initial=0)) + 1, -1, dtype=np.int64)
    turns[rng.child("targets").generator.permutation(groups)] = np.arange(len(groups))
    turn = np.where(group >= 0, turns[group], -1)
    order = np.argsort(turn, kind="stable")
    order = order[turn[order] >= 0]
    drawn = np.cumsum(counted[order])
    last = turn[order[min(int(np.searchsorted(drawn, count)), len(order) - 1)]]
    chosen = order[turn[order] <= last]
    return chosen, turn[chosen]


def release_people(scenario: AttackScenario) -> Rows:
    """The person of each released row; -1 for a row that came from nobody. Needs the row correspondence."""
    release_row, people = scenario.release_row, scenario.people
    assert release_row is not None
    assert people is not None
    owner = np.full(scenario.release.table.rows, -1, dtype=np.int64)
    owner[release_row[release_row >= 0]] = people[release_row >= 0]
    return owner


def named_people(guesses: Guesses, person: Rows, release_person: Rows) -> Floats:
    """For each target the probability that the guess names any released row of the target's person.

    ``release_person`` is the person of each released row, negative for none.
    """
    assert guesses.row is not None
    if guesses.chance is None:
        named: Floats = (guesses.made & (release_person[np.maximum(guesses.row, 0)] == person)).astype(np.float64)
        return named
    order = np.argsort(release_person, kind="stable")
    first = np.searchsorted(release_person[order], person, side="left")
    after = np.searchsorted(release_person[order], person, side="right")
    # The attack names one row, so the probabilities of a person's rows add up.
    total = np.zeros(len(person))
    for number in range(int((after - first).max(initial=0))):
        place = first + number
        total += guesses.hit_probability(np.where(place < after, order[np.minimum(place, len(order) - 1)], -1))
    return np.minimum(total, 1.0)


def run_attack(attack: Attack, view: View, rng: Rng, progress: Progress) -> Guesses:
    """The guesses for the targets that were processed in time."""
    guesses = attack.guess(view, rng, progress)
    if guesses.tried == 0:
        raise OutOfTime("Stopped: time was up before any target was processed.", fix="Allow more time.")
    return guesses.reached


def view_of(
    attack: Attack, scenario: AttackScenario, targets: Targets, chosen: Rows, *, secret: str | None = None
) -> View:
    """The adversary's view of the chosen targets."""
    return View(
        release=scenario.release,
        targets=targets.frame[chosen],
        knows=targets.knows,
        secret=secret,
        transparent=attack.transparent,
        blanks_unknown=targets.external,
        recodings=scenario.recodings,
    )


def with_everything(view: View, scenario: AttackScenario, targets: Targets, inside: Rows, chosen: Rows) -> View:
    """The view with everybody's known values and the order of the rows; ``inside`` are the targets in the release."""
    if targets.external:
        return view
    removed = scenario.original.rows - scenario.release.table.rows
    kept = scenario.release.manifest.get("order") == "kept" and removed >= 0
    return replace(
        view,
        everybody=(targets.frame[inside], np.searchsorted(inside, chosen)),
        population=(targets.frame, chosen) if removed > 0 and len(targets.rows) == scenario.original.rows else None,
        position=(targets.rows[chosen], removed) if kept else None,
    )


def row_map_required(scenario: AttackScenario) -> Rows:
    """The row correspondence; refused if it is unknown or if no released row belongs to a person."""
    release_row = scenario.release_row
    if release_row is None or scenario.synthetic:
        raise NotApplicable(
            "Identity risk needs the row correspondence between original and release.",
            fix="Pass the row map (`lineage`) that was written with the release.",
        )
    return release_row


def in_release(release_row: Rows | None, targets: Targets) -> Rows:
    """Numbers of the targets that are in the release, as far as this is known."""
    inside = np.arange(len(targets.rows)) if release_row is None else np.flatnonzero(release_row[targets.rows] >= 0)
    if len(inside) == 0:
        raise NotApplicable(
            "None of the targets is in the release.", fix="Use an external file that overlaps with the release."
        )
    return inside


def expected(hit: Floats) -> float:
    """The expected number of hits, the same in any order of the targets; thrice a third is one."""
    total = fsum(hit)
    return float(round(total)) if abs(total - round(total)) < 1e-7 else total


def random_row(rows: int, size: int, people: Rows | None) -> Arm:
    """The expected success of whoever names a random one of ``size`` released rows: it is one of the person's with the
    share of their rows. ``people`` is the person of each of the ``rows`` targets, where people have several.
    """
    return Arm(hits=rows / size, trials=rows if people is None else len(np.unique(people)))


def outcome_of(
    attack: Attack,
    targets: Targets,
    rows: Rows,
    guesses: Guesses,
    hit: Bools | Floats,
    baseline: Arm | None,
    *,
    planned: int,
    truth: str = "row map",
    control: Arm | None = None,
    secret: str | None = None,
    people: Rows | None = None,
) -> Outcome:
    """The outcome of an attack; ``rows`` are the original rows of the targets and ``hit`` says who was found: with
    certainty (true, 1), or with the probability of a random choice among ties.

    ``people`` is the person of each target where people have several rows. The outcome then counts people: one is found
    with the largest probability of their rows. Where guesses are right or wrong for sure, this is whether any is right.
    """
    hit = hit.astype(np.float64)
    certain = guesses.made & (guesses.confidence >= 1 - 1e-9)
    found, made, sure = _by_person(people, hit, guesses.made, certain)
    detail = dict(guesses.detail)
    order = np.argsort(rows, kind="stable")
    if attack.uses_everything:
        detail["calibration"] = calibration(guesses.confidence[guesses.made], hit[guesses.made])
    if targets.outsiders:
        detail["outsiders"] = targets.outsiders
    return Outcome(
        attack=attack.part_name(),
        discloses=attack.discloses,
        main=Arm(hits=expected(found), trials=len(found)),
        baseline=baseline,
        control=control,
        claims=int(made.sum()),
        certain=int(sure.sum()),
        certain_hits=int(found[sure].sum() + 0.5),
        knows=targets.knows,
        secret=secret,
        parameters={
            name: value
            for name, value in attack.to_dict().items()
            if name not in ("auxiliary", "identity", "knows", "releases")
        },
        detail=detail,
        threat=attack.summary(),
        setting=attack.setting,
        planned=planned,
        one_to_one=attack.min_targets > 0,
        truth=truth,
        rows=rows[order],
        hit=hit[order],
        confidence=guesses.confidence[order],
    )


def calibration(confidence: Floats, hit: Floats) -> list[dict[str, float]]:
    """The mean stated probability of the guesses in five ranges of it, and the share of them that is right.

    >>> calibration(np.array([0.9, 0.9, 0.1]), np.array([1.0, 1.0, 0.0]))
    [{'stated': 0.1, 'right': 0.0, 'guesses': 1}, {'stated': 0.9, 'right': 1.0, 'guesses': 2}]
    """
    part = np.minimum((confidence * _RANGES).astype(np.int64), _RANGES - 1)
    return [
        {
            "stated": round(float(confidence[part == number].mean()), 3),
            "right": round(float(hit[part == number].mean()), 3),
            "guesses": int((part == number).sum()),
        }
        for number in np.unique(part)
    ]


def _by_person(people: Rows | None, hit: Floats, made: Bools, certain: Bools) -> tuple[Floats, Bools, Bools]:
    """The largest value of each person's rows; the values themselves if every row is another person."""
    if people is None:
        return hit, made, certain
    _, number = np.unique(people, return_inverse=True)
    found, claimed, sure = (np.zeros(int(number.max(initial=-1)) + 1, dtype=kind) for kind in (np.float64, bool, bool))
    for total, values in ((found, hit), (claimed, made), (sure, certain)):
        np.maximum.at(total, number, values)
    return found, claimed, sure


def non_members(table: Table, targets: Targets, secret: str | None = None) -> tuple[Targets, pl.Series]:
    """The people of a control file as targets, with their sensitive values.

    Suppressed rows never serve as control: they were suppressed because they are unlike the others.
    """
    table.require([*targets.knows, *([secret] if secret else [])])
    frame = table.frame if secret is None else table.frame.filter(pl.col(secret).is_not_null())
    strangers = Targets(frame=frame.select(targets.knows), rows=np.empty(0, np.int64), knows=targets.knows)
    return strangers, frame.get_column(secret) if secret is not None else pl.Series([])


def controlled_scenarios(scenario: AttackScenario, targets: Targets) -> tuple[AttackScenario, ...]:
    """Scenarios with a control file: the scenario itself, or its folds.

    None if what is known about the targets does not hold for the people of the folds: values of an external file, or
    targets that were not drawn at random.
    """
    if scenario.control is not None:
        return (scenario,)
    return () if targets.external or scenario.targets is not None else scenario.folds
