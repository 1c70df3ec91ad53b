"""Contribution bounding: what counts of each privacy unit, as a description and as its definition.

:class:`Bounded` describes bounded sums over groups, and :func:`bounded_totals` defines them, in plain Python.
:func:`sampled_rows` defines which rows count where single rows are sampled. Statements and compiled code are faster
ways to the same numbers, to the last bit: the tests compare them with these two functions on every generated query.

The contribution of a unit depends on its own rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from math import sqrt
from typing import Any

from sfumato.engines.statements import Query

CODE_BITS = 20
"""Low bits of a group's place in a unit's order: the group's number."""
SAFE = 1 - 2.0**-40
"""Scaling down to a norm is done in floating point and cut to whole numbers towards zero; this factor keeps the norm
of the result below the bound whatever the rounding."""
MOST_ROWS = 1 << 26
"""Number of rows whose sums must fit 64 bits, unless the table has more."""
FIT = -1
"""In place of a group's number: the row that says how many units the limits fit, and how many they cut."""
_WIDE = 1 << 62
_NUMBER = (1 << CODE_BITS) - 1

Group = tuple[Any, ...]
Sums = list[int]


class Cut(IntEnum):
    """How the sums of one unit within one group are bounded."""

    CLIP = 0
    """One sum, clipped."""
    MEAN = 1
    """Shares of a weight: too many rows are cut in the same proportion, so that the unit's mean stays."""


@dataclass(frozen=True, kw_only=True)
class Term:
    """One number of every group: the sum over units of each unit's own sum, clipped, times ``times``.

    Or several that share a weight of ``whole`` per row: a unit's sums are then cut together, as ``Cut`` says.
    """

    reach: int
    """Largest absolute value of one row."""
    low: int
    high: int
    """Bounds to which the unit's sum within one group is clipped; for shares see ``cut``."""
    times: int = 1
    bound: int = 0
    """Squared norm to which a unit's vector over all groups is scaled down, where vectors are scaled; in units of
    4**``shift``."""
    shift: int = 0
    """Binary digits that a unit's numbers lose, rounded up, where their norm is computed: so that it fits 64 bits."""
    every: bool = False
    """Each row counts 1; there is no column for it."""
    shares: int = 1
    cut: Cut = Cut.CLIP
    rows: int = 1
    """Shares only: number of rows of a unit that count within one group."""

    @property
    def farthest(self) -> int:
        """Largest absolute contribution of a unit to one group, before vectors are scaled down."""
        far = max(abs(self.low), abs(self.high))
        return (far if self.cut is Cut.CLIP else self.reach * (self.rows + 1)) * self.times


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """A bounded aggregation: the terms to sum, and the groups of each unit that count."""

    source: Query
    """A SELECT of the unit, of the group's place, and of one whole number for every term (or share) but those that
    count every row. None of them is missing. The place of a numbered group is one number: a keyed hash in the high
    bits, the group's number in the low ones. That of a group with private keys is a keyed hash and the keys."""
    groups: int
    """Number of groups, which are numbered from 0; 0 where the keys are private."""
    ends: tuple[int, int] | None
    """Of each unit, so many groups are kept from the beginning and the end of the order of places. None: all are kept,
    and each unit's vector over the groups is scaled down to the terms' bounds."""
    terms: tuple[Term, ...]
    keys: int = 0
    """Number of private keys."""
    limits: tuple[int, int] | None = None
    """(rows, groups) if the units that exceed them are to be counted, too: the first row of the totals is then
    ``FIT``, the number of units that do not, and of those that do. 0 rows: a unit counts once in a group."""

    def fits(self, rows: int = MOST_ROWS) -> bool:
        """Whether every sum of up to this many rows fits 64 bits."""
        if self.groups > 1 << CODE_BITS:
            return False
        for term in self.terms:
            own = rows * max(term.reach, abs(term.low), abs(term.high)) * max(1, term.rows)
            far = (term.farthest >> term.shift) + 1 if term.shift else term.farthest
            squares = 0 if self.ends else max(self.groups * term.shares * far**2, term.bound)
            if max(own, rows * term.farthest, squares) >= _WIDE:
                return False
        return True


