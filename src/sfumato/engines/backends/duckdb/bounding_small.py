"""Contribution bounding in plain Python, for tables of a few hundred rows.

Planning the statement takes an engine longer. The numbers equal the statement's to the last bit: sums are of integers,
and the one operation in floating point, scaling down to a norm, is that of the statement. The contribution of a unit
depends on its own rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

from sfumato.engines.contribution_bounding import CODE_BITS, SAFE, Bounded, Cut, Term

__all__ = ["MOST_FEW", "fold_few"]

MOST_FEW = 500
"""Largest number of rows that are bounded in Python."""
_NUMBER = (1 << CODE_BITS) - 1

Sums = list[int]


def fold_few(rows: Iterable[tuple[Any, ...]], bounded: Bounded) -> list[tuple[int, ...]] | None:
    """Group, totals and units: the statement's rows, from those of the source. None: units are no numbers and no text,
    and could be equal here without being so there, or the other way round."""
    units: dict[int | str, dict[int, Sums]] = {}
    for unit, place, *numbers in rows:
        if type(unit) is not int and type(unit) is not str:
            return None
        sums = units.setdefault(unit, {}).setdefault(place, [0] * (len(numbers) + 1))
        sums[0] += 1
        for i, number in enumerate(numbers, start=1):
            sums[i] += number
    totals: dict[int, Sums] = {}
    for groups in units.values():
        places = _kept(sorted(groups), bounded)
        own = [groups[place] for place in places]
        parts = [part for term, start in _starts(bounded) for part in _parts(own, term, start, bounded.ends is None)]
        for i, place in enumerate(places):
            total = totals.setdefault(place & _NUMBER, [0] * (len(parts) + 1))
            for k, part in enumerate(parts):
                total[k] += part[i]
            total[-1] += 1
    return [(group, *totals[group]) for group in sorted(totals)]


def _kept(places: list[int], bounded: Bounded) -> list[int]:
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
    square = sum(part * part for own in cut for part in own)
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
        case Cut.SUM:
            count = total // whole
            kept = max(min(own[1] + term.low * count, rows * term.high), rows * term.low)
            upper = kept - term.low * min(count, rows)
            return [min(total, rows * whole) - upper, upper]
