"""Error bound for a weighted sum of many independent noises, by inversion of its characteristic function."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import log, sqrt

import numpy as np

from sfumato.dp.mechanism import Mechanism, tail
from sfumato.rationals import Number

_POINTS, _REACH = 20_000, 400.0
"""Points of the characteristic function, up to so many times the inverse of the standard deviation."""
_MARGIN, _STEP, _LEAST = 1e-3, 1e-5, 1e-6
"""What the bound is enlarged by, for the error of the integral; how exactly it is searched; the smallest chance for
which it is."""


def pooled_error(terms: Sequence[tuple[float, int, Mechanism]], *, confidence: Number) -> float:
    """A bound on abs(sum of weight · noise) at that confidence, for ``count`` independent noises a term.

    Noise on a grid is taken as noise on the real line, whose variance is not smaller, and one step is added.

    >>> from sfumato.dp import Laplace
    >>> round(pooled_error([(1.0, 2, Laplace(scale=20, grid="1/1024"))], confidence="0.95"), 1)
    82.3
    """
    kept = [(abs(weight), count, mechanism) for weight, count, mechanism in terms if abs(weight) > 1e-12]
    if sum(count for _, count, _ in kept) == 1:
        [(weight, _, mechanism)] = kept
        return weight * mechanism.error(confidence=confidence)
    steps, scales, variance = 0.0, [], 0.0
    for weight, count, mechanism in kept:
        noise = mechanism.noise
        assert noise is not None
        steps = max(steps, weight * float(noise.grid))
        if noise.scale:
            scales.append((weight * float(noise.scale), count))
        else:
            variance += count * weight**2 * (float(noise.variance) + float(noise.grid) ** 2 / 12)
    whole = variance + sum(2 * count * scale**2 for scale, count in scales)
    if not whole:
        return 0.0
    deviation = sqrt(whole)
    # Near-equal terms have one characteristic function, which keeps the stored results few.
    shape = tuple(sorted((round(scale / deviation, 9), count) for scale, count in scales))
    return steps + deviation * _quantile(shape, round(variance / whole, 9), tail(confidence, 1)) * (1 + _MARGIN)


@lru_cache(maxsize=4096)
def _quantile(scales: tuple[tuple[float, int], ...], variance: float, chance: Fraction) -> float:
    """The bound that abs(X) exceeds with probability ``chance``, for X of standard deviation 1.

    X has the characteristic function exp(-variance·u²/2) · product of (1 + s²u²)^-count, and P(abs(X) <= t) is
    2/π times the integral of sin(ut)/u over it (Gil-Pelaez 1951, doi:10.1093/biomet/38.3-4.481). X is log-concave, so
    that P(abs(X) > t) is at most e^(1-t) (Lovász, Vempala 2007, doi:10.1002/rsa.20135, Lemma 5.17): the search starts
    there, and chances that the integral is not exact enough for are answered so.
    """
    low, high = 0.0, 1 - log(chance)
    if chance < _LEAST:
        return high
    width = _REACH / _POINTS
    u = (np.arange(_POINTS) + 0.5) * width
    exponent = -variance * u**2 / 2
    for scale, count in scales:
        exponent -= count * np.log1p((scale * u) ** 2)
    share = np.exp(exponent) / u * (2 / np.pi * width)
    used = share > 1e-9 * float(chance)  # the others are together below 2e-5 of the chance
    u, share = u[used], share[used]
    while high - low > _STEP * high:
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - float((np.sin(u * middle) * share).sum()) > chance else (low, middle)
    return high
