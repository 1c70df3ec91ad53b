"""Witnesses of failure: rows that stay rare prove that a table fails, without grouping it.

Without suppression, one class that is too small rejects a combination of levels. Rows that made earlier combinations
fail are tried first; rows that match them are counted by intersecting bit sets, one per column.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.kernels import kernel
from sfumato.masking.equivalence_classes import EquivalenceClasses
from sfumato.masking.search.lattice.kernels import climb, close_box, next_open

_LARGEST = 1 << 26
"""Maximum bytes of bit sets; beyond this no witnesses are kept."""
_MOST = 64


class Witnesses:
    """Combinations that were rare in some table, most useful first."""

    def __init__(self, table: EquivalenceClasses, least: int) -> None:
        words = (len(table) + 63) // 64
        groups = sum(level.size for hierarchy in table.hierarchies for level in hierarchy.levels)
        self.active = least > 1 and groups * words * 8 <= _LARGEST
        if not self.active:
            return
        self._least, self._sizes, self._codes = least, table.sizes, table.codes
        deepest = max(table.heights) + 1
        self._starts = np.zeros((len(table.hierarchies), deepest), dtype=np.int64)
        levels, at = [], 0
        rows = 0
        for i, hierarchy in enumerate(table.hierarchies):
            for number, level in enumerate(hierarchy.levels):
                self._starts[i, number] = at
                levels.append(level.codes + np.int32(rows))
                at, rows = at + len(level.codes), rows + level.size
        self._sets = np.concatenate(levels)
        """For each column, level and leaf, the index of the bit set of matching combinations."""
        self._bits = np.zeros((groups, words), dtype=np.uint64)
        _fill(self._codes, self._sets, self._starts, np.array(table.heights), self._bits)
        self._known = np.zeros(_MOST, dtype=np.int64)
        self._count = 0

    def refute(self, levels: npt.NDArray[np.int64]) -> bool:
        """Whether some witness matches too few rows at ``levels``."""
        if not self.active or self._count == 0:
            return False
        witness: int = _rare(
            self._bits, self._codes, self._sets, self._starts, self._known, self._count, levels, self._sizes,
            self._least,
        )  # fmt: skip
        if witness > 0:
            # move to the front, because the next table is often similar
            self._known[[0, witness]] = self._known[[witness, 0]]
        return witness >= 0

    def skip(
        self,
        bounds: npt.NDArray[np.float64],
        order: npt.NDArray[np.int64],
        start: int,
        limit: float,
        shape: npt.NDArray[np.int64],
        strides: npt.NDArray[np.int64],
        low: npt.NDArray[np.int64],
    ) -> tuple[int, int]:
        """Close combinations that witnesses reject, up to the next open one that they do not.

        Returns its position in ``order`` and the number of rejected combinations.
        """
        if not self.active:
            return start, 0
        place, refuted = _skip(
            bounds, order, start, limit, shape, strides, low,
            self._bits, self._codes, self._sets, self._starts, self._known, self._count, self._sizes, self._least,
        )  # fmt: skip
        return int(place), int(refuted)

    def remember(self, combination: int) -> None:
        """Keep a combination whose class was too small."""
        if not self.active:
            return
        if self._count == _MOST:
            self._count -= 1
        self._known[1 : self._count + 1] = self._known[: self._count]
        self._known[0] = combination
        self._count += 1


@kernel(nogil=True, boundscheck=False)
def _fill(codes, sets, starts, heights, bits):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for j in range(codes.shape[0]):
        word, bit = j >> 6, np.uint64(1) << np.uint64(j & 63)
        for i in range(codes.shape[1]):
            for level in range(heights[i] + 1):
                bits[sets[starts[i, level] + codes[j, i]], word] |= bit


@kernel(nogil=True, boundscheck=False)
def _rare(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    bits, codes, sets, starts, known, count, levels, sizes, least
):
    """The first witness that matches fewer than ``least`` rows, or -1."""
    columns = codes.shape[1]
    own = np.empty(columns, dtype=np.int64)
    for number in range(count):
        for i in range(columns):
            own[i] = sets[starts[i, levels[i]] + codes[known[number], i]]
        total = np.int64(0)
        for word in range(bits.shape[1]):
            both = bits[own[0], word]
            for i in range(1, columns):
                if both == 0:
                    break
                both &= bits[own[i], word]
            place = word << 6
            while both != 0:
                if both & np.uint64(1):
                    total += sizes[place]
                both >>= np.uint64(1)
                place += 1
            if total >= least:
                break
        if total < least:
            return number
    return -1


@kernel(nogil=True, boundscheck=False)
def _skip(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    bounds, order, start, limit, shape, strides, low, bits, codes, sets, starts, known, count, sizes, least
):
    """The next open combination of levels that no witness refutes, and how many boxes were closed on the way."""
    # One witness closes the whole box below ``top``: the rows that match it at finer levels are among those that match
    # it at ``top``, so fewer than ``least`` match it in every table of the box.
    refuted = 0
    at = np.empty(shape.size, dtype=np.int64)
    top = np.empty(shape.size, dtype=np.int64)
    bottom = np.zeros(shape.size, dtype=np.int64)
    position = next_open(bounds, order, start, limit)
    while position < order.size:
        for i in range(shape.size):
            at[i] = order[position] // strides[i] % shape[i]
        climb(bounds, shape, strides, at, limit, 1.0, top)
        witness = _rare(bits, codes, sets, starts, known, count, top + low, sizes, least)
        if witness < 0:
            break
        if witness > 0:
            known[0], known[witness] = known[witness], known[0]
        close_box(bounds, strides, bottom, top)
        refuted += 1
        position = next_open(bounds, order, position, limit)
    return position, refuted
