"""Non-negative integer tables with given sums, close to a real one.

The real table is projected (least squares) on the non-negative tables with these sums, then rounded with the smallest
sum of absolute changes. The constraint matrix of a two-way table is totally unimodular, so the linear program of the
rounding has an integer solution; HiGHS solves it where more than one row and one column are left to round.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.kernels import kernel

UNBOUNDED = 2**40
"""Upper bound of a cell that has none; sums of a million of them are still whole numbers of 64 bits."""
_STEPS = 300
"""Largest number of iterations of Dykstra's projection."""


def round_to_sum(values: Floats, totals: Ints, *, low: Ints | int = 0, high: Ints | int = UNBOUNDED) -> Ints:
    """Integers closest to the lines of ``values``, each line with its given sum, each cell within its bounds.

    The sums of the bounds must enclose the totals.

    >>> round_to_sum(np.array([[2.6, -1.0, 4.4]]), np.array([6])).tolist()
    [[2, 0, 4]]
    >>> round_to_sum(np.array([[2.6, -1.0, 4.4]]), np.array([6]), low=np.array([[0, 1, 0]])).tolist()
    [[2, 1, 3]]
    """
    total = totals[:, None]
    bottom, top = np.broadcast_to(low, values.shape), np.broadcast_to(high, values.shape)
    # The shift of a line at which its clipped values have the right sum, by bisection.
    less = (values - np.minimum(top, np.maximum(total, bottom))).min(axis=1, keepdims=True)
    more = (values - bottom).max(axis=1, keepdims=True)
    for _ in range(64):
        middle = (less + more) / 2
        enough = np.clip(values - middle, bottom, top).sum(axis=1, keepdims=True) >= total
        less, more = np.where(enough, middle, less), np.where(enough, more, middle)
    real = np.clip(values - more, bottom, top)
    whole = np.floor(real + 1e-9).astype(np.int64)
    missing = total - whole.sum(axis=1, keepdims=True)
    order = np.argsort(np.where(whole < top, whole - real, np.inf), axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(values.shape[1])[None, :].repeat(len(values), 0), axis=1)
    rounded: Ints = whole + (rank < missing)
    return rounded


def round_with_sums(values: Floats, rows: Ints, columns: Ints) -> tuple[Ints, int]:
    """Integer tables close to ``values`` (groups, rows, columns) with these row and column sums, group by group.

    ``rows`` is (groups, rows) and ``columns`` is (groups, columns); both have the same sums. The second result is the
    number of groups for which the solver failed and a table with the right sums was filled in order instead.
    """
    real = _projected(values, rows, columns)
    whole = np.floor(real + 1e-9).astype(np.int64)
    rest_rows, rest_columns = rows - whole.sum(axis=2), columns - whole.sum(axis=1)
    over = (rest_rows.min(axis=1) < 0) | (rest_columns.min(axis=1) < 0)
    whole[over], rest_rows[over], rest_columns[over] = 0, rows[over], columns[over]
    up, across = (rest_rows > 0).sum(axis=1), (rest_columns > 0).sum(axis=1)
    for group in np.flatnonzero((up == 1) | (across == 1)):
        whole[group] += _filled(rest_rows[group], rest_columns[group])
    open_groups = np.flatnonzero((up > 1) & (across > 1))
    if not len(open_groups):
        return whole, 0
    added = _increments((real - whole)[open_groups], rest_rows[open_groups], rest_columns[open_groups])
    if added is None:
        added = np.array([_filled(rest_rows[group], rest_columns[group]) for group in open_groups])
        whole[open_groups] += added
        return whole, len(open_groups)
    whole[open_groups] += added
    return whole, 0


@kernel()
def _project(values, rows, columns, steps, kept, off_row, off_column, result):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Dykstra's projection on the non-negative tables with these sums; rows and columns without people stay zero."""
    high, wide = values.shape[1], values.shape[2]
    up, across = np.empty(high, np.int64), np.empty(wide, np.int64)
    for group in range(values.shape[0]):
        table = result[group]
        m = n = 0
        for i in range(high):
            if rows[group, i] > 0:
                up[m] = i
                m += 1
        for j in range(wide):
            if columns[group, j] > 0:
                across[n] = j
                n += 1
        for i in up[:m]:
            for j in across[:n]:
                table[i, j] = values[group, i, j]
                kept[i, j] = 0.0
        for step in range(steps):
            total = worst = 0.0
            for j in across[:n]:
                off_column[j] = columns[group, j]
            for i in up[:m]:
                off_row[i] = rows[group, i]
                for j in across[:n]:
                    off_row[i] -= table[i, j]
                    off_column[j] -= table[i, j]
                total += off_row[i]
                worst = max(worst, abs(off_row[i]))
            for j in across[:n]:
                worst = max(worst, abs(off_column[j]))
            if step > 0 and worst < 1e-4:
                break
            for i in up[:m]:
                for j in across[:n]:
                    shifted = table[i, j] + off_row[i] / n + off_column[j] / m - total / (m * n) + kept[i, j]
                    table[i, j] = max(shifted, 0.0)
                    kept[i, j] = shifted - table[i, j]
        # Never above either sum, so that the rounded-down table leaves something to add and nothing to take away.
        for i in up[:m]:
            own = 0.0
            for j in across[:n]:
                own += table[i, j]
            for j in across[:n]:
                table[i, j] *= min(1.0, rows[group, i] / max(own, 1e-300))
        for j in across[:n]:
            own = 0.0
            for i in up[:m]:
                own += table[i, j]
            for i in up[:m]:
                table[i, j] *= min(1.0, columns[group, j] / max(own, 1e-300))


