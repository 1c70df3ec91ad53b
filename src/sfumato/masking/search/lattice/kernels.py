"""Compiled kernels of the lattice search: merge classes at coarser levels and sum losses."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import kernel

_MIX = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(0xBF58476D1CE4E5B9)
_LOW = np.int64(0xFFFFFFFF)


@kernel(nogil=True, boundscheck=False)
def group(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    keys, size, people, word, shift, mask, start, maps, slots, stamp, out_keys, out_size, out_people, of
):
    """Merge classes that agree at coarser levels; returns the number of classes.

    A key holds the code of each column in bits of its own, in one or more 64-bit words. Change number c lies in word
    ``word[c]`` at bit ``shift[c]`` under ``mask[c]``; ``maps[start[c] + old code]`` is the new code, already shifted. A
    place of ``slots`` is taken when its upper half is ``stamp``, which must be larger in every call; its lower half is
    the number of the class.
    """
    # The search for a free slot ends: ``slots`` has more places than the table has classes (see RollUp), and entries of
    # earlier calls are free, because their stamps are smaller. ``found`` <= j, so the key under test overwrites none.
    bits = np.int64(1)
    while (np.int64(1) << bits) < 2 * size.size and (np.int64(1) << bits) < slots.size:
        bits += 1
    back = np.uint64(64 - bits)
    wrap = (np.int64(1) << bits) - 1
    mark = np.int64(stamp) << np.int64(32)
    if keys.shape[1] == 1:
        return _group_one_word(
            keys, size, people, shift, mask, start, maps, slots, mark, back, wrap, out_keys, out_size, out_people, of
        )
    words = keys.shape[1]
    found = np.int64(0)
    with_people = people.size > 0
    for j in range(size.size):
        for w in range(words):
            out_keys[found, w] = keys[j, w]
        for c in range(word.size):
            key = out_keys[found, word[c]]
            field = (key >> shift[c]) & mask[c]
            out_keys[found, word[c]] = (key & ~(mask[c] << shift[c])) | maps[start[c] + np.int64(field)]
        mixed = out_keys[found, 0]
        for w in range(1, words):
            mixed = (mixed ^ (mixed >> np.uint64(29))) * _FOLD + out_keys[found, w]
        place = np.int64((mixed * _MIX) >> back)
        while True:
            entry = slots[place]
            hit = entry & _LOW
            if entry < mark:
                slots[place] = mark | found
                hit, out_size[found] = found, 0
                if with_people:
                    out_people[found] = 0
                found += 1
                break
            same = True
            for w in range(words):
                if out_keys[hit, w] != out_keys[found, w]:
                    same = False
                    break
            if same:
                break
            place = (place + 1) & wrap
        _add(j, hit, size, people, out_size, out_people, of)
    return found


@kernel(nogil=True, boundscheck=False)
def _group_one_word(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    keys, size, people, shift, mask, start, maps, slots, mark, back, wrap, out_keys, out_size, out_people, of
):
    """The same for keys of one word, the common case: about 25 % faster."""
    found = np.int64(0)
    with_people = people.size > 0
    for j in range(size.size):
        key = keys[j, 0]
        for c in range(shift.size):
            field = (key >> shift[c]) & mask[c]
            key = (key & ~(mask[c] << shift[c])) | maps[start[c] + np.int64(field)]
        place = np.int64((key * _MIX) >> back)
        while True:
            entry = slots[place]
            hit = entry & _LOW
            if entry < mark:
                slots[place] = mark | found
                out_keys[found, 0] = key
                hit, out_size[found] = found, 0
                if with_people:
                    out_people[found] = 0
                found += 1
                break
            if out_keys[hit, 0] == key:
                break
            place = (place + 1) & wrap
        _add(j, hit, size, people, out_size, out_people, of)
    return found


@kernel(nogil=True, boundscheck=False)
def _add(j, hit, size, people, out_size, out_people, of):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    of[j] = hit
    out_size[hit] += size[j]
    if people.size > 0:
        out_people[hit] += people[j]


@kernel(nogil=True, boundscheck=False)
def small(size, least, kept):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Mark the classes of at least ``least`` rows; returns the number of rows in the others."""
    gone = 0
    for j in range(size.size):
        kept[j] = size[j] >= least
        if not kept[j]:
            gone += size[j]
    return gone


