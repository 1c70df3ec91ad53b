"""Compiled kernels of Mondrian: choose a cut of each box and apply it.

A box is a run of units in one array. The boxes of a round are processed independently by threads, and a cut only
reorders units inside its box.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Ints, Mask
from sfumato.kernels import kernel

Codes = npt.NDArray[np.int32]

BY = {"widest": 0, "gain": 1, "entropy": 2}
"""Codes of the rules that choose the column to cut."""


@kernel(nogil=True)
def extents(place: Codes, starts: Ints, ends: Ints) -> tuple[Codes, Codes]:  # pragma: no cover - compiled
    """(cell, axis): first and last place that occurs."""
    axes = place.shape[1]
    low = np.empty((len(starts), axes), dtype=np.int32)
    high = np.empty((len(starts), axes), dtype=np.int32)
    for s in range(len(starts)):
        _extent(place, starts[s], ends[s], low[s], high[s])
    return low, high


@kernel(nogil=True)
def _extent(place: Codes, begin: int, end: int, low: Codes, high: Codes) -> None:  # pragma: no cover - compiled
    """First and last place that occurs on each axis, into ``low`` and ``high``."""
    for c in range(place.shape[1]):
        low[c] = high[c] = place[begin, c]
    for i in range(begin + 1, end):
        for c in range(place.shape[1]):
            low[c] = min(low[c], place[i, c])
            high[c] = max(high[c], place[i, c])


@kernel(nogil=True)
def _level(c: int, low: int, high: int, start: Ints, groups: Codes) -> int:  # pragma: no cover - compiled
    """The lowest level of a hierarchy at which two places are in one group."""
    # Ends at the root at the latest: an axis has groups only if its last level is one group (checked by ``_axis``).
    level = 0
    while groups[start[c, level] + low] != groups[start[c, level] + high]:
        level += 1
    return level


@kernel(nogil=True)
def _width(
    c: int, low: int, high: int, hierarchical: Mask, start: Ints, groups: Codes, loss: Floats, position: Floats
) -> float:  # pragma: no cover - compiled
    """Share of the axis that an interval covers: its information loss."""
    if hierarchical[c]:
        return float(loss[start[c, _level(c, low, high, start, groups)] + low])
    return float(min(1.0, position[start[c, 0] + high] - position[start[c, 0] + low]))


@kernel(nogil=True)
def _sort(values: Codes, rows: Ints, count: int) -> None:  # pragma: no cover - compiled
    """Sort the first values, and their rows with them, by Shell's method: NumPy's sort takes seconds to compile."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            value, row = values[i], rows[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j], rows[j] = values[j - gap], rows[j - gap]
                j -= gap
            values[j], rows[j] = value, row
        gap //= 3


@kernel(nogil=True)
def _counts(
    place: Codes,
    weight: Ints,
    begin: int,
    end: int,
    c: int,
    low: int,
    high: int,
    tally: Ints,
    values: Codes,
    rows: Ints,
) -> int:  # pragma: no cover - compiled
    """Put the places that occur on axis ``c``, in order, and their rows into ``values`` and ``rows``; how many.

    ``tally`` is all zeros before and after.
    """
    span, number = high - low + 1, end - begin
    found = 0
    if span <= 4 * number:
        for i in range(begin, end):
            tally[place[i, c] - low] += weight[i]
        for offset in range(span):
            if tally[offset]:
                values[found], rows[found] = low + offset, tally[offset]
                tally[offset] = 0
                found += 1
        return found
    if number > 48:
        for i in range(begin, end):
            tally[place[i, c] - low] += weight[i]
        for i in range(begin, end):
            if tally[place[i, c] - low]:
                values[found] = place[i, c]
                rows[found] = tally[place[i, c] - low]
                tally[place[i, c] - low] = 0
                found += 1
        _sort(values, rows, found)
        return found
    for i in range(begin, end):
        value = place[i, c]
        j = found
        while j > 0 and values[j - 1] > value:
            j -= 1
        if j > 0 and values[j - 1] == value:
            rows[j - 1] += weight[i]
            continue
        for m in range(found, j, -1):
            values[m], rows[m] = values[m - 1], rows[m - 1]
        values[j], rows[j] = value, weight[i]
        found += 1
    return found


