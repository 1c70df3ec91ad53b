"""Local search for microaggregation: moves, exchanges, dissolved and re-cut groups, compiled.

Every accepted change lowers the sum of squared distances to the group means, and every group keeps at least k members.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats
from sfumato.kernels import kernel

Groups = npt.NDArray[np.int32]

_NEIGHBOURS = 24
"""Least number of nearest records whose groups a record may move to; at least 2k, and at most ``_MOST``."""
_MOST = 200
_BLOCK = 100_000
"""Records whose neighbours are looked up at once."""
_ROUNDS = 100
"""Most rounds over all records."""
_LEAST = 1e-12
"""Changes by less than this share of the total are rounding errors."""


def refine_groups(points: Floats, groups: Groups, k: int) -> Groups:
    """Groups with at most the squared error of ``groups``, each of at least k members."""
    from scipy.spatial import cKDTree

    n = len(points)
    if n < 2 * k:
        return groups
    points = np.ascontiguousarray(points)  # one layout, one compilation
    reach = min(max(_NEIGHBOURS, min(2 * k, _MOST)) + 1, n)
    tree = cKDTree(points)
    near = np.empty((n, reach), dtype=np.int32)
    for start in range(0, n, _BLOCK):
        near[start : start + _BLOCK] = tree.query(points[start : start + _BLOCK], k=reach)[1].reshape(-1, reach)
    total = float(((points - points.mean(axis=0)) ** 2).sum())
    better: Groups = _improve(points, groups.astype(np.int32), near, k, _ROUNDS, _LEAST * max(total, 1e-300))
    return np.unique(better, return_inverse=True)[1].reshape(-1).astype(np.int32)


@kernel(nogil=True, error_model="numpy")
def _improve(points, groups, near, k, rounds, least):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    n, d = points.shape
    group = groups.copy()
    size = np.zeros(n // k + 1, dtype=np.int64)
    for i in range(n):
        size[group[i]] += 1
    widest = max(size.max() + 1, 4 * k)
    member = np.full((n // k + 1, widest), -1, dtype=np.int32)
    place = np.zeros(n, dtype=np.int64)
    total = np.zeros((n // k + 1, d))
    size[:] = 0
    for i in range(n):
        _put(i, group[i], points, group, member, size, place, total)
    for _ in range(rounds):
        changed = 0
        for i in range(n):
            changed += _best_change(i, k, least, points, near, group, member, size, place, total)
        for g in range(size.size):
            if size[g]:
                changed += _dissolve(g, k, least, points, near, group, member, size, place, total)
        for g in range(size.size):
            if size[g]:
                changed += _cut_again(g, k, least, points, near, group, member, size, place, total)
        if not changed:
            break
    return group


@kernel(nogil=True, error_model="numpy")
def _put(i, g, points, group, member, size, place, total):  # type: ignore[no-untyped-def]  # pragma: no cover
    group[i] = g
    member[g, size[g]] = i
    place[i] = size[g]
    size[g] += 1
    for j in range(points.shape[1]):
        total[g, j] += points[i, j]


@kernel(nogil=True, error_model="numpy")
def _take(i, points, group, member, size, place, total):  # type: ignore[no-untyped-def]  # pragma: no cover
    g = group[i]
    size[g] -= 1
    last = member[g, size[g]]
    member[g, place[i]] = last
    place[last] = place[i]
    for j in range(points.shape[1]):
        total[g, j] -= points[i, j]


@kernel(nogil=True, error_model="numpy")
def _gap(i, g, points, size, total):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Squared distance of a record to the mean of a group."""
    gap = 0.0
    for j in range(points.shape[1]):
        gap += (points[i, j] - total[g, j] / size[g]) ** 2
    return gap


@kernel(nogil=True, error_model="numpy")
def _between(i, other, points):  # type: ignore[no-untyped-def]  # pragma: no cover
    gap = 0.0
    for j in range(points.shape[1]):
        gap += (points[i, j] - points[other, j]) ** 2
    return gap


@kernel(nogil=True, error_model="numpy")
def _best_change(i, k, least, points, near, group, member, size, place, total):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Move a record, exchange it for another, or move it while a third record takes its place; whichever gains most."""
    a = group[i]
    own = _gap(i, a, points, size, total)
    leaves = size[a] / (size[a] - 1) * own if size[a] > k else 0.0
    best = -least
    target, partner, filler = -1, -1, -1
    # who could take this record's place in a group that must not shrink
    fill, fill_change = -1, np.inf
    if size[a] == k:
        for m in range(1, near.shape[1]):
            z = near[i, m]
            c = group[z]
            if c != a and size[c] > k:
                change = _gap(z, a, points, size, total) - own - _between(i, z, points) / size[a]
                change -= size[c] / (size[c] - 1) * _gap(z, c, points, size, total)
                if change < fill_change:
                    fill, fill_change = z, change
    for m in range(1, near.shape[1]):
        b = group[near[i, m]]
        if b == a:
            continue
        seen = False
        for before in range(1, m):
            if group[near[i, before]] == b:
                seen = True
                break
        if seen:
            continue
        there = _gap(i, b, points, size, total)
        if size[b] < member.shape[1] and size[b] < 2 * k:
            joins = size[b] / (size[b] + 1) * there
            if size[a] > k:
                if joins - leaves < best:
                    best, target, partner, filler = joins - leaves, b, -1, -1
            elif fill >= 0 and group[fill] != b and joins + fill_change < best:
                best, target, partner, filler = joins + fill_change, b, -1, fill
        for place_b in range(size[b]):
            y = member[b, place_b]
            apart = _between(i, y, points)
            change = _gap(y, a, points, size, total) - own - apart / size[a]
            change += there - _gap(y, b, points, size, total) - apart / size[b]
            if change < best:
                best, target, partner, filler = change, b, y, -1
    if target < 0:
        return 0
    _take(i, points, group, member, size, place, total)
    _put(i, target, points, group, member, size, place, total)
    if partner >= 0 or filler >= 0:
        back = max(partner, filler)
        _take(back, points, group, member, size, place, total)
        _put(back, a, points, group, member, size, place, total)
    return 1


@kernel(nogil=True, error_model="numpy")
def _error(chosen, count, points):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Sum of squared distances of some records to their mean."""
    error = 0.0
    for j in range(points.shape[1]):
        mean = 0.0
        for m in range(count):
            mean += points[chosen[m], j]
        mean /= count
        for m in range(count):
            error += (points[chosen[m], j] - mean) ** 2
    return error