def bounded_totals(rows: Iterable[tuple[Any, ...]], bounded: Bounded) -> list[tuple[object, ...]]:
    """The definition of bounded sums: for each group its number or keys, its totals and its number of units.

    ``rows`` are those of ``bounded.source``. A unit's rows are summed by group; the sums within each group are bounded
    as :class:`Cut` says; some of its groups are kept, or its vector over all groups is scaled down to a norm.
    """
    width = 1 + bounded.keys if bounded.keys else 1
    units: dict[Any, dict[Group, Sums]] = {}
    for unit, *cells in rows:
        place, numbers = tuple(cells[:width]), cells[width:]
        sums = units.setdefault(unit, {}).setdefault(place, [0] * (len(numbers) + 1))
        sums[0] += 1
        for i, number in enumerate(numbers, start=1):
            sums[i] += int(number)
    totals: dict[Group, Sums] = {}
    fitting = [0, 0]
    for own in units.values():
        if bounded.limits is not None:
            numbers = [sums[0] for sums in own.values()]
            fitting[not fits_limits(numbers, *bounded.limits, norm=bounded.ends is None)] += 1
        places = _kept(sorted(own), bounded)
        parts = [part for term, start in _starts(bounded)
                 for part in _parts([own[place] for place in places], term, start, bounded.ends is None)]  # fmt: skip
        for i, place in enumerate(places):
            group = place[1:] if bounded.keys else (place[0] & _NUMBER,)
            total = totals.setdefault(group, [0] * (len(parts) + 1))
            for k, part in enumerate(parts):
                total[k] += part[i]
            total[-1] += 1
    first = [] if bounded.limits is None else [(FIT, *fitting)]
    return [*first, *((*group, *total) for group, total in totals.items())]


def fits_limits(numbers: list[int], rows: int, groups: int, *, norm: bool) -> bool:
    """Whether a unit with these numbers of rows in its groups is surely not cut.

    Conditions within aggregates are not considered: a row that no aggregate counts may exceed the limits.
    """
    counted = [number if rows else 1 for number in numbers]
    if norm:
        return sum(number * number for number in counted) <= groups * max(rows, 1) ** 2
    return len(counted) <= groups and max(counted) <= max(rows, 1)


def _kept(places: list[Group], bounded: Bounded) -> list[Group]:
    """The groups of a unit that count: those at either end of its order, or all if its vector is scaled down."""
    if bounded.ends is None or len(places) <= sum(bounded.ends):
        return places
    first, last = bounded.ends
    return places[:first] + places[len(places) - last :]


def _starts(bounded: Bounded) -> Iterable[tuple[Term, int]]:
    """The terms, and where the sums of each begin: in the order of the columns, behind the number of rows."""
    start = 1
    for term in bounded.terms:
        yield term, 0 if term.every else start
        start += 0 if term.every else term.shares


def _parts(groups: list[Sums], term: Term, start: int, scaled: bool) -> list[Sums]:
    """One unit's contribution to a term: a number per share and group, scaled down to the norm if the term has one."""
    cut = [[share * term.times for share in _cut(sums[start : start + term.shares], term)] for sums in groups]
    # Rounded up, so that the norm is not below the true one.
    square = sum((-(-abs(part) >> term.shift)) ** 2 for own in cut for part in own)
    if scaled and square > term.bound:
        factor = sqrt(float(term.bound) / float(square)) * SAFE
        cut = [[int(float(part) * factor) for part in own] for own in cut]
    return [list(share) for share in zip(*cut, strict=True)]


def _cut(own: Sums, term: Term) -> Sums:
    """The sums of one unit within one group, bounded as ``Cut`` says."""
    rows, whole, total = term.rows, term.reach, sum(own)
    match term.cut:
        case Cut.CLIP:
            return [max(min(own[0], term.high), term.low)]
        case Cut.MEAN:
            return own if total <= rows * whole else [share * rows // max(total // whole, 1) for share in own]


def sampled_rows(
    found: Iterable[tuple[object, Group, Group]], *, rows: int, groups: int | None
) -> list[tuple[Group, Group]]:
    """The definition of sampled rows, each as (unit, place of its group, place of the row): what counts of them.

    Within a group the first ``rows`` rows of a unit count, and of its groups the first ``groups`` (None: all), in the
    order of their places. Places start with a keyed hash.
    """
    units: dict[object, dict[Group, list[Group]]] = {}
    for unit, place, row in found:
        units.setdefault(unit, {}).setdefault(place, []).append(row)
    return [
        (place, row) for own in units.values() for place in sorted(own)[:groups] for row in sorted(own[place])[:rows]
    ]
