"""Merge clusters that fail the models with their cheapest neighbours until all pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Ints, Mask
from sfumato.errors import Unmet
from sfumato.kernels import kernel
from sfumato.masking.search.hierarchy_arrays import HierarchyArrays, lowest_groups
from sfumato.masking.search.partition_check import Conditions

Codes = npt.NDArray[np.int32]


def merge_until(conditions: Conditions, trees: HierarchyArrays, cluster: Ints, count: int) -> tuple[Ints, int]:
    """Merge clusters until each passes and all together pass."""
    while True:
        failing = conditions.failing(cluster, count)
        if not failing.any():
            if not conditions.about_table:
                return cluster, count
            sizes = np.bincount(cluster, weights=trees.rows, minlength=count).astype(np.int64)
            if conditions.table_holds(sizes):
                return cluster, count
            # the smallest tenth of the clusters contributes most to an average risk
            failing[np.argsort(sizes, kind="stable")[: max(1, count // 10)]] = True
        if count == 1:
            raise Unmet("The models are not met even with all rows in one class.", fix="Ask for less.")
        cluster, count = _merge(trees, cluster, count, failing)


def _merge(trees: HierarchyArrays, cluster: Ints, count: int, failing: Mask) -> tuple[Ints, int]:
    """Merge every failing cluster with its cheapest partner; returns the renumbered clusters."""
    first = np.full(count, -1, dtype=np.int64)
    first[cluster[::-1]] = np.arange(len(cluster))[::-1]
    height = lowest_groups(trees, cluster, count).astype(np.int64)
    size = np.bincount(cluster, weights=trees.rows, minlength=count).astype(np.int64)
    partner = _partners(trees.groups, trees.offset, trees.loss, first, height, size, failing)
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


@kernel(nogil=True)
def _partners(
    groups: Codes, offset: Ints, loss: Floats, first: Ints, height: Ints, size: Ints, failing: Mask
) -> Ints:  # pragma: no cover - compiled
    """For each failing cluster, the partner with the least increase of the sum of losses."""
    count, columns = height.shape
    partner = np.arange(count)
    cost = np.zeros(count)
    for g in range(count):
        for c in range(columns):
            cost[g] += loss[offset[c, height[g, c]] + groups[first[g], c, height[g, c]]]
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
                then += loss[offset[c, h] + groups[first[g], c, h]]
                if then >= limit:
                    break
            if then < limit:
                best = (size[t] + size[g]) * then - size[t] * cost[t] - size[g] * cost[g]
                partner[g] = t
    return partner
