"""MDAV and V-MDAV microaggregation, compiled.

MDAV repeatedly needs the record farthest from a point and the k records nearest to one. Blocks of records with bounds
(:mod:`sfumato.masking.methods._blocks`) answer both without computing most distances. The groups are those of the
textbook algorithm; a property test compares the two.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Ints
from sfumato.kernels import kernel
from sfumato.masking.methods._blocks import BLOCK, drop, farthest, into_blocks, nearest

Groups = npt.NDArray[np.int32]

_REBUILD = 0.7
"""Blocks are built anew when this share of their records is left, so that the boxes stay tight."""


def mdav(points: Floats, k: int) -> Groups:
    """Group number of each record; every group has k to 2k-1 members. ``points`` has at least k complete rows."""
    groups = np.full(len(points), -1, dtype=np.int32)
    alive, label = np.arange(len(points)), 0
    while len(alive) >= 2 * k:
        blocks = into_blocks(points, alive)
        label = _rounds(points, k, groups, label, len(alive), points[alive].sum(axis=0), *blocks)
        alive = np.flatnonzero(blocks.home >= 0)
    groups[alive] = label
    return groups


@kernel()
def _rounds(
    points: Floats, k: int, groups: Groups, label: int, built: int, total: Floats, cells: Floats, ids: Ints,
    origin: Floats, lows: Floats, highs: Floats, held: Ints, home: Ints,
) -> int:  # fmt: skip # pragma: no cover - compiled
    """Groups from the records of these blocks, until too few are left for them; gives the next label."""
    bound, out = np.empty(cells.shape[0]), np.empty(BLOCK)
    best, found = np.empty(k), np.empty(k, dtype=np.int64)
    centre = np.empty(len(total))
    left = built
    while left >= 2 * k and (left >= _REBUILD * built or built <= BLOCK):
        for j in range(len(total)):
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
                for j in range(len(total)):
                    total[j] -= points[found[i], j]
            for j in range(len(total)):
                total[j] -= points[seed, j]
            label += 1
            left -= k
    return label


def v_mdav(points: Floats, k: int, gamma: float) -> Groups:
    """V-MDAV: groups grow to at most 2k-1 while the next record is nearer to them than gamma times its own nearest."""
    groups = np.full(len(points), -1, dtype=np.int32)
    alive, label = np.arange(len(points)), 0
    centre = points.sum(axis=0) / len(points)
    while len(alive) >= k:
        blocks = into_blocks(points, alive)
        label = _grown_rounds(points, k, gamma, groups, label, len(alive), centre, *blocks)
        alive = np.flatnonzero(blocks.home >= 0)
    if len(alive):
        inside = groups >= 0
        sizes = np.bincount(groups[inside], minlength=label)
        sums = np.column_stack([np.bincount(groups[inside], column, minlength=label) for column in points[inside].T])
        centres = sums / sizes[:, None]
        for i in alive:
            groups[i] = np.argmin(((points[i] - centres) ** 2).sum(axis=1))
    return groups


@kernel()
def _grown_rounds(
    points: Floats, k: int, gamma: float, groups: Groups, label: int, built: int, centre: Floats, cells: Floats,
    ids: Ints, origin: Floats, lows: Floats, highs: Floats, held: Ints, home: Ints,
) -> int:  # fmt: skip # pragma: no cover - compiled
    bound, out = np.empty(cells.shape[0]), np.empty(BLOCK)
    best, found = np.empty(max(k, 2)), np.empty(max(k, 2), dtype=np.int64)
    members = np.empty(2 * k, dtype=np.int64)
    left = built
    while left >= k and (left >= _REBUILD * built or built <= BLOCK):
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
    return label
