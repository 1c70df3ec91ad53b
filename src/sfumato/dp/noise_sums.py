"""How far off a sum of several noises is: bounds for a weighted sum of independent draws."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import exp, log, prod, sqrt
from statistics import NormalDist

from sfumato.dp.mechanism import Mechanism, tail
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.errors import BadParameter
from sfumato.rationals import Number

__all__ = ["combined_error", "laplace_tail"]

_APART = 0.004
"""Scales closer than this are moved apart, upwards: more noise, a wider bound, and a formula without cancellation."""
_MOST = 4
_NARROW = 1e-11
"""Quantiles are found to so small a part of themselves, from above."""
_SLACKS = (1e-12, 1e-9)


def combined_error(parts: Sequence[tuple[Number, Mechanism]], *, confidence: Number) -> float:
    """A bound that abs(sum of weight · noise) keeps with at least that confidence.

    Each noise is Laplace or Gaussian on a grid and independent of the others. A grid's noise lies within one step of
    noise on the real line (of the same quantile), which adds one step per part; for the real line the bound is the
    normal quantile, or the tail of a sum of Laplace variables (see ``laplace_tail``).

    >>> round(combined_error([(1, Laplace(scale=2)), (1, Laplace(scale=2))], confidence="0.95"), 1)
    10.2
    """
    chance = float(tail(confidence, 1))
    kept = [(abs(float(Fraction(weight))), noise) for weight, noise in parts if weight]
    if not kept:
        return 0.0
    if len(kept) == 1:
        return kept[0][0] * kept[0][1].error(confidence=confidence)
    scales = [weight * float(noise.scale) for weight, noise in kept if isinstance(noise, Laplace)]
    variances = [weight**2 * float(noise.variance) for weight, noise in kept if isinstance(noise, Gaussian)]
    if len(scales) + len(variances) < len(kept) or len(scales) > _MOST:
        raise BadParameter(f"only up to {_MOST} Laplace and any number of Gaussian noises are combined.")
    slack = sum(weight * float(noise.grid) for weight, noise in kept if isinstance(noise, Laplace | Gaussian))
    if scales and variances:
        chance /= 2
    wide = _laplace_quantile(tuple(sorted(scales)), chance) if scales else 0.0
    high = NormalDist().inv_cdf(1 - chance / 2) if chance > 10**-14 else sqrt(2 * log(2 / chance))
    return slack + (wide + sqrt(sum(variances)) * high) * (1 + 1e-9)


def laplace_tail(scales: Sequence[float], distance: float) -> float:
    """The chance that abs(sum of Laplace variables) is above ``distance``, for scales that all differ.

    The characteristic function, a product of 1 / (1 + s²u²), falls into partial fractions, each of them a Laplace
    variable's own: the tail is the sum of w_i·exp(-distance / s_i) with w_i = product over j of s_i² / (s_i² - s_j²).
    """
    return sum(weight * exp(-distance / own) for weight, own in _fractions(scales))


def _fractions(scales: Sequence[float]) -> list[tuple[float, float]]:
    """(w_i, s_i) of the partial fractions."""
    return [
        (prod(own**2 / (own**2 - other**2) for j, other in enumerate(scales) if j != i), own)
        for i, own in enumerate(scales)
    ]


@lru_cache(maxsize=4096)
def _laplace_quantile(scales: tuple[float, ...], chance: float) -> float:
    apart: list[float] = []
    for scale in scales:
        apart.append(max(scale, apart[-1] * (1 + _APART)) if apart else scale)
    # Far enough out for each of them to keep its own part of the chance.
    found = sum(apart) * (log(len(apart) / chance) + 1)
    fractions = _fractions(apart)
    for _ in range(100):
        terms = [(weight * exp(-found / own), own) for weight, own in fractions]
        above = sum([term for term, _ in terms])
        density = sum([term / own for term, own in terms])
        if not 0 < above <= chance or density <= 0:
            break
        # The logarithm of the tail is concave (the noise is log-concave): its tangent meets ln(chance) further out,
        # but for rounding.
        touched = found - above / density * log(chance / above)
        nearer = next((x for x in (touched * (1 + slack) for slack in _SLACKS)
                       if x < found and sum([w * exp(-x / own) for w, own in fractions]) <= chance), found)  # fmt: skip
        done = nearer >= found * (1 - _NARROW)
        found = nearer
        if done:
            break
    return found
