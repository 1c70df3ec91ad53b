"""Earth mover's distance between a class and the reference, for three ground distances."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.schema.hierarchy import BoundHierarchy

__all__ = ["equal_distance", "hierarchical_distance", "ordered_distance"]

Floats = npt.NDArray[np.float64]

_SMALL = 100_000
"""Values times groups up to which a product of matrices is the quickest sum."""


def equal_distance(shares: Floats, reference: Floats) -> Floats:
    """Equal ground distance: half the sum of absolute differences.

    >>> equal_distance(np.array([[1.0, 0.0]]), np.array([0.5, 0.5])).tolist()
    [0.5]
    """
    return np.asarray(np.abs(shares - reference).sum(axis=-1) / 2)


def ordered_distance(shares: Floats, reference: Floats) -> Floats:
    """Ordered ground distance: values at equal steps on a line of length 1.

    >>> ordered_distance(np.array([[1.0, 0.0, 0.0]]), np.array([0.0, 0.0, 1.0])).tolist()
    [1.0]
    """
    steps = max(shares.shape[-1] - 1, 1)
    return np.asarray(np.abs(np.cumsum(shares - reference, axis=-1))[..., :-1].sum(axis=-1) / steps)


def hierarchical_distance(shares: Floats, reference: Floats, hierarchy: BoundHierarchy) -> Floats:
    """Hierarchical ground distance: the level of the lowest common group over the height of the hierarchy.

    Mass is balanced among the children of each group; the rest moves to the parent. The cost of a level is its share of
    the height.
    """
    height = max(hierarchy.height, 1)
    surplus = shares - reference
    cost = np.zeros(surplus.shape[:-1])
    codes = hierarchy.levels[0].codes
    extra = surplus
    for number in range(1, hierarchy.height + 1):
        level = hierarchy.levels[number]
        parent = np.zeros(extra.shape[-1], dtype=np.int64)
        parent[codes] = level.codes
        up = _by_group(np.maximum(extra, 0.0), parent, level.size)
        down = _by_group(np.maximum(-extra, 0.0), parent, level.size)
        cost += np.minimum(up, down).sum(axis=-1) * number / height
        extra, codes = up - down, level.codes
    # without a common root the rest moves all the way
    return np.asarray(cost + np.maximum(extra, 0.0).sum(axis=-1))


def _by_group(values: Floats, group: npt.NDArray[np.int64], count: int) -> Floats:
    """Sums of columns by group."""
    if values.shape[-1] * count <= _SMALL:
        member = np.zeros((values.shape[-1], count))
        member[np.arange(values.shape[-1]), group] = 1.0
        return values @ member
    out = np.zeros((*values.shape[:-1], count))
    np.add.at(out.T, group, values.T)
    return out
