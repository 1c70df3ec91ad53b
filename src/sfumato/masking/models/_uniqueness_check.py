"""Population uniques for the independent check, by other algorithms than :mod:`sfumato.masking.population_uniques`.

Zayatz's estimate is a sum of products. Pitman's model is fitted by solving its two score equations by bisection, not by
maximizing the likelihood: the root θ of one for each α, then the root α of the other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

_STEPS = 60
_ENDS = (-25.0, 20.0)
"""Range of the logit of α; nearer to 1 the estimate is not meaningful."""


def unique_share(sizes: Sequence[int], fraction: float, estimator: str) -> float:
    """The share of the population that is unique, by "pitman", "zayatz" or "dankar"; 1 if it cannot be estimated.

    >>> round(unique_share([1, 1, 1, 2, 2, 3, 10], 0.5, "zayatz"), 4)
    0.0772
    """
    counts = Counter(sizes)
    if not counts[1]:
        return 0.0
    chosen = ("pitman" if fraction <= 0.1 else "zayatz") if estimator == "dankar" else estimator
    return {"pitman": _pitman, "zayatz": _zayatz}[chosen](counts, fraction)


def _zayatz(counts: Mapping[int, int], fraction: float) -> float:
    rows, classes = sum(size * n for size, n in counts.items()), sum(counts.values())
    people = round(rows / fraction)

    def one_of(size: int) -> float:
        """The probability that the sample contains exactly one member of a class of that size."""
        if rows - 1 > people - size:
            return 0.0
        ways = math.log(size) + _choose(people - size, rows - 1) - _choose(people, rows)
        return math.exp(ways)

    seen_alone = sum(n / classes * one_of(size) for size, n in counts.items())
    alone_there = counts[1] / classes * one_of(1) / seen_alone
    return counts[1] / rows * min(1.0, alone_there)


def _choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _pitman(counts: Mapping[int, int], fraction: float) -> float:
    import numpy as np
    from scipy.special import digamma

    rows, classes = sum(size * n for size, n in counts.items()), sum(counts.values())
    if max(counts) == 1 or classes < 2:
        return 1.0
    later = np.arange(1, classes)

    def by_theta(theta: float, alpha: float) -> float:
        return float((1 / (theta + later * alpha)).sum() - (digamma(theta + rows) - digamma(theta + 1)))

    def theta_at(alpha: float) -> float:
        return math.exp(_root(lambda log: by_theta(math.exp(log) - alpha, alpha), -30.0, 25.0)) - alpha

    def by_alpha(alpha: float) -> float:
        theta = theta_at(alpha)
        grown = float((later / (theta + later * alpha)).sum())
        held = sum(n * float(digamma(size - alpha) - digamma(1 - alpha)) for size, n in counts.items())
        return grown - held

    if by_alpha(0.0) <= 0:
        return min(1.0, theta_at(0.0) * fraction / rows)  # the maximum lies at α = 0
    logit = _root(lambda point: by_alpha(1 / (1 + math.exp(-point))), *_ENDS)
    if logit == _ENDS[1]:
        return 1.0  # the likelihood has no maximum
    alpha = 1 / (1 + math.exp(-logit))
    theta = theta_at(alpha)
    share = math.lgamma(theta + 1) - math.lgamma(theta + alpha) + (alpha - 1) * math.log(rows / fraction)
    return min(1.0, math.exp(share))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """The root of a decreasing function by bisection; an end of the range if there is none."""
    if function(low) <= 0:
        return low
    if function(high) >= 0:
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2
