"""The examiner: holds the truth, runs every attack's main, baseline and control arms, and counts.

An attack never learns whether it was right, and no attack counts its own hits: one success criterion per kind of
disclosure, written once, in the examiner of that kind.

>>> from sfumato.attacks import AttackScenario, evaluate_attack, risk            # doctest: +SKIP
>>> outcome = evaluate_attack(Linkage(), scenario, rng=Rng(7))          # doctest: +SKIP
>>> risk(outcome).low <= risk(outcome).value                 # doctest: +SKIP
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from sfumato.attacks.base import Attack, Discloses
from sfumato.attacks.evaluation.attribute import examine_attribute
from sfumato.attacks.evaluation.identity import examine_identity
from sfumato.attacks.evaluation.membership import examine_membership
from sfumato.attacks.evaluation.outcome import Outcome
from sfumato.attacks.evaluation.singling_out import examine_descriptions
from sfumato.attacks.scenario import AttackScenario
from sfumato.deadline import check_deadline
from sfumato.errors import BadParameter
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["evaluate_attack"]


def evaluate_attack(
    attack: Attack, scenario: AttackScenario, *, rng: Rng, progress: Progress = SILENT, tries: int = 5000
) -> Outcome:
    """Run an attack on at most ``tries`` people drawn at random and count how often it was right.

    What cannot be judged or attacked raises :class:`NotApplicable`: it is never a risk of zero. When ``progress`` is a
    :class:`~sfumato.deadline.Deadline` and time is up, those sought so far are counted; people are sought in random
    order, so they are a sample of all, and the interval is as wide as their number says. With nobody sought to the end,
    :class:`OutOfTime` is raised.
    """
    check_deadline(progress)
    if tries < 1:
        raise BadParameter(f"An attack needs at least one try, not {tries}.", tries=tries)
    tries = max(tries, attack.together)
    if attack.pairwise:
        # Two thousand million comparisons take a few seconds per column; the interval says what fewer tries cost.
        tries = min(tries, max(200, 2_000_000_000 // max(1, scenario.release.table.rows)))
    if attack.by_unit:
        from sfumato.attacks.evaluation.units import examine_units

        return examine_units(attack, scenario, rng.child("attack", attack.part_name()), progress, tries)  # type: ignore
    run: Callable[..., Outcome]
    if attack.by_household:
        from sfumato.attacks.evaluation.households import examine_households

        return examine_households(attack, scenario, rng.child("attack", attack.part_name()), progress, tries)
    match attack.discloses:
        case Discloses.IDENTITY:
            run = examine_identity
        case Discloses.ATTRIBUTE:
            run = examine_attribute
        case Discloses.MEMBERSHIP:
            run = examine_membership
        case Discloses.SINGLING_OUT:
            run = examine_descriptions
        case other:  # pragma: no cover - a new kind of disclosure must be given its criterion here
            assert_never(other)
    return run(attack, scenario, rng.child("attack", attack.part_name()), progress, tries)
