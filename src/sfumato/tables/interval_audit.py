"""The interval attack on suppressed tables: what a reader can calculate about each suppressed cell.

The attacker knows the published cells, all sums between cells, and that no cell is negative. Two linear programs per
suppressed cell (HiGHS) give the smallest and the largest value that is consistent with that. The audit uses published
figures only and shares no code with the suppressor.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.errors import BadParameter
from sfumato.tables.cells import VALUE, CellKey

__all__ = ["CellInterval", "PublishedTable", "combine", "interval_attack", "published_table"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    """A table as published: values, NaN where a cell is suppressed, and the sums that every reader knows."""

    keys: tuple[CellKey, ...]
    values: Floats
    sums: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, kw_only=True)
class CellInterval:
    """The values of a suppressed cell that are consistent with everything published."""

    key: CellKey
    low: float
    high: float

    @property
    def disclosed(self) -> bool:
        """Whether the value follows from the published cells."""
        return self.high - self.low <= 1e-6 * max(1.0, abs(self.high))


def interval_attack(
    table: PublishedTable,
    *,
    integers: bool = False,
    known_within: float | None = None,
    truth: Floats | None = None,
    targets: Collection[int] | None = None,
) -> tuple[CellInterval, ...]:
    """The interval of every suppressed cell. With ``integers`` its ends are whole numbers, as for counts.

    ``targets`` limits the attack to some cells.

    ``known_within`` is prior knowledge: the attacker knows every suppressed cell up to this share of its value; the
    evaluation then needs the ``truth``.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    hidden = np.flatnonzero(np.isnan(table.values))
    if known_within is not None and truth is None:
        raise BadParameter("Prior knowledge of values needs the true values.")
    place = {int(cell): number for number, cell in enumerate(hidden)}
    lines: list[int] = []
    columns: list[int] = []
    signs: list[float] = []
    right: list[float] = []
    for total, parts in table.sums:
        unknown = [(place[cell], 1.0) for cell in parts if cell in place]
        unknown += [(place[total], -1.0)] if total in place else []
        if not unknown:
            continue
        for column, sign in unknown:
            lines.append(len(right))
            columns.append(column)
            signs.append(sign)
        known = sum(table.values[cell] for cell in parts if cell not in place)
        right.append((0.0 if total in place else table.values[total]) - known)
    bounds = [(0.0, None)] * len(hidden)
    if known_within is not None and truth is not None:
        bounds = [((1 - known_within) * truth[c], (1 + known_within) * truth[c]) for c in hidden]
    system = coo_array((signs, (lines, columns)), shape=(len(right), len(hidden))).tocsr() if right else None
    found = []
    for number, cell in enumerate(hidden):
        if targets is not None and int(cell) not in targets:
            continue
        goal, ends = np.zeros(len(hidden)), []
        for sign in (1.0, -1.0):
            goal[number] = sign
            solved = linprog(goal, A_eq=system, b_eq=right or None, bounds=bounds, method="highs")
            if solved.status == 3:
                ends.append(np.inf * -sign)
            elif solved.x is None:
                raise BadParameter("The published cells do not add up.", fix="Check the table and its sums.")
            else:
                ends.append(float(solved.x[number]))
        if integers:
            ends = [float(np.ceil(ends[0] - 1e-6)), float(np.floor(ends[1] + 1e-6))]
        found.append(CellInterval(key=table.keys[cell], low=ends[0] + 0.0, high=ends[1] + 0.0))  # not -0
    return tuple(found)


def published_table(frame: pl.DataFrame, *, value: str = VALUE) -> PublishedTable:
    """A published table in a file: a column per dimension (null for the total) and ``value`` (null if suppressed).

    A cell is the sum of the cells that add one more column to it; the file is taken to list all of them.

    >>> table = published_table(pl.DataFrame({"sex": [None, "F", "M"], "value": [7, None, 3]}))
    >>> table.sums, [(one.low, one.high) for one in interval_attack(table)]
    (((0, (1, 2)),), [(4.0, 4.0)])
    """
    if value not in frame.columns:
        raise BadParameter(f"The file has no column `{value}`.", fix="A published table has a column of values.")
    names = [name for name in frame.columns if name != value]
    text = frame.select(pl.col(name).cast(pl.String) for name in names)
    keys = [tuple(sorted((n, v) for n, v in zip(names, row, strict=True) if v is not None)) for row in text.iter_rows()]
    index = {key: number for number, key in enumerate(keys)}
    if len(index) != len(keys):
        raise BadParameter("The file lists a cell twice.", fix="One line per cell; leave a dimension empty for totals.")
    parts: dict[tuple[int, str], list[int]] = {}
    for number, key in enumerate(keys):
        for name, _ in key:
            total = index.get(tuple(pair for pair in key if pair[0] != name))
            if total is not None:
                parts.setdefault((total, name), []).append(number)
    values = frame[value].cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy().astype(np.float64)
    sums = tuple((total, tuple(cells)) for (total, _), cells in parts.items())
    return PublishedTable(keys=tuple(keys), values=values, sums=sums)


def combine(tables: Sequence[PublishedTable]) -> PublishedTable:
    """Several published tables as one: a cell that one of them shows is known.

    This is the differencing attack between tables that were suppressed one by one: cells with the same values in common
    are the same cell, and the sums of all tables hold at once.
    """
    keys: dict[CellKey, int] = {}
    values: dict[int, float] = {}
    sums: dict[tuple[int, tuple[int, ...]], None] = {}
    for table in tables:
        own = [keys.setdefault(key, len(keys)) for key in table.keys]
        for cell, value in zip(own, table.values, strict=True):
            before = values.get(cell, np.nan)
            if not np.isnan(value) and not np.isnan(before) and not np.isclose(before, value):
                raise BadParameter("The tables contradict each other.", fix="They must be about the same people.")
            values[cell] = before if np.isnan(value) else float(value)
        for total, parts in table.sums:
            sums[own[total], tuple(own[cell] for cell in parts)] = None
    ordered = np.array([values[number] for number in range(len(keys))])
    return PublishedTable(keys=tuple(keys), values=ordered, sums=tuple(sums))