def _projected(values: Floats, rows: Ints, columns: Ints) -> Floats:
    """The non-negative tables with these sums that are closest to the values."""
    result, (_, high, wide) = np.zeros(values.shape), values.shape
    _project(
        np.ascontiguousarray(values, dtype=np.float64),
        np.ascontiguousarray(rows, dtype=np.int64),
        np.ascontiguousarray(columns, dtype=np.int64),
        _STEPS,
        np.empty((high, wide)),
        np.empty(high),
        np.empty(wide),
        result,
    )
    return result


def _increments(fraction: Floats, rows: Ints, columns: Ints) -> Ints | None:
    """Whole numbers with these sums, at most one per cell where possible and where the fraction is largest.

    One linear program for all groups: their constraints are independent.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    group, i, j = np.nonzero((rows > 0)[:, :, None] & (columns > 0)[:, None, :])
    own = np.cumsum(rows.ravel() > 0)[group * rows.shape[1] + i] - 1
    other = np.cumsum(columns.ravel() > 0)[group * columns.shape[1] + j] - 1
    line = np.concatenate([own, (rows > 0).sum() + other])
    sums = np.concatenate([rows[rows > 0], columns[columns > 0]])
    cells, part = len(group), fraction[group, i, j]
    # The first unit of a cell changes its distance by 1 - 2·fraction, each further one by 1.
    place = np.concatenate([np.tile(np.arange(cells), 2), np.tile(np.arange(cells, 2 * cells), 2)])
    system = coo_array((np.ones(4 * cells), (np.tile(line, 2), place)), shape=(len(sums), 2 * cells)).tocsr()
    solved = linprog(
        np.concatenate([1 - 2 * part, np.ones(cells)]),
        A_eq=system,
        b_eq=sums,
        bounds=np.column_stack([np.zeros(2 * cells), np.r_[np.ones(cells), np.full(cells, np.inf)]]),
        method="highs-ds",
    )
    if solved.x is None:
        return None
    added = np.zeros(fraction.shape, dtype=np.int64)
    added[group, i, j] = np.rint(solved.x[:cells] + solved.x[cells:]).astype(np.int64)
    right = (added.sum(axis=2) == rows).all() and (added.sum(axis=1) == columns).all()
    return added if right else None


def nearest_table(values: Floats, rows: Ints, columns: Ints, *, low: Ints, high: Ints) -> Ints | None:
    """An integer table with these sums and bounds, closest to the projection of the values; None if there is none.

    >>> nearest_table(np.array([[2.2, 1.1], [0.4, 3.0]]), np.array([3, 4]), np.array([3, 4]),
    ...               low=np.zeros((2, 2), dtype=np.int64), high=np.array([[2, 9], [9, 9]])).tolist()
    [[2, 1], [1, 3]]
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    real = _within(values, rows, columns, low, high)
    whole = np.clip(np.floor(real + 1e-6), low, high).astype(np.int64)
    part = np.clip(real - whole, 0.0, 1.0)
    cells = whole.size
    i, j = np.indices(whole.shape).reshape(2, -1)
    one = np.concatenate([i, len(rows) + j])
    # Variables: one unit up, further units up, units down.
    line, place = np.tile(one, 3), np.concatenate([np.tile(np.arange(n * cells, (n + 1) * cells), 2) for n in range(3)])
    sign = np.repeat([1.0, 1.0, -1.0], 2 * cells)
    system = coo_array((sign, (line, place)), shape=(len(rows) + len(columns), 3 * cells)).tocsr()
    room, down = (high - whole).ravel(), (whole - low).ravel()
    most: Sequence[Ints] = [np.minimum(room, 1), np.maximum(room - 1, 0), down]
    solved = linprog(
        np.concatenate([1 - 2 * part.ravel(), np.ones(cells), np.ones(cells)]),
        A_eq=system,
        b_eq=np.concatenate([rows - whole.sum(axis=1), columns - whole.sum(axis=0)]),
        bounds=np.column_stack([np.zeros(3 * cells), np.concatenate(most)]),
        method="highs-ds",
    )
    if solved.x is None:
        return None
    moved = np.rint(solved.x).astype(np.int64)
    table: Ints = whole + (moved[:cells] + moved[cells : 2 * cells] - moved[2 * cells :]).reshape(whole.shape)
    return table


def _within(values: Floats, rows: Ints, columns: Ints, low: Ints, high: Ints) -> Floats:
    """Dykstra's projection on the tables with these sums and bounds."""
    table, kept, (tall, wide) = values.astype(np.float64), np.zeros(values.shape), values.shape
    for _ in range(_STEPS):
        off_rows, off_columns = rows - table.sum(axis=1), columns - table.sum(axis=0)
        table = table + off_rows[:, None] / wide + off_columns[None, :] / tall - off_rows.sum() / (tall * wide)
        shifted = table + kept
        table = np.clip(shifted, low, high)
        kept = shifted - table
        if max(np.abs(rows - table.sum(axis=1)).max(), np.abs(columns - table.sum(axis=0)).max()) < 1e-4:
            break
    return table


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