@kernel(nogil=True, boundscheck=False)
def sums(keys, word, shift, mask, start, losses, size, kept, term, cells):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Rows suppressed, classes kept, smallest kept class and class term; ``cells`` gets the loss sums by column.

    ``losses[start[i] + code]`` is the loss of a row with that code in column i.
    """
    columns = word.size
    cells[:] = 0.0
    suppressed = np.int64(0)
    classes = np.int64(0)
    smallest = np.int64(0)
    total = 0.0
    for j in range(size.size):
        rows = size[j]
        if rows == 0:
            continue
        if term == 4:
            total += float(rows) * float(rows)
        if not kept[j]:
            suppressed += rows
            continue
        classes += 1
        if smallest == 0 or rows < smallest:
            smallest = rows
        if term == 1:
            total += float(rows) * float(rows)
        elif term == 2:
            total += rows * np.log2(rows)
        for i in range(columns):
            code = np.int64((keys[j, word[i]] >> shift[i]) & mask[i])
            cells[i] += rows * losses[start[i] + code]
    return suppressed, classes, smallest, total


@kernel(nogil=True, boundscheck=False)
def certain_extra(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    codes, sizes, of_parent, of, lost, class_sizes, first, leaf_starts, leaf_losses, star, levels,
    keys, word, shift, mask, highest_starts, highest, extra
):  # fmt: skip
    """Extra loss of the rows that every finer table suppresses over their generalized values: ``extra[column, level]``.

    Class c loses ``lost[c]`` of its rows: all of them, or any of them, which then cost at least the difference to the
    ``highest`` loss at that level of the values in the class. Only levels up to ``levels`` are filled. The class of
    combination j is ``of[of_parent[j]]``; the leaves of column i are numbered from ``first[i]`` to ``first[i + 1]``.
    """
    # A lower bound for all finer tables: a finer class is a part of one here. A class that is too small here has only
    # smaller parts, so all its rows are lost; of other classes ``lost`` has what the models prove about every part
    # (``ModelRule.min_suppressed_rows``), which is 0 for a model that is not monotone.
    columns = codes.shape[1]
    rows = np.zeros(first[columns], dtype=np.int64)
    whole = np.empty(of.size, dtype=np.bool_)
    for s in range(of.size):
        whole[s] = lost[of[s]] == class_sizes[of[s]]
    # in a column of ungeneralized values that all have the same loss, the number of rows is enough
    varied = np.empty(columns, dtype=np.int64)
    several = 0
    for i in range(columns):
        same = levels[i] == 0
        for leaf in range(1, first[i + 1] - first[i]):
            same = same and leaf_losses[leaf_starts[i, 0] + leaf] == leaf_losses[leaf_starts[i, 0]]
        if not same:
            varied[several] = i
            several += 1
    together = 0
    for j in range(codes.shape[0]):
        if whole[of_parent[j]]:
            together += sizes[j]
            for number in range(several):
                i = varied[number]
                rows[first[i] + codes[j, i]] += sizes[j]
    extra[:] = 0.0
    number = 0
    for i in range(columns):
        if number == several or varied[number] != i:
            extra[i, 0] = together * (star[i] - leaf_losses[leaf_starts[i, 0]])
            continue
        number += 1
        for leaf in range(first[i + 1] - first[i]):
            here = rows[first[i] + leaf]
            if here:
                for level in range(levels[i] + 1):
                    extra[i, level] += here * (star[i] - leaf_losses[leaf_starts[i, level] + leaf])
    for c in range(class_sizes.size):
        if 0 < lost[c] < class_sizes[c]:
            for i in range(columns):
                code = np.int64((keys[c, word[i]] >> shift[i]) & mask[i])
                for level in range(levels[i] + 1):
                    extra[i, level] += lost[c] * (star[i] - highest[highest_starts[i, levels[i], level] + code])


@kernel(nogil=True, boundscheck=False)
def count_values(cells, values, counts, of, place, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Histogram of a tracked column by class: ``out[place[of[cell]], value]``; classes of place -1 are left out."""
    out[:] = 0
    for j in range(cells.size):
        row = place[of[cells[j]]]
        if row >= 0:
            out[row, values[j]] += counts[j]


