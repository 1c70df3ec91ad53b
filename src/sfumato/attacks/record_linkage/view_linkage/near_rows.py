"""The nearest release rows of each target, and the assignment of targets to different rows among them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, prange

from sfumato.attacks.nearest_neighbours import TILE, bounding_boxes, in_boxes
from sfumato.deadline import batches, check_deadline
from sfumato.progress import Progress

__all__ = ["different_rows", "near_rows"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_PORTION = 1_000_000_000
"""Number of differences computed, in about a second, between two checks of the deadline."""


def near_rows(
    targets: Floats, released: Floats, count: int, draw: np.random.Generator, progress: Progress
) -> tuple[Ints, Floats]:
    """The ``count`` nearest rows of each target that was reached in time, nearest first, and their squared distances.

    Rows at the same distance are taken in random order.
    """
    count = min(count, len(released))
    check_deadline(progress)
    mixed = draw.permutation(len(released))
    order = mixed[in_boxes(released[mixed])]
    check_deadline(progress)
    columns = np.ascontiguousarray(released[order].T)
    boxes = bounding_boxes(columns)
    rows = np.empty((len(targets), count), dtype=np.int64)
    distance = np.empty((len(targets), count))
    done = 0
    size = max(100, _PORTION // max(1, released.size))
    for part in batches(progress, "looking for near rows", len(targets), size):
        found, distance[part] = _scan(np.ascontiguousarray(targets[part]), columns, boxes, count)
        rows[part] = order[found]
        done = part.stop
    return rows[:done], distance[:done]


def different_rows(near: Ints, cost: Floats, draw: np.random.Generator) -> Ints:
    """A different row for each target at minimum total cost; its nearest one if all its near rows went to others."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    people, count = near.shape
    # Every target has a private dummy row that costs more than any real row, so that a full matching exists. Costs
    # start at one, because a sparse matrix has no entries of zero. Ties are broken at random.
    positive = cost - cost.min(axis=1, keepdims=True) + 1.0 + 1e-9 * draw.random(cost.shape)
    outside = positive.max() + 1.0
    used, place = np.unique(near, return_inverse=True)
    first = np.repeat(np.arange(people), count)
    pairs = csr_array(
        (
            np.concatenate([positive.ravel(), np.full(people, outside)]),
            (
                np.concatenate([first, np.arange(people)]),
                np.concatenate([place.ravel(), len(used) + np.arange(people)]),
            ),
        ),
        shape=(people, len(used) + people),
    )
    taken = np.asarray(min_weight_full_bipartite_matching(pairs)[1], dtype=np.int64)
    found = np.append(used, np.full(people, -1))[taken]
    result: Ints = np.where(found >= 0, found, near[:, 0])
    return result


@njit(cache=True, parallel=True)
def _scan(
    targets: Floats, points: Floats, boxes: Floats, wanted: int
) -> tuple[Ints, Floats]:  # pragma: no cover - compiled
    """Scan tile by tile, the nearest tile first, skipping tiles that are farther than the last row that is kept."""
    width, count = points.shape
    tiles = (count + TILE - 1) // TILE
    rows = np.zeros((len(targets), wanted), dtype=np.int64)
    distance = np.full((len(targets), wanted), np.inf)
    for index in prange(len(targets)):
        total = np.empty(TILE)
        away = np.zeros(tiles)
        for axis in range(width):
            value = targets[index, axis]
            for tile in range(tiles):
                gap = max(boxes[0, axis, tile] - value, value - boxes[1, axis, tile], 0.0)
                away[tile] += gap * gap
        kept, row = distance[index], rows[index]
        first = int(np.argmin(away))
        for turn in range(tiles + 1):
            # The nearest tile comes first and is skipped in its own turn.
            tile = first if turn == 0 else turn - 1
            if (turn > 0 and tile == first) or away[tile] * (1 - 1e-12) > kept[wanted - 1]:
                continue
            start = tile * TILE
            length = min(count, start + TILE) - start
            for place in range(length):
                total[place] = 0.0
            for axis in range(width):
                value = targets[index, axis]
                for place in range(length):
                    gap = points[axis, start + place] - value
                    total[place] += gap * gap
            for place in range(length):
                if total[place] < kept[wanted - 1]:
                    slot = wanted - 1
                    while slot > 0 and kept[slot - 1] > total[place]:
                        kept[slot] = kept[slot - 1]
                        row[slot] = row[slot - 1]
                        slot -= 1
                    kept[slot] = total[place]
                    row[slot] = start + place
    return rows, distance
