"""Wildcard matching: sums over all equivalence classes that match, where empty cells match every value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Array, Integers
from sfumato.data.row_codes import number_rows


def wildcard_sums(
    codes: Integers,
    widths: Sequence[int],
    empty: npt.NDArray[np.bool_],
    values: Sequence[Array],
) -> list[Array]:
    """Sum ``values`` (one entry per class) over the classes that match each class in all columns where neither is
    empty.

    ``codes`` and ``empty`` are (class, column): the value code, below the column's width, and whether the cell is a
    wildcard. Classes are compared by pattern of empty columns, so time grows with classes times patterns, not with the
    square of the number of classes.
    """
    patterns, pattern_of = np.unique(empty, axis=0, return_inverse=True)
    members = [np.flatnonzero(pattern_of.reshape(-1) == number) for number in range(len(patterns))]
    totals = [np.zeros_like(each) for each in values]
    for own, ours in zip(patterns, members, strict=True):
        for other, theirs in zip(patterns, members, strict=True):
            shared = np.flatnonzero(~own & ~other).tolist()
            both = np.concatenate([ours, theirs])
            number, count = np.zeros(len(both), dtype=np.intp), 1
            if shared:
                number, count = number_rows([codes[both, i] for i in shared], [widths[i] for i in shared])
            for total, each in zip(totals, values, strict=True):
                sums = np.zeros((count, *each.shape[1:]), dtype=each.dtype)
                np.add.at(sums, number[len(ours) :], each[theirs])
                total[ours] += sums[number[: len(ours)]]
    return totals
