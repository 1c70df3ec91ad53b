"""Optimal univariate microaggregation: least squared error."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats
from sfumato.kernels import kernel

Groups = npt.NDArray[np.int32]


@kernel()
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
