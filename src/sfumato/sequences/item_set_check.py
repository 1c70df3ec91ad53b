"""Independent check of k^m-anonymity on a release, by self-joins in DuckDB.

It shares no code with the search in :mod:`sfumato.sequences.supported_items`, so a mistake in either shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import comb
from typing import Any

import polars as pl

from sfumato.release import State, Verdict

__all__ = ["item_set_verdict", "smallest_support"]

_MOST_SETS = 2_000_000_000
MODEL = "km-anonymity"


def smallest_support(frame: pl.DataFrame, *, unit: str, item: str, k: int, m: int) -> tuple[int, int, int]:
    """Smallest number of units of any occurring set of at most ``m`` items, the number of sets with fewer than ``k``
    units, and the number of units with such a set.

    >>> baskets = pl.DataFrame({"buyer": [1, 1, 2, 2, 3], "product": ["a", "b", "a", "b", "a"]})
    >>> smallest_support(baskets, unit="buyer", item="product", k=3, m=2)
    (2, 2, 2)
    """
    import duckdb

    events = pl.DataFrame({"u": frame.get_column(unit).cast(pl.String), "i": frame.get_column(item).cast(pl.String)})
    with duckdb.connect(":memory:") as base:
        base.register("released", events.to_arrow())
        base.execute(
            "CREATE TABLE e AS SELECT DISTINCT dense_rank() OVER (ORDER BY u) AS u, "
            "dense_rank() OVER (ORDER BY i) AS i FROM released WHERE i IS NOT NULL"
        )
        base.execute("CREATE TABLE found (u BIGINT)")
        supports, sets = [], 0
        for size in range(1, m + 1):
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
                base.execute(
                    f"INSERT INTO found SELECT DISTINCT unnest(us) FROM "
                    f"(SELECT list(e0.u) AS us {chain} GROUP BY {key} HAVING count(*) < {int(k)})"
                )
        [[units]] = base.execute("SELECT count(DISTINCT u) FROM found").fetchall()
    return min(supports, default=0), sets, int(units)


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
    if sum(comb(size, min(m, size)) for size in sizes) > _MOST_SETS:
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
