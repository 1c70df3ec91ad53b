"""Contribution bounding in compiled code: one pass over the rows.

A statement needs hash tables over all pairs of unit and group, which are nearly as many as there are rows. Here rows
are partitioned by unit into parts that fit the processor's cache. Within a part the rows of a unit are gathered, summed
by group, bounded as the statement bounds them, and added to the totals.

All sums are of 64-bit integers, and only sums that cannot overflow are accepted (``Bounded.fits``). The one operation
in floating point, scaling down to a norm, is that of the statement, so totals equal the statement's to the last bit.
The contribution of a unit depends on its own rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from sfumato.engines.backends.duckdb.unit_parts import UnitParts, gather
from sfumato.engines.contribution_bounding import CODE_BITS, FIT, MOST_ROWS, SAFE, Bounded, Cut
from sfumato.kernels import kernel

_NUMBER = np.int64((1 << CODE_BITS) - 1)
_PLACE = 1
_CLIP = int(Cut.CLIP)

_Whole = npt.NDArray[np.int64]


def fold(sources: Iterable[Iterable[object]], bounded: Bounded, most: int = MOST_ROWS) -> list[tuple[int, ...]] | None:
    """Group, totals and units: the statement's rows, from Arrow batches of the source. None: there are too many.

    The source may come in slices, each with all rows of some units: only one of them is in memory at a time. At most
    ``most`` rows are accepted in all.
    """
    limits: list[tuple[int, ...]] = []
    for term in bounded.terms:
        # Sums lie in the order of the columns, behind the number of rows.
        start = 0 if term.every else 1 + sum(t.shares for t in bounded.terms[: len(limits)] if not t.every)
        limits.append(
            (
                start,
                term.shares,
                term.cut,
                term.low,
                term.high,
                term.times,
                term.bound,
                term.rows,
                term.reach,
                term.shift,
            )
        )
    columns = 1 + sum(term.shares for term in bounded.terms if not term.every)
    numbers = sum(term.shares for term in bounded.terms)
    sums, parts, totals = (np.zeros((bounded.groups, w), np.int64) for w in (columns, numbers, numbers + 1))
    marks = np.zeros((4, bounded.groups), np.int64)
    table = np.array(limits, np.int64).reshape(-1, 10)
    first, last = bounded.ends or (-1, -1)
    limits_of = np.array(bounded.limits or (-1, -1), np.int64)
    fitting = np.zeros(2, np.int64)
    units = rows = 0
    for batches in sources:
        dealt = UnitParts()
        if not dealt.read(batches, most - rows):
            return None
        rows += dealt.rows
        for own in dealt:
            units = _bound(own, table, first, last, sums, parts, marks, units, totals, limits_of, fitting)
    head: list[tuple[int, ...]] = [] if bounded.limits is None else [(FIT, *fitting.tolist())]
    return [*head, *((group, *totals[group].tolist()) for group in np.flatnonzero(totals[:, -1]).tolist())]


@kernel()
def _bound(
    rows: _Whole, limits: _Whole, first: int, last: int, sums: _Whole, parts: _Whole, marks: _Whole, before: int,
    totals: _Whole, within: _Whole, fitting: _Whole,
) -> int:  # fmt: skip
    """Add the bounded contributions of all units in ``rows`` to the totals; returns the number of units so far."""
    order, ends, units = gather(rows)
    owner, seen, places, ordered = marks[0], marks[1], marks[2], marks[3]
    width = rows.shape[1] - 1
    begin = 0
    for j in range(units):
        me = before + j + 1
        groups = 0
        for at in range(begin, ends[j]):
            i = order[at]
            g = rows[i, _PLACE] & _NUMBER
            if owner[g] != me:
                owner[g] = me
                seen[groups] = g
                places[groups] = rows[i, _PLACE]
                groups += 1
                for c in range(width):
                    sums[g, c] = 0
            sums[g, 0] += 1
            for c in range(1, width):
                sums[g, c] += rows[i, c + 1]
        begin = ends[j]
        if within[0] >= 0:
            fitting[0 if _fits(sums, seen, groups, within[0], within[1], first < 0) else 1] += 1
        if first >= 0 and groups > first + last:
            groups = _choose(places, seen, ordered, groups, first, last)
        _add(limits, first < 0, sums, parts, seen, groups, totals)
    return before + units


@kernel()
def _fits(sums: _Whole, seen: _Whole, groups: int, rows: int, most: int, norm: bool) -> bool:
    """Whether a unit does not exceed the limits: its numbers of rows in each group, and of groups, or their norm."""
    limit, square, largest = max(rows, 1), np.int64(0), np.int64(0)
    for t in range(groups):
        number = sums[seen[t], 0] if rows > 0 else np.int64(1)
        square += number * number
        largest = max(largest, number)
    return bool(square <= most * limit * limit if norm else groups <= most and largest <= limit)


@kernel()
def _choose(places: _Whole, seen: _Whole, ordered: _Whole, groups: int, first: int, last: int) -> int:
    """Keep the groups that lie at either end of the order; returns their number."""
    gap = 1
    while gap < groups // 3:
        gap = 3 * gap + 1
    ordered[:groups] = places[:groups]
    while gap > 0:  # Shell's sort: NumPy's takes ten seconds to compile
        for t in range(gap, groups):
            value, at = ordered[t], t
            while at >= gap and ordered[at - gap] > value:
                ordered[at] = ordered[at - gap]
                at -= gap
            ordered[at] = value
        gap //= 3
    # The bound on groups per unit rests here: exactly first + last groups stay, because no two places are equal (the
    # low CODE_BITS of a place are the group's number) and the caller has more groups. ``first`` is at least 1.
    kept = 0
    for t in range(groups):
        if places[t] <= ordered[first - 1] or (last > 0 and places[t] >= ordered[groups - last]):
            seen[kept] = seen[t]
            kept += 1
    return kept


@kernel()
def _add(
    limits: _Whole, scaled: bool, sums: _Whole, parts: _Whole, seen: _Whole, groups: int, totals: _Whole
) -> None:  # fmt: skip
    """Add one unit's contributions to its groups, each bounded, and all scaled down to the norm if there is one."""
    to = 0
    for term in range(len(limits)):
        start, shares, cut, times = limits[term, 0], limits[term, 1], limits[term, 2], limits[term, 5]
        bound, shift = limits[term, 6], limits[term, 9]
        if cut == _CLIP:
            low, high = limits[term, 3], limits[term, 4]
            for t in range(groups):
                parts[t, 0] = max(min(sums[seen[t], start], high), low) * times
        else:
            _share(limits, term, sums, parts, seen, groups)
        square = np.int64(0)
        if scaled:
            for t in range(groups):
                for c in range(shares):
                    far = -(-abs(parts[t, c]) >> shift)
                    square += far * far
        # The norm of what is added is at most the root of ``bound``, in units of 2**shift: rounded up to these units,
        # the norm is not below the true one. In exact numbers the factor gives that root times SAFE = 1 - 2**-40. Eight
        # roundings (two conversions, quotient, root, product; conversion and product of a part) raise a result by a
        # relative 8 · 2**-53 at most, less than SAFE takes away, and cutting towards zero makes no part larger in
        # absolute value.
        if square > bound:
            factor = np.sqrt(np.float64(bound) / np.float64(square)) * SAFE
            for t in range(groups):
                for c in range(shares):
                    parts[t, c] = np.int64(np.trunc(np.float64(parts[t, c]) * factor))
        for t in range(groups):
            for c in range(shares):
                totals[seen[t], to + c] += parts[t, c]
        to += shares
    for t in range(groups):
        totals[seen[t], to] += 1


@kernel()
def _share(limits: _Whole, term: int, sums: _Whole, parts: _Whole, seen: _Whole, groups: int) -> None:
    """One unit's shares of a weight, cut in the same proportion."""
    start, shares = limits[term, 0], limits[term, 1]
    times, rows, whole = limits[term, 5], limits[term, 7], limits[term, 8]
    for t in range(groups):
        total = np.int64(0)
        for c in range(shares):
            parts[t, c] = sums[seen[t], start + c]
            total += parts[t, c]
        # Every row divides the weight ``whole`` exactly, so the total is the number of rows times ``whole``. After the
        # cut the shares are not negative and add up to at most rows · whole, the sensitivity: all of them times
        # rows / count, rounded down. Their proportions, and with them the unit's mean, stay.
        if total > rows * whole:
            count = max(total // whole, 1)
            for c in range(shares):
                parts[t, c] = parts[t, c] * rows // count
        for c in range(shares):
            parts[t, c] *= times
