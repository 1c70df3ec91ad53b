"""The second route to the privacy loss: from the bounds that the engine enforces, not from stated sensitivities."""

from __future__ import annotations

from math import isqrt

from sfumato.dp.analytic_gaussian import normal_epsilon
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, approximate, concentrated, pure, sequential
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.dp.mechanisms.thresholded_laplace import ThresholdedLaplace
from sfumato.errors import AnswerFailed
from sfumato.query.plan.aggregates import Aggregate, Count, Share, Sum
from sfumato.query.plan.joint_measurement import divide
from sfumato.query.plan.noise import Strategy

__all__ = ["recount"]


def _worst(measurement: Aggregate, rows: int) -> int:
    """How far a unit can move a group's number, found by trying extreme units on the rules the engine applies.

    The shares of a number move together: their distances are added up, and since none is negative the root of their
    squares is largest where one share has all.
    """

    def clip(value: int, low: int, high: int) -> int:
        return max(low, min(high, value))

    huge = 10**40
    match measurement:
        case Count(once=once):
            return max(abs(clip(n, 0, 1 if once else rows)) for n in (0, 1, huge))
        case Share(high=whole, degree=degree):
            width = isqrt(whole) if degree == 2 else whole
            steps = (0, 1, width // 3, width // 2, width - 1, width)
            return max(sum(rows * share for share in divide(width, degree, step)) for step in steps)
        case Sum(low=low, high=high):
            tries = [sum(clip(v, low, high) for v in [value] * rows) for value in (-huge, low, 0, high, huge)]
            return max(abs(total) for total in tries)
        case _:
            return len(range(huge)[:rows])


def recount(strategy: Strategy) -> None:
    """Compute every loss again from the bounds that the engine will enforce; refuse to answer if the routes differ.

    The first route multiplies declared sensitivities; this one tries extreme units against the clipping rules and asks
    the mechanisms for their loss, then adds up.
    """
    losses: dict[str, list[PrivacyLoss]] = {"pure": [], "gaussian": [], "keys": []}
    for draw in strategy.draws:
        if draw.measurement is None:
            found, kind = draw.mechanism.loss(strategy.groups), "keys"
        else:
            measurement = strategy.question.measurements[draw.measurement]
            worst = _worst(measurement, strategy.rows)
            grid = measurement.grid if isinstance(measurement, Sum) else 1
            match draw.mechanism:
                case RoundedGaussian() as noise:
                    change = sum((worst * grid) ** 2 for _ in range(strategy.groups))
                    found, kind = (
                        approximate(normal_epsilon(change / noise.variance, noise.delta), noise.delta),
                        "gaussian",
                    )
                case Gaussian() as noise:
                    change = sum((worst * grid) ** 2 for _ in range(strategy.groups))
                    found, kind = concentrated(change / (2 * noise.variance)), "gaussian"
                case ThresholdedLaplace() as noise:
                    if (noise.keys, noise.reach, noise.parts) != (strategy.groups, worst * grid, draw.parts):
                        raise AnswerFailed("The limit for naming keys is not that of this question.")
                    size = strategy.groups * worst * grid / noise.scale
                    found, kind = approximate(size, strategy.groups * noise.chance), "pure"
                case Laplace() as noise:
                    found, kind = pure(strategy.groups * worst * grid / noise.scale), "pure"
                case _:
                    found, kind = sequential([draw.mechanism.loss(worst)] * strategy.groups), "pure"
        if found != draw.loss:
            raise AnswerFailed("The two computations of the privacy loss disagree; nothing was asked of the data.")
        losses[kind].append(found)
    kept = [items for items in losses.values() if items]
    totals = [
        sequential(loss.to(part.measure) if loss.measure is PrivacyMeasure.EPSILON else loss for loss in items)
        for items, part in zip(kept, strategy.parts, strict=False)
    ]
    if len(totals) != len(strategy.parts) or any(
        not total <= part for total, part in zip(totals, strategy.parts, strict=True)
    ):
        raise AnswerFailed("The parts of the cost do not cover the noise; nothing was asked of the data.")
    if not sequential(strategy.parts) <= strategy.cost:
        raise AnswerFailed("The noise would cost more than was asked for; nothing was asked of the data.")
