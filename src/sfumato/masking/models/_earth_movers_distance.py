"""Earth mover's distance between a class and the reference, for three ground distances.

Each is half the L1 distance between linear images of the two distributions: the shares themselves (equal distance),
sums from the left and from the right (ordered), or sums by group at every level below the root (hierarchical).
"""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.dataset.hierarchy import BoundHierarchy


def half_distance(image: Floats, target: Floats) -> Floats:
    """Half the sum of absolute differences, by class.

    >>> half_distance(np.array([[1.0, 0.0]]), np.array([0.5, 0.5])).tolist()
    [0.5]
    """
    return np.asarray(np.abs(image - target).sum(axis=-1) / 2)


def ordered_image(shares: Floats) -> Floats:
    """Ordered ground distance: values at equal steps on a line of length 1.

    >>> half_distance(ordered_image(np.array([[1.0, 0.0, 0.0]])), ordered_image(np.array([0.0, 0.0, 1.0]))).tolist()
    [1.0]
    """
    left = np.cumsum(shares, axis=-1)
    both = np.concatenate([left[..., :-1], left[..., -1:] - left[..., :-1]], axis=-1)
    return np.asarray(both / max(shares.shape[-1] - 1, 1))


def hierarchical_groups(hierarchy: BoundHierarchy) -> tuple[Ints, Ints]:
    """Hierarchical ground distance: the level of the lowest common group over the height of the hierarchy.

    The mass that crosses the border of a group at level l is joined above l, so it costs 1 / height for every level at
    which the two groups differ. Returns the leaves group by group, and where each group starts; the last start is the
    end.
    """
    leaves, starts, at = [], [], 0
    for level in hierarchy.levels[: max(hierarchy.height, 1)]:
        leaves.append(np.argsort(level.codes, kind="stable"))
        occupied = np.bincount(level.codes, minlength=level.size)
        starts.append(at + np.cumsum(occupied)[occupied > 0] - occupied[occupied > 0])
        at += len(level.codes)
    return np.concatenate(leaves).astype(np.int64), np.append(np.concatenate(starts), at).astype(np.int64)
