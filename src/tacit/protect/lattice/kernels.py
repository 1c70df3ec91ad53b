"""The inner loops of the lattice search: group classes at coarser levels, and add up what a table costs."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["count_values", "group", "nested_extra", "sums"]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_LIMIT = np.float64(2.0**62)


@njit(cache=True, nogil=True, boundscheck=False)
def group(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    codes,
    starts,
    widths,
    coarse,
    levels,
    rep,
    size,
    people,
    slots,
    stamps,
    stamp,
    keys,
    out_rep,
    out_size,
    out_people,
    of,
):
    """Merge classes that agree at ``levels``; returns how many are left.

    ``rep`` names for each class one row of ``codes`` (leaf codes) that lies in it; ``coarse[starts[i, l] + leaf]`` is
    the code of a leaf at level l. The key of a class is its mixed-radix number. Where that does not fit into 64 bits,
    the key is a hash, and the codes are compared on every hit: the result is exact either way. ``slots`` is the hash
    table, ``stamps`` tells which of its places were filled by this call.
    """
    columns = codes.shape[1]
    strides = np.empty(columns, dtype=np.uint64)
    offsets = np.empty(columns, dtype=np.int64)
    span = 1.0
    for i in range(columns):
        offsets[i] = starts[i, levels[i]]
        span *= widths[i, levels[i]]
    exact = span < _LIMIT
    stride = np.uint64(1)
    for i in range(columns):
        strides[i] = stride
        if exact:
            stride *= np.uint64(widths[i, levels[i]])
        else:
            stride = stride * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(0x94D049BB133111EB)
    bits = 1
    while (1 << bits) < 2 * rep.size and (1 << bits) < slots.size:
        bits += 1
    direct = span <= slots.size
    shift = np.uint64(64 - bits)
    mask = (1 << bits) - 1
    found = 0
    with_people = people.size > 0
    with_of = of.size > 0
    for j in range(rep.size):
        row = codes[rep[j]]
        key = np.uint64(0)
        for i in range(columns):
            key += np.uint64(coarse[offsets[i] + row[i]]) * strides[i]
        place = np.int64(key) if direct else np.int64((key * _MIX) >> shift)
        while True:
            if stamps[place] != stamp:
                stamps[place] = stamp
                slots[place] = found
                keys[found] = key
                out_rep[found] = rep[j]
                out_size[found] = size[j]
                if with_people:
                    out_people[found] = people[j]
                if with_of:
                    of[j] = found
                found += 1
                break
            hit = slots[place]
            same = keys[hit] == key
            if same and not exact:
                other = codes[out_rep[hit]]
                for i in range(columns):
                    if coarse[offsets[i] + row[i]] != coarse[offsets[i] + other[i]]:
                        same = False
                        break
            if same:
                out_size[hit] += size[j]
                if with_people:
                    out_people[hit] += people[j]
                if with_of:
                    of[j] = hit
                break
            place = (place + 1) & mask
    return found


@njit(cache=True, nogil=True, boundscheck=False)
def small(size, least, kept):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Mark the classes of at least ``least`` rows; returns how many rows lie in the others."""
    gone = 0
    for j in range(size.size):
        kept[j] = size[j] >= least
        if not kept[j]:
            gone += size[j]
    return gone


@njit(cache=True, nogil=True, boundscheck=False)
def sums(codes, starts, levels, prices, rep, size, kept, term, cells):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Rows suppressed, classes kept, smallest kept class and class term; ``cells`` gets the price sums by column."""
    columns = codes.shape[1]
    cells[:] = 0.0
    suppressed = 0
    classes = 0
    smallest = 0
    total = 0.0
    for j in range(rep.size):
        rows = size[j]
        if rows == 0:
            continue
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
        row = codes[rep[j]]
        for i in range(columns):
            cells[i] += rows * prices[starts[i, levels[i]] + row[i]]
    return suppressed, classes, smallest, total


@njit(cache=True, nogil=True, boundscheck=False)
def nested_extra(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    codes, starts, levels, sizes, prices, star, of_parent, of, kept, extra
):
    """What rows of classes that are not kept pay more when suppressed than shown: ``extra[column, level]``.

    Only levels up to ``levels`` are filled. The class of combination j is ``of[of_parent[j]]``.
    """
    extra[:] = 0.0
    for j in range(codes.shape[0]):
        if not kept[of[of_parent[j]]]:
            rows = sizes[j]
            for i in range(codes.shape[1]):
                leaf = codes[j, i]
                for level in range(levels[i] + 1):
                    extra[i, level] += rows * (star[i] - prices[starts[i, level] + leaf])


@njit(cache=True, nogil=True, boundscheck=False)
def count_values(cells, values, counts, of_parent, of, place, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Histogram of a tracked column by class: ``out[place[class], value]``; classes of place -1 are left out."""
    out[:] = 0
    for j in range(cells.size):
        row = place[of[of_parent[cells[j]]]]
        if row >= 0:
            out[row, values[j]] += counts[j]


@njit(cache=True, nogil=True, boundscheck=False)
def finest_source(kept_levels, kept_counts, used, levels):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Which of the stored tables is finer than ``levels`` everywhere and has the fewest classes."""
    best = 0
    for j in range(1, used):
        if kept_counts[j] < kept_counts[best]:
            finer = True
            for i in range(levels.size):
                if kept_levels[j, i] > levels[i]:
                    finer = False
                    break
            if finer:
                best = j
    return best


@njit(cache=True, nogil=True, boundscheck=False)
def climb(bounds, shape, strides, start, limit, at):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Go up from ``start`` by the cheapest step while the bound stays below ``limit``; ``at`` gets where it ended."""
    columns = shape.size
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