@kernel(nogil=True, boundscheck=False)
def merge_pairs(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    cells, values, counts, of, classes, width, out_cells, out_values, out_counts
):
    """Add up the counts of pairs (cell, value) that have the same class ``of[cell]``; returns how many are left."""
    # pairs in order of their class, by counting
    first = np.zeros(classes + 1, dtype=np.int64)
    for j in range(cells.size):
        first[of[cells[j]] + 1] += 1
    for c in range(classes):
        first[c + 1] += first[c]
    order = np.empty(cells.size, dtype=np.int64)
    at = first[:classes].copy()
    for j in range(cells.size):
        c = of[cells[j]]
        order[at[c]] = j
        at[c] += 1
    seen = np.full(width, -1, dtype=np.int64)
    found = 0
    for c in range(classes):
        start = found
        for position in range(first[c], first[c + 1]):
            j = order[position]
            place = seen[values[j]]
            if place < start:
                place = found
                seen[values[j]] = found
                out_cells[found], out_values[found], out_counts[found] = c, values[j], 0
                found += 1
            out_counts[place] += counts[j]
    return found


@kernel(nogil=True, boundscheck=False)
def climb(bounds, shape, strides, start, limit, share, at):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Climb from ``start`` by the cheapest step while the bound is below ``limit``; return to ``share`` of the way.

    The end point is written to ``at``.
    """
    columns = shape.size
    steps = np.empty(np.sum(shape), dtype=np.int64)
    length = 0
    place = 0
    for i in range(columns):
        at[i] = start[i]
        place += start[i] * strides[i]
    while True:
        cheapest = limit
        step = -1
        for i in range(columns):
            if at[i] + 1 < shape[i]:
                value = bounds[place + strides[i]]
                if value < cheapest:
                    cheapest = value
                    step = i
        if step < 0:
            break
        at[step] += 1
        place += strides[step]
        steps[length] = step
        length += 1
    for j in range(int(length * share), length):
        at[steps[j]] -= 1


@kernel(nogil=True, boundscheck=False)
def close_box(bounds, strides, low, high):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Close every combination of levels from ``low`` to ``high``: none can improve the best score."""
    columns = low.size
    at = low.copy()
    place = 0
    for i in range(columns):
        place += low[i] * strides[i]
    last = columns - 1
    while True:
        for step in range(high[last] - low[last] + 1):
            bounds[place + step * strides[last]] = np.inf
        i = last - 1
        while i >= 0 and at[i] == high[i]:
            place -= (high[i] - low[i]) * strides[i]
            at[i] = low[i]
            i -= 1
        if i < 0:
            break
        at[i] += 1
        place += strides[i]


@kernel(nogil=True, boundscheck=False)
def any_open(bounds, strides, high, limit):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Whether the bound of a combination of levels below ``high`` is below ``limit``; ``high`` itself is left out."""
    columns = high.size
    at = np.zeros(columns, dtype=np.int64)
    place = 0
    last = columns - 1
    while True:
        end = high[last] + 1
        if np.array_equal(at[:last], high[:last]):
            end -= 1
        for step in range(end):
            if bounds[place + step * strides[last]] < limit:
                return True
        i = last - 1
        while i >= 0 and at[i] == high[i]:
            place -= high[i] * strides[i]
            at[i] = 0
            i -= 1
        if i < 0:
            return False
        at[i] += 1
        place += strides[i]


@kernel(nogil=True, boundscheck=False)
def member(of_parent, of, sizes, wanted):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The first combination with rows in the given class."""
    for j in range(of_parent.size):
        if sizes[j] > 0 and of[of_parent[j]] == wanted:
            return j
    return -1


@kernel(nogil=True, boundscheck=False)
def next_open(bounds, order, start, limit):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The next position of ``order`` from ``start`` on whose bound is below ``limit``; its length if there is none."""
    for position in range(start, order.size):
        if bounds[order[position]] < limit:
            return position
    return order.size
