"""Rectangle moves: the shortest ways to another solution, where four atoms exchange two values.

If the queries of atoms a and d together are those of b and c together (each counted as often), one person in a and
one in d may take value s for value v while one in b and one in c take v for s: every query keeps its counts. People in
no query count as an atom that can take part with any value. Rectangles are found by hashing and then checked.
"""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Ints
from sfumato.auditing.atoms import Flags
from sfumato.auditing.linear_system import CountSystem
from sfumato.auditing.possibilities import Possibilities

_CHUNKS = ((24, 400), (256, None), (2048, None))
"""Numbers of atoms tried as b and as d, nearest first; later entries are used only if earlier ones do not suffice."""


class _Atoms:
    """The queries of each atom, with an additive hash. The last atom is that of people in no query."""

    def __init__(self, member: Flags) -> None:
        self.count = member.shape[1] + 1
        self.columns = np.zeros((self.count, member.shape[0]), np.int8)
        self.columns[:-1] = member.T
        words = np.random.default_rng(20051).integers(0, 2**63, member.shape[0], dtype=np.uint64)
        self.mark = self.columns.astype(np.uint64) @ words if member.shape[0] else np.zeros(self.count, np.uint64)
        self.order = np.argsort(self.mark, kind="stable")
        self.ranked = self.mark[self.order]

    def near(self, atom: int) -> Ints:
        """The other atoms, sorted by the number of queries in which they differ."""
        apart = (self.columns != self.columns[atom]).sum(axis=1)
        return np.argsort(apart, kind="stable")[1:]

    def corners(self, atom: int, others: Ints, partners: Ints) -> Ints:
        """All (b, c, d), b among ``others``, d among ``partners``: queries of ``atom`` + d = queries of b + c."""
        # Sorted by hash, so that the look-ups below access the table in order.
        ordered = partners[np.argsort(self.mark[partners])]
        b, d = np.repeat(others, len(ordered)), np.tile(ordered, len(others))
        target = self.mark[atom] + self.mark[d] - self.mark[b]
        place = np.searchsorted(self.ranked, target)
        hit = (place < self.count) & (d != atom) & (b != d)
        hit[hit] = self.ranked[place[hit]] == target[hit]
        b, c, d = b[hit], self.order[place[hit]], d[hit]
        keep = (c != atom) & (c != d)
        b, c, d = b[keep], c[keep], d[keep]
        same = self.columns[atom][None, :] + self.columns[d] == self.columns[b] + self.columns[c]
        true = same.all(axis=1)
        return np.stack([b[true], c[true], d[true]], axis=1)


def rectangle_moves(system: CountSystem, possible: Possibilities, targets: Flags, need: int | None) -> None:
    """Prove target pairs possible by rectangle moves. Other pairs stay open."""
    wide = system.known.shape[1]
    # People in no query may have any value; a rectangle takes two of them at most.
    stock = np.vstack([system.known, np.full((1, wide), 2, np.int64)])
    atoms = _Atoms(system.member)
    for atom in np.flatnonzero(targets.any(axis=1)):
        near, tried = atoms.near(int(atom)), 0
        for chunk, reach in _CHUNKS:
            open_ = np.flatnonzero(targets[atom] & ~possible.yes[atom])
            if not len(open_) or (need is not None and possible.yes[atom].sum() >= need) or tried >= len(near):
                break
            corners = atoms.corners(int(atom), near[tried:chunk], near[:reach])
            tried = chunk if reach is None or reach >= len(near) else 0
            for value in open_:
                _prove(system, possible, stock, int(atom), int(value), corners)


def _prove(system: CountSystem, possible: Possibilities, stock: Ints, atom: int, value: int, corners: Ints) -> None:
    if possible.yes[atom, value] or not len(corners):
        return
    b, c, d = corners.T
    gives = np.minimum(stock[b, value], stock[c, value]) >= 1 + (b == c)
    for current in np.flatnonzero(system.known[atom]):
        fit = np.flatnonzero(gives & (stock[d, current] >= 1))
        if len(fit):
            x = stock.copy()
            for place, sign in ((atom, 1), (d[fit[0]], 1), (b[fit[0]], -1), (c[fit[0]], -1)):
                x[place, value] += sign
                x[place, current] -= sign
            possible.learn(x[:-1])
            return
