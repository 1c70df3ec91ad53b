"""Which column an attack owes its success to: the same attack by an intruder who knows one column less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sfumato.api.limits import judged_value
from sfumato.attacks import Attack, AttackScenario, Outcome, evaluate_attack, risk
from sfumato.deadline import Deadline, quiet
from sfumato.errors import NotApplicable, SfumatoError
from sfumato.progress import Progress
from sfumato.rng import Rng

__all__ = ["column_attribution"]

_CHEAP = frozenset({"linkage", "attribute-linkage", "distance-linkage", "rank-window", "centroids", "model-inference"})
"""Attacks that can be run once more per column; the others tell what they learned about columns."""
_ROWS = 200_000
_COLUMNS = 12
_TRIES = 500


def column_attribution(
    scenario: AttackScenario,
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
    if scenario.release.table.rows > _ROWS or (isinstance(progress, Deadline) and progress.left <= 0):
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
            found[number] = replace(worst, without=_without(attacks[number], worst.knows, scenario, own, progress))
    return found


def _without(
    attack: Attack, knows: tuple[str, ...], scenario: AttackScenario, rng: Rng, progress: Progress
) -> dict[str, dict[str, float]]:
    told: dict[str, dict[str, float]] = {}
    shown = progress.listener if isinstance(progress, Deadline) else progress
    with shown.task("looking for the columns to blame", len(knows)) as tick:
        for column in knows:
            fewer = attack.model_copy(update={"knows": tuple(name for name in knows if name != column)})
            try:
                outcome = evaluate_attack(
                    fewer, scenario, rng=rng.child(column), tries=_TRIES, progress=quiet(progress)
                )
            except SfumatoError:
                # Not every attack is left with something to go by.
                continue
            finally:
                tick(1)
            left = risk(outcome)
            told[column] = {"risk": left.value, "low": left.low, "high": left.high}
    return told
