"""The noisy share of people whom the contribution limits fit, and what follows for the intervals of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.query.plan.aggregates import FittingUnits
from sfumato.query.results.postprocess import NoisyValue

if TYPE_CHECKING:
    from sfumato.query.execute.executor import NoisyTable
    from sfumato.query.plan.noise import NoisePlan

__all__ = ["intervals_hold", "kept_share", "kept_text"]

_LEAST = 0.99
"""Intervals are withheld where surely more than one person in a hundred is cut."""


def kept_share(plan: NoisePlan, table: NoisyTable) -> NoisyValue | None:
    """Share of units of which nothing is cut, with a 95 % interval; None where it was not measured."""
    place = next((i for i, m in enumerate(plan.query.aggregates) if isinstance(m, FittingUnits)), None)
    if place is None:
        return None
    radius = plan.of(place).mechanism.error(confidence="0.975")  # each of the two numbers
    fit, cut = (float(number) for number in table.values[place])
    fit_low, fit_high = max(0.0, fit - radius), max(0.0, fit + radius)
    cut_low, cut_high = max(0.0, cut - radius), max(0.0, cut + radius)
    low = fit_low / (fit_low + cut_high) if fit_low > 0 else 0.0
    high = fit_high / (fit_high + cut_low) if cut_low > 0 else 1.0
    whole = max(0.0, fit) + max(0.0, cut)
    value = max(0.0, fit) / whole if whole else high
    return NoisyValue(value=min(max(value, low), high), low=low, high=high)


def intervals_hold(kept: NoisyValue | None) -> bool:
    """Whether intervals of the noise may be shown: not where contributions are surely cut."""
    return kept is None or kept.high is None or kept.high >= _LEAST


def kept_text(kept: NoisyValue) -> str:
    """What the limits do to the answer, and what to do about it, in one sentence or two."""
    assert kept.low is not None
    assert kept.high is not None
    few, many = 1 - kept.high, 1 - kept.low
    if intervals_hold(kept):
        return f"The limits cut {few:.1%} to {many:.1%} of the people; intervals do not cover what is cut."
    return (
        f"The limits cut {few:.1%} to {many:.1%} of the people, so that answers are biased and have no intervals. "
        "Use larger `rows` and `groups`; `Session.fit_limits` chooses them privately."
    )
