"""Non-negative integer tables with given row and column sums, close to a real one.

The real table is projected (least squares) on the non-negative tables with these sums, then rounded with the smallest
sum of absolute changes. The constraint matrix of a two-way table is totally unimodular, so the linear program of the
rounding has an integer solution; HiGHS solves it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["round_to_sum", "round_with_sums"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_STEPS = 60
"""Iterations of Dykstra's projection."""


def round_to_sum(values: Floats, totals: Ints) -> Ints:
    """Non-negative integers closest to the lines of ``values``, each line with its given sum.

    >>> round_to_sum(np.array([[2.6, -1.0, 4.4]]), np.array([6])).tolist()
    [[2, 0, 4]]
    """
    ordered = -np.sort(-values, axis=1)
    excess = (np.cumsum(ordered, axis=1) - totals[:, None]) / np.arange(1, values.shape[1] + 1)
    last = np.maximum((ordered > excess).sum(axis=1) - 1, 0)
    real = np.maximum(values - excess[np.arange(len(values)), last][:, None], 0.0)
    real *= (totals / np.maximum(real.sum(axis=1), 1e-300))[:, None]
    whole = np.floor(real + 1e-9).astype(np.int64)
    missing = totals - whole.sum(axis=1)
    order = np.argsort(-(real - whole), axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(values.shape[1])[None, :].repeat(len(values), 0), axis=1)
    rounded: Ints = whole + (rank < missing[:, None])
    return rounded


def round_with_sums(values: Floats, rows: Ints, columns: Ints) -> tuple[Ints, int]:
    """Integer tables close to ``values`` (groups, rows, columns) with these row and column sums, group by group.

    ``rows`` is (groups, rows) and ``columns`` is (groups, columns); both have the same sums. The second result is the
    number of groups for which the solver failed and a table with the right sums was filled in order instead.
    """
    real = _projected(values, rows, columns)
    whole = np.floor(real + 1e-9).astype(np.int64)
    rest_rows, rest_columns = rows - whole.sum(axis=2), columns - whole.sum(axis=1)
    failed = 0
    for group in np.flatnonzero((rest_rows != 0).any(axis=1) | (rest_columns != 0).any(axis=1)):
        if rest_rows[group].min() < 0 or rest_columns[group].min() < 0:
            whole[group] = 0
            rest_rows[group], rest_columns[group] = rows[group], columns[group]
        fraction = real[group] - whole[group]
        added = _increments(fraction, rest_rows[group], rest_columns[group])
        if added is None:
            added, failed = _filled(rest_rows[group], rest_columns[group]), failed + 1
        whole[group] += added
    return whole, failed


def _projected(values: Floats, rows: Ints, columns: Ints) -> Floats:
    """Dykstra's projection on the non-negative tables with these sums, all groups at once."""
    table, kept = values.astype(np.float64), np.zeros(values.shape)
    high, wide = values.shape[1:]
    for _ in range(_STEPS):
        off_rows, off_columns = rows - table.sum(axis=2), columns - table.sum(axis=1)
        off = off_rows.sum(axis=1)[:, None, None] / (high * wide)
        table = table + off_rows[:, :, None] / wide + off_columns[:, None, :] / high - off
        shifted = table + kept
        table = np.maximum(shifted, 0.0)
        kept = shifted - table
        if np.abs(rows - table.sum(axis=2)).max() < 1e-6 and np.abs(columns - table.sum(axis=1)).max() < 1e-6:
            break
    # Never above either sum, so that the rounded-down table leaves something to add and nothing to take away.
    table *= np.minimum(1.0, rows / np.maximum(table.sum(axis=2), 1e-300))[:, :, None]
    table *= np.minimum(1.0, columns / np.maximum(table.sum(axis=1), 1e-300))[:, None, :]
    return table


def _increments(fraction: Floats, rows: Ints, columns: Ints) -> Ints | None:
    """Whole numbers with these sums, at most one per cell where possible and where the fraction is largest."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    up, across = np.flatnonzero(rows), np.flatnonzero(columns)
    if len(up) == 1 or len(across) == 1:
        return _filled(rows, columns)
    i, j = np.meshgrid(np.arange(len(up)), np.arange(len(across)), indexing="ij")
    cells = i.size
    line = np.concatenate([i.ravel(), len(up) + j.ravel()])
    place = np.tile(np.arange(cells), 2)
    single = coo_array((np.ones(2 * cells), (line, place)), shape=(len(up) + len(across), cells)).tocsr()
    part = fraction[np.ix_(up, across)].ravel()
    from scipy.sparse import hstack

    solved = linprog(
        np.concatenate([1 - 2 * part, np.full(cells, 1.0) + 2 - part]),
        A_eq=hstack([single, single], format="csr"),
        b_eq=np.concatenate([rows[up], columns[across]]),
        bounds=np.column_stack([np.zeros(2 * cells), np.r_[np.ones(cells), np.full(cells, np.inf)]]),
        method="highs-ds",
    )
    if solved.x is None:
        return None
    added = np.zeros(fraction.shape, dtype=np.int64)
    added[np.ix_(up, across)] = np.rint(solved.x[:cells] + solved.x[cells:]).astype(np.int64).reshape(i.shape)
    right = (added.sum(axis=1) == rows).all() and (added.sum(axis=0) == columns).all()
    return added if right else None


def _filled(rows: Ints, columns: Ints) -> Ints:
    """A table with these sums, filled from the first cell on (north-west corner rule)."""
    table = np.zeros((len(rows), len(columns)), dtype=np.int64)
    rows, columns = rows.copy(), columns.copy()
    row = column = 0
    while row < len(rows) and column < len(columns):
        step = min(rows[row], columns[column])
        table[row, column] += step
        rows[row] -= step
        columns[column] -= step
        if rows[row] == 0:
            row += 1
        else:
            column += 1
    return table
