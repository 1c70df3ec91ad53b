"""MDAV and V-MDAV microaggregation, compiled.

MDAV repeatedly needs the record farthest from a point and the k records nearest to one. Blocks of records with bounds
(:mod:`sfumato.masking.methods._blocks`) answer both without computing most distances. The groups are those of the
textbook algorithm; a property test compares the two.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats
from sfumato.kernels import kernel
from sfumato.masking.methods._blocks import BLOCK, drop, farthest, into_blocks, living, nearest, total_of

Groups = npt.NDArray[np.int32]

_REBUILD = 0.7
"""Blocks are built anew when this share of their records is left, so that the boxes stay tight."""


@kernel()
def mdav(points: Floats, k: int) -> Groups:  # pragma: no cover - compiled
    """Group number of each record; every group has k to 2k-1 members. ``points`` has at least k complete rows."""
    n, d = points.shape
    groups = np.full(n, -1, dtype=np.int32)
    cells, ids, origin, lows, highs, held, home = into_blocks(points, np.arange(n))
    bound, out = np.empty(cells.shape[0]), np.empty(BLOCK)
    best, found = np.empty(k), np.empty(k, dtype=np.int64)
    total = total_of(points, np.arange(n))
    left, built, label = n, n, 0
    centre = np.empty(d)
    while left >= 2 * k:
        if left < _REBUILD * built and built > BLOCK:
            alive = living(home)
            cells, ids, origin, lows, highs, held, home = into_blocks(points, alive)
            total = total_of(points, alive)
            built = left
            bound = np.empty(cells.shape[0])
        for j in range(d):
            centre[j] = total[j] / left
        seed = farthest(centre, cells, ids, origin, lows, highs, held, bound, out)
        for turn in range(2 if left >= 3 * k else 1):
            if turn == 1:
                seed = farthest(points[seed], cells, ids, origin, lows, highs, held, bound, out)
            drop(seed, cells, ids, held, home)
            groups[seed] = label
            near = nearest(points[seed], k - 1, cells, ids, origin, lows, highs, held, bound, out, best, found)
            for i in range(near):
                groups[found[i]] = label
                drop(found[i], cells, ids, held, home)
                for j in range(d):
                    total[j] -= points[found[i], j]
            for j in range(d):
                total[j] -= points[seed, j]
            label += 1
            left -= k
    for i in living(home):
        groups[i] = label
    return groups


@kernel()
def v_mdav(points: Floats, k: int, gamma: float) -> Groups:  # pragma: no cover - compiled
    """V-MDAV: groups grow to at most 2k-1 while the next record is nearer to them than gamma times its own nearest."""
    n, d = points.shape
    groups = np.full(n, -1, dtype=np.int32)
    everyone = np.arange(n)
    centre = total_of(points, everyone) / n
    cells, ids, origin, lows, highs, held, home = into_blocks(points, everyone)
    bound, out = np.empty(cells.shape[0]), np.empty(BLOCK)
    best, found = np.empty(max(k, 2)), np.empty(max(k, 2), dtype=np.int64)
    left, built, label = n, n, 0
    members = np.empty(2 * k, dtype=np.int64)
    while left >= k:
        if left < _REBUILD * built and built > BLOCK:
            cells, ids, origin, lows, highs, held, home = into_blocks(points, living(home))
            built = left
            bound = np.empty(cells.shape[0])
        seed = farthest(centre, cells, ids, origin, lows, highs, held, bound, out)
        drop(seed, cells, ids, held, home)
        near = nearest(points[seed], k - 1, cells, ids, origin, lows, highs, held, bound, out, best, found)
        members[0] = seed
        for i in range(near):
            members[i + 1] = found[i]
            drop(found[i], cells, ids, held, home)
        size = k
        left -= k
        while size < 2 * k - 1 and left > 0:
            inside, candidate = np.inf, -1
            for i in range(size):
                nearest(points[members[i]], 1, cells, ids, origin, lows, highs, held, bound, out, best, found)
                if best[0] < inside:
                    inside, candidate = best[0], found[0]
            outside = np.inf
            if left > 1:
                nearest(points[candidate], 2, cells, ids, origin, lows, highs, held, bound, out, best, found)
                outside = best[1] if found[0] == candidate else best[0]
            if not np.sqrt(inside) < gamma * np.sqrt(outside):
                break
            members[size] = candidate
            drop(candidate, cells, ids, held, home)
            size += 1
            left -= 1
        for i in range(size):
            groups[members[i]] = label
        label += 1
    if left > 0:
        centres, sizes = np.zeros((label, d)), np.zeros(label)
        for i in range(n):
            if groups[i] >= 0:
                sizes[groups[i]] += 1
                centres[groups[i]] += points[i]
        for i in living(home):
            closest, distance = 0, np.inf
            for g in range(label):
                gap = 0.0
                for j in range(d):
                    gap += (points[i, j] - centres[g, j] / sizes[g]) ** 2
                if gap < distance:
                    closest, distance = g, gap
            groups[i] = closest
    return groups
