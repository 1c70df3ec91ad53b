"""Confidence intervals of a share: Wilson, Clopper-Pearson, and of the excess over another share."""

from __future__ import annotations

from math import exp, factorial, sqrt
from statistics import NormalDist

from sfumato.errors import BadParameter


def wilson(hits: float, trials: float, level: float = 0.95) -> tuple[float, float]:
    """The Wilson score interval of a binomial proportion. It lies within [0, 1] and contains 1 if every trial hit.

    For one to three hits the lower end is that of a Poisson mean, and likewise for misses: Wilson's own ends are too
    narrow there, and a share of one in n was left out in 8 % of cases instead of 5 %.

    ``hits`` may be a sum of success probabilities. Their variance is at most that of binary outcomes with the same
    mean, so the interval then covers at least as often.

    Written out because ``scipy.stats.binomtest`` takes a second to import and a millisecond per call.

    References: Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference.
    doi:10.1080/01621459.1927.10502953; Brown, L. D., Cai, T. T., DasGupta, A. (2001). Interval estimation for a
    binomial proportion. doi:10.1214/ss/1009213286

    >>> [round(bound, 4) for bound in wilson(5, 10)]
    [0.2366, 0.7634]
    >>> wilson(10, 10)[1], wilson(0, 10)[0]
    (1.0, 0.0)
    """
    if not 0.0 < level < 1.0:
        raise BadParameter(f"A confidence level lies strictly between 0 and 1, not at {level!r}.", level=level)
    if trials < 1 or not 0 <= hits <= trials:
        raise BadParameter(f"{hits} hits in {trials} trials is not a proportion.", hits=hits, trials=trials)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share, square = hits / trials, z * z / trials
    middle = share + square / 2
    half = z * sqrt(share * (1 - share) / trials + square / (4 * trials))
    low = 0.0 if hits == 0 else max(0.0, (middle - half) / (1 + square))
    high = 1.0 if hits == trials else min(1.0, (middle + half) / (1 + square))
    few = 3 if trials > 50 else 2
    if hits <= few:
        low = min(low, _poisson_low(hits, 1 - level) / trials)
    if trials - hits <= few:
        high = max(high, 1 - _poisson_low(trials - hits, 1 - level) / trials)
    return low, high


def clopper_pearson(hits: int, trials: int, tail: float = 0.025) -> tuple[float, float]:
    """The exact interval of a binomial proportion: each end is wrong with probability ``tail`` at most.

    Reference: Clopper, C. J., Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated in the case
    of the binomial. doi:10.1093/biomet/26.4.404

    >>> [round(bound, 4) for bound in clopper_pearson(5, 10)], clopper_pearson(0, 10)[0], clopper_pearson(10, 10)[1]
    ([0.1871, 0.8129], 0.0, 1.0)
    """
    from scipy.stats import beta

    low = float(beta.ppf(tail, hits, trials - hits + 1)) if hits else 0.0
    high = float(beta.isf(tail, hits + 1, trials - hits)) if hits < trials else 1.0
    return low, high


def excess_high(rate: float, high: float, reference: float, reference_low: float) -> float:
    """The upper end of the interval of ``(p - r) / (1 - r)``, the share of what was left that an attack learns.

    ``rate`` and ``high`` are the success rate p of the attack and the upper end of its interval; ``reference`` and
    ``reference_low`` the rate r of people who are not in the release and the lower end of its interval. Misses are a
    ratio, (1 - p) / (1 - r), whose interval follows from those of both rates (MOVER). It is never wider than the
    distance between the ends, and covers at their level. With a reference that is known exactly it is
    ``(high - r) / (1 - r)``. A negative value means that the attack is worse than the reference.

    Reference: Donner, A., Zou, G. Y. (2012). Closed-form confidence intervals for functions of the normal mean and
    standard deviation. doi:10.1177/0962280210383082

    >>> round(excess_high(0.6, 0.7, 0.5, 0.5), 4), round(excess_high(0.6, 0.7, 0.5, 0.4), 4)
    (0.4, 0.4302)
    """
    missed, fewest, left, most_left = 1 - rate, 1 - high, 1 - reference, 1 - reference_low
    middle, end = missed * left, fewest * (2 * missed - fewest)
    room = max(0.0, middle * middle - end * most_left * (2 * left - most_left))
    below = middle + sqrt(room)
    return 1 - end / below if below > 0 else 1.0


def _poisson_low(count: float, tail: float) -> float:
    """The mean at which a Poisson variable reaches ``count`` with probability ``tail``; linear between whole counts."""
    whole = int(count)
    low, high = 0.0, 4.0 + whole
    for _ in range(60 if whole else 0):
        mean = (low + high) / 2
        below = sum(exp(-mean) * mean**number / factorial(number) for number in range(whole))
        low, high = (mean, high) if 1 - below < tail else (low, mean)
    return low + (count - whole) * (_poisson_low(whole + 1, tail) - low) if count > whole else low
