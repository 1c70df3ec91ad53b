"""Evaluation of an attack: run its main, baseline and control arms and count correct guesses.

An attack never learns whether a guess was correct, and no attack counts its own successes. There is one success
criterion per kind of disclosure, each in a module of this package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from sfumato.attacks.base import Attack, Discloses, UnitLinking
from sfumato.attacks.evaluation.any_columns import evaluate_any_columns
from sfumato.attacks.evaluation.attribute import evaluate_attribute
from sfumato.attacks.evaluation.identity import evaluate_identity
from sfumato.attacks.evaluation.membership import evaluate_membership
from sfumato.attacks.evaluation.outcome import Outcome
from sfumato.attacks.evaluation.results import evaluate_results
from sfumato.attacks.evaluation.singling_out import evaluate_singling_out
from sfumato.attacks.evaluation.units import evaluate_units
from sfumato.attacks.scenario import AttackScenario
from sfumato.deadline import check_deadline
from sfumato.errors import BadParameter, NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

_MAX_PAIRS = 2_000_000_000
"""Pairs of target and row that a pairwise attack compares at most; this takes a few seconds per column."""
_MIN_PAIRWISE_TARGETS = 200


def evaluate_attack(
    attack: Attack,
    scenario: AttackScenario,
    *,
    rng: Rng,
    progress: Progress = SILENT,
    n_targets: int = 5000,
    competing: bool = True,
) -> Outcome:
    """Run an attack on at most ``n_targets`` targets drawn at random and count the correct guesses.

    An attack that does not apply, or whose guesses cannot be checked, raises :class:`NotApplicable`: this is never
    reported as a risk of zero. If ``progress`` is a :class:`~sfumato.deadline.Deadline` and time is up, the targets
    processed so far are counted. Targets come in random order, so these are a random sample, and the interval reflects
    their number. If no target was processed, :class:`OutOfTime` is raised.

    Attacks in which targets compete for rows get more targets (:attr:`Attack.min_targets`), unless ``competing`` is
    false.
    """
    check_deadline(progress)
    if n_targets < 1:
        raise BadParameter(f"An attack needs at least one target, not {n_targets}.", n_targets=n_targets)
    if competing:
        n_targets = max(n_targets, attack.min_targets)
    if attack.pairwise:
        affordable = _MAX_PAIRS // max(1, scenario.release.table.rows)
        n_targets = min(n_targets, max(_MIN_PAIRWISE_TARGETS, affordable))
    own = rng.child("attack", attack.part_name())
    if isinstance(attack, UnitLinking):
        return evaluate_units(attack, scenario, own, progress, n_targets)
    evaluate: Callable[[Attack, AttackScenario, Rng, Progress, int], Outcome]
    match attack.discloses:
        case Discloses.IDENTITY:
            evaluate = evaluate_identity
            if attack.any_columns:
                evaluate = evaluate_any_columns
        case Discloses.ATTRIBUTE:
            evaluate = evaluate_attribute
        case Discloses.MEMBERSHIP:
            evaluate = evaluate_membership
        case Discloses.SINGLING_OUT:
            evaluate = evaluate_singling_out
        case Discloses.LINK:
            raise NotApplicable("A table has no links.", fix="Attacks on links are for graphs.")
        case Discloses.RESULT:
            evaluate = evaluate_results
        case other:  # pragma: no cover - a new kind of disclosure needs its success criterion here
            assert_never(other)
    outcome = evaluate(attack, scenario, own, progress, n_targets)
    # Identity is counted by people. What else is disclosed is counted by rows.
    by_rows = scenario.people is not None and attack.discloses is not Discloses.IDENTITY
    return replace(outcome, counts="rows") if by_rows else outcome
