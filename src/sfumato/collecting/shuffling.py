"""Privacy amplification by shuffling, computed numerically.

If a shuffler removes who sent which report, n local reports of loss epsilon_0 together satisfy a smaller central
(epsilon, delta). The bound holds for every local randomizer: each other person is, with probability e**-epsilon_0 or
more, a clone of either of the two values (Feldman, McMillan, Talwar 2021, Theorem 3.1).
"""

from __future__ import annotations

from math import exp

import numpy as np

from sfumato.errors import BadParameter

_TAIL = 1e-18
_ROUNDING = 1e-9


def shuffled_delta(epsilon: float, *, local: float, people: int) -> float:
    """An upper bound of delta at ``epsilon`` for ``people`` shuffled reports of loss ``local`` each.

    The pair of distributions is (A + D, C - A + 1 - D) and (A + 1 - D, C - A + D) with C ~ Binomial(people - 1,
    e**-local), A ~ Binomial(C, 1/2) and D ~ Bernoulli(e**local / (1 + e**local)). For a given C the likelihood ratio
    grows with the first coordinate, so that the difference is a sum of binomial tails.
    """
    from scipy.stats import binom

    if people < 2 or local <= 0:
        raise BadParameter("Shuffling needs at least two people and a local epsilon above 0.")
    if epsilon >= local:
        return 0.0
    clones = binom(people - 1, exp(-local))
    first, last = int(clones.ppf(_TAIL)), int(clones.isf(_TAIL))
    count = np.arange(max(0, first - 1), min(people - 1, last + 1) + 1)
    p, e = exp(local) / (1 + exp(local)), exp(epsilon)
    threshold = (e * p - (1 - p)) / (p - e * (1 - p))
    # The first coordinate a is more likely under the first distribution if a / (count - a + 1) > threshold.
    start = np.floor(threshold * (count + 1) / (1 + threshold)) + 1
    upper, upper_before = binom.sf(start - 1, count, 0.5), binom.sf(start - 2, count, 0.5)
    excess = p * upper_before + (1 - p) * upper - e * (p * upper + (1 - p) * upper_before)
    delta = float(np.sum(clones.pmf(count) * np.maximum(excess, 0.0)))
    return min(1.0, delta * (1 + _ROUNDING) + 2 * _TAIL)


def shuffled_epsilon(*, local: float, people: int, delta: float) -> float:
    """The central epsilon of ``people`` shuffled reports of loss ``local`` each, at ``delta``; rounded up.

    >>> round(shuffled_epsilon(local=1, people=10_000, delta=1e-6), 2)
    0.05
    """
    if not 0 < delta < 1:
        raise BadParameter("`delta` must lie between 0 and 1.")
    low, high = 0.0, float(local)
    if shuffled_delta(0.0, local=local, people=people) <= delta:
        return 0.0
    while high - low > 1e-6 * local:
        middle = (low + high) / 2
        if shuffled_delta(middle, local=local, people=people) <= delta:
            high = middle
        else:
            low = middle
    return high
