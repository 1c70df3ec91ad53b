"""Exact nearest neighbours by squared Euclidean distance, in a tree of bounding boxes.

Rows are halved along their widest column until at most 64 are left. A search descends into the nearer half first and
skips every box that is farther than the rows found so far. Boxes of a few columns, or of columns that must agree,
exclude most rows; with many columns nearly all rows are compared, as in a plain scan. The result is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.best_row import next_random
from sfumato.deadline import batches, check_deadline
from sfumato.kernels import kernel
from sfumato.progress import SILENT, Progress
from sfumato.threads import map_slices

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LEAF = 64
"""Maximum number of points in the smallest boxes: their distances are computed together."""
_PORTION = 200_000_000
"""Number of differences computed, in a fraction of a second, between two checks of the deadline."""
_SAMPLE = 200
"""Number of points from which it is decided along which column a box is halved."""
_DEEPEST = 64
"""Maximum number of boxes that wait in a search: one per level of the tree."""


@dataclass(frozen=True, kw_only=True)
class BoxTree:
    """Points in a balanced binary tree. The children of box ``i`` are the boxes ``2 i + 1`` and ``2 i + 2``."""

    order: Ints
    """The points, leaf by leaf."""
    edges: Ints
    """Where each leaf starts in ``order``."""
    values: Floats
    """The coordinates, leaf by leaf, within a leaf column by column."""
    boxes: Floats
    """For each box the minimum and the maximum of every column."""

    @classmethod
    def of(cls, points: Floats) -> BoxTree:
        count = len(points)
        depth = max(0, int(np.ceil(np.log2(max(1, count) / _LEAF))))
        leaves = 1 << depth
        edges = (np.arange(leaves + 1) * count) // leaves
        points = np.ascontiguousarray(points)
        order = _halved(points, edges)
        values, boxes = _boxed(points, order, edges)
        return cls(order=order, edges=edges, values=values, boxes=boxes)

    def near(
        self, targets: Floats, count: int, progress: Progress = SILENT, title: str = "looking for near rows"
    ) -> tuple[Ints, Floats]:
        """The ``count`` nearest points of each target reached in time, nearest first, and their squared distances."""
        count = min(count, len(self.order))
        rows = np.empty((len(targets), count), dtype=np.int64)
        distance = np.empty((len(targets), count))

        def search(part: slice) -> None:
            rows[part], distance[part] = _near(targets[part], self.values, self.edges, self.boxes, count)

        done = self._in_time(search, targets, progress, title)
        return self.order[rows[:done]], distance[:done]

    def nearest(
        self, targets: Floats, sizes: Ints, seeds: Ints, progress: Progress, title: str
    ) -> tuple[Ints, Ints, Floats]:
        """The nearest point of each target reached in time, the rows at that distance, and the squared distance.

        Point ``i`` stands for ``sizes[i]`` rows. Of several nearest points one is drawn, in proportion to its rows.
        """
        best, ties = np.empty(len(targets), dtype=np.int64), np.empty(len(targets), dtype=np.int64)
        distance = np.empty(len(targets))
        own = sizes[self.order]

        def search(part: slice) -> None:
            best[part], ties[part], distance[part] = _nearest(
                targets[part], self.values, self.edges, self.boxes, own, seeds[part]
            )

        done = self._in_time(search, targets, progress, title)
        return self.order[best[:done]], ties[:done], distance[:done]

    def _in_time(self, search: Callable[[slice], None], targets: Floats, progress: Progress, title: str) -> int:
        done = 0
        for part in batches(progress, title, len(targets), max(100, _PORTION // max(1, self.values.size))):
            map_slices(search, part)
            done = part.stop
        return done


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
    """The nearest release row of every target by squared Euclidean distance, with ties broken at random.

    >>> near = nearest(np.array([[0.0], [5.0]]), np.array([[4.0], [1.0], [1.0]]), np.random.default_rng(1))
    >>> near.ties.tolist(), near.distance.tolist(), int(near.row[1])
    ([2, 1], [1.0, 1.0], 0)
    """
    check_deadline(progress)
    distinct, order, starts = distinct_points(released)
    check_deadline(progress)
    seeds = draw.integers(1, 2**62, size=len(targets), dtype=np.int64)
    sizes = np.diff(starts)
    best, ties, distance = BoxTree.of(distinct).nearest(targets, sizes, seeds, progress, title)
    chance = draw.random(len(targets))[: len(best)]
    row = order[starts[best] + (chance * sizes[best]).astype(np.int64)]
    return Nearest(row=row, ties=ties, distance=distance)


def squared_distance(left: Floats, right: Floats) -> Floats:
    """The squared distances of pairs of points, rounded as those of the search are."""
    total = np.zeros(len(left))
    for axis in range(left.shape[1]):
        gap = right[:, axis] - left[:, axis]
        total += gap * gap
    return total


@kernel()
def _halved(points: Floats, edges: Ints) -> Ints:  # pragma: no cover - compiled
    """The order of the points leaf by leaf: every run of leaves is halved along the column that varies most."""
    order = np.arange(len(points))
    level = np.empty(len(points))
    leaves = len(edges) - 1
    while leaves > 1:
        for first in range(0, len(edges) - 1, leaves):
            start, middle, stop = edges[first], edges[first + leaves // 2], edges[first + leaves]
            widest, most = 0, -1.0
            step = max(1, (stop - start) // _SAMPLE)
            for axis in range(points.shape[1]):
                total = square = 0.0
                origin = points[order[start], axis]
                for place in range(start, stop, step):
                    value = points[order[place], axis] - origin
                    total += value
                    square += value * value
                spread = square - total * total / ((stop - start + step - 1) // step)
                if spread > most:
                    widest, most = axis, spread
            for place in range(start, stop):
                level[place] = points[order[place], widest]
            _select(level, order, start, stop, middle)
        leaves //= 2
    return order


@kernel()
def _select(level: Floats, order: Ints, start: int, stop: int, middle: int) -> None:  # pragma: no cover - compiled
    """Quickselect: rearrange both arrays so that nothing before ``middle`` is larger than anything from it on."""
    low, high = start, stop - 1
    while low < high:
        pivot = level[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while level[left] < pivot:
                left += 1
            while level[right] > pivot:
                right -= 1
            if left <= right:
                level[left], level[right] = level[right], level[left]
                order[left], order[right] = order[right], order[left]
                left += 1
                right -= 1
        if middle <= right:
            high = right
        elif middle >= left:
            low = left
        else:
            return


def _boxed(points: Floats, order: Ints, edges: Ints) -> tuple[Floats, Floats]:
    """The coordinates leaf by leaf, and the boxes: those of the leaves from their points, the others from two boxes."""
    sorted_points = points[order]
    values = np.concatenate([leaf.ravel(order="F") for leaf in np.split(sorted_points, edges[1:-1])])
    leaves = len(edges) - 1
    boxes = np.empty((2 * leaves - 1, 2, points.shape[1]))
    if len(points):
        boxes[leaves - 1 :, 0] = np.minimum.reduceat(sorted_points, edges[:-1], axis=0)
        boxes[leaves - 1 :, 1] = np.maximum.reduceat(sorted_points, edges[:-1], axis=0)
    while leaves > 1:
        children, parents = boxes[leaves - 1 : 2 * leaves - 1], boxes[leaves // 2 - 1 : leaves - 1]
        parents[:, 0] = np.minimum(children[::2, 0], children[1::2, 0])
        parents[:, 1] = np.maximum(children[::2, 1], children[1::2, 1])
        leaves //= 2
    return values, boxes


@kernel()
def _gap(target: Floats, box: Floats) -> float:  # pragma: no cover - compiled
    """The squared distance of a target from a box, rounded down."""
    total = 0.0
    for axis in range(len(target)):
        gap = max(box[0, axis] - target[axis], target[axis] - box[1, axis], 0.0)
        total += gap * gap
    return total * (1 - 1e-12)


@kernel()
def _descend(
    target: Floats, boxes: Floats, waiting: Ints, away: Floats, count: int, far: float
) -> tuple[int, int]:  # pragma: no cover - compiled
    """The next leaf to compare, -1 if there is none within ``far``, and the number of boxes that still wait."""
    leaves = (len(boxes) + 1) // 2
    while count > 0:
        count -= 1
        if away[count] > far:
            continue
        box = waiting[count]
        if box >= leaves - 1:
            return box - (leaves - 1), count
        left, right = 2 * box + 1, 2 * box + 2
        to_left, to_right = _gap(target, boxes[left]), _gap(target, boxes[right])
        if to_left < to_right:  # the nearer one is compared first
            left, right, to_left, to_right = right, left, to_right, to_left
        waiting[count], away[count] = left, to_left
        waiting[count + 1], away[count + 1] = right, to_right
        count += 2
    return -1, 0


@kernel()
def _distances(
    total: Floats, target: Floats, values: Floats, start: int, length: int
) -> None:  # pragma: no cover - compiled
    """The squared distances of a target from the points of a leaf."""
    width = len(target)
    total[:length] = 0.0
    for axis in range(width):
        value = target[axis]
        part = values[start * width + axis * length : start * width + (axis + 1) * length]
        for place in range(length):
            gap = part[place] - value
            total[place] += gap * gap


@kernel(nogil=True)
def _near(
    targets: Floats, values: Floats, edges: Ints, boxes: Floats, wanted: int
) -> tuple[Ints, Floats]:  # pragma: no cover - compiled
    rows = np.zeros((len(targets), wanted), dtype=np.int64)
    distance = np.full((len(targets), wanted), np.inf)
    for index in range(len(targets)):
        target = targets[index].copy()
        total = np.empty(_LEAF)
        waiting, away = np.zeros(_DEEPEST, dtype=np.int64), np.zeros(_DEEPEST)
        kept, row = distance[index], rows[index]
        leaf, count = _descend(target, boxes, waiting, away, 1, np.inf)
        while leaf >= 0:
            start, length = edges[leaf], edges[leaf + 1] - edges[leaf]
            _distances(total, target, values, start, length)
            for place in range(length):
                if total[place] < kept[wanted - 1]:
                    slot = wanted - 1
                    while slot > 0 and kept[slot - 1] > total[place]:
                        kept[slot] = kept[slot - 1]
                        row[slot] = row[slot - 1]
                        slot -= 1
                    kept[slot] = total[place]
                    row[slot] = start + place
            leaf, count = _descend(target, boxes, waiting, away, count, kept[wanted - 1])
    return rows, distance


@kernel(nogil=True)
def _nearest(
    targets: Floats, values: Floats, edges: Ints, boxes: Floats, sizes: Ints, seeds: Ints
) -> tuple[Ints, Ints, Floats]:  # pragma: no cover - compiled
    best = np.zeros(len(targets), dtype=np.int64)
    ties = np.zeros(len(targets), dtype=np.int64)
    distance = np.empty(len(targets))
    for index in range(len(targets)):
        target = targets[index].copy()
        state = np.uint64(seeds[index])
        total = np.empty(_LEAF)
        waiting, away = np.zeros(_DEEPEST, dtype=np.int64), np.zeros(_DEEPEST)
        lowest = np.inf
        leaf, count = _descend(target, boxes, waiting, away, 1, np.inf)
        while leaf >= 0:
            start, length = edges[leaf], edges[leaf + 1] - edges[leaf]
            _distances(total, target, values, start, length)
            for place in range(length):
                if total[place] < lowest:
                    lowest = total[place]
                    best[index] = start + place
                    ties[index] = sizes[start + place]
                elif total[place] == lowest:
                    # Reservoir sampling over rows: each of the equally near rows is equally likely to be chosen.
                    ties[index] += sizes[start + place]
                    state, chance = next_random(state)
                    if chance * ties[index] < sizes[start + place]:
                        best[index] = start + place
            leaf, count = _descend(target, boxes, waiting, away, count, lowest)
        distance[index] = lowest
    return best, ties, distance