@kernel(nogil=True)
def _middle(rows: Ints, relaxed: bool, least: int) -> tuple[int, int]:  # pragma: no cover - compiled
    """Values before this index go left; of the value itself this many rows go left too.

    Whole values, if both sides then have enough rows; else a relaxed cut shares out the rows of the median value.
    """
    total = 0
    for row in rows:
        total += row
    below = 0
    for i in range(len(rows)):
        if 2 * (below + rows[i]) >= total:
            # cut before or after this value, whichever is nearer to the middle
            after = 2 * (below + rows[i]) - total
            before = total - 2 * below
            first = i + 1 == len(rows) or (i > 0 and before < after)
            left = below if first else below + rows[i]
            if relaxed and min(left, total - left) < least:
                return i, (total // 2) - below
            return (i, 0) if first else (i + 1, 0)
        below += rows[i]
    return len(rows), 0


@kernel(nogil=True)
def _worth(
    begin: int,
    end: int,
    c: int,
    low: int,
    high: int,
    total: int,
    place: Codes,
    weight: Ints,
    hierarchical: Mask,
    start: Ints,
    groups: Codes,
    loss: Floats,
    position: Floats,
    importance: float,
    least: int,
    relaxed: bool,
    by: int,
    tally: Ints,
    values: Codes,
    rows: Ints,
) -> float:  # pragma: no cover - compiled
    """How much a cut along one axis is worth: its width, the entropy of its places, or the detail that it saves."""
    width = _width(c, low, high, hierarchical, start, groups, loss, position)
    if by == 0:
        return width * importance
    found = _counts(place, weight, begin, end, c, low, high, tally, values, rows)
    if by == 2:
        entropy = 0.0
        for j in range(found):
            entropy -= rows[j] / total * np.log2(rows[j] / total)
        return entropy * importance
    saved = total * width
    if hierarchical[c]:
        level = _level(c, low, high, start, groups) - 1
        for j in range(found):
            saved -= rows[j] * loss[start[c, level] + values[j]]
    else:
        index, taken = _middle(rows[:found], relaxed, least)
        left = taken
        for j in range(index):
            left += rows[j]
        if index > 0 or taken > 0:
            last = values[index] if taken > 0 else values[index - 1]
            saved -= left * _width(c, low, last, hierarchical, start, groups, loss, position)
        if index < found:
            first = values[index + 1] if index + 1 < found and taken == rows[index] else values[index]
            saved -= (total - left) * _width(c, first, high, hierarchical, start, groups, loss, position)
    return max(saved, 0.0) * importance + 1e-9 * width


@kernel(nogil=True)
def _child(
    i: int, c: int, level: int, low: int, border: int, place: Codes, hierarchical: Mask, start: Ints, groups: Codes
) -> int:  # pragma: no cover - compiled
    """The child that unit ``i`` falls into."""
    if hierarchical[c]:
        return int(groups[start[c, level] + place[i, c]] - groups[start[c, level] + low])
    return 1 if place[i, c] >= border else 0


@kernel(nogil=True)
def cut_cells(
    starts: Ints,
    ends: Ints,
    tried: Ints,
    place: Codes,
    weight: Ints,
    unit: Ints,
    spare_place: Codes,
    spare_weight: Ints,
    spare_unit: Ints,
    cut: Mask,
    chosen: Ints,
    hierarchical: Mask,
    start: Ints,
    groups: Codes,
    loss: Floats,
    position: Floats,
    importance: Floats,
    least: int,
    relaxed: bool,
    by: int,
    places: int,
) -> None:  # pragma: no cover - compiled
    """Cut each cell once: along the best axis not tried before whose children all have at least ``least`` rows.

    ``chosen`` gets the axis (-1: the cell cannot be cut) and ``cut`` a mark where each child begins. ``places`` is the
    length of the longest axis.
    """
    # Invariants: ``tally`` is zero whenever ``_counts`` begins, which puts it back to zero; a cell of fewer than
    # 2 · least rows is never cut, and ``_cut`` writes nothing unless every child has at least ``least``. All cells
    # therefore keep the class size that the first cell has.
    axes = place.shape[1]
    score = np.empty(axes)
    low, high = np.empty(axes, dtype=np.int32), np.empty(axes, dtype=np.int32)
    tally, rows = np.zeros(places, dtype=np.int64), np.empty(places, dtype=np.int64)
    values = np.empty(places, dtype=np.int32)
    size, units = np.zeros(places + 1, dtype=np.int64), np.zeros(places + 1, dtype=np.int64)
    target, begins = np.empty(places + 1, dtype=np.int64), np.zeros(places + 2, dtype=np.int64)
    for s in range(len(starts)):
        begin, end = starts[s], ends[s]
        chosen[s] = -1
        total = weight[begin]  # of the type of the sum from the start: a literal would compile what is called twice
        for i in range(begin + 1, end):
            total += weight[i]
        if total < 2 * least:
            continue
        _extent(place, begin, end, low, high)
        for c in range(axes):
            score[c] = -1.0
            if low[c] != high[c] and not (tried[s] >> c) & 1 and importance[c] > 0:
                score[c] = _worth(
                    begin, end, c, low[c], high[c], total, place, weight, hierarchical, start, groups, loss, position,
                    importance[c], least, relaxed, by, tally, values, rows,
                )  # fmt: skip
        while True:
            c = int(np.argmax(score))
            if score[c] < 0:
                break
            score[c] = -1.0
            if _cut(
                begin, end, c, low[c], high[c], place, weight, unit, spare_place, spare_weight, spare_unit, cut,
                hierarchical, start, groups, least, relaxed, tally, values, rows, size, units, target, begins,
            ):  # fmt: skip
                chosen[s] = c
                break


@kernel(nogil=True)
def _cut(
    begin: int,
    end: int,
    c: int,
    low: int,
    high: int,
    place: Codes,
    weight: Ints,
    unit: Ints,
    spare_place: Codes,
    spare_weight: Ints,
    spare_unit: Ints,
    cut: Mask,
    hierarchical: Mask,
    start: Ints,
    groups: Codes,
    least: int,
    relaxed: bool,
    tally: Ints,
    values: Codes,
    rows: Ints,
    size: Ints,
    units: Ints,
    target: Ints,
    begins: Ints,
) -> bool:  # pragma: no cover - compiled
    """Cut along one axis if every child has enough rows; units are sorted by child, in their old order."""
    axes = place.shape[1]
    level, border, share = 0, 0, 0
    if hierarchical[c]:
        level = _level(c, low, high, start, groups) - 1
        children = groups[start[c, level] + high] - groups[start[c, level] + low] + 1
    else:
        found = _counts(place, weight, begin, end, c, low, high, tally, values, rows)
        index, share = _middle(rows[:found], relaxed, least)
        border = values[index] if index < found else high + 1
        children = 2
    size[:children] = 0
    units[:children] = 0
    left_share = share
    for i in range(begin, end):
        child = _child(i, c, level, low, border, place, hierarchical, start, groups)
        if left_share > 0 and place[i, c] == border:
            child = 0
            left_share -= 1
        size[child] += weight[i]
        units[child] += 1
    # Every child that is made has at least ``least`` rows: a smaller one ends the cut (return False, nothing written
    # yet) or joins the rest, and a rest that is too small is joined by a child that is large enough.
    # the child that each group goes to: its own, or (relaxed) a rest made of groups that are too small
    made, rest = 0, -1
    for child in range(children):
        target[child] = -1
        if units[child] and (size[child] >= least or not hierarchical[c] or not relaxed):
            if size[child] < least:
                return False
            target[child] = made
            made += 1
    if hierarchical[c] and relaxed:
        rest_size = 0
        for child in range(children):
            if units[child] and target[child] < 0:
                rest_size += size[child]
        if rest_size:
            rest = made
            if rest_size < least:
                # the smallest child that is large enough joins the rest
                smallest = -1
                for child in range(children):
                    if target[child] >= 0 and (smallest < 0 or size[child] < size[smallest]):
                        smallest = child
                if smallest < 0:
                    return False
                rest = target[smallest]
            else:
                made += 1
            for child in range(children):
                if units[child] and target[child] < 0:
                    target[child] = rest
    if made < 2:
        return False
    begins[: made + 1] = 0
    for child in range(children):
        if units[child]:
            begins[target[child] + 1] += units[child]
    for number in range(made):
        begins[number + 1] += begins[number]
    for number in range(made):
        cut[begin + begins[number]] = True
    # the same order and the same share as above: each unit gets the child that it was counted in
    left_share = share
    for i in range(begin, end):
        child = _child(i, c, level, low, border, place, hierarchical, start, groups)
        if left_share > 0 and place[i, c] == border:
            child = 0
            left_share -= 1
        to = begin + begins[target[child]]
        begins[target[child]] += 1
        for axis in range(axes):
            spare_place[to, axis] = place[i, axis]
        spare_weight[to] = weight[i]
        spare_unit[to] = unit[i]
    for i in range(begin, end):
        for axis in range(axes):
            place[i, axis] = spare_place[i, axis]
        weight[i] = spare_weight[i]
        unit[i] = spare_unit[i]
    return True
