"""Compiled groupings of microaggregation: MDAV and V-MDAV by exact pruned search, and the univariate optimum.

MDAV asks, over and over, for the record farthest from a point and for the k records nearest to one. Records stand in
blocks of neighbours with a bounding box each; a block whose box cannot hold a better record is skipped. Nothing is
approximated: the groups are those of the plain algorithm (ties go to the earlier record), only most distances are
never computed.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["mdav", "mdav_plain", "optimal_univariate", "v_mdav"]

Floats = npt.NDArray[np.float64]
Groups = npt.NDArray[np.int32]

_BLOCK = 64
"""Records per block: two or four cache lines per column, enough for the vector units."""
_SHELLS = 3
"""How many times records are halved by their distance to the centroid before they are halved by columns."""
_SLACK = 1e-12
"""Bounds are widened by this share of the largest distance, far above the rounding of a few dozen sums."""
_REBUILD = 0.7
"""Blocks are built anew when this share of their records is left, so that the boxes stay tight."""


@numba.njit(cache=True)
def _total(points: Floats, alive: npt.NDArray[np.int64]) -> Floats:  # pragma: no cover - compiled
    total = np.zeros(points.shape[1])
    for i in alive:
        for j in range(points.shape[1]):
            total[j] += points[i, j]
    return total


@numba.njit(cache=True)
def _blocks(points: Floats, alive: npt.NDArray[np.int64]) -> Any:  # pragma: no cover - compiled
    """Cut the living records into blocks: by their distance to the centroid, then at medians of the widest column.

    Gives the records of each block, and its bounds around the centroid: box, smallest and largest radius.
    """
    d = points.shape[1]
    centre = _total(points, alive) / len(alive)
    radius = np.zeros(points.shape[0])
    for i in alive:
        for j in range(d):
            radius[i] += (points[i, j] - centre[j]) ** 2
        radius[i] = np.sqrt(radius[i])
    order = alive.copy()
    count = 1
    size = float(len(order))
    while size > _BLOCK:
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
    cells = np.zeros((count, d, _BLOCK))
    ids = np.full((count, _BLOCK), -1, dtype=np.int64)
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


@numba.njit(cache=True)
def _distances(cells: Floats, b: int, held: int, query: Floats, out: Floats) -> None:  # pragma: no cover - compiled
    for s in range(held):
        out[s] = 0.0
    for j in range(len(query)):
        q, column = query[j], cells[b, j]
        for s in range(held):
            gap = column[s] - q
            out[s] += gap * gap


@numba.njit(cache=True, fastmath={"nnan", "nsz"})
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


@numba.njit(cache=True, fastmath={"nnan", "nsz"})
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


@numba.njit(cache=True)
def _nearest(
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


@numba.njit(cache=True)
def _farthest(
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


@numba.njit(cache=True)
def _drop(record: int, cells: Floats, ids: Any, held: Any, home: Any) -> None:  # pragma: no cover - compiled
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


@numba.njit(cache=True)
def _living(home: Any) -> npt.NDArray[np.int64]:  # pragma: no cover - compiled
    return np.flatnonzero(home >= 0)


@numba.njit(cache=True)
def mdav(points: Floats, k: int) -> Groups:  # pragma: no cover - compiled
    """Group number of each record; every group has k to 2k-1 members. ``points`` has at least k rows, no gaps."""
    n, d = points.shape
    groups = np.full(n, -1, dtype=np.int32)
    cells, ids, origin, lows, highs, held, home = _blocks(points, np.arange(n))
    bound, out = np.empty(cells.shape[0]), np.empty(_BLOCK)
    best, found = np.empty(k), np.empty(k, dtype=np.int64)
    total = _total(points, np.arange(n))
    left, built, label = n, n, 0
    centre = np.empty(d)
    while left >= 2 * k:
        if left < _REBUILD * built and built > _BLOCK:
            alive = _living(home)
            cells, ids, origin, lows, highs, held, home = _blocks(points, alive)
            total = _total(points, alive)
            built = left
            bound = np.empty(cells.shape[0])
        for j in range(d):
            centre[j] = total[j] / left
        seed = _farthest(centre, cells, ids, origin, lows, highs, held, bound, out)
        for turn in range(2 if left >= 3 * k else 1):
            if turn == 1:
                seed = _farthest(points[seed], cells, ids, origin, lows, highs, held, bound, out)
            _drop(seed, cells, ids, held, home)
            groups[seed] = label
            near = _nearest(points[seed], k - 1, cells, ids, origin, lows, highs, held, bound, out, best, found)
            for i in range(near):
                groups[found[i]] = label
                _drop(found[i], cells, ids, held, home)
                for j in range(d):
                    total[j] -= points[found[i], j]
            for j in range(d):
                total[j] -= points[seed, j]
            label += 1
            left -= k
    for i in _living(home):
        groups[i] = label
    return groups


@numba.njit(cache=True)
def v_mdav(points: Floats, k: int, gamma: float) -> Groups:  # pragma: no cover - compiled
    """V-MDAV: groups grow to at most 2k-1 while the next record is nearer to them than gamma times its own nearest."""
    n, d = points.shape
    groups = np.full(n, -1, dtype=np.int32)
    everyone = np.arange(n)
    centre = _total(points, everyone) / n
    cells, ids, origin, lows, highs, held, home = _blocks(points, everyone)
    bound, out = np.empty(cells.shape[0]), np.empty(_BLOCK)
    best, found = np.empty(max(k, 2)), np.empty(max(k, 2), dtype=np.int64)
    left, built, label = n, n, 0
    members = np.empty(2 * k, dtype=np.int64)
    while left >= k:
        if left < _REBUILD * built and built > _BLOCK:
            cells, ids, origin, lows, highs, held, home = _blocks(points, _living(home))
            built = left
            bound = np.empty(cells.shape[0])
        seed = _farthest(centre, cells, ids, origin, lows, highs, held, bound, out)
        _drop(seed, cells, ids, held, home)
        near = _nearest(points[seed], k - 1, cells, ids, origin, lows, highs, held, bound, out, best, found)
        members[0] = seed
        for i in range(near):
            members[i + 1] = found[i]
            _drop(found[i], cells, ids, held, home)
        size = k
        left -= k
        while size < 2 * k - 1 and left > 0:
            inside, candidate = np.inf, -1
            for i in range(size):
                _nearest(points[members[i]], 1, cells, ids, origin, lows, highs, held, bound, out, best, found)
                if best[0] < inside:
                    inside, candidate = best[0], found[0]
            outside = np.inf
            if left > 1:
                _nearest(points[candidate], 2, cells, ids, origin, lows, highs, held, bound, out, best, found)
                outside = best[1] if found[0] == candidate else best[0]
            if not np.sqrt(inside) < gamma * np.sqrt(outside):
                break
            members[size] = candidate
            _drop(candidate, cells, ids, held, home)
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
        for i in _living(home):
            nearest, distance = 0, np.inf
            for g in range(label):
                gap = 0.0
                for j in range(d):
                    gap += (points[i, j] - centres[g, j] / sizes[g]) ** 2
                if gap < distance:
                    nearest, distance = g, gap
            groups[i] = nearest
    return groups


@numba.njit(cache=True)
def mdav_plain(points: Floats, k: int) -> Groups:  # pragma: no cover - compiled
    """MDAV as it is written in the literature, every distance computed: the judge of the fast one."""
    n, d = points.shape
    groups = np.full(n, -1, dtype=np.int32)
    left, label = n, 0
    gaps = np.empty(n)
    while left >= 2 * k:
        centre = _total(points, np.flatnonzero(groups < 0)) / left
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


@numba.njit(cache=True)
def optimal_univariate(values: Floats, k: int) -> Groups:  # pragma: no cover - compiled
    """Groups of sorted ``values`` with the least sum of squared errors (Hansen and Mukherjee), O(nk)."""
    n = len(values)
    middle = values.mean()
    sums, squares = np.zeros(n + 1), np.zeros(n + 1)
    for i in range(n):
        value = values[i] - middle
        sums[i + 1] = sums[i] + value
        squares[i + 1] = squares[i] + value * value
    cost = np.full(n + 1, np.inf)
    start = np.zeros(n + 1, dtype=np.int64)
    cost[0] = 0.0
    for end in range(k, n + 1):
        for begin in range(max(0, end - 2 * k + 1), end - k + 1):
            if cost[begin] == np.inf:
                continue
            total = sums[end] - sums[begin]
            here = cost[begin] + squares[end] - squares[begin] - total * total / (end - begin)
            if here < cost[end]:
                cost[end] = here
                start[end] = begin
    groups = np.empty(n, dtype=np.int32)
    end, label = n, 0
    while end > 0:
        groups[start[end] : end] = label
        end = start[end]
        label += 1
    return groups
