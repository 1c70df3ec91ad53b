"""Frequent item sets and association rules of a table (Apriori on bit vectors).

An item is a column with one of its values, and a row contains the items of its cells. For truth values and columns of 0
and 1, only the presence (true, 1) is an item that mining finds, as in market baskets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import combinations
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Mask
from sfumato.errors import NotApplicable

Item = tuple[str, Any]
"""A column and one of its values."""
ItemSet = frozenset[Item]
Rule = tuple[ItemSet, ItemSet]
"""Antecedent and consequent."""

_MOST_VALUES = 20
"""Integer columns with more different values are amounts, not items."""
_MOST_SETS = 200_000


def least_count(share: float, rows: int) -> int:
    """The smallest number of rows that is at least a share of them, in exact arithmetic.

    >>> least_count(0.1, 30), least_count(0.33, 6), least_count(0.5, 0)
    (3, 2, 1)
    """
    return max(1, ceil(Fraction(str(share)) * rows))


def item_rows(frame: pl.DataFrame, item: Item) -> Mask:
    """The rows that contain an item. Numbers are compared as numbers, everything else as text.

    >>> item_rows(pl.DataFrame({"bread": [True, None, False]}), ("bread", True)).tolist()
    [True, False, False]
    """
    name, value = item
    column = frame.get_column(name)
    if column.dtype.is_numeric():
        try:
            same = column.cast(pl.Float64) == float(value)
        except (TypeError, ValueError):
            return np.zeros(frame.height, dtype=np.bool_)
    else:
        same = column.cast(pl.String) == (str(value).lower() if isinstance(value, bool) else str(value))
    return same.fill_null(False).to_numpy().astype(np.bool_)


def _items(frame: pl.DataFrame, columns: Iterable[str], least: int) -> dict[Item, Mask]:
    """All items of at least ``least`` rows."""
    found: dict[Item, Mask] = {}
    for name in columns:
        column = frame.get_column(name)
        if column.dtype == pl.Boolean:
            values: list[object] = [True]
        elif column.dtype.is_integer():
            distinct = column.drop_nulls().unique().sort().to_list()
            values = [1] if set(distinct) <= {0, 1} else distinct if len(distinct) <= _MOST_VALUES else []
        elif column.dtype in (pl.String, pl.Categorical, pl.Enum):
            counts = column.cast(pl.String).drop_nulls().value_counts(name="rows")
            values = sorted(counts.filter(pl.col("rows") >= least)[name].to_list())
        else:
            values = []
        for value in values:
            inside = item_rows(frame, (name, value))
            if inside.sum() >= least:
                found[name, value] = inside
    return found


def frequent_item_sets(
    frame: pl.DataFrame, columns: Iterable[str], *, support: float, longest: int = 3
) -> dict[ItemSet, int]:
    """All item sets that at least a share ``support`` of the rows contain, with their numbers of rows.

    Reference: Agrawal, Srikant (1994), Fast algorithms for mining association rules, VLDB.

    >>> baskets = pl.DataFrame({"bread": [1, 1, 1, 0], "milk": [1, 1, 0, 1]})
    >>> found = frequent_item_sets(baskets, baskets.columns, support=0.5)
    >>> sorted((len(items), rows) for items, rows in found.items())
    [(1, 3), (1, 3), (2, 2)]
    """
    least = least_count(support, frame.height)
    items = _items(frame, columns, least)
    names = list(items)
    bits = {number: np.packbits(items[name]) for number, name in enumerate(names)}
    level: dict[tuple[int, ...], npt.NDArray[np.uint8]] = {(number,): own for number, own in bits.items()}
    found = {frozenset([names[n]]): int(items[names[n]].sum()) for n in range(len(names))}
    for size in range(2, longest + 1):
        above: dict[tuple[int, ...], npt.NDArray[np.uint8]] = {}
        for key, rows in level.items():
            for number in range(key[-1] + 1, len(names)):
                if names[number][0] == names[key[-1]][0]:
                    continue
                wider = (*key, number)
                if size > 2 and any(part not in level for part in combinations(wider, size - 1)):
                    continue
                both = rows & bits[number]
                count = int(np.bitwise_count(both).sum())
                if count >= least:
                    above[wider] = both
                    found[frozenset(names[n] for n in wider)] = count
            if len(found) > _MOST_SETS:
                raise NotApplicable(
                    f"More than {_MOST_SETS:,} item sets are frequent at a support of {support:g}.",
                    fix="Raise the support, or name fewer columns.",
                )
        level = above
    return found


def rules_of(counts: Mapping[ItemSet, int], *, confidence: float) -> frozenset[Rule]:
    """All rules between disjoint parts of frequent item sets with at least this confidence."""
    wanted, found = Fraction(str(confidence)), set()
    for items, count in counts.items():
        for size in range(1, len(items)):
            for chosen in combinations(items, size):
                antecedent = frozenset(chosen)
                if count >= wanted * counts[antecedent]:
                    found.add((antecedent, items - antecedent))
    return frozenset(found)


def vanished_item_sets(
    before: pl.DataFrame,
    after: pl.DataFrame,
    columns: Iterable[str],
    *,
    support: float,
    confidence: float | None,
    longest: int,
) -> frozenset[ItemSet]:
    """Item sets of two items or more that are frequent before and not after, or whose rules come out before only."""
    columns = tuple(name for name in columns if name in before.columns and name in after.columns)
    first, second = (frequent_item_sets(frame, columns, support=support, longest=longest) for frame in (before, after))
    gone = {items for items in first if len(items) > 1 and items not in second}
    if confidence is not None:
        rules = rules_of(first, confidence=confidence) - rules_of(second, confidence=confidence)
        gone |= {antecedent | consequent for antecedent, consequent in rules}
    return frozenset(gone)
