"""Cells of classical tables (counts or sums) and the sums between them, also for hierarchical and linked tables.

A cell is identified by the values that its rows have in common, so that the margins of several tables are the same
cells: tables that share a margin are linked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Floats, Ints
from sfumato.errors import BadParameter, HierarchyNotNested

CellKey = tuple[tuple[str, str], ...]
"""The values that the rows of a cell have in common, by column; empty for the grand total."""
VALUE = "value"
"""The column of figures in a published file."""
_LARGEST_SUM = 1e15
_MOST_CELLS = 200_000
_TOP = 5
"""Largest contributions that are kept of each cell."""


@dataclass(frozen=True, kw_only=True)
class TableCells:
    """The cells of one or several tables, with all sums that a reader can form."""

    keys: tuple[CellKey, ...]
    values: Floats
    """Counts or sums."""
    contributors: Ints
    """Number of rows (or units) behind each cell."""
    largest: Floats
    """(cell, place): the largest contributions of single contributors, in descending order."""
    sums: tuple[tuple[int, tuple[int, ...]], ...]
    """(total, parts): the value of the first cell is the sum of the others."""
    magnitude: bool
    """Whether values are sums of a column; counts otherwise."""
    contributions: pl.DataFrame
    """One line per cell and contributor: ``cell``, ``unit`` (a number), ``amount``."""

    @cached_property
    def index(self) -> Mapping[CellKey, int]:
        return {key: number for number, key in enumerate(self.keys)}

    @cached_property
    def empty(self) -> npt.NDArray[np.bool_]:
        """Cells without contributors. Their zeros are published, so readers know that all other cells are not empty."""
        empty: npt.NDArray[np.bool_] = (self.values == 0) & (self.contributors == 0)
        return empty

    @cached_property
    def matrix(self) -> Any:
        """Sparse (sum, cell): 1 for parts, -1 for the total; every table of values x has matrix @ x = 0."""
        from scipy.sparse import coo_array

        entries = [(line, cell, 1.0) for line, (_, parts) in enumerate(self.sums) for cell in parts]
        entries += [(line, total, -1.0) for line, (total, _) in enumerate(self.sums)]
        lines, cells, signs = zip(*entries, strict=True) if entries else ((), (), ())
        return coo_array((signs, (lines, cells)), shape=(len(self.sums), len(self.keys))).tocsr()

    def frame(self, **columns: Any) -> pl.DataFrame:
        """One line per cell: a column per dimension (``null`` stands for the total), then the given columns."""
        names = list(dict.fromkeys(name for key in self.keys for name, _ in key))
        places = {name: [dict(key).get(name) for key in self.keys] for name in names}
        return pl.DataFrame(places, schema=dict.fromkeys(names, pl.String)).with_columns(
            *(pl.Series(name, values) for name, values in columns.items())
        )


def tabulate(
    frame: pl.DataFrame,
    tables: Sequence[Sequence[Sequence[str] | str]],
    *,
    value: str | None = None,
    unit: str | None = None,
) -> TableCells:
    """Tabulate microdata with all margins.

    ``tables`` lists the dimensions of each table; a dimension is a column, or several columns from the largest areas to
    the smallest. ``value`` is a column of non-negative amounts to sum; without it rows are counted. ``unit`` names the
    column of the contributor; each row is one otherwise.

    >>> people = pl.DataFrame({"town": ["a", "a", "b"], "sex": ["F", "M", "F"]})
    >>> cells = tabulate(people, [["town", "sex"]])
    >>> int(cells.values[cells.index[()]]), int(cells.values[cells.index[("sex", "F"),]]), len(cells.keys)
    (3, 2, 9)
    """
    dimensions = [[(d,) if isinstance(d, str) else tuple(d) for d in table] for table in tables]
    names = list(dict.fromkeys(name for table in dimensions for d in table for name in d))
    _check(frame, dimensions, value, unit)
    text = frame.select(pl.col(name).cast(pl.String) for name in names)
    amounts = np.ones(frame.height) if value is None else frame[value].cast(pl.Float64).to_numpy()
    who = frame[unit].rank("dense") - 1 if unit is not None else pl.Series(np.arange(frame.height))
    data = text.with_columns(pl.Series(_AMOUNT, amounts), who.cast(pl.Int64).alias(_UNIT))
    keys: dict[CellKey, int] = {}
    sums: dict[tuple[int, str], tuple[int, tuple[int, ...]]] = {}
    for table in dimensions:
        nodes = [_nodes(text, d) for d in table]
        if np.prod([len(n) for n in nodes]) > _MOST_CELLS:
            raise BadParameter(f"A table has more than {_MOST_CELLS:,} cells.", fix="Use fewer columns or levels.")
        for combination in product(*nodes):
            keys.setdefault(_key(combination), len(keys))
        for place, own in enumerate(nodes):
            for combination in product(*nodes):
                children = own[combination[place]]
                if children:
                    total = keys[_key(combination)]
                    parts = (keys[_key((*combination[:place], child, *combination[place + 1 :]))] for child in children)
                    sums[total, table[place][len(combination[place])]] = total, tuple(parts)
    return _filled(tuple(keys), tuple(sums.values()), _contributions(data, list(keys)), magnitude=value is not None)


_AMOUNT, _UNIT, _CELL = "\0amount", "\0unit", "\0cell"
Node = tuple[tuple[str, str], ...]


def _check(frame: pl.DataFrame, tables: Sequence[Sequence[Sequence[str]]], value: str | None, unit: str | None) -> None:
    for table in tables:
        names = [name for dimension in table for name in dimension]
        if len(set(names)) < len(names):
            raise BadParameter("A table lists a column twice.", fix="Name every column once per table.")
        if VALUE in names:
            raise BadParameter(
                f"A dimension is called `{VALUE}`, like the column of figures in the published file.",
                fix="Rename the column.",
            )
    named = dict.fromkeys(name for table in tables for dimension in table for name in dimension)
    for name in (*named, *filter(None, (value, unit))):
        if name not in frame.columns:
            raise BadParameter(f"The table has no column `{name}`.")
        if frame[name].null_count():
            raise BadParameter(
                f"Column `{name}` has missing values.",
                fix="Give them a category: `missing: unknown` in the plan."
                if name in named
                else "Give them a value of their own first.",
            )
    if value is not None:
        check_amounts(frame, value)
        if not (frame[value] >= 0).all():
            raise BadParameter(f"Column `{value}` must hold non-negative numbers: the rules are about shares of a sum.")


def check_amounts(frame: pl.DataFrame, name: str) -> None:
    """Refuse a column that does not hold finite numbers, or whose sum is so large that sums are not exact."""
    numbers = frame[name].cast(pl.Float64) if frame[name].dtype.is_numeric() else None
    if numbers is None or not numbers.is_finite().all():
        raise BadParameter(f"Column `{name}` must hold finite numbers.")
    if not float(numbers.abs().sum()) <= _LARGEST_SUM:
        raise BadParameter(
            f"The sum of column `{name}` is above 1e15, where sums are not exact.", fix="Use a larger unit of amounts."
        )


def _nodes(text: pl.DataFrame, dimension: Sequence[str]) -> dict[Node, tuple[Node, ...]]:
    """The nodes of a dimension, from the total down, each with its children."""
    nodes: dict[Node, tuple[Node, ...]] = {}
    rows = text.select(dimension).unique().sort(dimension).rows()
    for upper, lower in pairwise(dimension):
        if text.select(upper, lower).unique().height != text[lower].n_unique():
            raise HierarchyNotNested(f"A value of `{lower}` lies in several values of `{upper}`.", column=lower)
    for depth in range(len(dimension) + 1):
        for row in rows:
            node = tuple(zip(dimension[:depth], row[:depth], strict=True))
            if node not in nodes:
                below = {tuple(zip(dimension[: depth + 1], r[: depth + 1], strict=True)): None for r in rows
                         if r[:depth] == row[:depth]} if depth < len(dimension) else {}  # fmt: skip
                nodes[node] = tuple(below)
    return nodes


def _key(combination: Sequence[Node]) -> CellKey:
    return tuple(sorted(pair for node in combination for pair in node))


def _contributions(data: pl.DataFrame, keys: Sequence[CellKey]) -> pl.DataFrame:
    """What every contributor adds to every cell."""
    places: dict[tuple[str, ...], list[int]] = {}
    for number, key in enumerate(keys):
        places.setdefault(tuple(name for name, _ in key), []).append(number)
    parts = []
    for columns, numbers in places.items():
        by_unit = data.group_by(*columns, _UNIT).agg(pl.col(_AMOUNT).sum())
        where = {name: [keys[n][place][1] for n in numbers] for place, name in enumerate(columns)}
        listed = pl.DataFrame({**where, _CELL: numbers}, schema_overrides={_CELL: pl.Int64})
        joined = by_unit.join(listed, on=columns) if columns else by_unit.join(listed, how="cross")
        parts.append(joined.select(cell=_CELL, unit=_UNIT, amount=_AMOUNT))
    return pl.concat(parts).sort("cell", "unit")


def _filled(
    keys: tuple[CellKey, ...], sums: tuple[tuple[int, tuple[int, ...]], ...], held: pl.DataFrame, *, magnitude: bool
) -> TableCells:
    """Cells with value, number of contributors and largest contributions."""
    values, contributors = np.zeros(len(keys)), np.zeros(len(keys), dtype=np.int64)
    largest = np.zeros((len(keys), _TOP))
    amount = pl.col("amount")
    found = held.group_by("cell").agg(amount.sum().alias("v"), pl.len().alias("n"), amount.top_k(_TOP).alias("top"))
    for number, total, count, top in found.iter_rows():
        values[number], contributors[number] = total, count
        largest[number, : len(top)] = sorted(top, reverse=True)
    return TableCells(
        keys=keys, values=values, contributors=contributors, largest=largest, sums=sums, magnitude=magnitude,
        contributions=held,
    )  # fmt: skip
