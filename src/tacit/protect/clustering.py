"""Clusters of at least k rows that lose little when each shows its lowest common groups.

Greedy k-member clustering inside blocks of similar units, then repair: clusters are dissolved into their neighbours and
units move to another cluster wherever that lowers the sum of prices. Deterministic; not optimal (the problem is
NP-hard), and no bound on the distance to the optimum is claimed.

References: Byun, Kamra, Bertino, Li (2007), Efficient k-anonymization using clustering techniques,
doi:10.1007/978-3-540-71703-4_18; Meyerson, Williams (2004) for the hardness, doi:10.1145/1055558.1055591.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
from numba import njit

from tacit.errors import Unmet
from tacit.progress import SILENT, Progress
from tacit.protect.partition import Conditions
from tacit.protect.recoding import Forest, lowest_groups

__all__ = ["cluster_units", "merge_until"]

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def cluster_units(
    woods: Forest,
    k: int,
    *,
    home: Ints | None = None,
    block: int = 3000,
    passes: int = 3,
    threads: int = 2,
    progress: Progress = SILENT,
) -> tuple[Ints, int]:
    """The cluster of each unit, and how many there are. Every cluster has at least ``k`` rows if the table has.

    ``home`` marks spare rows of large units with the unit they belong to (-1: not spare). ``block`` is how many units
    look for neighbours among each other: time grows with units times block.
    """
    parts = split_into_blocks(woods, block, k)
    home = np.full(len(woods), -1, dtype=np.int64) if home is None else home
    dearest = woods.dearest

    def work(units: npt.NDArray[np.intp]) -> Ints:
        part = woods.take(units)
        groups = np.ascontiguousarray(part.groups[:, dearest])
        offset = np.ascontiguousarray(part.offset[dearest])
        near = _places(home[units], units)
        cluster, count = _grow(groups, offset, part.price, part.rows, near, k)
        return _repair(groups, offset, part.price, part.rows, k, cluster, count, passes)

    cluster = np.empty(len(woods), dtype=np.int64)
    count = 0
    with progress.task("clustering", len(woods)) as tick, ThreadPoolExecutor(threads) as pool:
        for units, found in zip(parts, pool.map(work, parts), strict=True):
            distinct, number = np.unique(found, return_inverse=True)
            cluster[units] = number + count
            count += len(distinct)
            tick(len(units))
    return cluster, count


def _places(wanted: Ints, units: npt.NDArray[np.intp]) -> Ints:
    """Where each wanted unit stands among ``units``; -1 where it does not."""
    order = np.argsort(units, kind="stable")
    found = np.minimum(np.searchsorted(units, wanted, sorter=order), len(units) - 1)
    return np.where(units[order[found]] == wanted, order[found], -1)


def split_into_blocks(woods: Forest, block: int, k: int) -> list[npt.NDArray[np.intp]]:
    """Units cut along hierarchies into blocks of at most about ``block`` units, each with room for several clusters."""
    least = max(block // 8, 1)
    done: list[npt.NDArray[np.intp]] = []
    waiting = [np.arange(len(woods))]
    while waiting:
        units = waiting.pop()
        choice = _best_cut(woods, units) if len(units) > block else None
        if choice is None:
            done.append(units)
            continue
        order = units[np.argsort(choice[units], kind="stable")]
        values, starts = np.unique(choice[order], return_index=True)
        children = np.split(order, starts[1:])
        if len(values) < 2:
            done.append(units)
            continue
        # small children stay together, next to each other in the hierarchy's order
        pool: list[npt.NDArray[np.intp]] = []
        made: list[npt.NDArray[np.intp]] = []
        for child in sorted(children, key=len):
            pool.append(child)
            if sum(map(len, pool)) >= least:
                made.append(np.concatenate(pool))
                pool = []
        if pool:
            made[-1:] = [np.concatenate([*made[-1:], *pool])]
        if len(made) < 2:
            half = len(order) // 2
            made = [order[:half], order[half:]]
        waiting.extend(made)
    return _with_room(done, woods.rows, k)


def _with_room(parts: list[npt.NDArray[np.intp]], rows: Ints, k: int) -> list[npt.NDArray[np.intp]]:
    """Join blocks of fewer than k rows with the next one."""
    out: list[npt.NDArray[np.intp]] = []
    for part in parts:
        if out and (rows[out[-1]].sum() < k or rows[part].sum() < k):
            out[-1] = np.concatenate([out[-1], part])
        else:
            out.append(part)
    return out


def _best_cut(woods: Forest, units: npt.NDArray[np.intp]) -> Codes | None:
    """Group codes of the column and level whose cut saves most and leaves no giant child; None if nothing differs."""
    best, score = None, -1.0
    for column in range(woods.groups.shape[1]):
        for level in range(woods.groups.shape[2] - 1, -1, -1):
            codes = woods.groups[units, column, level]
            if codes.min() != codes.max():
                break
        else:
            continue
        largest = np.bincount(codes).max() / len(units)
        above = min(level + 1, woods.groups.shape[2] - 1)
        before = woods.price[woods.offset[column, above] + woods.groups[units[0], column, above]]
        saved = before - woods.price[woods.offset[column, level] + codes].mean()
        if (saved + 1e-12) * (1 - largest) > score:
            best, score = (column, level), (saved + 1e-12) * (1 - largest)
    return None if best is None else woods.groups[:, best[0], best[1]]


@njit(cache=True, nogil=True)
def _grow(
    groups: Codes, offset: Ints, price: Floats, rows: Ints, home: Ints, k: int
) -> tuple[Ints, int]:  # pragma: no cover - compiled
    """Start a cluster at the unit furthest from the last one, add the unit that costs least per row until k rows.

    Units of k rows stand alone. Spare rows (``home`` >= 0) only fill up clusters, and what is left of them goes home.
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
                path[c, h] = price[offset[c, h] + groups[seed, c, h]]
            now += path[c, 0]
        while size < k and remaining:
            best, place = np.inf, -1
            for i in range(remaining):
                u = left[i]
                # the price per row at which this unit would be no better than the best so far
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


