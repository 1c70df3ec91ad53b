"""Which column an attack owes its success to: the same attack by an intruder who knows one column less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tacit.attack import Attack, Outcome, Scene, examine, risk
from tacit.errors import NotApplicable, TacitError
from tacit.progress import Deadline, Progress, silenced
from tacit.rng import Rng
from tacit.verbs.limits import judged_value

__all__ = ["blamed"]

_CHEAP = frozenset({"linkage", "attribute-linkage", "distance-linkage", "rank-window", "centroids", "model-inference"})
"""Attacks that can be run once more per column; the others tell what they learned about columns."""
_ROWS = 200_000
_COLUMNS = 12
_TRIES = 500


def blamed(
    scene: Scene,
    attacks: Sequence[Attack],
    outcomes: Sequence[Outcome | NotApplicable],
    limits: Sequence[dict[str, Any]],
    *,
    rng: Rng,
    progress: Progress,
) -> list[Outcome | NotApplicable]:
    """The outcomes; the strongest cheap one beyond each limit also says what is left of it without each column it knew.

    Told of releases of up to 200,000 rows and when time is left; figures are of at most 500 people.
    """
    found = list(outcomes)
    if scene.release.table.rows > _ROWS or (isinstance(progress, Deadline) and progress.left <= 0):
        return found
    for limit in limits:
        kind = "identity" if limit["limit"] == "risk" else limit["limit"]
        beyond = [
            (judged_value(item), number)
            for number, item in enumerate(found)
            if isinstance(item, Outcome) and item.attack in _CHEAP and str(item.discloses) == kind
        ]
        value, number = max(beyond, default=(0.0, -1))
        worst = found[number] if value > limit["wanted"] else None
        if isinstance(worst, Outcome) and 1 < len(worst.knows) <= _COLUMNS:
            own = rng.child("without", number)
            found[number] = replace(worst, without=_without(attacks[number], worst.knows, scene, own, progress))
    return found


def _without(
    attack: Attack, knows: tuple[str, ...], scene: Scene, rng: Rng, progress: Progress
) -> dict[str, dict[str, float]]:
    told: dict[str, dict[str, float]] = {}
    shown = progress.listener if isinstance(progress, Deadline) else progress
    with shown.task("looking for the columns to blame", len(knows)) as tick:
        for column in knows:
            fewer = attack.model_copy(update={"knows": tuple(name for name in knows if name != column)})
            try:
                outcome = examine(fewer, scene, rng=rng.child(column), tries=_TRIES, progress=silenced(progress))
            except TacitError:
                # Not every attack is left with something to go by.
                continue
            finally:
                tick(1)
            left = risk(outcome)
            told[column] = {"risk": left.value, "low": left.low, "high": left.high}
    return told
