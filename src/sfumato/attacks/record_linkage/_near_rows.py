"""The nearest release rows of each target, and the assignment of targets to different rows among them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.attacks.nearest_neighbours import BoxTree
from sfumato.attacks.record_linkage._unchanged_columns import apart
from sfumato.deadline import check_deadline
from sfumato.progress import Progress

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def near_rows(
    targets: Floats,
    released: Floats,
    count: int,
    draw: np.random.Generator,
    progress: Progress,
    block: tuple[Ints, Ints] | None = None,
) -> tuple[Ints, Floats]:
    """The ``count`` nearest rows of each target that was reached in time, nearest first, and their squared distances.

    Rows at the same distance are taken in random order. ``block`` holds the block of each target and of each row; a row
    of another block is given as -1 and infinitely far.
    """
    check_deadline(progress)
    mixed = draw.permutation(len(released))
    if block is None or (block[1] == block[1][0]).all():
        rows, distance = BoxTree.of(released[mixed]).near(targets, count, progress)
        return mixed[rows], distance
    tree = BoxTree.of(apart(released, block[1])[mixed])
    check_deadline(progress)
    rows, distance = tree.near(apart(targets, block[0]), count, progress)
    rows = mixed[rows]
    same = block[1][rows] == block[0][: len(rows), None]
    return np.where(same, rows, -1), np.where(same, distance, np.inf)


def different_rows(near: Ints, cost: Floats, draw: np.random.Generator) -> Ints:
    """A different row for each target at minimum total cost; its nearest one if all its near rows went to others.

    Costs are ascending; a row at infinite cost cannot be given.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    people = len(near)
    person, place = np.nonzero(np.isfinite(cost))
    if not len(person):
        return near[:, 0]
    # Every target has a private dummy row, so that a full matching exists. Costs
    # start at one, because a sparse matrix has no entries of zero. Ties are broken at random.
    positive = cost[person, place] - cost[person, 0] + 1.0 + 1e-9 * draw.random(len(person))
    used, column = np.unique(near[person, place], return_inverse=True)
    pairs = csr_array(
        (
            np.concatenate([positive, positive.max() + np.ones(people)]),
            (np.concatenate([person, np.arange(people)]), np.concatenate([column, len(used) + np.arange(people)])),
        ),
        shape=(people, len(used) + people),
    )
    taken = np.asarray(min_weight_full_bipartite_matching(pairs)[1], dtype=np.int64)
    found = np.append(used, np.full(people, -1))[taken]
    result: Ints = np.where(found >= 0, found, near[:, 0])
    return result
