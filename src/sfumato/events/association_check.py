"""Independent check of rho-uncertainty on a release, by self-joins in DuckDB.

It shares no code with the search in :mod:`sfumato.events.associations`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import polars as pl

from sfumato.data.in_process import open_duckdb
from sfumato.release import State, Verdict

MODEL = "rho-uncertainty"


def largest_confidence(
    frame: pl.DataFrame, *, unit: str, item: str, sensitive: Sequence[str], m: int
) -> tuple[Fraction, int]:
    """Largest confidence of a rule from at most ``m`` items to a sensitive one, and the number of units behind it.

    All units of the frame count, also those without an item.

    >>> baskets = pl.DataFrame({"buyer": [1, 1, 2, 2, 3], "product": ["a", "x", "a", "x", "a"]})
    >>> largest_confidence(baskets, unit="buyer", item="product", sensitive=["x"], m=1)
    (Fraction(2, 3), 3)
    """
    events = pl.DataFrame({"u": frame.get_column(unit).cast(pl.String), "i": frame.get_column(item).cast(pl.String)})
    worst, behind = Fraction(0), 0
    with open_duckdb() as base:
        base.register("released", events.to_arrow())
        base.register("secret_items", pl.DataFrame({"i": list(dict.fromkeys(sensitive))}).to_arrow())
        base.execute("CREATE TABLE e AS SELECT DISTINCT u, i FROM released WHERE i IS NOT NULL")
        base.execute("CREATE TABLE s AS SELECT u, i FROM e SEMI JOIN secret_items USING (i)")
        for size in range(m + 1):
            names = [f"e{number}" for number in range(size)]
            key = ", ".join(f"{name}.i AS i{number}" for number, name in enumerate(names))
            groups = ", ".join(f"i{number}" for number in range(size))
            chain = "FROM e e0" + "".join(
                f" JOIN e {right} ON {right}.u = {left}.u AND {right}.i > {left}.i" for left, right in pairwise(names)
            )
            if size == 0:
                known = "SELECT (SELECT count(DISTINCT u) FROM released) AS n"
                both = "SELECT s.i AS secret, count(*) AS b FROM s GROUP BY s.i"
                joined = "CROSS JOIN"
            else:
                known = f"SELECT {key}, count(*) AS n {chain} GROUP BY {groups}"
                outside = " AND ".join(f"s.i <> {name}.i" for name in names)
                both = (
                    f"SELECT {key}, s.i AS secret, count(*) AS b {chain} JOIN s ON s.u = e0.u AND {outside} "
                    f"GROUP BY {groups}, secret"
                )
                joined = "JOIN"
            using = f" USING ({groups})" if size else ""
            row = base.execute(
                f"SELECT b, n FROM ({both}) {joined} ({known}){using} ORDER BY b / n DESC, n DESC LIMIT 1"
            ).fetchone()
            if row is not None and Fraction(int(row[0]), int(row[1])) > worst:
                worst, behind = Fraction(int(row[0]), int(row[1])), int(row[1])
    return worst, behind


def association_verdict(published: Mapping[str, Any], release: pl.DataFrame) -> Verdict:
    """The verdict on rho-uncertainty that a published step promises, recomputed from the release alone."""
    try:
        parameters, unit = published["parameters"], str(published["unit"])
        item, rho, m = str(parameters["item"]), Fraction(str(parameters["rho"])), int(parameters["m"])
        sensitive = [str(one) for one in parameters["sensitive"]]
    except (KeyError, TypeError, ValueError):
        return _not_checked("Its published parameters are incomplete or not valid.")
    if not {unit, item} <= set(release.columns):
        return _not_checked("The release lacks the unit or the items; release the unit as a pseudonym.")
    worst, behind = largest_confidence(release, unit=unit, item=item, sensitive=sensitive, m=m)
    if worst < rho:
        return Verdict(model=MODEL, state=State.HOLDS, worst=float(worst), wanted=float(rho))
    reason = f"{behind} units share some {m} items or fewer, and {float(worst):.1%} of them a sensitive item."
    return Verdict(model=MODEL, state=State.FAILS, worst=float(worst), wanted=float(rho), failing=behind, reason=reason)


def _not_checked(reason: str) -> Verdict:
    return Verdict(model=MODEL, state=State.NOT_CHECKED, reason=reason)
