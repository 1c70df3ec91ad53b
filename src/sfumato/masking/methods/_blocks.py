"""Spatial index for MDAV: exact farthest and nearest record under deletion.

Records lie in blocks with a bounding box and a smallest and largest radius around the centroid. A search skips blocks
whose bounds exclude a better record. Results are exact; ties go to the earlier record.

A KD-tree (``scipy.spatial.cKDTree``, used elsewhere for nearest neighbours) does not fit here: MDAV deletes records
after each query and needs the farthest record, and a KD-tree supports neither.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.kernels import kernel

BLOCK = 64
"""Records per block: two or four cache lines per column, enough for the vector units."""
_SHELLS = 3
"""How many times records are halved by their distance to the centroid before they are halved by columns."""
_SLACK = 1e-12
"""Bounds are widened by this share of the largest distance, far above the rounding of a few dozen sums."""


class RecordBlocks(NamedTuple):
    """The records of each block, and its bounds around the centroid of all."""

    cells: Floats
    """Coordinates: block, column, slot."""
    ids: Ints
    """Record in each slot of each block; -1 where there is none."""
    centre: Floats
    lows: Floats
    """Smallest coordinate of each block by column, and below them the smallest radius."""
    highs: Floats
    held: Ints
    """Records left in each block."""
    home: Ints
    """Block of each record; -1 for one that was dropped."""


def into_blocks(points: Floats, alive: Ints) -> RecordBlocks:
    """Cut the living records into blocks: by their distance to the centroid, then at medians of the widest column."""
    d = points.shape[1]
    centre = points[alive].sum(axis=0) / len(alive)
    radius = np.zeros(len(points))
    radius[alive] = np.sqrt(((points[alive] - centre) ** 2).sum(axis=1))
    count = 1
    while len(alive) > BLOCK * count:
        count *= 2
    order = alive.copy()
    starts = np.zeros(count + 1, dtype=np.int64)
    starts[count] = len(order)
    width, level = count, 0
    while width > 1:
        for b in range(0, count, width):
            lo, hi = starts[b], starts[b + width]
            part = order[lo:hi]
            keys = radius[part]
            if level >= _SHELLS:
                values = points[part]
                keys = values[:, np.argmax(np.ptp(values, axis=0))]
            order[lo:hi] = part[np.argsort(keys, kind="stable")]
            starts[b + width // 2] = (lo + hi) // 2
        width //= 2
        level += 1
    held = np.diff(starts)
    block = np.repeat(np.arange(count), held)
    slot = np.arange(len(order)) - starts[block]
    cells = np.zeros((count, d, BLOCK))
    cells[block, :, slot] = points[order]
    ids = np.full((count, BLOCK), -1, dtype=np.int64)
    ids[block, slot] = order
    home = np.full(len(points), -1, dtype=np.int64)
    home[order] = block
    around = np.column_stack([points[order] - centre, radius[order]])
    lows = np.minimum.reduceat(around, starts[:-1], axis=0).T.copy()
    highs = np.maximum.reduceat(around, starts[:-1], axis=0).T.copy()
    return RecordBlocks(cells, ids, centre, lows, highs, held, home)


@kernel()
def _distances(cells: Floats, b: int, held: int, query: Floats, out: Floats) -> None:  # pragma: no cover - compiled
    for s in range(held):
        out[s] = 0.0
    for j in range(len(query)):
        q, column = query[j], cells[b, j]
        for s in range(held):
            gap = column[s] - q
            out[s] += gap * gap


@kernel(fastmath={"nnan", "nsz"})
def _least(query: Floats, centre: Floats, lows: Floats, highs: Floats, bound: Floats) -> None:  # pragma: no cover
    """Squared distance below which no record of a block can be, a shade less for rounding."""
    for b in range(len(bound)):
        bound[b] = 0.0
    far = 0.0
    for j in range(len(query)):
        q, low, high = query[j] - centre[j], lows[j], highs[j]
        far += q * q
        for b in range(len(bound)):
            under, over = low[b] - q, q - high[b]
            gap = under if under > over else over
            gap = gap if gap > 0.0 else 0.0
            bound[b] += gap * gap
    far = np.sqrt(far)
    inner, outer = lows[len(query)], highs[len(query)]
    for b in range(len(bound)):
        under, over = inner[b] - far, far - outer[b]
        gap = under if under > over else over
        gap = gap if gap > 0.0 else 0.0
        shell = gap * gap
        best = shell if shell > bound[b] else bound[b]
        best -= _SLACK * (far + outer[b]) * (far + outer[b])
        bound[b] = best if best > 0.0 else 0.0


@kernel(fastmath={"nnan", "nsz"})
def _most(query: Floats, centre: Floats, lows: Floats, highs: Floats, bound: Floats) -> None:  # pragma: no cover
    """Squared distance above which no record of a block can be, a shade more for rounding.

    |x - q|^2 = |x|^2 + |q|^2 - 2 x.q with x and q around the centroid: |x| is at most the block's radius and -x.q at
    most its largest value on the box, which is far tighter than the distance to the box's farthest corner.
    """
    for b in range(len(bound)):
        bound[b] = 0.0
    far = 0.0
    for j in range(len(query)):
        q, low, high = query[j] - centre[j], lows[j], highs[j]
        far += q * q
        for b in range(len(bound)):
            under, over = -q * low[b], -q * high[b]
            bound[b] += under if under > over else over
    far = np.sqrt(far)
    outer = highs[len(query)]
    for b in range(len(bound)):
        most = outer[b] * far
        most = bound[b] if bound[b] < most else most
        reach = (outer[b] + far) * (outer[b] + far)
        bound[b] = outer[b] * outer[b] + far * far + 2.0 * most + _SLACK * reach


@kernel()
def nearest(
    query: Floats, k: int, cells: Floats, ids: Any, centre: Floats, lows: Floats, highs: Floats, held: Any,
    bound: Floats, out: Floats, best: Floats, found: Any,
) -> int:  # fmt: skip # pragma: no cover - compiled
    """The k nearest living records to ``query``, nearest first, into ``best`` and ``found``; gives how many."""
    count = cells.shape[0]
    _least(query, centre, lows, highs, bound)
    first = -1
    for b in range(count):
        if held[b] > 0 and (first < 0 or bound[b] < bound[first]):
            first = b
    filled = 0
    if first < 0:
        return 0
    # The nearest block first, then those nearby, then the rest: the limit falls quickly and spares most blocks.
    for turn in range(3):
        for b in range(count):
            if held[b] == 0 or bound[b] < 0.0:
                continue
            limit = best[filled - 1] if filled == k else np.inf
            if turn == 0:
                if b != first:
                    continue
            elif bound[b] > limit or (turn == 1 and bound[b] > 0.25 * limit):
                continue
            _distances(cells, b, held[b], query, out)
            bound[b] = -1.0  # seen
            for s in range(held[b]):
                distance, record = out[s], ids[b, s]
                if filled == k and (distance > best[k - 1] or (distance == best[k - 1] and record > found[k - 1])):
                    continue
                at = filled if filled < k else k - 1
                while at > 0 and (best[at - 1] > distance or (best[at - 1] == distance and found[at - 1] > record)):
                    best[at] = best[at - 1]
                    found[at] = found[at - 1]
                    at -= 1
                best[at] = distance
                found[at] = record
                filled = min(filled + 1, k)
    return filled


@kernel()
def farthest(
    query: Floats,
    cells: Floats,
    ids: Any,
    centre: Floats,
    lows: Floats,
    highs: Floats,
    held: Any,
    bound: Floats,
    out: Floats,
) -> int:  # pragma: no cover - compiled
    """The living record farthest from ``query``; of several, the earliest."""
    count = cells.shape[0]
    _most(query, centre, lows, highs, bound)
    first = -1
    for b in range(count):
        if held[b] > 0 and (first < 0 or bound[b] > bound[first]):
            first = b
    top, record = -1.0, -1
    for turn in range(2):
        for b in range(count):
            if held[b] == 0 or (turn == 0) != (b == first) or bound[b] < top:
                continue
            _distances(cells, b, held[b], query, out)
            for s in range(held[b]):
                if out[s] > top or (out[s] == top and ids[b, s] < record):
                    top, record = out[s], ids[b, s]
    return record


@kernel()
def drop(record: int, cells: Floats, ids: Any, held: Any, home: Any) -> None:  # pragma: no cover - compiled
    b = home[record]
    held[b] -= 1
    last = held[b]
    for s in range(last + 1):
        if ids[b, s] == record:
            ids[b, s] = ids[b, last]
            for j in range(cells.shape[1]):
                cells[b, j, s] = cells[b, j, last]
            break
    home[record] = -1
