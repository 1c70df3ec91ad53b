"""Selection of items without confident rules about sensitive ones (the search of rho-uncertainty).

Sensitive items are ranked first, then items from the most to the least frequent. An item is kept if no rule "who has
these at most m items has this sensitive one" that contains it, and otherwise only items kept before, has a confidence
of rho or more. Removing an item changes the support of no set without it, so one pass is enough.

References: Cao, J., Karras, P., Raïssi, C., Tan, K.-L. (2010). rho-uncertainty: inference-proof transaction
anonymization. doi:10.14778/1920841.1920971
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from sfumato.arrays import Ints, Mask
from sfumato.events.item_sets import ItemSets
from sfumato.kernels import kernel


def harmless_items(sets: ItemSets, sensitive: Sequence[int], *, rho: Fraction, m: int, people: int) -> Mask:
    """For each rank whether the item is kept.

    ``sensitive`` are item codes. ``people`` is the number of units that the release will have, at least.
    """
    # sensitive items get the first ranks
    rank = sets.rank_of.copy()
    order = np.argsort([(code not in set(sensitive)) * len(rank) + rank[code] for code in range(len(rank))])
    rank_of = np.empty(len(rank), dtype=np.int64)
    rank_of[order] = np.arange(len(rank))
    item_of = np.argsort(sets.rank_of)
    moved = rank_of[item_of[sets.ranks]]
    key = np.sort(sets.owner.astype(np.int64) * len(rank) + moved)
    ranks, owner = key % len(rank), key // len(rank)
    places = np.argsort(ranks, kind="stable")
    support = np.bincount(ranks, minlength=len(rank))
    item_starts = np.concatenate([[0], np.cumsum(support)])
    keep = np.zeros(len(rank), dtype=np.bool_)
    secret = len(set(sensitive))
    keep[:secret] = _harmless_secrets(ranks, owner, places, item_starts, secret, sets.units, people, rho, m)
    count = np.zeros(max(1, secret), dtype=np.int64)
    for item in range(secret, len(rank)):
        own = places[item_starts[item] : item_starts[item + 1]]
        keep[item] = _harmless(
            sets.starts, ranks, owner, own, item, m, secret, rho.numerator, rho.denominator, keep, count
        )
    return keep[rank_of][item_of]


def _harmless_secrets(
    ranks: Ints, owner: Ints, places: Ints, item_starts: Ints, secret: int, units: int, people: int, rho: Fraction,
    m: int,
) -> list[bool]:  # fmt: skip
    """Which sensitive items are kept, judged by rules among sensitive items alone."""
    holders = []
    for item in range(secret):
        held = np.zeros(units, dtype=np.uint8)
        held[owner[places[item_starts[item] : item_starts[item + 1]]]] = 1
        holders.append(int.from_bytes(np.packbits(held).tobytes(), "big"))
    kept: list[int] = []
    for new in range(secret):
        known = [*kept, new]
        rules = (
            (chosen, about)
            for size in range(m + 1)
            for chosen in combinations(known, size)
            for about in known
            if about not in chosen and new in (*chosen, about)
        )
        if all(_confidence(chosen, about, holders, people) < rho for chosen, about in rules):
            kept.append(new)
    return [item in kept for item in range(secret)]


def _confidence(chosen: tuple[int, ...], about: int, holders: list[int], people: int) -> Fraction:
    """Share of the people with the chosen items, or of all, who have the item in question."""
    if not chosen:
        return Fraction(holders[about].bit_count(), people)
    having = holders[chosen[0]]
    for item in chosen[1:]:
        having &= holders[item]
    total = having.bit_count()
    return Fraction((having & holders[about]).bit_count(), total) if total else Fraction(0)


@kernel()
def _harmless(
    starts: Ints,
    ranks: Ints,
    owner: Ints,
    own: Ints,
    item: int,
    m: int,
    secret: int,
    top: int,
    bottom: int,
    keep: Mask,
    count: Ints,
) -> bool:  # pragma: no cover - compiled
    """Whether no rule whose known items are this one and kept, earlier ones has a confidence of top / bottom."""
    # Depth by depth over the sets of known items, each enumerated once: a set grows only by kept items of lower rank
    # than its last, which stand before it in the sorted row. Group g is one set, ``chosen[g]``; its entries
    # bounds[g] .. bounds[g + 1] are the rows that contain the set, so their number is its support. An entry is the
    # part begins .. ends of a row: from its beginning to the last item chosen. No row is in a group twice.
    ends = own
    begins = starts[owner[own]]
    bounds = np.array([0, len(own)])
    chosen = np.full((1, m), item)
    for size in range(1, m + 1):
        total = 0
        for entry in range(len(ends)):
            total += ends[entry] - begins[entry]
        next_ends, next_begins = np.empty(total, np.int64), np.empty(total, np.int64)
        next_bounds = np.zeros(total + 1, np.int64)
        next_chosen = np.empty((total, m), np.int64)
        groups, filled = 0, 0
        for group in range(len(bounds) - 1):
            low, high = bounds[group], bounds[group + 1]
            count[:] = 0
            for entry in range(low, high):
                place = begins[entry]
                # sensitive items have the first ranks, so they stand at the beginning of a row
                while place < len(ranks) and owner[place] == owner[begins[entry]] and ranks[place] < secret:
                    count[ranks[place]] += 1
                    place += 1
            for about in range(secret):
                inside = False
                for index in range(size):
                    inside = inside or chosen[group, index] == about
                # confidence >= rho, in whole numbers: support of both / support >= top / bottom
                if keep[about] and not inside and count[about] * bottom >= top * (high - low):
                    return False
            if size == m:
                continue
            # extend the set by every kept item of lower rank: sort the entries by that item
            others = np.empty(total, np.int64)
            where = np.empty(total, np.int64)
            source = np.empty(total, np.int64)
            found = 0
            for entry in range(low, high):
                for place in range(begins[entry], ends[entry]):
                    if keep[ranks[place]]:
                        others[found], where[found], source[found] = ranks[place], place, begins[entry]
                        found += 1
            order = np.argsort(others[:found], kind="mergesort")
            for index in range(found):
                at = order[index]
                if index == 0 or others[at] != others[order[index - 1]]:
                    for kept in range(m):
                        next_chosen[groups, kept] = chosen[group, kept]
                    next_chosen[groups, size] = others[at]
                    groups += 1
                next_ends[filled], next_begins[filled] = where[at], source[at]
                filled += 1
                next_bounds[groups] = filled
        ends, begins = next_ends[:filled], next_begins[:filled]
        bounds, chosen = next_bounds[: groups + 1], next_chosen[:groups]
    return True
