"""Trees over binned features: nodes as arrays, and the leaf of every row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints


def split_table(nodes: int, sizes: tuple[int, ...]) -> tuple[Ints, npt.NDArray[np.int8]]:
    """Empty splits: the feature of every inner node, and for each of its bins whether a row goes right."""
    return np.zeros(nodes, dtype=np.int64), np.zeros((nodes, max(sizes)), dtype=np.int8)


def descend(codes: Ints, features: object, right: object, *, depth: int) -> Ints:
    """The leaf of every row, 0 .. 2**depth - 1. Children of node i are 2i + 1 and 2i + 2."""
    chosen, turns = np.asarray(features), np.asarray(right)
    columns = np.arange(codes.shape[1])
    node = np.zeros(codes.shape[1], dtype=np.int64)
    for _ in range(depth):
        node = 2 * node + 1 + turns[node, codes[chosen[node], columns]]
    return np.asarray(node - (2**depth - 1), dtype=np.int64)