@kernel(nogil=True, error_model="numpy")
def _dissolve(g, k, least, points, near, group, member, size, place, total):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Give the members of a group to their best neighbouring groups, if that lowers the error."""
    count = size[g]
    chosen = member[g, :count].copy()
    change = -_error(chosen, count, points)
    moved = 0
    for x in chosen:
        best, target = np.inf, -1
        for m in range(1, near.shape[1]):
            b = group[near[x, m]]
            if b != g and size[b] < 2 * k:
                joins = size[b] / (size[b] + 1) * _gap(x, b, points, size, total)
                if joins < best:
                    best, target = joins, b
        change += best
        if target < 0 or change > -least:
            break
        _take(x, points, group, member, size, place, total)
        _put(x, target, points, group, member, size, place, total)
        moved += 1
    if moved == count and change < -least:
        return 1
    for m in range(moved):
        _take(chosen[m], points, group, member, size, place, total)
        _put(chosen[m], g, points, group, member, size, place, total)
    return 0


@kernel(nogil=True, error_model="numpy")
def _cut_again(g, k, least, points, near, group, member, size, place, total):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Cut a group, or its union with a neighbouring one, into runs of k or more along the line through its two most
    distant members, if that lowers the error."""
    changed = 0
    tried = np.full(near.shape[1], -1, dtype=np.int32)
    known = 0
    for m in range(near.shape[1]):
        other = group[near[member[g, 0], m]]
        seen = False
        for t in range(known):
            if tried[t] == other:
                seen = True
                break
        if seen:
            continue
        tried[known] = other
        known += 1
        if other == g:
            if size[g] >= 2 * k:
                changed += _cut(g, -1, k, least, points, group, member, size, place, total)
        elif size[g] + size[other] <= member.shape[1]:
            changed += _cut(g, other, k, least, points, group, member, size, place, total)
        if known > 8:
            break
    return changed


@kernel(nogil=True, error_model="numpy")
def _cut(g, other, k, least, points, group, member, size, place, total):  # type: ignore[no-untyped-def]  # pragma: no cover
    n, d = size[g] + (size[other] if other >= 0 else 0), points.shape[1]
    chosen = np.empty(n, dtype=np.int32)
    chosen[: size[g]] = member[g, : size[g]]
    before = _error(chosen, size[g], points)
    if other >= 0:
        chosen[size[g] :] = member[other, : size[other]]
        before += _error(chosen[size[g] :], size[other], points)
    # the two most distant members, and the order of the others between them
    one, two, farthest = chosen[0], chosen[0], -1.0
    for a in range(n):
        for b in range(a):
            apart = _between(chosen[a], chosen[b], points)
            if apart > farthest:
                one, two, farthest = chosen[a], chosen[b], apart
    along = np.empty(n)
    for a in range(n):
        along[a] = _between(chosen[a], one, points) - _between(chosen[a], two, points)
    chosen = chosen[np.argsort(along)]
    # optimal cut of the sequence into runs of k to 2k - 1; errors from running sums around the first record
    sums = np.zeros((n + 1, d))
    squares = np.zeros(n + 1)
    for a in range(n):
        squares[a + 1] = squares[a] + _between(chosen[a], chosen[0], points)
        for j in range(d):
            sums[a + 1, j] = sums[a, j] + points[chosen[a], j] - points[chosen[0], j]
    cost = np.full(n + 1, np.inf)
    start = np.zeros(n + 1, dtype=np.int64)
    cost[0] = 0.0
    for end in range(k, n + 1):
        for begin in range(max(0, end - 2 * k + 1), end - k + 1):
            if cost[begin] < np.inf:
                here = cost[begin] + squares[end] - squares[begin]
                for j in range(d):
                    here -= (sums[end, j] - sums[begin, j]) ** 2 / (end - begin)
                if here < cost[end]:
                    cost[end], start[end] = here, begin
    if not cost[n] < before - least:
        return 0
    runs = 0
    end = n
    while end > 0:
        runs += 1
        end = start[end]
    # numbers of the new groups: the old ones, and empty ones
    label = np.empty(runs, dtype=np.int64)
    label[0] = g
    found = 1
    if other >= 0 and runs > 1:
        label[1] = other
        found = 2
    free = 0
    while found < runs:
        while size[free] > 0:
            free += 1
        label[found] = free
        found += 1
        free += 1
    for x in chosen:
        _take(x, points, group, member, size, place, total)
    end = n
    number = 0
    while end > 0:
        for position in range(start[end], end):
            _put(chosen[position], label[number], points, group, member, size, place, total)
        number += 1
        end = start[end]
    return 1
