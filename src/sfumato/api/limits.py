"""Limits: what was judged against each, and whether it is met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.attacks import Outcome
from sfumato.attacks.evaluation.intervals import wilson
from sfumato.attacks.evaluation.outcome import excess
from sfumato.errors import NotApplicable, OutOfTime
from sfumato.recipe import Limits

__all__ = ["judge_limits", "judged_value", "one_limit"]


def one_limit(share: float, outcomes: Sequence[Outcome | NotApplicable]) -> Limits:
    """The same limit for every kind of disclosure that was tried."""
    kinds = {
        str(item.discloses) if isinstance(item, Outcome) else str(item.facts.get("discloses")) for item in outcomes
    }
    held = Limits.names()
    return Limits(**{"risk" if kind == "identity" else held[kind]: share for kind in kinds})


def judge_limits(limits: Limits, outcomes: Sequence[Outcome | NotApplicable]) -> list[dict[str, Any]]:
    """Each limit with the worst value that was judged against it.

    Identity is judged by the upper end of the interval. Of an attribute or membership attack, what it gets right beyond
    its reference (people outside the release, or the best blind guess) is judged in the same way, because being right
    about the majority is no disclosure. A limit that nothing could be judged against is not met; one that an attack
    would have been judged against, had there been time for it, is not met either: ``met`` is then None at best, and
    ``stopped`` names the attacks.
    """
    judged = []
    for name, wanted in limits.items().items():
        kind = "identity" if name == "risk" else name
        values = [
            (judged_value(outcome), outcome.attack)
            for outcome in outcomes
            if isinstance(outcome, Outcome) and str(outcome.discloses) == kind
        ]
        value, attack_name = max(values, default=(None, None))
        met: bool | None = value is not None and value <= wanted
        stopped = [
            str(outcome.facts.get("attack"))
            for outcome in outcomes
            if isinstance(outcome, OutOfTime) and outcome.facts.get("discloses") == kind
        ]
        if stopped and (met or value is None):
            met = None
        entry = {"limit": name, "wanted": wanted, "value": value, "met": met, "attack": attack_name}
        judged.append({**entry, "stopped": stopped} if stopped else entry)
    return judged


def judged_value(outcome: Outcome) -> float:
    """What of an outcome is compared with a limit."""
    plain = outcome.to_dict()
    high: float = plain["high"]
    if plain["discloses"] == "identity":
        return high
    # A few people outside the release prove little: as much is taken off as they show for certain.
    control = outcome.control
    outside = wilson(control.hits, control.tries)[0] if control is not None else 0.0
    return excess(high, max(plain["baseline"] or 0.0, outside))
