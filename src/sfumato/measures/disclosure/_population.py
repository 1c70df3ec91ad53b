"""Individual risk in a weighted sample: population frequency of sample classes."""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Floats, Ints


def individual_risk(fits: Ints, weight: Floats, *, formula: str = "exact") -> Floats:
    """Expected 1 / F per row, where F, the class's size in the population, is negative binomial given the sample.

    ``fits`` is the class's size in the sample, ``weight`` the sum of its sampling weights, which estimates F. "exact"
    is the posterior mean of 1 / F; "sdcmicro" is exact for classes of one or two and p / (f - 1 + p) for larger ones.

    >>> individual_risk(np.array([1, 2]), np.array([17.0, 110.0])).round(8).tolist()
    [0.17707583, 0.01714426]
    """
    share = np.clip(fits / weight, 1e-300, 1.0)
    found = np.empty(len(fits))
    rest = 1 - share
    if formula == "sdcmicro":
        found = share / (fits - rest)
        small = (fits <= 2) & (rest > 0)
        found[small] = _exact(fits[small], share[small])
        found[rest <= 0] = 1 / fits[rest <= 0]
        return found
    return _exact(fits, share)


def _exact(fits: Ints, share: Floats) -> Floats:
    """p times the integral of u^(f-1) / (p + q u) over 0..1: closed form for f = 1, then a recursion, then a series."""
    distinct, place = np.unique(np.column_stack([fits, share]), axis=0, return_inverse=True)
    values = np.empty(len(distinct))
    for index, (f, p) in enumerate(distinct):
        values[index] = _posterior_mean(int(f), float(p))
    return values[place.ravel()]


def _posterior_mean(f: int, p: float) -> float:
    q = 1 - p
    if q <= 1e-12:
        return 1 / f
    if f > 60:
        term, total = 1.0, 1.0
        for order in range(1, 40):
            term *= order * q / (f + order)
            total += term
            if term < 1e-16:
                break
        return p * total / f
    if p < 0.5:
        # Each step multiplies the error of the one before by p / q, which is below one here.
        integral = float(-np.log(p) / q)
        for step in range(1, f):
            integral = (1 / step - p * integral) / q
        return p * integral
    nodes, weights = np.polynomial.legendre.leggauss(64)
    u = (nodes + 1) / 2
    return float(p * (weights / 2) @ (u ** (f - 1) / (p + q * u)))
