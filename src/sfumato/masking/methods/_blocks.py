"""Spatial index for MDAV: exact farthest and nearest record under deletion.

Records lie in blocks with a bounding box and a smallest and largest radius around the centroid. A search skips blocks
whose bounds exclude a better record. Results are exact; ties go to the earlier record.

A KD-tree (``scipy.spatial.cKDTree``, used elsewhere for nearest neighbours) does not fit here: MDAV deletes records
after each query and needs the farthest record, and a KD-tree supports neither.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats
from sfumato.kernels import kernel

BLOCK = 64
"""Records per block: two or four cache lines per column, enough for the vector units."""
_SHELLS = 3
"""How many times records are halved by their distance to the centroid before they are halved by columns."""
_SLACK = 1e-12
"""Bounds are widened by this share of the largest distance, far above the rounding of a few dozen sums."""


@kernel()
def total_of(points: Floats, alive: npt.NDArray[np.int64]) -> Floats:  # pragma: no cover - compiled
    total = np.zeros(points.shape[1])
    for i in alive:
        for j in range(points.shape[1]):
            total[j] += points[i, j]
    return total


@kernel()
def into_blocks(points: Floats, alive: npt.NDArray[np.int64]) -> Any:  # pragma: no cover - compiled
    """Cut the living records into blocks: by their distance to the centroid, then at medians of the widest column.

    Gives the records of each block, and its bounds around the centroid: box, smallest and largest radius.
    """
    d = points.shape[1]
    centre = total_of(points, alive) / len(alive)
    radius = np.zeros(points.shape[0])
    for i in alive:
        for j in range(d):
            radius[i] += (points[i, j] - centre[j]) ** 2
        radius[i] = np.sqrt(radius[i])
    order = alive.copy()
    count = 1
    size = float(len(order))
    while size > BLOCK:
        count *= 2
        size /= 2
    starts = np.zeros(count + 1, dtype=np.int64)
    starts[count] = len(order)
    width, level = count, 0
    while width > 1:
        for b in range(0, count, width):
            lo, hi = starts[b], starts[b + width]
            keys = radius[order[lo:hi]]
            if level >= _SHELLS:
                widest, best = 0, -1.0
                for j in range(d):
                    small, large = np.inf, -np.inf
                    for i in range(lo, hi):
                        value = points[order[i], j]
                        small = min(small, value)
                        large = max(large, value)
                    if large - small > best:
                        widest, best = j, large - small
                for i in range(lo, hi):
                    keys[i - lo] = points[order[i], widest]
            order[lo:hi] = order[lo:hi][np.argsort(keys)]
            starts[b + width // 2] = (lo + hi) // 2
        width //= 2
        level += 1
    cells = np.zeros((count, d, BLOCK))
    ids = np.full((count, BLOCK), -1, dtype=np.int64)
    lows, highs = np.full((d + 1, count), np.inf), np.full((d + 1, count), -np.inf)
    held = np.zeros(count, dtype=np.int64)
    home = np.full(points.shape[0], -1, dtype=np.int64)
    for b in range(count):
        for i in range(starts[b], starts[b + 1]):
            record, slot = order[i], held[b]
            held[b] += 1
            ids[b, slot] = record
            home[record] = b
            for j in range(d):
                cells[b, j, slot] = points[record, j]
                lows[j, b] = min(lows[j, b], points[record, j] - centre[j])
                highs[j, b] = max(highs[j, b], points[record, j] - centre[j])
            lows[d, b] = min(lows[d, b], radius[record])
            highs[d, b] = max(highs[d, b], radius[record])
    return cells, ids, centre, lows, highs, held, home


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


@kernel()
def living(home: Any) -> npt.NDArray[np.int64]:  # pragma: no cover - compiled
    return np.flatnonzero(home >= 0)
