"""Item sets of units in compressed sparse rows: the distinct items of each person, most frequent items first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.arrays import Array, Ints
from sfumato.data.row_codes import value_codes
from sfumato.dataset import Data
from sfumato.errors import BadParameter, EmptyTable
from sfumato.wording import counted

MinUnits = Annotated[int, Field(ge=2)]
"""A minimum number of units."""
Known = Annotated[int, Field(ge=1, le=5)]
"""A number of items that an adversary knows."""


def declared_unit(data: Data, person: str | None, part: str) -> str:
    """The column that identifies a person: the one named, or the recipe's ``unit``. No row is looked at."""
    unit = person or data.schema.unit
    if unit is None:
        raise BadParameter(
            f"{part}: no column says which rows belong to one person.",
            fix="Declare it as `unit` in the recipe, or name it with `person`.",
        )
    data.table.require([unit])
    return unit


def unit_column(data: Data, person: str | None, part: str) -> str:
    """The column that identifies a person; refused if it is empty in a row."""
    unit = declared_unit(data, person, part)
    missing = data.table.column(unit).null_count()
    if missing:
        raise BadParameter(
            f"{part}: the unit `{unit}` is empty in {counted(missing, 'row')}.",
            fix="Remove these rows, or give each its own identifier.",
            column=unit,
        )
    return unit


def event_codes(frame: pl.DataFrame, unit: str, item: str) -> tuple[Ints, Ints, pl.Series]:
    """Unit code and item code of every row, and the distinct items; a row without an item has the code -1."""
    units, _ = value_codes(frame.get_column(unit))
    codes, items = value_codes(frame.get_column(item))
    if items.null_count():
        # value_codes numbers the empty cell like any other value; close the gap it leaves
        empty = int(items.is_null().arg_true()[0])
        codes = np.where(codes == empty, -1, codes - (codes > empty))
        items = items.drop_nulls()
    return units, codes, items


def distinct_sorted(keys: Ints) -> Ints:
    """The distinct keys in ascending order; several times faster than ``numpy.unique`` on tens of millions."""
    keys = np.sort(keys)
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemSets:
    """The distinct items of each unit.

    Items are ranked by support, the number of units that have them: rank 0 is the most frequent. The ranks of a unit
    ascend. ``places`` is the inverted index: for each rank the positions in ``ranks`` where it stands.
    """

    starts: Ints
    """The ranks of unit u are ``ranks[starts[u] : starts[u + 1]]``."""
    ranks: npt.NDArray[np.int32]
    owner: npt.NDArray[np.int32]
    """The unit at each position of ``ranks``."""
    item_starts: Ints
    places: npt.NDArray[np.int64]
    rank_of: Ints
    """Rank of each item code."""

    @classmethod
    def of(cls, units: Ints, items: Ints, *, count: int, first: int | None = None) -> ItemSets:
        """Build from one code per event; negative items are skipped. ``first`` is an item to rank before all others."""
        known = items >= 0
        if not known.any():
            raise EmptyTable("No unit has any item.", fix="Check that the item column is the right one and not empty.")
        n_units = int(units.max()) + 1
        pairs = units * count + items
        # from here on in place where possible: a hundred million events are 0.8 GB per array
        pairs = distinct_sorted(pairs if known.all() else pairs[known])
        owner = (pairs // count).astype(np.int32)
        pairs %= count
        support = np.bincount(pairs, minlength=count)
        key = support.astype(np.float64)
        if first is not None:
            key[first] = np.inf
        order = np.argsort(-key, kind="stable")
        rank_of = np.empty(count, dtype=np.int64)
        rank_of[order] = np.arange(count)
        pairs = rank_of[pairs]
        pairs += owner * np.int64(count)
        pairs.sort()
        pairs %= count
        ranks = pairs.astype(np.int32)
        del pairs
        starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_units))])
        places = np.argsort(ranks, kind="stable")
        return cls(
            starts=starts,
            ranks=ranks,
            owner=owner,
            item_starts=np.concatenate([[0], np.cumsum(support[order])]),
            places=places,
            rank_of=rank_of,
        )

    @property
    def units(self) -> int:
        return len(self.starts) - 1

    @property
    def items(self) -> int:
        return len(self.item_starts) - 1

    @property
    def support(self) -> Array:
        """Number of units by rank."""
        return np.diff(self.item_starts)
