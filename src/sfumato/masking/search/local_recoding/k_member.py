"""Greedy k-member clustering (compiled): clusters grow by the unit with the least extra loss."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Ints
from sfumato.kernels import kernel

Codes = npt.NDArray[np.int32]


@kernel(nogil=True)
def grow(
    groups: Codes, offset: Ints, loss: Floats, rows: Ints, home: Ints, k: int
) -> tuple[Ints, int]:  # pragma: no cover - compiled
    """Start a cluster at the unit farthest from the last one; add the unit with the least loss per row until k rows.

    Units of k rows are clusters by themselves. Spare rows (``home`` >= 0) only fill up clusters; the rest return to
    their unit.
    """
    units, columns, levels = groups.shape
    cluster = np.full(units, -1, dtype=np.int64)
    left = np.empty(units, dtype=np.int64)
    remaining, needy, count, start = 0, 0, 0, -1
    for u in range(units):
        if rows[u] >= k:
            cluster[u] = count
            count += 1
        else:
            left[remaining] = u
            if home[u] < 0:
                needy, start = needy + 1, remaining
            remaining += 1
    path = np.empty((columns, levels))
    height = np.empty(columns, dtype=np.int64)
    while needy:
        seed = left[start]
        remaining -= 1
        needy -= 1
        left[start] = left[remaining]
        cluster[seed], size, now = count, rows[seed], 0.0
        for c in range(columns):
            height[c] = 0
            for h in range(levels):
                path[c, h] = loss[offset[c, h] + groups[seed, c, h]]
            now += path[c, 0]
        while size < k and remaining:
            best, place = np.inf, -1
            for i in range(remaining):
                u = left[i]
                # the loss per row at which this unit is not better than the best so far
                limit = (best * rows[u] + size * now) / (size + rows[u])
                then = 0.0
                for c in range(columns):
                    h = height[c]
                    while groups[u, c, h] != groups[seed, c, h]:
                        h += 1
                    then += path[c, h]
                    if then >= limit:
                        break
                if then < limit:
                    best, place = ((size + rows[u]) * then - size * now) / rows[u], i
            u = left[place]
            remaining -= 1
            needy -= home[u] < 0
            left[place] = left[remaining]
            cluster[u] = count
            size += rows[u]
            now = 0.0
            for c in range(columns):
                while groups[u, c, height[c]] != groups[seed, c, height[c]]:
                    height[c] += 1
                now += path[c, height[c]]
        count += 1
        furthest = -1.0
        for i in range(remaining):
            if home[left[i]] >= 0:
                continue
            then = 0.0
            for c in range(columns):
                h = 0
                while groups[left[i], c, h] != groups[seed, c, h]:
                    h += 1
                then += path[c, h]
            if then > furthest:
                furthest, start = then, i
    for i in range(remaining):
        cluster[left[i]] = cluster[home[left[i]]]
    return cluster, count
