"""Optimal k-anonymous degree sequence by dynamic programming in O(n k).

Reference: Liu, Terzi (2008), Towards identity anonymization on graphs, doi:10.1145/1376616.1376629.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from sfumato.arrays import Ints
from sfumato.errors import TooFewRows
from sfumato.kernels import kernel


def anonymous_degrees(degrees: Ints, k: int, *, deletion_weight: int | None = None) -> Ints:
    """For each node a degree that at least ``k`` nodes share, at the least total cost.

    Raising a degree by one costs 1, lowering it costs ``deletion_weight``. With None degrees are only raised, as in the
    reference. With 1 the cost is the L1 distance, and each group gets its median.

    >>> anonymous_degrees(np.array([5, 4, 4, 2, 1]), 2).tolist()
    [5, 5, 5, 2, 2]
    >>> anonymous_degrees(np.array([5, 4, 4, 2, 1]), 2, deletion_weight=1).tolist()
    [4, 4, 4, 1, 1]
    """
    if k > len(degrees):
        raise TooFewRows(f"k = {k}, and the graph has {len(degrees)} nodes.", fix="Choose a smaller k.")
    order = np.argsort(-degrees, kind="stable")
    sorted_degrees = degrees[order].astype(np.int64)
    # A weight beyond n makes any deletion dearer than all additions.
    weight = len(degrees) if deletion_weight is None else deletion_weight
    starts = cast(Ints, _group_starts(sorted_degrees, k, weight))
    anonymous = np.empty_like(sorted_degrees)
    for start, end in zip(starts, [*starts[1:], len(degrees)], strict=True):
        anonymous[start:end] = sorted_degrees[start + (end - start) // (weight + 1)]
    result = np.empty_like(anonymous)
    result[order] = anonymous
    return result


def smallest_class(degrees: Ints) -> int:
    """The size of the smallest equivalence class of nodes with the same degree; 0 without nodes."""
    return int(np.unique(degrees, return_counts=True)[1].min()) if len(degrees) else 0


@kernel()
def _group_starts(degrees, k, weight):  # type: ignore[no-untyped-def]
    """First places of the groups of an optimal partition of degrees that are sorted downwards.

    Groups of k to 2k - 1 nodes suffice (Liu, Terzi 2008, doi:10.1145/1376616.1376629, section 5): a group of 2k or more
    can be split into two of at least k. Each part may keep the old degree at the same cost, and the best degree of its
    own costs no more. The best degree has one part in ``weight`` + 1 of the group above it (a quantile). Some optimal
    partition has groups of neighbours in the sorted sequence only.
    """
    n = len(degrees)
    sums = np.zeros(n + 1, dtype=np.int64)
    sums[1:] = np.cumsum(degrees)
    never = np.int64(1) << 62
    best = np.full(n + 1, never, dtype=np.int64)
    cut = np.zeros(n + 1, dtype=np.int64)
    best[0] = 0
    for end in range(k, n + 1):
        for start in range(max(0, end - 2 * k + 1), end - k + 1):
            if best[start] == never:
                continue
            middle = start + (end - start) // (weight + 1)
            value = degrees[middle]
            lowered = sums[middle] - sums[start] - value * (middle - start)
            raised = value * (end - middle) - (sums[end] - sums[middle])
            cost = best[start] + weight * lowered + raised
            if cost < best[end]:
                best[end] = cost
                cut[end] = start
    count = 0
    end = n
    while end > 0:
        end = cut[end]
        count += 1
    starts = np.empty(count, dtype=np.int64)
    end = n
    for place in range(count - 1, -1, -1):
        end = cut[end]
        starts[place] = end
    return starts
