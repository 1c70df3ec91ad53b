"""Top-k plans: ``ORDER BY number DESC LIMIT k`` selects k groups and measures no others.

Measuring the counts or sums of all groups costs noise in proportion to the groups of one unit. A selection of k groups
costs k rounds of the exponential mechanism, however many groups a unit is in; numbers that the answer shows are then
measured for the selected groups alone, of which a unit is in k at most. The plan is used where it has less noise.

A unit must move the numbers of all groups in one direction, as it does counts. Ascending order and a cost in rho have a
theorem for public keys alone. Other queries measure all groups: a sum is bounded together with the number of its rows.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, sequential
from sfumato.dp.mechanism import Mechanism
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.dp.mechanisms.top_keys import TopKeys
from sfumato.dp.rational_bounds import sqrt_up
from sfumato.query.plan.aggregates import Count
from sfumato.query.plan.noise import Measurement, NoisePlan, grid_of
from sfumato.query.plan.outputs import Key, Measured
from sfumato.query.plan.query import Query
from sfumato.query.plan.row_steps import Sort, Take


def _wanted(query: Query) -> tuple[int, bool, bool] | None:
    """Number of groups, whether the largest, and whether their numbers are shown; None for queries of another form."""
    match query.aggregates, query.steps:
        case (aggregate,), (Sort(by=((Measured(number=0), descending), *ties)), Take(limit=int(limit), offset=0)) if (
            limit > 0 and isinstance(aggregate, Count)
        ):
            pass
        case _:
            return None
    shown = [output for _, output in query.outputs if not isinstance(output, Key)]
    if any(not isinstance(item, Key) for item, _ in ties) or any(
        not (isinstance(output, Measured) and output.number == 0) for output in shown
    ):
        return None
    return limit, descending, bool(shown)


def top_plan(query: Query, cost: PrivacyLoss, rows: int, groups: int) -> NoisePlan | None:
    """The plan that selects the groups of the answer; None where it does not apply or would have more noise."""
    wanted = _wanted(query)
    if wanted is None or not query.keys or query.rows.by_row:
        return None
    limit, largest, shown = wanted
    aggregate, public, in_rho = query.aggregates[0], query.public_keys, cost.measure is PrivacyMeasure.RHO
    if limit * (2 if shown else 1) >= groups:
        return None
    if not public and (in_rho or not largest):
        return None
    reach = aggregate.sensitivity(rows)
    # Public groups are all kept: how many of them a unit is in has no effect on the loss.
    kept = query.groups if public and query.groups is not None else groups
    share = cost.size / 2 if shown else cost.size
    epsilon = share if not in_rho else limit * Fraction(int(sqrt_up(8 * share / limit) * 10**12) - 1, 10**12)
    mechanism = TopKeys.for_budget(
        epsilon, cost.delta, count=limit, sensitivity=reach, most=None if public else groups, smallest=not largest
    )
    if in_rho and not _better(mechanism, cost, groups * reach**2, kept):
        return None
    choice = Measurement(
        aggregate=None, mechanism=mechanism, sensitivity=Fraction(reach), loss=mechanism.loss_at(reach)
    )
    draws = [choice]
    if shown:
        grid = grid_of(aggregate, "sample")
        touched = limit * (reach * grid) ** 2 if in_rho else limit * reach * grid
        noise: Mechanism = (
            RoundedGaussian.smallest(Fraction(touched), rho=share, grid=grid)
            if in_rho
            else Laplace.for_epsilon(epsilon, sensitivity=touched, grid=grid)
        )
        draws.append(Measurement(
            aggregate=0, mechanism=noise, sensitivity=Fraction(touched), loss=noise.loss_at(touched), reservation=1
        ))  # fmt: skip
    parts = tuple(draw.loss.to(cost.measure) for draw in draws)
    total = sequential(parts)
    return NoisePlan(
        query=query if shown else replace(query, steps=()), bounding="sample", rows=rows, groups=kept,
        measurements=tuple(draws), parts=parts,
        cost=replace(cost, delta=cost.delta if total.delta else Fraction(0), curve=total.composable()),
    )  # fmt: skip


def _better(mechanism: TopKeys, cost: PrivacyLoss, squared: int, groups: int) -> bool:
    """Whether a selection is nearer to the true order than normal noise on all groups, at 95 %."""
    noise = RoundedGaussian.smallest(Fraction(squared), rho=cost.size, grid=Fraction(1))
    return mechanism.error(confidence="0.95", candidates=groups) < 2 * noise.error(confidence="0.95", outputs=groups)
