"""Codes of all columns packed into 64-bit words, and how a column's code changes from one level to a coarser one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.schema.hierarchy import BoundHierarchy

__all__ = ["Packing"]

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]


class Packing:
    """Where each column's code lies in a key, with tables from every level to every coarser one."""

    def __init__(self, ladders: tuple[BoundHierarchy, ...]) -> None:
        bits = [max(1, int(len(ladder.leaves) - 1).bit_length()) for ladder in ladders]
        self.word = np.zeros(len(ladders), dtype=np.int64)
        self.shift = np.zeros(len(ladders), dtype=np.uint64)
        self.mask = np.array([(1 << width) - 1 for width in bits], dtype=np.uint64)
        word = used = 0
        for i, width in enumerate(bits):
            if used + width > 64:
                word, used = word + 1, 0
            self.word[i], self.shift[i] = word, used
            used += width
        self.words = word + 1
        deepest = max(ladder.height for ladder in ladders) + 1
        self.start = np.zeros((len(ladders), deepest, deepest), dtype=np.int64)
        tables: list[Words] = []
        at = 0
        for i, ladder in enumerate(ladders):
            for old in range(ladder.height + 1):
                for new in range(old + 1, ladder.height + 1):
                    table = np.zeros(ladder.levels[old].size, dtype=np.uint64)
                    table[ladder.levels[old].codes] = ladder.levels[new].codes.astype(np.uint64) << self.shift[i]
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
