"""Optimal cell suppression with wildcards: the cheapest cells to empty so that every row matches at least k rows.

For each row, sets of columns are tried in order of cost, so the result is optimal. Cells emptied in other rows do not
count: otherwise emptying one row completely would "protect" everyone, because such a row matches all.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Ints, Mask
from sfumato.data.row_codes import number_rows
from sfumato.kernels import kernel
from sfumato.progress import SILENT, Progress

Codes = npt.NDArray[np.int32]

_WORK = 4_000_000_000
"""Maximum number of cells visited; remaining rows are then processed greedily."""


def sets_by_cost(costs: Floats) -> Iterator[tuple[float, tuple[int, ...]]]:
    """All non-empty sets of columns, cheapest first.

    >>> [chosen for _, chosen in sets_by_cost(np.array([1.0, 1.0, 5.0]))]
    [(0,), (1,), (0, 1), (2,), (0, 2), (1, 2), (0, 1, 2)]
    """
    order = np.argsort(costs, kind="stable").tolist()
    sorted_costs = costs[order].tolist()
    heap: list[tuple[float, int, tuple[int, ...]]] = [(sorted_costs[0], 1, (0,))] if order else []
    while heap:
        cost, size, chosen = heapq.heappop(heap)
        yield cost, tuple(sorted(order[i] for i in chosen))
        last = chosen[-1]
        if last + 1 < len(order):
            heapq.heappush(heap, (cost + sorted_costs[last + 1], size + 1, (*chosen, last + 1)))
            moved = (*chosen[:-1], last + 1)
            heapq.heappush(heap, (cost - sorted_costs[last] + sorted_costs[last + 1], size, moved))


def cheapest_cells(
    codes: Codes,
    widths: list[int],
    sizes: Ints,
    *,
    empty: Mask,
    at_risk: Mask,
    costs: Floats,
    k: int,
    progress: Progress = SILENT,
) -> tuple[Mask, bool]:
    """The cells (unit, column) to empty, and whether the choice is proven optimal.

    Cells that are already ``empty`` cost nothing. All rows of a unit are treated equally.
    """
    out = np.zeros(codes.shape, dtype=np.bool_)
    pending = at_risk.copy()
    _, pattern = np.unique(empty, axis=0, return_inverse=True)
    work = 0
    with progress.task("choosing cells", int(at_risk.sum())) as tick:
        for _, chosen in sets_by_cost(costs):
            left = int(pending.sum())
            if left == 0:
                return out, True
            if work > _WORK:
                break
            for number in np.unique(pattern[pending]):
                here = pending & (pattern == number)
                hidden = empty[np.argmax(here)].copy()
                hidden[list(chosen)] = True
                kept = np.flatnonzero(~hidden)
                work += len(codes) * (len(kept) + 1)
                if len(kept):
                    of, count = number_rows([codes[:, c] for c in kept], [widths[c] for c in kept])
                    matching = np.bincount(of, weights=sizes, minlength=count)[of]
                else:
                    matching = np.full(len(codes), sizes.sum(), dtype=np.float64)
                solved = here & (matching >= k)
                out[np.ix_(solved, list(chosen))] = True
                pending &= ~solved
            tick(left - int(pending.sum()))
    if not pending.any():
        return out & ~empty, True
    rows = np.flatnonzero(pending)
    out[rows] = _one_by_one(codes, sizes, empty, rows, costs, k)
    return out & ~empty, False


@kernel()
def _one_by_one(
    codes: Codes, sizes: Ints, empty: Mask, rows: Ints, costs: Floats, k: int
) -> Mask:  # pragma: no cover - compiled
    """Greedy: empty the column that gains the most matching rows per cost, until k rows match."""
    units, columns = codes.shape
    out = np.zeros((len(rows), columns), dtype=np.bool_)
    for i in range(len(rows)):
        r = rows[i]
        out[i] = empty[r]
        while True:
            agree = 0
            gained = np.zeros(columns)
            for u in range(units):
                different, last = 0, -1
                for c in range(columns):
                    if not out[i, c] and codes[u, c] != codes[r, c]:
                        different, last = different + 1, c
                        if different > 1:
                            break
                if different == 0:
                    agree += sizes[u]
                elif different == 1:
                    gained[last] += sizes[u]
            if agree >= k:
                break
            best, place = -1.0, -1
            for c in range(columns):
                if not out[i, c] and (min(gained[c], k) + 1e-3) / max(costs[c], 1e-9) > best:
                    best, place = (min(gained[c], k) + 1e-3) / max(costs[c], 1e-9), c
            out[i, place] = True
    return out
