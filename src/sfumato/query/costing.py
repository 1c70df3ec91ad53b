"""Plan the noise of a query at the cost that its options say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sfumato.dp.loss import PrivacyLoss, approximate, concentrated, pure
from sfumato.errors import BadParameter
from sfumato.query.options import CheckedOptions
from sfumato.query.plan.accuracy import plan_for_error, plan_within
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.planner import plan_query
from sfumato.query.plan.query import Query
from sfumato.rationals import Number, rational


def cost_of(options: CheckedOptions) -> PrivacyLoss:
    """The cost that ``epsilon`` or ``rho`` says."""
    if options.rho is not None:
        if options.epsilon is not None:
            raise BadParameter("give one of epsilon, rho and ERROR.")
        return concentrated(options.rho, options.delta)
    if options.epsilon is None:
        raise BadParameter("a query needs its cost.", fix="Pass epsilon or share, or end the query with ERROR 50.")
    return approximate(options.epsilon, options.delta) if options.delta else pure(options.epsilon)


def plan_at_cost(
    query: Query, options: CheckedOptions, budget_part: Callable[[Number], Sequence[PrivacyLoss]]
) -> NoisePlan:
    """The plan for epsilon, rho, a share of the budget or an ERROR clause; ``budget_part`` gives costs of a share."""
    epsilon, delta, limits = options.epsilon, options.delta, options.limits
    if options.share is not None:
        if epsilon is not None or options.rho is not None or rational(delta) or query.target is not None:
            raise BadParameter("a share of the budget is the whole cost.", fix="Leave out epsilon, rho and delta.")
        return plan_within(query, budget_part(options.share), limits)
    if query.target is not None:
        if epsilon is not None or options.rho is not None:
            raise BadParameter("give one of epsilon, rho and ERROR.")
        return plan_for_error(query, rational(delta), limits)
    return plan_query(query, cost_of(options), **limits)
