"""Auditing of sums: whether the answered sums together determine somebody's value.

A sum, an average (with its known count) or a count of a 0/1 value over a set of people is a row of 0s and 1s.
The answers determine a person's value iff the unit vector of that person lies in the span of the rows. The rows are
kept in reduced echelon form with integer entries, so the decision is exact. It does not depend on the answers, so it
is simulatable.

Reference: Chin, Ozsoyoglu (1982), Auditing and inference control in statistical databases, doi:10.1109/TSE.1982.236161
"""

from __future__ import annotations

from math import gcd

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.auditing.atoms import Atoms, AtomSplit
from sfumato.errors import BadParameter

Row = dict[int, int]
"""A row over atoms: atom to coefficient, as integers without a common divisor."""


def _clear(row: Row, by: Row, pivot: int) -> Row:
    """``row`` without its entry at ``pivot``, by subtracting a multiple of ``by``."""
    a, b = row.get(pivot, 0), by[pivot]
    if not a:
        return row
    cleared = {i: v * b for i, v in row.items()}
    for i, v in by.items():
        cleared[i] = cleared.get(i, 0) - a * v
    return _primitive(cleared)


def _primitive(row: Row) -> Row:
    kept = {i: v for i, v in row.items() if v}
    common = 0
    for v in kept.values():
        common = gcd(common, v)
    return {i: v // common for i, v in kept.items()} if common > 1 else kept


class SumAuditor:
    """Refuses a sum that, with the earlier ones, would determine the value of a person.

    People in the same queries cannot be distinguished, so only atoms of one person are at risk, and the linear algebra
    is over atoms.
    """

    def __init__(self, people: int) -> None:
        self.partition = Atoms(np.zeros(people, np.int32), 1)
        self._rows: dict[int, Row] = {}

    def judge(self, people: npt.ArrayLike) -> tuple[bool, Ints, tuple[AtomSplit, dict[int, Row]]]:
        """Whether the sum may be answered, rows of the people it would expose, and the state for :meth:`accept`."""
        split = self.partition.split(self.partition.select(people))
        rows: dict[int, Row] = {}
        for pivot, row in self._rows.items():
            wider = dict(row)
            for old, new in split.moved.items():
                if old in row:
                    wider[new] = row[old]
            rows[pivot] = wider
        # A split duplicates columns, pivot columns too; reduce again to clear the duplicates.
        rows = _reduce(rows)
        fresh = {int(atom): 1 for atom in np.flatnonzero(split.member[-1])}
        rows = _insert(rows, fresh)
        single = split.truth.sum(axis=1) == 1
        fixed = [next(iter(row)) for row in rows.values() if len(row) == 1]
        exposed = np.array([atom for atom in fixed if single[atom]], np.int64)
        return not len(exposed), self.partition.persons_after(split, exposed), (split, rows)

    def accept(self, state: tuple[AtomSplit, dict[int, Row]]) -> None:
        """Record a sum that was answered."""
        split, rows = state
        if len(split.member) != len(self.partition.member) + 1:
            raise BadParameter("this assessment is out of date; judge again.")
        self.partition.commit(split)
        self._rows = rows


def _insert(rows: dict[int, Row], new: Row) -> dict[int, Row]:
    for pivot, row in rows.items():
        new = _clear(new, row, pivot)
    if not new:
        return rows
    pivot = min(new)
    return {**{p: _clear(row, new, pivot) for p, row in rows.items()}, pivot: new}


def _reduce(rows: dict[int, Row]) -> dict[int, Row]:
    done: dict[int, Row] = {}
    for row in rows.values():
        done = _insert(done, row)
    return done
