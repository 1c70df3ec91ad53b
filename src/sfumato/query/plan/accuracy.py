"""Accuracy-first answers: compute the cost that a requested error takes.

An absolute error (``ERROR 50``) is known beforehand, so the smallest epsilon is computed. A relative one (``ERROR 5%``)
depends on the answer itself: the query is asked at doubling costs until the noisy answer shows that the error is
small enough, and all of it is charged. The stopping rule looks at noisy answers only, and losses of an adaptive
sequence add up, so the total is what the ledger says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sfumato.dp.loss import PrivacyLoss, approximate, pure
from sfumato.errors import BadParameter, QueryRefused
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.outputs import Key, Measured, Ratio
from sfumato.query.plan.planner import plan_query
from sfumato.query.plan.query import ErrorTarget, Query

_STEPS = 7
_DIRECT = ("count", "sum", "distinct")


def _cost(epsilon: Fraction, delta: Fraction) -> PrivacyLoss:
    return approximate(epsilon, delta) if delta else pure(epsilon)


def _target(query: Query) -> ErrorTarget:
    """The requested error; refused unless all outputs are counts and sums."""
    outputs = [output for _, output in query.outputs if not isinstance(output, Key)]
    if query.target is None or any(not isinstance(o, Measured) or o.what not in _DIRECT for o in outputs):
        raise QueryRefused("ERROR is supported for COUNT and SUM only.", fix="Use epsilon for other aggregates.")
    return query.target


def _error(plan: NoisePlan, confidence: Fraction) -> float:
    """The largest error of the outputs."""
    numbers = [leaf.number for _, output in plan.query.outputs for leaf in output.measured()]
    plain = [number for number in numbers if not isinstance(number, Ratio)]
    return max(plan.error(number, confidence) + plan.rounding(number) for number in plain)


def plan_for_error(query: Query, delta: Fraction, limits: dict[str, Any]) -> NoisePlan:
    """The smallest epsilon, to one part in a thousand, whose noise is within the requested error."""
    target = _target(query)

    def plan(epsilon: Fraction) -> NoisePlan:
        return plan_query(query, _cost(epsilon, delta), **limits)

    low, high = Fraction(1, 1 << 20), Fraction(1 << 10)
    if _error(plan(high), target.confidence) > target.size:
        raise QueryRefused("No epsilon up to 1024 gives so small an error.", fix="Use a larger error.")
    while high / low > Fraction(1001, 1000):
        middle = Fraction(round(float(low * high) ** 0.5 * 2**30), 2**30)
        low, high = (low, middle) if _error(plan(middle), target.confidence) <= target.size else (middle, high)
    return plan(high)


def plan_within(query: Query, costs: Sequence[PrivacyLoss], limits: dict[str, Any]) -> NoisePlan:
    """A plan for the first of several costs whose curve it can keep to.

    Mechanisms other than normal noise have a larger curve than their loss in rho says, and then get less of it.
    """
    for cost in costs:
        plan, rho = plan_query(query, cost, **limits), cost.size
        for _ in range(_STEPS):
            used, allowed = plan.cost.composable().gaussian, cost.composable().gaussian
            if allowed is None or (used is not None and used <= allowed):
                return plan
            if used is None:
                break
            rho = rho * allowed / used * Fraction(9999, 10000)
            plan = plan_query(query, replace(cost, size=Fraction(int(rho * 10**15), 10**15)), **limits)
    raise BadParameter("the share of the budget is too small.", fix="Use a larger share.")


def doubling_plans(query: Query, ceiling: Fraction, delta: Fraction, limits: dict[str, Any]) -> Iterator[NoisePlan]:
    """Noise plans at doubling costs that add up to ``ceiling`` and ``delta`` if all are used."""
    _target(query)
    if query.keys or len(query.outputs) != 1:
        raise QueryRefused(
            "A relative error is supported for a single number.",
            fix="Remove GROUP BY, or use an absolute error: ERROR 50.",
        )
    if ceiling <= 0:
        raise BadParameter("a relative error needs an epsilon above 0 that it may cost at most.")
    bare = replace(query, target=None, looks=_STEPS)
    for step in range(_STEPS):
        yield plan_query(bare, _cost(ceiling * 2**step / (2**_STEPS - 1), delta / _STEPS), **limits)


def error_reached(query: Query, plan: NoisePlan, value: float) -> bool:
    """Whether noise of this size around this noisy answer is within the requested share of the true one.

    The error probability is divided among the steps.
    """
    target = _target(query)
    radius = _error(plan, 1 - (1 - target.confidence) / _STEPS)
    return abs(value) > radius and radius <= float(target.size) * (abs(value) - radius)