@njit(cache=True, nogil=True)
def _settle(
    g: int, head: Ints, following: Ints, height: Ints, cost: Floats, groups: Codes, offset: Ints, price: Floats
) -> None:  # pragma: no cover - compiled
    """Compute the lowest common groups of cluster ``g`` and their price anew from its members."""
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
        total += price[offset[c, h] + groups[first, c, h]]
    cost[g] = total


@njit(cache=True, nogil=True)
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
    price: Floats,
    rows: Ints,
) -> tuple[int, float]:  # pragma: no cover - compiled
    """The cluster, not ``skip``, that takes unit ``u`` at the least extra cost below ``ceiling``; -1: none."""
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
            then += price[offset[c, h] + groups[first, c, h]]
            if then >= limit:
                break
        if then < limit:
            best, place = (size[g] + rows[u]) * then - size[g] * cost[g], g
    return place, best


@njit(cache=True, nogil=True)
def _repair(
    groups: Codes, offset: Ints, price: Floats, rows: Ints, k: int, cluster: Ints, count: int, passes: int
) -> Ints:  # pragma: no cover - compiled
    """Dissolve clusters that are too small, then dissolve and move wherever the sum of prices falls."""
    units, columns, _ = groups.shape
    head = np.full(count, -1, dtype=np.int64)
    following = np.full(units, -1, dtype=np.int64)
    size = np.zeros(count, dtype=np.int64)
    height = np.zeros((count, columns), dtype=np.int64)
    cost = np.zeros(count)
    for u in range(units):
        g = cluster[u]
        following[u] = head[g]
        head[g] = u
        size[g] += rows[u]
    for g in range(count):
        _settle(g, head, following, height, cost, groups, offset, price)
    members = np.empty(units, dtype=np.int64)
    target = np.empty(units, dtype=np.int64)
    living = count
    for turn in range(passes + 1):
        changed = False
        for g in np.argsort(-cost):
            if size[g] == 0 or living < 2:
                continue
            must = size[g] < k
            if turn == 0 and not must:
                continue
            number = 0
            u = head[g]
            while u >= 0:
                members[number] = u
                number += 1
                u = following[u]
            # dissolve: every member on its own finds a new home, and together they pay less than now
            budget = np.inf if must else size[g] * cost[g] * (1 - 1e-9)
            spent, able = 0.0, True
            for i in range(number):
                place, extra = _cheapest(
                    members[i], g, count, budget - spent, head, height, cost, size, groups, offset, price, rows
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
                    u, t = members[i], target[i]
                    cluster[u] = t
                    following[u] = head[t]
                    head[t] = u
                    size[t] += rows[u]
                    _settle(t, head, following, height, cost, groups, offset, price)
                changed = True
                continue
            # move: one member leaves for another cluster and what stays becomes more alike
            for i in range(number):
                u = members[i]
                if size[g] - rows[u] < k or size[g] == rows[u]:
                    continue
                before, old = cost[g], size[g]
                _unlink(u, g, head, following)
                _settle(g, head, following, height, cost, groups, offset, price)
                freed = old * before - (old - rows[u]) * cost[g]
                size[g] -= rows[u]
                place, extra = _cheapest(
                    u, g, count, freed * (1 - 1e-9), head, height, cost, size, groups, offset, price, rows
                )
                t = place if place >= 0 else g
                changed = changed or place >= 0
                cluster[u] = t
                following[u] = head[t]
                head[t] = u
                size[t] += rows[u]
                _settle(t, head, following, height, cost, groups, offset, price)
        if turn and not changed:
            break
    return cluster


@njit(cache=True, nogil=True)
def _unlink(u: int, g: int, head: Ints, following: Ints) -> None:  # pragma: no cover - compiled
    if head[g] == u:
        head[g] = following[u]
        return
    before = head[g]
    while following[before] != u:
        before = following[before]
    following[before] = following[u]


def merge_until(conditions: Conditions, woods: Forest, cluster: Ints, count: int) -> tuple[Ints, int]:
    """Merge clusters until every one passes, and all of them together."""
    while True:
        failing = conditions.failing(cluster, count)
        if not failing.any():
            if not conditions.about_table:
                return cluster, count
            sizes = np.bincount(cluster, weights=woods.rows, minlength=count).astype(np.int64)
            if conditions.table_holds(sizes):
                return cluster, count
            # the smallest tenth of the clusters weighs most in an average risk
            failing[np.argsort(sizes, kind="stable")[: max(1, count // 10)]] = True
        if count == 1:
            raise Unmet("The models are not met even with all rows in one class.", fix="Ask for less.")
        cluster, count = _merge(woods, cluster, count, failing)


def _merge(woods: Forest, cluster: Ints, count: int, failing: Mask) -> tuple[Ints, int]:
    """Join every failing cluster with the one that costs least; the clusters that result, numbered anew."""
    first = np.full(count, -1, dtype=np.int64)
    first[cluster[::-1]] = np.arange(len(cluster))[::-1]
    height = lowest_groups(woods, cluster, count).astype(np.int64)
    size = np.bincount(cluster, weights=woods.rows, minlength=count).astype(np.int64)
    partner = _partners(woods.groups, woods.offset, woods.price, first, height, size, failing)
    root = np.arange(count)
    for g in np.flatnonzero(failing):
        a, b = _find(root, int(g)), _find(root, int(partner[g]))
        root[a] = b
    top = np.array([_find(root, g) for g in range(count)])
    distinct, number = np.unique(top, return_inverse=True)
    return number[cluster].astype(np.int64), len(distinct)


def _find(root: npt.NDArray[np.intp], g: int) -> int:
    while root[g] != g:
        root[g] = root[root[g]]
        g = int(root[g])
    return g


@njit(cache=True, nogil=True)
def _partners(
    groups: Codes, offset: Ints, price: Floats, first: Ints, height: Ints, size: Ints, failing: Mask
) -> Ints:  # pragma: no cover - compiled
    """For each failing cluster the other cluster whose union with it adds least to the sum of prices."""
    count, columns = height.shape
    partner = np.arange(count)
    cost = np.zeros(count)
    for g in range(count):
        for c in range(columns):
            cost[g] += price[offset[c, height[g, c]] + groups[first[g], c, height[g, c]]]
    for g in range(count):
        if not failing[g]:
            continue
        best = np.inf
        for t in range(count):
            if t == g:
                continue
            limit = (best + size[t] * cost[t] + size[g] * cost[g]) / (size[t] + size[g])
            then = 0.0
            for c in range(columns):
                h = max(height[g, c], height[t, c])
                while groups[first[g], c, h] != groups[first[t], c, h]:
                    h += 1
                then += price[offset[c, h] + groups[first[g], c, h]]
                if then >= limit:
                    break
            if then < limit:
                best = (size[t] + size[g]) * then - size[t] * cost[t] - size[g] * cost[g]
                partner[g] = t
    return partner
