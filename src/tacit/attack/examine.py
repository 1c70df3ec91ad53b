"""The examiner: holds the truth, runs every attack's main, baseline and control arms, and counts.

An attack never learns whether it was right, and no attack counts its own hits: one success criterion per kind of
disclosure, written once, in the examiner of that kind.

>>> from tacit.attack import Scene, examine, risk            # doctest: +SKIP
>>> outcome = examine(Linkage(), scene, rng=Rng(7))          # doctest: +SKIP
>>> risk(outcome).low <= risk(outcome).value                 # doctest: +SKIP
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from tacit.attack.attack import Attack, Discloses
from tacit.attack.examine_attribute import examine_attribute
from tacit.attack.examine_descriptions import examine_descriptions
from tacit.attack.examine_identity import examine_identity
from tacit.attack.examine_membership import examine_membership
from tacit.attack.outcome import Outcome
from tacit.attack.scene import Scene
from tacit.errors import BadParameter
from tacit.progress import SILENT, Progress, hurry
from tacit.rng import Rng

__all__ = ["examine"]


def examine(attack: Attack, scene: Scene, *, rng: Rng, progress: Progress = SILENT, tries: int = 5000) -> Outcome:
    """Run an attack on at most ``tries`` people drawn at random and count how often it was right.

    What cannot be judged or attacked raises :class:`NotApplicable`: it is never a risk of zero. When ``progress`` is a
    :class:`~tacit.progress.Deadline` and time is up, those sought so far are counted; people are sought in random
    order, so they are a sample of all, and the interval is as wide as their number says. With nobody sought to the end,
    :class:`OutOfTime` is raised.
    """
    hurry(progress)
    if tries < 1:
        raise BadParameter(f"An attack needs at least one try, not {tries}.", tries=tries)
    tries = max(tries, attack.together)
    if attack.pairwise:
        # Two thousand million comparisons take a few seconds per column; the interval says what fewer tries cost.
        tries = min(tries, max(200, 2_000_000_000 // max(1, scene.release.table.rows)))
    if attack.by_unit:
        from tacit.attack.examine_units import examine_units

        return examine_units(attack, scene, rng.child("attack", attack.part_name()), progress, tries)  # type: ignore
    run: Callable[..., Outcome]
    if attack.by_household:
        from tacit.attack.examine_households import examine_households

        return examine_households(attack, scene, rng.child("attack", attack.part_name()), progress, tries)
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
    return run(attack, scene, rng.child("attack", attack.part_name()), progress, tries)
