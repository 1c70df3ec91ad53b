"""The noisy share of people whom the contribution limits fit, and what follows for the intervals of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sfumato.query.plan.fitting import can_be_cut
from sfumato.query.results.postprocess import NoisyValue

if TYPE_CHECKING:
    from sfumato.query.execute.executor import NoisyTable
    from sfumato.query.plan.noise import NoisePlan

_LEAST = 0.99
"""Intervals are shown where it was shown that fewer than one person in a hundred is cut, and nobody was seen to be:
one person who is cut can hold any share of a sum."""
Limits = Literal["fit", "cut", "not shown"]
"""Whether the contribution limits fit the people: nobody is seen to be cut, somebody is, or too few people to tell."""
LIMITS = "limits"
"""Name of the column that says so, beside the values of an answer."""


def kept_share(plan: NoisePlan, table: NoisyTable) -> NoisyValue | None:
    """Share of units of which nothing is cut, with a 95 % interval; None where it was not measured."""
    place, fitting = plan.query.fitting, plan.fitting
    if place is None or fitting is None:
        return None
    radius = fitting.mechanism.error(confidence="0.975")  # each of the two numbers
    fit, cut = (float(number) for number in table.values[place])
    fit_low, fit_high = max(0.0, fit - radius), max(0.0, fit + radius)
    cut_low, cut_high = max(0.0, cut - radius), max(0.0, cut + radius)
    low = 1.0 if cut_high < 1 else fit_low / (fit_low + cut_high)  # below 1: nobody is cut, however many there are
    high = fit_high / (fit_high + cut_low) if cut_low > 0 else 1.0
    whole = max(0.0, fit) + max(0.0, cut)
    value = max(0.0, fit) / whole if whole else high
    return NoisyValue(value=min(max(value, low), high), low=low, high=high)


def limits_of(plan: NoisePlan, kept: NoisyValue | None) -> Limits | None:
    """What is known about limits that can cut somebody; None where they cannot. What was not measured was not shown."""
    return _judged(kept) if can_be_cut(plan.query, plan.groups) else None


def _judged(kept: NoisyValue | None) -> Limits:
    """Limits cut where even the upper end of the share that they fit is below 1."""
    if kept is None or kept.low is None or kept.high is None:
        return "not shown"
    return "cut" if kept.high < 1 else "fit" if kept.low >= _LEAST else "not shown"


def kept_text(kept: NoisyValue | None) -> str:
    """What the limits do to the answer, and what to do about it, in one sentence or two; None was not measured."""
    if kept is None:
        return (
            "It was not measured how many people the limits cut (`fit` is 0), so that there are no intervals. Use a "
            "`fit` above 0."
        )
    assert kept.low is not None
    assert kept.high is not None
    few, many = 1 - kept.high, 1 - kept.low
    match _judged(kept):
        case "fit":
            return f"The limits cut {many:.1%} of the people at most; intervals do not cover what is cut."
        case "cut":
            return (
                f"The limits cut {few:.2%} to {many:.2%} of the people, who may hold any share of a sum: answers are "
                "biased and have no intervals. Use larger `rows` and `groups`; `Session.fit_limits` chooses them "
                "privately. Sums of one person are clipped to what the declared limits add up to: use CLIP there."
            )
        case "not shown":
            return (
                f"The limits cut up to {many:.1%} of the people. It was not shown that they cut fewer than 1 %, so "
                "that there are no intervals. Use a larger epsilon, or `fit` for a larger share of it."
            )
