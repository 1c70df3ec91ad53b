"""Compiled distances of classes to the reference, and bounds on the rows that can be kept within a distance."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import kernel


@kernel(nogil=True, boundscheck=False)
def distances_by_groups(counts, leaves, starts, height, target):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Half the sum of absolute differences between the shares of groups of values and ``target``, by class.

    Group g has the values ``leaves[starts[g]:starts[g + 1]]``; its share is divided by ``height``.
    """
    distance = np.empty(counts.shape[0])
    for c in range(counts.shape[0]):
        rows = 0
        for value in range(counts.shape[1]):
            rows += counts[c, value]
        total = 0.0
        for g in range(target.size):
            here = 0
            for place in range(starts[g], starts[g + 1]):
                here += counts[c, leaves[place]]
            total += abs(here / max(rows, 1) / height - target[g])
        distance[c] = total / 2
    return distance


@kernel(nogil=True, boundscheck=False)
def images_by_groups(counts, chosen, leaves, starts, height):  # type: ignore[no-untyped-def]  # pragma: no cover
    """The counts of groups of values, divided by ``height``, of the chosen classes."""
    image = np.empty((chosen.size, starts.size - 1))
    for number in range(chosen.size):
        for g in range(starts.size - 1):
            here = 0
            for place in range(starts[g], starts[g + 1]):
                here += counts[chosen[number], leaves[place]]
            image[number, g] = here / height
    return image


@kernel(nogil=True, boundscheck=False)
def most_rows_within(counts, target, distance, sizes):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """An upper bound of the rows of each class that can be kept so that their distance to the reference is at most
    ``distance``.

    ``counts`` are images of the classes' counts, ``target`` the image of the reference q. Of x kept rows at most n lie
    in a group of n, so the group falls short of the reference by at least q - n/x. The sum over groups of
    max(0, qx - n) is therefore at most ``distance`` times x, whichever rows are kept. The largest such x is found by
    Newton's method from above; the function is convex and piecewise linear, so every step is a valid bound.
    """
    most = np.empty(counts.shape[0])
    for c in range(counts.shape[0]):
        x = float(sizes[c])
        while x > 0:
            share = -distance
            rows = 0.0
            for g in range(target.size):
                if target[g] * x > counts[c, g]:
                    share += target[g]
                    rows += counts[c, g]
            if share <= 0 or rows >= share * x * (1 - 1e-12):
                break
            x = rows / share
        most[c] = x * (1 + 1e-9)
    return most
