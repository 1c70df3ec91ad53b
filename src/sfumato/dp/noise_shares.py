"""Noise shares: independent draws of several parties whose sum is exactly discrete Laplace noise.

Discrete Laplace noise is the difference of two geometric variables. A geometric variable is the sum of m independent
Pólya (negative binomial) variables of shape 1/m, so each of m parties draws the difference of two of those. Nobody
knows the noise of the sum, and any m parties together hold as much noise as a central curator would add.

The discrete Gaussian has no such shares: the sum of discrete Gaussian variables is not discrete Gaussian (Kairouz, Liu
and Steinke 2021, arXiv:2102.06387, bound the difference). Only Laplace noise is shared here.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.arrays import Ints
from sfumato.dp.os_random import below, below_each
from sfumato.dp.sampler import geometric
from sfumato.errors import BadParameter


def polya(scale: Fraction, parts: int, count: int) -> Ints:
    """Pólya variables of shape 1 / ``parts``: the sum of ``parts`` of them is :func:`~sfumato.dp.sampler.geometric`.

    Exact, in about ln(scale) steps. Given their sum n, the m shares have the Dirichlet-multinomial distribution with
    weights 1/m. Hoppe's urn draws from it: the cycles of a random permutation of n items are each given to one of m
    parties with equal chances. The cycle of an item has a length that is uniform in 1 .. n, and the remaining items
    form a random permutation again (Hoppe 1984, doi:10.1007/BF00275863).
    """
    if parts < 1:
        raise BadParameter("noise is shared by at least one party.")
    left = geometric(scale, count)
    if parts == 1:
        return left
    share = np.zeros(count, dtype=np.int64)
    live = np.flatnonzero(left)
    while len(live):
        cycle = below_each(left[live]) + 1
        mine = below(parts, len(live)) == 0
        share[live[mine]] += cycle[mine]
        left[live] -= cycle
        live = live[left[live] > 0]
    return share


def laplace_shares(scale: Fraction, parts: int, count: int) -> Ints:
    """One party's shares of ``count`` noises; those of ``parts`` parties add up to discrete Laplace noise exactly.

    >>> len(laplace_shares(Fraction(3), 5, 1000))
    1000
    """
    return polya(scale, parts, count) - polya(scale, parts, count)
