"""Independent check of k^m-anonymity on a release: pairs of items by a count matrix, larger sets by joins in DuckDB.

It shares no code with the search in :mod:`sfumato.events.supported_items`, so a mistake in either shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Ints
from sfumato.data.in_process import open_duckdb
from sfumato.kernels import kernel
from sfumato.release import State, Verdict

_MOST_SETS = 2_000_000_000
_MOST_PAIRS = 200_000_000_000
MODEL = "km-anonymity"


def smallest_support(frame: pl.DataFrame, *, unit: str, item: str, k: int, m: int) -> tuple[int, int, int]:
    """Smallest number of units of any occurring set of at most ``m`` items, the number of sets with fewer than ``k``
    units, and the number of units with such a set.

    How often a unit has an item is known, too: items that occur another number of times are different items. The units
    of a set without these numbers include those of the same set with them, so sets without numbers are covered.

    >>> baskets = pl.DataFrame({"buyer": [1, 1, 2, 2, 3], "product": ["a", "b", "a", "b", "a"]})
    >>> smallest_support(baskets, unit="buyer", item="product", k=3, m=2)
    (2, 2, 2)
    >>> twice = pl.concat([baskets, baskets[:1]])  # one buyer has a product twice, which nobody else has
    >>> smallest_support(twice, unit="buyer", item="product", k=3, m=1)
    (1, 3, 3)
    """
    held = frame.select(u=_numbered(frame.get_column(unit)), i=_numbered(frame.get_column(item)))
    held = held.drop_nulls().group_by("u", "i").len("n")
    if held.is_empty():
        return 0, 0, 0
    largest = int(held["n"].max()) + 1  # type: ignore[arg-type]
    number = held["i"].cast(pl.Int64) * largest + held["n"].cast(pl.Int64)
    held = held.select("u", i=number.rank("dense").cast(pl.Int32) - 1).sort("u", "i")
    units, items = (int(held[name].max()) + 1 for name in ("u", "i"))  # type: ignore[arg-type]
    rows = np.concatenate([[0], np.cumsum(np.bincount(held["u"].to_numpy(), minlength=units))])
    columns = np.concatenate([[0], np.cumsum(np.bincount(held["i"].to_numpy(), minlength=items))])
    holders = held.sort("i", "u")["u"].to_numpy()
    rare = np.zeros(units, dtype=np.bool_)
    smallest, sets = _count_pairs(rows, held["i"].to_numpy(), columns, holders, k, m >= 2, rare)
    if m > 2:
        low, few = _count_larger(held, k, m, rare)
        smallest, sets = min(smallest, low), sets + few
    return smallest, sets, int(rare.sum())


def _numbered(series: pl.Series) -> pl.Series:
    """The number of each value, null if it is missing."""
    text = series.cast(pl.String) if series.dtype in (pl.Categorical, pl.Enum) else series
    return text.rank("dense").cast(pl.Int32) - 1


@kernel()
def _count_pairs(
    rows: Ints,
    items: npt.NDArray[np.int32],
    columns: Ints,
    holders: npt.NDArray[np.int32],
    k: int,
    pairs: bool,
    rare: npt.NDArray[np.bool_],
) -> tuple[int, int]:  # pragma: no cover - compiled
    """Smallest support of an item or a pair, and how many have less than k; marks the units that have one.

    One row of the matrix of counts at a time: how many holders of an item have each item that is not before it.
    """
    support = np.zeros(len(columns) - 1, dtype=np.int64)
    smallest, few = len(rows), 0
    for item in range(len(columns) - 1):
        own = holders[columns[item] : columns[item + 1]]
        for unit in own:
            place = rows[unit + 1] - 1
            while place >= rows[unit] and items[place] >= item:
                if pairs or items[place] == item:
                    support[items[place]] += 1
                place -= 1
        below = 0
        for other in range(item, len(support)):
            if support[other] > 0:
                smallest = min(smallest, support[other])
                below += support[other] < k
        if below:
            for unit in own:
                place = rows[unit + 1] - 1
                while place >= rows[unit] and items[place] >= item and not rare[unit]:
                    rare[unit] = 0 < support[items[place]] < k
                    place -= 1
        few += below
        support[item:] = 0
    return smallest, few


def _count_larger(held: pl.DataFrame, k: int, m: int, rare: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """The same for sets of three to m items, by self-joins."""
    supports, sets = [len(rare)], 0
    with open_duckdb() as base:
        base.register("e", held.to_arrow())
        for size in range(3, m + 1):
            names = [f"e{number}" for number in range(size)]
            chain = "FROM e e0" + "".join(
                f" JOIN e {right} ON {right}.u = {left}.u AND {right}.i > {left}.i" for left, right in pairwise(names)
            )
            key = ", ".join(f"{name}.i" for name in names)
            [[low, few]] = base.execute(
                f"SELECT min(n), count(*) FILTER (n < {int(k)}) FROM (SELECT count(*) AS n {chain} GROUP BY {key})"
            ).fetchall()
            supports += [] if low is None else [int(low)]
            sets += int(few)
            if few:
                found = base.execute(
                    f"SELECT DISTINCT unnest(us) FROM "
                    f"(SELECT list(e0.u) AS us {chain} GROUP BY {key} HAVING count(*) < {int(k)})"
                ).fetchnumpy()
                rare[next(iter(found.values()))] = True
    return min(supports), sets


def item_set_verdict(published: Mapping[str, Any], release: pl.DataFrame) -> Verdict:
    """The verdict on k^m-anonymity that a published step promises, recomputed from the release alone."""
    try:
        parameters = published["parameters"]
        item, k, m, unit = str(parameters["item"]), int(parameters["k"]), int(parameters["m"]), str(published["unit"])
    except (KeyError, TypeError, ValueError):
        return _not_checked("Its published parameters are incomplete or not valid.")
    absent = [name for name in (unit, item) if name not in release.columns]
    if absent:
        names = " and ".join(f"`{name}`" for name in absent)
        return _not_checked(f"The release lacks {names}; release the unit as a pseudonym to have it checked.")
    sizes = release.group_by(unit).agg(pl.col(item).n_unique().alias("n"))["n"].to_list()
    if sum(comb(size, min(m, size)) for size in sizes) > (_MOST_SETS if m > 2 else _MOST_PAIRS):
        return _not_checked(f"The release has too many sets of {m} items to count them.")
    if release.get_column(item).null_count() == release.height:
        return Verdict(model=MODEL, state=State.HOLDS, worst=None, wanted=k, reason="The release shows no item.")
    smallest, sets, units = smallest_support(release, unit=unit, item=item, k=k, m=m)
    if not sets:
        return Verdict(model=MODEL, state=State.HOLDS, worst=smallest, wanted=k)
    reason = f"{sets} sets of at most {m} items occur in fewer than {k} units; {units} units have one."
    return Verdict(model=MODEL, state=State.FAILS, worst=smallest, wanted=k, failing=units, reason=reason)


def _not_checked(reason: str) -> Verdict:
    return Verdict(model=MODEL, state=State.NOT_CHECKED, reason=reason)
