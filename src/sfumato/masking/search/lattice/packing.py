"""Pack the codes of all columns into 64-bit words, with tables from each level to coarser ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.dataset.hierarchy import BoundHierarchy

__all__ = ["Packing"]

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]


class Packing:
    """Bit layout of keys, with tables from every level to every coarser one."""

    def __init__(self, hierarchies: tuple[BoundHierarchy, ...]) -> None:
        bits = [max(1, int(len(hierarchy.leaves) - 1).bit_length()) for hierarchy in hierarchies]
        self.word = np.zeros(len(hierarchies), dtype=np.int64)
        self.shift = np.zeros(len(hierarchies), dtype=np.uint64)
        self.mask = np.array([(1 << width) - 1 for width in bits], dtype=np.uint64)
        word = used = 0
        for i, width in enumerate(bits):
            if used + width > 64:
                word, used = word + 1, 0
            self.word[i], self.shift[i] = word, used
            used += width
        self.words = word + 1
        deepest = max(hierarchy.height for hierarchy in hierarchies) + 1
        self.start = np.zeros((len(hierarchies), deepest, deepest), dtype=np.int64)
        tables: list[Words] = []
        at = 0
        for i, hierarchy in enumerate(hierarchies):
            for old in range(hierarchy.height + 1):
                for new in range(old + 1, hierarchy.height + 1):
                    table = np.zeros(hierarchy.levels[old].size, dtype=np.uint64)
                    table[hierarchy.levels[old].codes] = hierarchy.levels[new].codes.astype(np.uint64) << self.shift[i]
                    self.start[i, old, new] = at
                    tables.append(table)
                    at += len(table)
        self.maps = np.concatenate(tables) if tables else np.zeros(1, dtype=np.uint64)

    def pack(self, codes: npt.NDArray[np.int32]) -> Words:
        """Keys of rows of leaf codes."""
        keys = np.zeros((len(codes), self.words), dtype=np.uint64)
        for i in range(codes.shape[1]):
            keys[:, self.word[i]] |= codes[:, i].astype(np.uint64) << self.shift[i]
        return keys

    def changes(self, old: Ints, new: Ints) -> tuple[Ints, Words, Words, Ints]:
        """Word, shift, mask and table of each column whose level differs."""
        which = np.flatnonzero(old != new)
        return self.word[which], self.shift[which], self.mask[which], self.start[which, old[which], new[which]]
