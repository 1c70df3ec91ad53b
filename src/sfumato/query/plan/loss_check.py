"""Second computation of the privacy loss, from the bounds that the engine enforces instead of sensitivities."""

from __future__ import annotations

from fractions import Fraction

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, sequential
from sfumato.dp.mechanism import ContributionBounds
from sfumato.errors import AnswerFailed, BadParameter
from sfumato.query.plan.noise import Measurement, NoisePlan


def enforced_change(plan: NoisePlan, measurement: Measurement) -> Fraction:
    """How far a unit moves the number of one group, by what the engine enforces."""
    assert measurement.aggregate is not None
    aggregate = plan.query.aggregates[measurement.aggregate]
    return aggregate.worst(plan.rows) * aggregate.step


def _bounds(plan: NoisePlan, measurement: Measurement) -> ContributionBounds:
    """What the engine enforces on one unit's contribution to this draw."""
    if plan.top_keys is not None and measurement.aggregate in (None, 0):
        # One selection over all groups, in whole steps; the number is measured in the selected groups, and a unit may
        # be in all of them.
        if measurement.aggregate is None:
            return ContributionBounds(groups=1, change=Fraction(plan.query.aggregates[0].worst(plan.rows)))
        return ContributionBounds(groups=plan.top_keys.count, change=enforced_change(plan, measurement))
    if measurement.aggregate is None:  # private keys: each unit counts once per key
        return ContributionBounds(groups=plan.groups, change=Fraction(1))
    if plan.is_fitting(measurement):  # a unit counts once, in one of two numbers, whatever groups it is in
        return ContributionBounds(groups=1, change=Fraction(1))
    change = enforced_change(plan, measurement)
    return ContributionBounds(groups=plan.groups, change=change, parts=measurement.parts)


def second_loss(plan: NoisePlan, measurement: Measurement) -> PrivacyLoss | None:
    """The loss of one draw, derived from the bounds that the engine enforces; None where they do not fit it."""
    try:
        return measurement.mechanism.loss_from_bounds(_bounds(plan, measurement))
    except BadParameter:
        return None


def check_loss(plan: NoisePlan) -> None:
    """Compute every loss a second time from the bounds that the engine enforces; refuse the plan if the two differ.

    The first computation passes declared sensitivities to the mechanisms. This one tries extreme units against the
    clipping rules, and the mechanisms derive the loss from that and from their output distributions.
    """
    losses: list[list[PrivacyLoss]] = [[] for _ in plan.parts]
    for measurement in plan.measurements:
        derived = second_loss(plan, measurement)
        if derived is None or derived != measurement.loss or derived.composable() != measurement.loss.composable():
            raise AnswerFailed("The two computations of the privacy loss disagree; no data was read.")
        if measurement.reservation >= len(losses):
            raise AnswerFailed("A measurement has no reserved cost; no data was read.")
        losses[measurement.reservation].append(derived)
    totals = [
        sequential(loss.to(part.measure) if loss.measure is PrivacyMeasure.EPSILON else loss for loss in items)
        for items, part in zip(losses, plan.parts, strict=True)
    ]
    if any(
        not total <= part or not total.composable().within(part.composable())
        for total, part in zip(totals, plan.parts, strict=True)
    ):
        raise AnswerFailed("The reserved parts do not cover the cost of the noise; no data was read.")
    total = sequential(plan.parts)
    if not total <= plan.cost or not total.composable().within(plan.cost.composable()):
        raise AnswerFailed("The noise would cost more than requested; no data was read.")
