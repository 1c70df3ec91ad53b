"""Steps shared by all evaluations: draw targets, build the adversary's view, run the attack, record the outcome."""

from __future__ import annotations

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

__all__ = [
    "controlled_scenarios",
    "in_release",
    "non_members",
    "outcome_of",
    "row_map_required",
    "run_attack",
    "sample",
    "view_of",
]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


def sample(rng: Rng, name: str, candidates: Rows, count: int) -> Rows:
    """At most ``count`` of the candidates in random order, so that every prefix is a random sample."""
    return rng.child(name).generator.permutation(candidates)[:count]


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
) -> Outcome:
    """The outcome of an attack; ``rows`` are the original rows of the targets and ``hit`` says who was found: with
    certainty (true, 1), or with the probability of a random choice among ties."""
    hit = hit.astype(np.float64)
    certain = guesses.made & (guesses.confidence >= 1 - 1e-9)
    detail = dict(guesses.detail)
    order = np.argsort(rows, kind="stable")
    if targets.outsiders:
        detail["outsiders"] = targets.outsiders
    return Outcome(
        attack=attack.part_name(),
        discloses=attack.discloses,
        main=Arm(hits=expected(hit), trials=len(hit)),
        baseline=baseline,
        control=control,
        claims=int(guesses.made.sum()),
        certain=int(certain.sum()),
        certain_hits=int(hit[certain].sum() + 0.5),
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
