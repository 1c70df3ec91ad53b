"""MDAV as written in the literature, with every distance computed: the oracle for the fast implementation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.kernels import kernel

__all__ = ["mdav_plain"]

Floats = npt.NDArray[np.float64]
Groups = npt.NDArray[np.int32]


@kernel()
def mdav_plain(points: Floats, k: int) -> Groups:  # pragma: no cover - compiled
    """Group number of each record; every group has k to 2k-1 members."""
    n, d = points.shape
    groups = np.full(n, -1, dtype=np.int32)
    left, label = n, 0
    gaps = np.empty(n)
    while left >= 2 * k:
        centre = points[groups < 0].sum(axis=0) / left
        seed = -1
        for turn in range(2 if left >= 3 * k else 1):
            query = centre if turn == 0 else points[seed]
            top = -1.0
            for i in range(n):
                if groups[i] < 0:
                    gap = 0.0
                    for j in range(d):
                        gap += (points[i, j] - query[j]) ** 2
                    if gap > top:
                        top, seed = gap, i
            for i in range(n):
                gaps[i] = np.inf
                if groups[i] < 0 and i != seed:
                    gaps[i] = 0.0
                    for j in range(d):
                        gaps[i] += (points[i, j] - points[seed, j]) ** 2
            groups[seed] = label
            for _ in range(k - 1):
                near = np.argmin(gaps)
                groups[near] = label
                gaps[near] = np.inf
            label += 1
            left -= k
    for i in range(n):
        if groups[i] < 0:
            groups[i] = label
    return groups
