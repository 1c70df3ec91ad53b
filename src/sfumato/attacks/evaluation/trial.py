"""One trial of an attack: who is sought, what the intruder sees, and how what was found is counted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Attack, Guesses, View
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.scenario import AttackScenario, People
from sfumato.errors import NotApplicable, OutOfTime
from sfumato.progress import Progress
from sfumato.rng import Rng

__all__ = ["guess", "in_release", "outcome_of", "outside_of", "sample", "view_of"]

Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]


def sample(rng: Rng, name: str, chosen: Rows, tries: int) -> Rows:
    """At most ``tries`` of those, in random order: whoever stops early has seen a random sample."""
    return rng.child(name).generator.permutation(chosen)[:tries]


def guess(attack: Attack, view: View, rng: Rng, progress: Progress) -> Guesses:
    """The guesses about those who were reached in time."""
    guesses = attack.guess(view, rng, progress)
    if guesses.tried == 0:
        raise OutOfTime("Stopped: time was up before anybody had been sought.", fix="Allow more time.")
    return guesses.reached


def view_of(
    attack: Attack, scenario: AttackScenario, people: People, chosen: Rows, *, secret: str | None = None
) -> View:
    return View(
        release=scenario.release,
        targets=people.frame[chosen],
        knows=people.knows,
        secret=secret,
        transparent=attack.transparent,
        blanks_unknown=people.outside,
    )


def in_release(place: Rows | None, people: People) -> Rows:
    """Numbers of the people who are in the release, so far as that is known."""
    inside = np.arange(len(people.rows)) if place is None else np.flatnonzero(place[people.rows] >= 0)
    if len(inside) == 0:
        raise NotApplicable(
            "None of the people sought is in the release.", fix="Give an outside file that overlaps with the release."
        )
    return inside


def outcome_of(
    attack: Attack,
    scenario: AttackScenario,
    people: People,
    rows: Rows,
    guesses: Guesses,
    hit: Bools,
    baseline: Arm | None,
    **more: object,
) -> Outcome:
    certain = guesses.made & (guesses.confidence >= 1 - 1e-9)
    detail = dict(guesses.detail)
    order = np.argsort(rows, kind="stable")
    if people.outsiders:
        detail["outsiders"] = people.outsiders
    return Outcome(
        attack=attack.part_name(),
        discloses=attack.discloses,
        main=Arm(hits=int(hit.sum()), tries=len(hit)),
        baseline=baseline,
        claims=int(guesses.made.sum()),
        certain=int(certain.sum()),
        certain_hits=int((certain & hit).sum()),
        knows=people.knows,
        parameters={
            name: value
            for name, value in attack.to_dict().items()
            if name not in ("auxiliary", "identity", "knows", "releases")
        },
        detail=detail,
        threat=attack.summary(),
        setting=attack.setting,
        rows=rows[order],
        hit=hit[order],
        confidence=guesses.confidence[order],
        **more,  # type: ignore[arg-type]
    )


def outside_of(
    scenario: AttackScenario, people: People, secret: str | None, place: Rows | None
) -> tuple[pl.DataFrame, pl.Series] | None:
    """People who are not in the release, with the value sought: a control file, or the rows that were left out."""
    if scenario.control is not None:
        needed = [*people.knows, *([secret] if secret else [])]
        scenario.control.require(needed)
        frame = scenario.control.frame
    elif place is not None:
        frame = scenario.original.table.frame.filter(pl.Series(place < 0))
    else:
        return None
    if secret is not None:
        frame = frame.filter(pl.col(secret).is_not_null())
    if frame.height == 0:
        return None
    return frame.select(people.knows), frame.get_column(secret) if secret is not None else pl.Series([])
