"""Controlled rounding: every cell becomes a neighbouring multiple of a base, and all sums still hold.

The table with the smallest total change is found by mixed-integer programming (HiGHS). Zero-restricted rounding leaves
multiples of the base unchanged and moves every other cell by less than the base. Tables of three and more dimensions
may have no such rounding; cells may then move further, and the result says so. Reference: Cox (1987), A constructive
procedure for unbiased controlled rounding, doi:10.1080/01621459.1987.10478456; Salazar, Lowthian, Young, Merola, Bond,
Brown (2004), doi:10.1007/978-3-540-25955-8_4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.errors import BadParameter, NotApplicable
from sfumato.tables.cells import TableCells


@dataclass(frozen=True, kw_only=True)
class RoundedTable:
    """A table of multiples of the base whose sums hold."""

    cells: TableCells
    base: int
    values: Ints
    zero_restricted: bool
    """Whether every cell is a neighbouring multiple of its value, and multiples were left as they are."""
    optimal: bool
    """Whether it is proved that no other rounding of this kind changes the table less."""

    @property
    def change(self) -> float:
        """Sum of the absolute changes of all cells."""
        return float(np.abs(self.values - self.cells.values).sum())

    def frame(self) -> pl.DataFrame:
        """One line per cell."""
        return self.cells.frame(value=pl.Series(self.values))


def round_table(cells: TableCells, *, base: int, keep_total: bool = False, effort: int = 50) -> RoundedTable:
    """Round all cells to multiples of ``base``, with all sums kept and the smallest total change.

    ``keep_total`` leaves the grand total as it is; it must then be a multiple of the base. ``effort`` limits the
    search, in hundreds of branches, so that the result does not depend on the speed of the machine.

    >>> from sfumato.tables.cells import tabulate
    >>> people = pl.DataFrame({"town": ["a"] * 7 + ["b"] * 4, "sex": ["F", "M"] * 5 + ["F"]})
    >>> done = round_table(tabulate(people, [["town", "sex"]]), base=3)
    >>> done.values.tolist(), done.zero_restricted
    ([12, 6, 6, 6, 3, 3, 6, 3, 3], True)
    """
    if base < 2:
        raise BadParameter("The base of a rounding is at least 2.")
    whole = cells.index.get(())
    if keep_total and (whole is None or cells.values[whole] % base):
        raise BadParameter("The grand total is not a multiple of the base.", fix="Leave `keep_total` out.")
    for reach in (0, 1, 3):
        found = _rounded(cells, base, reach, effort, whole if keep_total else None)
        if found is not None:
            values, optimal = found
            return RoundedTable(
                cells=cells, base=base, values=values, zero_restricted=reach == 0, optimal=optimal and reach == 0
            )
    raise NotApplicable(
        "No rounding was found with this effort.", fix="Allow more effort, or publish fewer tables at once."
    )


def _rounded(cells: TableCells, base: int, reach: int, effort: int, fixed: int | None) -> tuple[Ints, bool] | None:
    """The rounding with the smallest change; ``reach`` is how many further multiples a cell may move by."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    count = len(cells.keys)
    down = np.floor(cells.values / base + 1e-12)
    up = np.ceil(cells.values / base - 1e-12)
    low, high = np.maximum(down - reach, 0), up + reach
    if fixed is not None:
        low[fixed] = high[fixed] = cells.values[fixed] / base
    matrix = cells.matrix
    # Variables: the multiple of each cell, then the absolute change, which is at least the change in both directions.
    eye = eye_array(count, format="csr")
    system = vstack(
        [
            hstack([matrix, csr_array((matrix.shape[0], count))]),
            hstack([base * eye, -eye]),
            hstack([base * eye, eye]),
        ],
        format="csr",
    )
    lines = matrix.shape[0]
    left = np.concatenate([np.zeros(lines), np.full(count, -np.inf), cells.values])
    right = np.concatenate([np.zeros(lines), cells.values, np.full(count, np.inf)])
    solved = milp(
        np.concatenate([np.zeros(count), np.ones(count)]),
        integrality=np.concatenate([np.ones(count), np.zeros(count)]),
        bounds=Bounds(np.concatenate([low, np.zeros(count)]), np.concatenate([high, np.full(count, np.inf)])),
        constraints=LinearConstraint(system, left, right),
        options={"node_limit": 100 * effort},
    )
    if solved.x is None:
        return None
    values = base * np.rint(solved.x[:count]).astype(np.int64)
    if (matrix @ values != 0).any():
        return None
    return values, solved.status == 0
