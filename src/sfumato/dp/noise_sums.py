"""Error bounds for Laplace noise on a grid, and for weighted sums of independent Laplace and Gaussian noise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, log, prod, sqrt
from statistics import NormalDist

from sfumato.dp.mechanism import Mechanism, tail
from sfumato.dp.rational_bounds import exp_bracket, ln_up
from sfumato.errors import BadParameter
from sfumato.rationals import Number

_APART = 0.004
"""Scales closer than this, relatively, are increased until they differ: a wider bound without cancellation."""
_MOST = 4
_NARROW = 1e-11
"""Relative precision of quantiles, which are approached from above."""
_SLACKS = (1e-12, 1e-9)


def combined_error(parts: Sequence[tuple[Number, Mechanism]], *, confidence: Number) -> float:
    """A bound on abs(sum of weight · noise) that holds with at least that confidence.

    Each noise is Laplace or Gaussian on a grid and independent of the others. Noise on a grid lies within one step of
    noise on the real line with the same quantile, which adds one step per part; for the real line the bound is the
    normal quantile, or the quantile of a sum of Laplace variables (see :func:`laplace_tail`).

    >>> from sfumato.dp import Laplace
    >>> round(combined_error([(1, Laplace(scale=2)), (1, Laplace(scale=2))], confidence="0.95"), 1)
    10.2
    """
    chance = float(tail(confidence, 1))
    kept = [(abs(float(Fraction(weight))), mechanism) for weight, mechanism in parts if weight]
    if not kept:
        return 0.0
    if len(kept) == 1:
        return kept[0][0] * kept[0][1].error(confidence=confidence)
    terms = [(weight, noise) for weight, mechanism in kept if (noise := mechanism.noise) is not None]
    scales = [weight * float(noise.scale) for weight, noise in terms if noise.scale]
    variances = [weight**2 * float(noise.variance) for weight, noise in terms if noise.variance]
    if len(terms) < len(kept) or len(scales) > _MOST:
        raise BadParameter(f"only up to {_MOST} Laplace and any number of Gaussian noises can be combined.")
    slack = sum(weight * float(noise.grid) for weight, noise in terms)
    if scales and variances:
        chance /= 2
    wide = _laplace_quantile(tuple(sorted(scales)), chance) if scales else 0.0
    high = NormalDist().inv_cdf(1 - chance / 2) if chance > 10**-14 else sqrt(2 * log(2 / chance))
    return slack + (wide + sqrt(sum(variances)) * high) * (1 + 1e-9)


@lru_cache(maxsize=10_000)
def laplace_radius(scale: Fraction, grid: Fraction, chance: Fraction) -> float:
    """A bound that abs(discrete Laplace noise) exceeds with probability at most ``chance``.

    With q = exp(-grid / scale), k steps are exceeded with probability 2·q^(k + 1) / (1 + q); the bound is the smallest
    such k, and never below scale·ln(1 / chance), the bound of the continuous distribution: where the noise is far below
    the grid, k is 0, and an interval of width 0 would deny that the input was rounded to the grid.

    >>> [round(laplace_radius(Fraction(1, n), Fraction(1), Fraction(1, 20)), 3) for n in (1, 100)]
    [3.0, 0.03]
    """
    # Below exp(-50), 0 is as good a lower bound of q and keeps the rational short.
    smallest_q = exp_bracket(-grid / scale)[0] if grid < 50 * scale else Fraction(0)
    steps = ceil(scale / grid * ln_up(2 / ((1 + smallest_q) * chance))) - 1
    return float(max(steps * grid, scale * ln_up(1 / chance)))


def laplace_mean_square(scale: Fraction, grid: Fraction = Fraction(1)) -> float:
    """The mean square of discrete Laplace noise: 2q / (1 - q)² grid steps squared, with q = exp(-grid / scale)."""
    ratio = float(grid / scale)
    return 2 * exp(-ratio) / expm1(-ratio) ** 2 * float(grid) ** 2


def laplace_tail(scales: Sequence[float], distance: float) -> float:
    """The probability that abs(sum of Laplace variables) exceeds ``distance``, for scales that all differ.

    The characteristic function, a product of 1 / (1 + s²u²), has a partial fraction decomposition into characteristic
    functions of Laplace variables: the tail is the sum of w_i·exp(-distance / s_i) with w_i = product over j of
    s_i² / (s_i² - s_j²).
    """
    return sum(weight * exp(-distance / own) for weight, own in _fractions(scales))


def _fractions(scales: Sequence[float]) -> list[tuple[float, float]]:
    """Pairs (w_i, s_i) of the partial fraction decomposition."""
    return [
        (prod(own**2 / (own**2 - other**2) for j, other in enumerate(scales) if j != i), own)
        for i, own in enumerate(scales)
    ]


@lru_cache(maxsize=4096)
def _laplace_quantile(scales: tuple[float, ...], chance: float) -> float:
    apart: list[float] = []
    for scale in scales:
        apart.append(max(scale, apart[-1] * (1 + _APART)) if apart else scale)
    # A union bound: each variable exceeds its part with probability chance / len(apart).
    quantile = sum(apart) * (log(len(apart) / chance) + 1)
    fractions = _fractions(apart)
    for _ in range(100):
        terms = [(weight * exp(-quantile / own), own) for weight, own in fractions]
        above = sum([term for term, _ in terms])
        density = sum([term / own for term, own in terms])
        if not 0 < above <= chance or density <= 0:
            break
        # Newton's method: the logarithm of the tail is concave (the noise is log-concave), so that its tangent meets
        # ln(chance) above the quantile, up to rounding.
        touched = quantile - above / density * log(chance / above)
        nearer = next((x for x in (touched * (1 + slack) for slack in _SLACKS)
                       if x < quantile and sum([w * exp(-x / own) for w, own in fractions]) <= chance),
                      quantile)  # fmt: skip
        done = nearer >= quantile * (1 - _NARROW)
        quantile = nearer
        if done:
            break
    return quantile
