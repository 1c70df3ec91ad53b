"""Top-k plans: ``ORDER BY count DESC LIMIT k`` selects k groups and measures no others.

Measuring the counts of all groups costs noise in proportion to the groups of one unit. A selection of k groups costs k
rounds of the exponential mechanism, however many groups a unit is in; counts that the answer shows are then measured
for the selected groups alone, of which a unit is in k at most. The plan is used where it has less noise.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, sequential
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.mechanisms.top_keys import TopKeys
from sfumato.query.plan.aggregates import Count
from sfumato.query.plan.noise import Measurement, NoisePlan
from sfumato.query.plan.outputs import Key, Measured
from sfumato.query.plan.row_steps import Sort, Take
from sfumato.query.sql.parse import Query

__all__ = ["top_plan"]


def _wanted(query: Query) -> tuple[int, bool] | None:
    """Number of groups, and whether their counts are shown; None for queries of another form."""
    match query.aggregates, query.steps:
        case (Count(),), (Sort(by=((Measured(number=0), True), *ties)), Take(limit=int(limit), offset=0)) if limit > 0:
            pass
        case _:
            return None
    shown = [output for _, output in query.outputs if not isinstance(output, Key)]
    if any(not isinstance(item, Key) for item, _ in ties) or any(
        not (isinstance(output, Measured) and output.number == 0) for output in shown
    ):
        return None
    return limit, bool(shown)


def top_plan(query: Query, cost: PrivacyLoss, rows: int, groups: int) -> NoisePlan | None:
    """The plan that selects the groups of the answer; None where it does not apply or would have more noise."""
    wanted = _wanted(query)
    if wanted is None or not query.keys or query.rows.by_row or cost.measure is not PrivacyMeasure.EPSILON:
        return None
    limit, shown = wanted
    if limit * (2 if shown else 1) >= groups:
        return None
    aggregate, public = query.aggregates[0], query.public_keys
    reach = aggregate.sensitivity(rows)
    # Public groups are all kept: how many of them a unit is in has no effect on the loss.
    kept = query.groups if public and query.groups is not None else groups
    epsilon = cost.size / 2 if shown else cost.size
    mechanism = TopKeys.for_budget(epsilon, cost.delta, count=limit, sensitivity=reach, most=None if public else groups)
    choice = Measurement(
        aggregate=None, mechanism=mechanism, sensitivity=Fraction(reach), loss=mechanism.loss_at(reach)
    )
    draws = [choice]
    if shown:
        touched = limit * reach
        noise = Laplace.for_epsilon(epsilon, sensitivity=touched, grid=1)
        draws.append(Measurement(
            aggregate=0, mechanism=noise, sensitivity=Fraction(touched), loss=noise.loss_at(touched), reservation=1
        ))  # fmt: skip
    parts = tuple(draw.loss for draw in draws)
    total = sequential(parts)
    return NoisePlan(
        query=query if shown else replace(query, steps=()), bounding="sample", rows=rows, groups=kept,
        measurements=tuple(draws), parts=parts,
        cost=replace(cost, delta=cost.delta if total.delta else Fraction(0), curve=total.composable()),
    )  # fmt: skip
