"""Earth mover's distance between a class and the reference, for three ground distances.

Each is half the L1 distance between linear images of the two distributions: the shares themselves (equal distance),
sums from the left and from the right (ordered), or sums by group at every level below the root (hierarchical).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sfumato.schema.hierarchy import BoundHierarchy

__all__ = ["half_distance", "hierarchical_image", "most_rows_within", "ordered_image"]

Floats = npt.NDArray[np.float64]
Image = Callable[[Floats], Floats]


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


def hierarchical_image(hierarchy: BoundHierarchy) -> Image:
    """Hierarchical ground distance: the level of the lowest common group over the height of the hierarchy.

    The mass that crosses the border of a group at level l is joined above l, so it costs 1 / height for every level at
    which the two groups differ.
    """
    height = max(hierarchy.height, 1)
    leaves, starts, at = [], [], 0
    for level in hierarchy.levels[:height]:
        leaves.append(np.argsort(level.codes, kind="stable"))
        occupied = np.bincount(level.codes, minlength=level.size)
        starts.append(at + np.cumsum(occupied)[occupied > 0] - occupied[occupied > 0])
        at += len(level.codes)
    order, firsts = np.concatenate(leaves), np.concatenate(starts)
    return lambda shares: np.asarray(np.add.reduceat(shares[..., order], firsts, axis=-1) / height)


def most_rows_within(counts: Floats, target: Floats, distance: float) -> Floats:
    """An upper bound of the rows of each class that can be kept so that their distance to the reference is at most
    ``distance``.

    ``counts`` are images of the classes' counts, ``target`` the image of the reference q. Of x kept rows at most n lie
    in a group of n, so the group falls short of the reference by at least q - n/x. The sum over groups of
    max(0, qx - n) is at most ``distance`` times x, whichever rows are kept.

    >>> most_rows_within(np.array([[90.0, 10.0]]), np.array([0.5, 0.5]), 0.1).round().tolist()
    [25.0]
    """
    ratio = np.divide(counts, target, out=np.full(counts.shape, np.inf), where=target > 0)
    order = np.argsort(ratio, axis=-1)
    above = np.cumsum(target[order], axis=-1) - distance
    rows = np.cumsum(np.take_along_axis(counts, order, axis=-1), axis=-1)
    most = np.divide(rows, above, out=np.full(counts.shape, np.inf), where=above > 0)
    return np.asarray(most.min(axis=-1, initial=np.inf) * (1 + 1e-9))
