"""Common events of groups of units: every unit of a group gets the same items (the aggregation of microaggregation)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.dataset.bound_hierarchy import Codes

_BATCH = 1 << 22
"""Events that are aggregated at a time; a larger group is a batch of its own."""


def common_events(
    units: Ints, groups: Ints, leaf: Codes, leaves: int, columns: Sequence[Floats] = ()
) -> tuple[Ints, Codes, list[Floats]]:
    """Rows to keep, as many for every unit of a group, the item that each of them gets, and means of the columns.

    ``units`` and ``leaf`` are the unit and the item of every event, ``groups`` the group of each unit. The items of a
    group are those of its events, in proportion to their frequency, as many as its least active unit has. A mean is
    over the events of the group with that item; NaN is missing.

    >>> rows, items, _ = common_events(np.array([0, 0, 1]), np.array([0, 0]), np.array([4, 4, 4], np.int32), 5)
    >>> rows.tolist(), items.tolist()
    ([0, 2], [4, 4])
    """
    order = np.argsort(groups[units] * len(groups) + units, kind="stable")
    taken, chosen = np.empty(len(units), dtype=np.int64), np.empty(len(units), dtype=np.int32)
    means = [np.empty(len(units)) for _ in columns]
    filled = 0
    for rows in _batches(order, units, groups):
        kept, items, found = _of_batch(units[rows], groups, leaf[rows], leaves, [one[rows] for one in columns])
        place = slice(filled, filled + len(kept))
        taken[place], chosen[place] = rows[kept], items
        for mean, own in zip(means, found, strict=True):
            mean[place] = own
        filled = place.stop
    back = np.argsort(taken[:filled], kind="stable")  # in the order of the rows
    return taken[back], chosen[back], [mean[back] for mean in means]


def _batches(order: Ints, units: Ints, groups: Ints) -> Iterator[Ints]:
    """Rows of whole groups, in order of group and unit."""
    ends = np.cumsum(np.bincount(groups, weights=np.bincount(units, minlength=len(groups))).astype(np.int64))
    start = 0
    while start < len(order):
        last = max(np.searchsorted(ends, start + _BATCH, side="right") - 1, np.searchsorted(ends, start, side="right"))
        yield order[start : ends[last]]
        start = int(ends[last])


def _of_batch(
    units: Ints, groups: Ints, leaf: Codes, leaves: int, columns: list[Floats]
) -> tuple[Ints, Ints, list[Floats]]:
    """The same for rows in order of group and unit."""
    group = _numbered(groups[units])
    unit = _numbered(units)
    size = np.bincount(unit)
    first = np.flatnonzero(np.diff(unit, prepend=-1))  # first row of each unit
    own = group[first]
    length = np.minimum.reduceat(size, np.flatnonzero(np.diff(own, prepend=-1)))  # events of the least active unit
    pairs, pair, count = np.unique(group * leaves + leaf, return_inverse=True, return_counts=True)
    of = pairs // leaves
    quota = count * (length / np.bincount(group))[of]
    slots = np.floor(quota).astype(np.int64)
    left = length - np.bincount(of, weights=slots, minlength=len(length)).round().astype(np.int64)
    # largest remainders first; equal ones by the number of the item, which is the same for the whole group
    ranked = np.lexsort((pairs, -(quota - slots), of))
    position = np.empty(len(pairs), dtype=np.int64)
    position[ranked] = np.arange(len(pairs)) - np.searchsorted(of, of)[ranked]
    slots += position < left[of]
    events = np.repeat(np.arange(len(pairs)), slots)  # the events of all groups, one after the other
    begins = np.concatenate([[0], np.cumsum(length)])
    rank = np.arange(len(units)) - first[unit]
    kept = np.flatnonzero(rank < length[group])
    chosen = events[begins[group[kept]] + rank[kept]]
    means = []
    for values in columns:
        known = ~np.isnan(values)
        number = np.bincount(pair[known], minlength=len(pairs))
        total = np.bincount(pair[known], weights=values[known], minlength=len(pairs))
        means.append(np.where(number > 0, total / np.maximum(number, 1), np.nan)[chosen])
    return kept, pairs[chosen] % leaves, means


def _numbered(keys: Ints) -> Ints:
    """Consecutive numbers for runs of equal keys."""
    return np.cumsum(np.diff(keys, prepend=keys[:1]) != 0)
