"""Local search over clusters (compiled): dissolve clusters and move units while the sum of losses decreases."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Ints
from sfumato.kernels import kernel

Codes = npt.NDArray[np.int32]


@kernel(nogil=True)
def _settle(
    g: int, head: Ints, following: Ints, height: Ints, cost: Floats, groups: Codes, offset: Ints, loss: Floats
) -> None:  # pragma: no cover - compiled
    """Recompute the lowest common groups of cluster ``g`` and their loss from its members."""
    first = head[g]
    total = 0.0
    for c in range(groups.shape[1]):
        h = 0
        u = following[first]
        while u >= 0:
            while groups[u, c, h] != groups[first, c, h]:
                h += 1
            u = following[u]
        height[g, c] = h
        total += loss[offset[c, h] + groups[first, c, h]]
    cost[g] = total


@kernel(nogil=True)
def _unlink(u: int, g: int, head: Ints, following: Ints) -> None:  # pragma: no cover - compiled
    if head[g] == u:
        head[g] = following[u]
        return
    before = head[g]
    while following[before] != u:
        before = following[before]
    following[before] = following[u]


@kernel(nogil=True)
def _join(
    u: int, g: int, cluster: Ints, head: Ints, following: Ints, size: Ints, height: Ints, cost: Floats, groups: Codes,
    offset: Ints, loss: Floats, rows: Ints,
) -> None:  # fmt: skip # pragma: no cover - compiled
    """Add unit ``u``, which is in no cluster, to ``g``."""
    cluster[u] = g
    following[u] = head[g]
    head[g] = u
    size[g] += rows[u]
    _settle(g, head, following, height, cost, groups, offset, loss)


@kernel(nogil=True)
def _cheapest(
    u: int,
    skip: int,
    count: int,
    ceiling: float,
    head: Ints,
    height: Ints,
    cost: Floats,
    size: Ints,
    groups: Codes,
    offset: Ints,
    loss: Floats,
    rows: Ints,
) -> tuple[int, float]:  # pragma: no cover - compiled
    """The cluster other than ``skip`` with the least extra loss below ``ceiling`` for unit ``u``; -1 if none."""
    best, place = ceiling, -1
    for g in range(count):
        if size[g] == 0 or g == skip:
            continue
        limit = (best + size[g] * cost[g]) / (size[g] + rows[u])
        first = head[g]
        then = 0.0
        for c in range(groups.shape[1]):
            h = height[g, c]
            while groups[u, c, h] != groups[first, c, h]:
                h += 1
            then += loss[offset[c, h] + groups[first, c, h]]
            if then >= limit:
                break
        if then < limit:
            best, place = (size[g] + rows[u]) * then - size[g] * cost[g], g
    return place, best


def repair(
    groups: Codes, offset: Ints, loss: Floats, rows: Ints, k: int, cluster: Ints, count: int, passes: int
) -> Ints:
    """Dissolve clusters that are too small, then dissolve and move while the sum of losses decreases."""
    units, columns, _ = groups.shape
    head, following = np.full(count, -1), np.full(units, -1)
    size, height, cost = np.zeros(count, dtype=np.int64), np.zeros((count, columns), dtype=np.int64), np.zeros(count)
    _fill(cluster, head, following, size, height, cost, groups, offset, loss, rows)
    living = count
    # Ends even without the limit on passes: a cluster is dissolved at most once, and no other operation makes one, so
    # after finitely many dissolutions there are only moves, each of which lowers the sum of losses. A dissolution is
    # judged member by member: where several join one cluster, the sum may end up higher than estimated. Sizes never
    # fall below k after the first pass, because a move leaves at least k rows behind.
    for turn in range(passes + 1):
        order = np.argsort(-cost, kind="stable")
        changed, living = _turn(
            turn == 0, order, living, k, cluster, head, following, size, height, cost, groups, offset, loss, rows
        )
        if turn and not changed:
            break
    return cluster


@kernel(nogil=True)
def _fill(
    cluster: Ints, head: Ints, following: Ints, size: Ints, height: Ints, cost: Floats, groups: Codes, offset: Ints,
    loss: Floats, rows: Ints,
) -> None:  # fmt: skip # pragma: no cover - compiled
    """Lists of the members of each cluster, and its size and loss."""
    for u in range(len(cluster)):
        g = cluster[u]
        following[u] = head[g]
        head[g] = u
        size[g] += rows[u]
    for g in range(len(head)):
        _settle(g, head, following, height, cost, groups, offset, loss)


@kernel(nogil=True)
def _turn(
    small: bool, order: Ints, living: int, k: int, cluster: Ints, head: Ints, following: Ints, size: Ints,
    height: Ints, cost: Floats, groups: Codes, offset: Ints, loss: Floats, rows: Ints,
) -> tuple[bool, int]:  # fmt: skip # pragma: no cover - compiled
    """Dissolve or improve clusters once, only those below k if ``small``: if any changed, and how many are left."""
    count = len(head)
    members = np.empty(len(cluster), dtype=np.int64)
    target = np.empty(len(cluster), dtype=np.int64)
    changed = False
    for g in order:
        if size[g] == 0 or living < 2:
            continue
        must = size[g] < k
        if small and not must:
            continue
        number = 0
        u = head[g]
        while u >= 0:
            members[number] = u
            number += 1
            u = following[u]
        # dissolve: move every member to its best other cluster if the total loss decreases
        budget = np.inf if must else size[g] * cost[g] * (1 - 1e-9)
        spent, able = 0.0, True
        for i in range(number):
            place, extra = _cheapest(
                members[i], g, count, budget - spent, head, height, cost, size, groups, offset, loss, rows
            )
            if place < 0:
                able = False
                break
            target[i] = place
            spent += extra
        if able:
            size[g], head[g], cost[g] = 0, -1, 0.0
            living -= 1
            for i in range(number):
                _join(members[i], target[i], cluster, head, following, size, height, cost, groups, offset, loss, rows)
            changed = True
            continue
        # move: one member moves to another cluster if the total loss decreases
        for i in range(number):
            u = members[i]
            if size[g] - rows[u] < k or size[g] == rows[u]:
                continue
            before, old = cost[g], size[g]
            _unlink(u, g, head, following)
            _settle(g, head, following, height, cost, groups, offset, loss)
            freed = old * before - (old - rows[u]) * cost[g]
            size[g] -= rows[u]
            place, extra = _cheapest(
                u, g, count, freed * (1 - 1e-9), head, height, cost, size, groups, offset, loss, rows
            )
            changed = changed or place >= 0
            home = place if place >= 0 else g
            _join(u, home, cluster, head, following, size, height, cost, groups, offset, loss, rows)
    return changed, living
