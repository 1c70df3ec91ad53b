"""Selection of items whose combinations are shared by at least k units (the search of k^m-anonymity).

Items are taken from the most to the least frequent. An item is kept if every set of at most m items, made of it and of
items kept before, occurs in no unit or in at least k. The kept items therefore satisfy k^m-anonymity, and no other item
could be added: the selection is maximal. Removing an item changes the support of no set without it, so one pass is
enough.

References: Terrovitis, M., Mamoulis, N., Kalnis, P. (2008). Privacy-preserving anonymization of set-valued data.
doi:10.14778/1453856.1453874
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints, Mask
from sfumato.events.item_sets import ItemSets
from sfumato.kernels import kernel
from sfumato.progress import SILENT, Progress

_BATCH = 1 << 21
"""Positions that are processed between two ticks of progress."""


def supported_items(sets: ItemSets, *, k: int, m: int, progress: Progress = SILENT) -> Mask:
    """For each rank whether the item is kept."""
    keep = np.zeros(sets.items, dtype=np.bool_)
    count = np.zeros(sets.items, dtype=np.int64)
    offset = np.zeros(sets.items, dtype=np.int64)
    touched = np.zeros(sets.items, dtype=np.int64)
    first = 0
    with progress.task("item sets", sets.items) as tick:
        while first < sets.items:
            last = int(np.searchsorted(sets.item_starts, sets.item_starts[first] + _BATCH, side="right")) - 1
            last = min(max(first + 1, last), sets.items)
            _select(
                sets.starts, sets.ranks, sets.owner, sets.item_starts, sets.places, first, last, m, k,
                keep, count, offset, touched,
            )  # fmt: skip
            tick(last - first)
            first = last
    return keep


@kernel()
def _select(
    starts: Ints,
    ranks: npt.NDArray[np.int32],
    owner: npt.NDArray[np.int32],
    item_starts: Ints,
    places: Ints,
    first: int,
    last: int,
    m: int,
    k: int,
    keep: Mask,
    count: Ints,
    offset: Ints,
    touched: Ints,
) -> None:  # pragma: no cover - compiled
    for item in range(first, last):
        low, high = item_starts[item], item_starts[item + 1]
        keep[item] = high - low >= k and _supported(
            starts, ranks, owner, places[low:high], m, k, keep, count, offset, touched
        )


@kernel()
def _supported(
    starts: Ints,
    ranks: npt.NDArray[np.int32],
    owner: npt.NDArray[np.int32],
    own: Ints,
    m: int,
    k: int,
    keep: Mask,
    count: Ints,
    offset: Ints,
    touched: Ints,
) -> bool:  # pragma: no cover - compiled
    """Whether all sets of an item with kept, more frequent ones have at least k units. ``own``: its positions."""
    ends = own
    begins = starts[owner[own]]
    bounds = np.array([0, len(own)])
    for size in range(2, m + 1):
        total = 0
        if size < m:
            for entry in range(len(ends)):
                total += ends[entry] - begins[entry]
        next_ends, next_begins = np.empty(total, np.int64), np.empty(total, np.int64)
        next_bounds = np.empty(total + 1, np.int64)
        next_bounds[0] = 0
        groups, filled = 0, 0
        # one group per set of the last size: the units that have it, and where the rest of their items ends
        for group in range(len(bounds) - 1):
            found = 0
            for entry in range(bounds[group], bounds[group + 1]):
                for place in range(begins[entry], ends[entry]):
                    other = ranks[place]
                    if keep[other]:
                        if count[other] == 0:
                            touched[found] = other
                            found += 1
                        count[other] += 1
            rare = False
            for index in range(found):
                rare = rare or count[touched[index]] < k
                if size < m:
                    offset[touched[index]] = filled
                    filled += count[touched[index]]
                    groups += 1
                    next_bounds[groups] = filled
            if size < m and not rare:
                for entry in range(bounds[group], bounds[group + 1]):
                    for place in range(begins[entry], ends[entry]):
                        other = ranks[place]
                        if keep[other]:
                            next_ends[offset[other]] = place
                            next_begins[offset[other]] = begins[entry]
                            offset[other] += 1
            for index in range(found):
                count[touched[index]] = 0
            if rare:
                return False
        ends, begins, bounds = next_ends[:filled], next_begins[:filled], next_bounds[: groups + 1]
    return True
