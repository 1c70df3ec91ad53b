"""Plan the noise of a query at the cost that its options say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sfumato.dp.loss import PrivacyLoss, approximate, concentrated, pure
from sfumato.errors import BadParameter
from sfumato.query.options import CheckedOptions
from sfumato.query.plan.accuracy import plan_for_error, plan_within
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import Query
from sfumato.rationals import Number, rational

__all__ = ["plan_at_cost"]


def plan_at_cost(
    query: Query, options: CheckedOptions, budget_part: Callable[[Number], Sequence[PrivacyLoss]]
) -> NoisePlan:
    """The plan for epsilon, rho, a share of the budget or an ERROR clause; ``budget_part`` gives costs of a share."""
    epsilon, delta, limits = options.epsilon, options.delta, options.limits
    if options.share is not None:
        if epsilon is not None or options.rho is not None or rational(delta) or query.target is not None:
            raise BadParameter("a share of the budget is the whole cost.", fix="Leave out epsilon, rho and delta.")
        return plan_within(query, budget_part(options.share), limits)
    if options.rho is not None:
        if epsilon is not None or query.target is not None:
            raise BadParameter("give one of epsilon, rho and ERROR.")
        return plan_query(query, concentrated(options.rho, delta), **limits)
    if query.target is not None:
        if epsilon is not None:
            raise BadParameter("give epsilon or ERROR, not both.")
        return plan_for_error(query, rational(delta), limits)
    if epsilon is None:
        raise BadParameter("a query needs its cost.", fix="Pass epsilon or share, or end the query with ERROR 50.")
    return plan_query(query, approximate(epsilon, delta) if delta else pure(epsilon), **limits)
