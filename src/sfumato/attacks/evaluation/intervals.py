"""Intervals for a share of successes: what the truth may be, given so many hits in so many tries."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

from sfumato.errors import BadParameter

__all__ = ["clopper_pearson", "wilson"]


def _checked(hits: float, tries: int, level: float) -> None:
    if not 0.0 < level < 1.0:
        raise BadParameter(f"A confidence level lies strictly between 0 and 1, not at {level!r}.", level=level)
    if tries < 1 or not 0 <= hits <= tries:
        raise BadParameter(f"{hits} hits in {tries} tries is not a share.", hits=hits, tries=tries)


def wilson(hits: float, tries: int, level: float = 0.95) -> tuple[float, float]:
    """The score interval of Wilson (1927): narrow, never outside [0, 1], and 1 is inside when every try hit.

    Reference: Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference.
    doi:10.1080/01621459.1927.10502953

    >>> [round(bound, 4) for bound in wilson(5, 10)]
    [0.2366, 0.7634]
    >>> wilson(10, 10)[1], wilson(0, 10)[0]
    (1.0, 0.0)
    """
    _checked(hits, tries, level)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share, square = hits / tries, z * z / tries
    middle = share + square / 2
    half = z * sqrt(share * (1 - share) / tries + square / (4 * tries))
    low = 0.0 if hits == 0 else max(0.0, (middle - half) / (1 + square))
    high = 1.0 if hits == tries else min(1.0, (middle + half) / (1 + square))
    return low, high


def clopper_pearson(hits: int, tries: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of Clopper and Pearson (1934): covers at least the level, at the price of width.

    Reference: doi:10.1093/biomet/26.4.404

    >>> [round(bound, 4) for bound in clopper_pearson(5, 10)]
    [0.1871, 0.8129]
    """
    from scipy.stats import beta

    _checked(hits, tries, level)
    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(beta.ppf(tail, hits, tries - hits + 1))
    high = 1.0 if hits == tries else float(beta.ppf(1 - tail, hits + 1, tries - hits))
    return low, high
