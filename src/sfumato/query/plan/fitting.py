"""Measure whom the contribution limits cut: a small part of a query's cost.

Contributions beyond the limits are cut before noise is added, and the interval of an answer covers the noise alone. A
plan therefore also measures how many units the limits fit and how many they do not. The answer states the noisy share,
and has no intervals where too many units are cut.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, sequential
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.rational_bounds import sqrt_up
from sfumato.query.plan.aggregates import FittingUnits
from sfumato.query.plan.noise import Measurement, NoisePlan
from sfumato.query.plan.query import Query


def counted_once(query: Query) -> bool:
    """Whether only units are counted, so that the number of their rows in a group has no effect."""
    return all(m.once for m in query.aggregates)


def can_be_cut(query: Query, groups: int) -> bool:
    """Whether any unit can exceed the limits: not one with a single row, nor one that is counted once in all groups.

    A person's own sum exceeds them where it is clipped to what the declared limits can add up to.
    """
    if query.assumed:
        return True
    if query.rows.by_row or query.rows.unbounded_joins == 0:
        return False
    return not counted_once(query) or query.groups is None or groups < query.groups


def with_fitting(plan: NoisePlan, cost: PrivacyLoss, share: Fraction) -> NoisePlan:
    """The plan with a further measurement at a share of ``cost``, of which the plan has the rest."""
    size = cost.size * share
    epsilon = size
    if cost.measure is PrivacyMeasure.RHO:
        epsilon = Fraction(int(sqrt_up(2 * size) * 10**12) - 1, 10**12)
    index, aggregate = len(plan.query.aggregates), FittingUnits()
    mechanism = Laplace.for_epsilon(epsilon, sensitivity=1, grid=1)
    measurement = Measurement(
        aggregate=index, mechanism=mechanism, sensitivity=Fraction(1), loss=mechanism.loss_at(1),
        reservation=len(plan.parts),
    )  # fmt: skip
    parts = (*plan.parts, measurement.loss.to(cost.measure))
    return replace(
        plan,
        query=replace(plan.query, aggregates=(*plan.query.aggregates, aggregate)),
        measurements=(*plan.measurements, measurement),
        parts=parts,
        cost=replace(cost, delta=plan.cost.delta, curve=sequential(parts).composable()),
    )
