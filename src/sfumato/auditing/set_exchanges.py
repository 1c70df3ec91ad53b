"""Set exchanges: m people with one value change places with m people with another one.

If the queries of the people in a set A, added up, are those of a set B of the same size, everybody in A may take the
value of those in B and the other way round: every query keeps its counts. Sets with equal sums are found by hashing:
the sums of many random sets are sorted, and the sums of sets that contain the person in question are looked up. The
more people are exchanged, the more sets there are and the more queries they can satisfy. Every exchange is checked
exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.auditing.atoms import Flags
from sfumato.auditing.linear_system import CountSystem
from sfumato.auditing.possibilities import Possibilities

Words = npt.NDArray[np.uint64]

_SIZES = (3, 4, 5)
_RIGHT = 400_000
_LEFT = (2_000, 40_000)
"""Sets tried per person, the second number only where the first does not suffice."""
_MOST_QUERIES = 24
"""With more queries than this, random sets have no equal sums."""


def set_exchanges(system: CountSystem, possible: Possibilities, targets: Flags, need: int | None) -> None:
    """Prove target pairs possible by exchanges of sets. Other pairs stay open. The draws are the same each time."""
    queries = len(system.member)
    if queries > _MOST_QUERIES:
        return
    rng = np.random.default_rng(20052)
    words: Words = rng.integers(0, 2**63, queries, dtype=np.uint64)
    marks = system.member.T.astype(np.uint64) @ words
    for size in _SIZES:
        for value in range(system.known.shape[1]):
            for current in range(system.known.shape[1]):
                wanted = targets[:, value] & ~possible.yes[:, value] & (system.known[:, current] > 0)
                if value == current or not wanted.any():
                    continue
                holders, givers = np.flatnonzero(system.known[:, current]), np.flatnonzero(system.known[:, value])
                if len(holders) < size or len(givers) < size:
                    continue
                right = _Sums(marks, _sets(rng, givers, size, _RIGHT))
                for count in _LEFT:
                    left = _sets(rng, holders, size - 1, count)
                    for atom in np.flatnonzero(wanted).tolist():
                        if not possible.yes[atom, value] and not _enough(possible, atom, need):
                            _try(system, possible, right, left[(left != atom).all(axis=1)], atom, (current, value))
                if possible.decided(need):
                    return


def _enough(possible: Possibilities, atom: int, need: int | None) -> bool:
    return need is not None and bool(possible.yes[atom].sum() >= need)


def _sets(rng: np.random.Generator, members: Ints, size: int, count: int) -> Ints:
    """Random sets of this size, each sorted and without repetition."""
    few = min(count, 4 * comb(len(members), size))
    drawn = np.sort(members[rng.integers(0, len(members), (few, size))], axis=1)
    return drawn[(np.diff(drawn, axis=1) > 0).all(axis=1)]


class _Sums:
    """Sets of atoms, looked up by the sum of their marks."""

    def __init__(self, marks: Words, sets: Ints) -> None:
        self.marks = marks
        sums = marks[sets].sum(axis=1, dtype=np.uint64)
        order = np.argsort(sums)
        self.sums, self.sets = sums[order], sets[order]

    def matches(self, left: Ints, atom: int) -> Iterator[tuple[Ints, Ints]]:
        """Pairs of sets with equal sums; the left one contains the atom."""
        if not len(left) or not len(self.sums):
            return
        wanted = self.marks[left].sum(axis=1, dtype=np.uint64) + self.marks[atom]
        place = np.minimum(np.searchsorted(self.sums, wanted), len(self.sums) - 1)
        for hit in np.flatnonzero(self.sums[place] == wanted).tolist():
            yield np.append(left[hit], atom), self.sets[place[hit]]


def _try(
    system: CountSystem, possible: Possibilities, right: _Sums, left: Ints, atom: int, exchange: tuple[int, int]
) -> None:
    current, value = exchange
    for one, other in right.matches(left, atom):
        x = system.known.copy()
        for places, taken, given in ((one, current, value), (other, value, current)):
            x[places, taken] -= 1
            x[places, given] += 1
        # An atom in both sets keeps its values and proves nothing about itself.
        if x[atom, value] > system.known[atom, value] and system.fits(x):
            possible.learn(x)
            return
