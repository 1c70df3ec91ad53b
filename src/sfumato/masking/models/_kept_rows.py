"""Compiled bound on the rows of a class that can be kept within a distance of the reference."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["most_rows_within"]


@njit(cache=True, nogil=True, boundscheck=False)
def most_rows_within(counts, target, distance, sizes):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """An upper bound of the rows of each class that can be kept so that their distance to the reference is at most
    ``distance``.

    ``counts`` are images of the classes' counts, ``target`` the image of the reference q. Of x kept rows at most n lie
    in a group of n, so the group falls short of the reference by at least q - n/x. The sum over groups of
    max(0, qx - n) is therefore at most ``distance`` times x, whichever rows are kept. The largest such x is found by
    Newton's method from above; the function is convex and piecewise linear, so every step is a valid bound.
    """
    most = np.empty(counts.shape[0])
    for c in range(counts.shape[0]):
        x = float(sizes[c])
        while x > 0:
            share = -distance
            rows = 0.0
            for g in range(target.size):
                if target[g] * x > counts[c, g]:
                    share += target[g]
                    rows += counts[c, g]
            if share <= 0 or rows >= share * x * (1 - 1e-12):
                break
            x = rows / share
        most[c] = x * (1 + 1e-9)
    return most
