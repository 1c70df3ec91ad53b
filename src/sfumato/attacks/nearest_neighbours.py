"""Exact nearest neighbours with ties broken at random.

Every target is compared with every distinct released point, in tiles that stay in the cache; memory is that of the two
tables. Large files with few columns are searched by a KD-tree, those with many columns in bounding boxes, skipping the
boxes that are too far; the result is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from numba import njit, prange

from sfumato.attacks.best_row import next_random
from sfumato.deadline import batches, check_deadline
from sfumato.progress import SILENT, Progress

__all__ = ["TILE", "Nearest", "bounding_boxes", "distinct_points", "in_boxes", "near_many", "nearest", "tree_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TILE = 512
"""Number of points per tile: their distances stay in the cache."""
_TREE_COLUMNS = 10
"""With more columns a tree visits nearly all points, and the scan is faster."""
_TREE_WORK = 2_000_000_000
"""With fewer differences the scan is faster than building a tree."""
_PORTION = 200_000_000
"""Number of differences computed, in a fraction of a second, between two checks of the deadline."""
_TREE_PORTION = 500
"""Number of targets looked up in a tree between two checks of the deadline."""


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """For each target the nearest release row, the number of equally near rows, and the distance.

    If time was up, of the targets processed, from the first on.
    """

    row: Ints
    ties: Ints
    distance: Floats
    """Squared."""


def distinct_points(released: Floats) -> tuple[Floats, Ints, Ints]:
    """Distinct rows in order of occurrence, the release rows grouped by them, and where each group starts."""
    shaped = np.ascontiguousarray(released + 0.0)  # -0.0 equals 0.0
    frame = pl.DataFrame({str(axis): shaped[:, axis] for axis in range(shaped.shape[1])}).with_row_index("row")
    rows = frame.group_by(pl.exclude("row"), maintain_order=True).agg("row")["row"]
    order = rows.explode().to_numpy().astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(rows.list.len().to_numpy())]).astype(np.int64)
    return shaped[order[starts[:-1]]], order, starts


def nearest(
    targets: Floats,
    released: Floats,
    draw: np.random.Generator,
    progress: Progress = SILENT,
    title: str = "looking for the nearest rows",
) -> Nearest:
    """The nearest release row of every target by squared Euclidean distance.

    >>> near = nearest(np.array([[0.0], [5.0]]), np.array([[4.0], [1.0], [1.0]]), np.random.default_rng(1))
    >>> near.ties.tolist(), near.distance.tolist(), int(near.row[1])
    ([2, 1], [1.0, 1.0], 0)
    """
    check_deadline(progress)
    distinct, order, starts = distinct_points(released)
    check_deadline(progress)
    seeds = draw.integers(1, 2**62, size=len(targets), dtype=np.int64)
    sizes = np.diff(starts)
    targets = np.ascontiguousarray(targets)
    large = len(targets) * distinct.size > _TREE_WORK
    by_tree = large and distinct.shape[1] <= _TREE_COLUMNS
    tree = tree_of(distinct) if by_tree else None
    moved = in_boxes(distinct) if large and not by_tree else np.arange(len(distinct))
    columns = np.ascontiguousarray(distinct[moved].T)
    boxes = bounding_boxes(columns) if large else _NO_BOXES
    size = _TREE_PORTION if by_tree else max(1, (10 if large else 1) * _PORTION // max(1, distinct.size))
    best, ties = np.empty(len(targets), dtype=np.int64), np.empty(len(targets), dtype=np.int64)
    distance = np.empty(len(targets))
    done = 0
    for part in batches(progress, title, len(targets), size):
        if tree is not None:
            found = _by_tree(tree, targets[part], distinct, columns, sizes, seeds[part])
        else:
            found = _scan(targets[part], columns, sizes[moved], seeds[part], boxes)
            found = moved[found[0]], found[1], found[2]
        best[part], ties[part], distance[part] = found
        done = part.stop
    chance = draw.random(len(targets))[:done]
    best, ties, distance = best[:done], ties[:done], distance[:done]
    row = order[starts[best] + (chance * sizes[best]).astype(np.int64)]
    return Nearest(row=row, ties=ties, distance=distance)


def near_many(targets: Floats, points: Floats, count: int, progress: Progress, title: str) -> Ints:
    """The ``count`` nearest points of each target, nearest first; of the targets processed in time."""
    count = min(count, len(points))
    check_deadline(progress)
    tree = tree_of(points)
    found = np.empty((len(targets), count), dtype=np.int64)
    done = 0
    for part in batches(progress, title, len(targets), 100):
        found[part] = tree.query(targets[part], k=count, workers=-1)[1].reshape(-1, count)
        done = part.stop
    return found[:done]


def tree_of(points: Floats) -> Any:
    """A KD-tree of the points."""
    from scipy.spatial import cKDTree

    return cKDTree(points)


def _by_tree(
    tree: Any, targets: Floats, distinct: Floats, columns: Floats, sizes: Ints, seeds: Ints
) -> tuple[Ints, Ints, Floats]:
    """Nearest points by a KD-tree; targets whose two nearest points are equally far are scanned to count the ties."""
    _, near = tree.query(targets, k=2, workers=-1)
    gaps = [_squared(targets, distinct[near[:, place]]) for place in (0, 1)]
    best = np.where(gaps[0] <= gaps[1], near[:, 0], near[:, 1]).astype(np.int64)
    distance = np.minimum(gaps[0], gaps[1])
    ties = sizes[best].copy()
    # The tree rounds differently from the scan, so nearly equal distances are scanned as well.
    close = np.flatnonzero(np.abs(gaps[0] - gaps[1]) <= 1e-9 * np.maximum(gaps[0], gaps[1]))
    if len(close):
        found = _scan(np.ascontiguousarray(targets[close]), columns, sizes, seeds[close], _NO_BOXES)
        best[close], ties[close], distance[close] = found
    return best, ties, distance


def in_boxes(points: Floats) -> Ints:
    """An order in which every tile of points has a small bounding box: repeated halving along the widest column."""
    order = np.arange(len(points))
    work = [(0, len(points))]
    while work:
        start, stop = work.pop()
        tiles = -(-(stop - start) // TILE)
        if tiles < 2:
            continue
        part = order[start:stop]
        some = points[part[:: max(1, len(part) // 1000)]]
        level = points[part, int(np.argmax(np.ptp(some, axis=0)))]
        middle = (tiles // 2) * TILE
        order[start:stop] = part[np.argpartition(level, middle)]
        work += [(start, start + middle), (start + middle, stop)]
    return order


def bounding_boxes(columns: Floats) -> Floats:
    """The minimum and maximum of each column in each tile."""
    edges = np.arange(0, columns.shape[1], TILE)
    return np.stack([np.minimum.reduceat(columns, edges, axis=1), np.maximum.reduceat(columns, edges, axis=1)])


_NO_BOXES = np.empty((2, 0, 0))


def _squared(left: Floats, right: Floats) -> Floats:
    total = np.zeros(len(left))
    for axis in range(left.shape[1]):
        gap = right[:, axis] - left[:, axis]
        total += gap * gap
    return total


@njit(cache=True, parallel=True)
def _scan(
    targets: Floats, points: Floats, sizes: Ints, seeds: Ints, boxes: Floats
) -> tuple[Ints, Ints, Floats]:  # pragma: no cover - compiled
    """Scan tile by tile; with boxes, the nearest one first, skipping those farther than the best point."""
    width, count = points.shape
    tiles = (count + TILE - 1) // TILE
    boxed = boxes.shape[2] == tiles
    best = np.zeros(len(targets), dtype=np.int64)
    ties = np.zeros(len(targets), dtype=np.int64)
    distance = np.empty(len(targets))
    for index in prange(len(targets)):
        state = np.uint64(seeds[index])
        total = np.empty(TILE)
        lowest = np.inf
        away = np.zeros(tiles)
        if boxed:
            for axis in range(width):
                value = targets[index, axis]
                for tile in range(tiles):
                    gap = max(boxes[0, axis, tile] - value, value - boxes[1, axis, tile], 0.0)
                    away[tile] += gap * gap
        first = int(np.argmin(away))
        for turn in range(tiles + 1):
            # The nearest tile comes first and is skipped in its own turn.
            tile = first if turn == 0 else turn - 1
            if (turn > 0 and tile == first) or away[tile] * (1 - 1e-12) > lowest:
                continue
            start = tile * TILE
            stop = min(count, start + TILE)
            length = stop - start
            for place in range(length):
                total[place] = 0.0
            for axis in range(width):
                value = targets[index, axis]
                for place in range(length):
                    gap = points[axis, start + place] - value
                    total[place] += gap * gap
            for place in range(length):
                if total[place] <= lowest:
                    if total[place] < lowest:
                        lowest = total[place]
                        best[index] = start + place
                        ties[index] = sizes[start + place]
                    else:
                        # Reservoir sampling over rows: each of the equally near rows is equally likely to be chosen.
                        ties[index] += sizes[start + place]
                        state, chance = next_random(state)
                        if chance * ties[index] < sizes[start + place]:
                            best[index] = start + place
        distance[index] = lowest
    return best, ties, distance
