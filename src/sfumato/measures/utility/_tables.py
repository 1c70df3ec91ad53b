"""Cross tables of two and three columns before and after, as shares, with coarse values spread over their cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from sfumato.arrays import Floats
from sfumato.measures.utility._spread import Spread


def tables(columns: Sequence[Spread]) -> tuple[Floats, Floats]:
    """Share of every combination of cells before and after, flattened in the order of the columns."""
    sizes = [column.cells for column in columns]
    code = np.zeros(len(columns[0].original), dtype=np.int64)
    for column in columns:
        code = code * column.cells + column.original
    before = np.bincount(code, minlength=int(np.prod(sizes))) / len(code)
    rows = len(columns[0].released)
    matrix = columns[-1].matrix
    place = columns[-1].released
    for column in reversed(columns[:-1]):
        # Distinct combinations of released values, and how each spreads over the combinations of cells.
        both, number = np.unique(np.column_stack([column.released, place]), axis=0, return_inverse=True)
        first, second = column.matrix[both[:, 0]], matrix[both[:, 1]]
        matrix = _row_products(first.tocsr(), second.tocsr())
        place = number.reshape(-1)
    after = np.asarray(np.bincount(place, minlength=matrix.shape[0]) @ matrix).ravel() / rows
    return before, after


def cross_tables(left: Spread, right: Spread) -> tuple[Floats, Floats]:
    """The cross table of two columns before and after."""
    before, after = tables([left, right])
    return before.reshape(left.cells, right.cells), after.reshape(left.cells, right.cells)


def _row_products(first: sparse.csr_matrix, second: sparse.csr_matrix) -> sparse.csr_matrix:
    """Row by row the outer product of two sparse rows, flattened: (n, a) and (n, b) give (n, a*b)."""
    a, b = first.shape[1], second.shape[1]
    parts = []
    for code in range(a):
        weight = first[:, [code]]
        parts.append(second.multiply(weight))
    stacked = sparse.hstack(parts, format="csr")
    assert stacked.shape[1] == a * b
    return stacked
