"""Count the equivalence classes of a release by plain GROUP BY statements in DuckDB.

This is a second, independent implementation of :mod:`sfumato.masking.equivalence_classes` and must stay one: checks
built on it would repeat the mistakes of any code that they shared with the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from sfumato.data.sql_quoting import quoted_name
from sfumato.evaluation.row_queries import SqlRowQueries
from sfumato.release.class_counts import Counts, ReleaseCounts

__all__ = ["count_classes"]


def count_classes(
    release: pl.DataFrame,
    *,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    missing: Mapping[str, str] | None = None,
    original: pl.DataFrame | None = None,
    population: pl.DataFrame | None = None,
    paths: Mapping[str, Mapping[str | None, tuple[str | None, ...]]] | None = None,
) -> ReleaseCounts:
    """Group a release by its quasi-identifiers with DuckDB.

    Rows that show ``*`` (or an empty cell that matches everything) in every quasi-identifier belong to no class. Empty
    cells of columns whose ``missing`` is "wildcard" or "suppressed" match every value. ``population`` must have the
    same labels as the release. Sensitive columns are compared with ``original`` if it has all values of the release.
    """
    import duckdb

    wildcards = [name for name in quasi if (missing or {}).get(name, "category") != "category"]
    keys = [f"CAST({quoted_name(name)} AS VARCHAR)" for name in quasi]
    hidden = " AND ".join(
        f"({key} IS NOT DISTINCT FROM '*'" + (f" OR {key} IS NULL)" if name in wildcards else ")")
        for name, key in zip(quasi, keys, strict=True)
    )
    # Polars formats both sides of every comparison: DuckDB writes large numbers and timestamps differently
    as_text = pl.DataFrame([release.get_column(name).cast(pl.String) for name in (*quasi, *sensitive)])
    with duckdb.connect(":memory:") as base:
        base.register("release_rows", as_text.to_arrow())
        columns = ", ".join(f"{key} AS q{i}" for i, key in enumerate(keys))
        names = ", ".join(f"q{i}" for i in range(len(quasi)))
        values = "".join(f", CAST({quoted_name(name)} AS VARCHAR) AS s{i}" for i, name in enumerate(sensitive))
        base.execute(f"CREATE TABLE every AS SELECT {columns}{values}, ({hidden}) AS hidden FROM release_rows")
        if base.execute("SELECT bool_and(hidden) FROM every").fetchone() == (True,):
            base.execute("UPDATE every SET hidden = false")
        base.execute(
            f"CREATE TABLE class AS SELECT row_number() OVER () - 1 AS id, * FROM "
            f"(SELECT {names}, count(*) AS n FROM every WHERE NOT hidden GROUP BY {names})"
        )
        classes = base.execute(f"SELECT {names}, n FROM class ORDER BY id").fetchall()
        blank = [i for i, name in enumerate(quasi) if name in wildcards and release[name].null_count()]
        fits = " AND ".join(
            f"(a.q{i} = b.q{i} OR a.q{i} IS NULL OR b.q{i} IS NULL)"
            if i in blank
            else f"a.q{i} IS NOT DISTINCT FROM b.q{i}"
            for i in range(len(quasi))
        )
        if blank:
            matching = "SELECT a.id, sum(b.n) FROM class a JOIN class b ON " + fits + " GROUP BY a.id ORDER BY a.id"
            sizes = tuple(int(n) for _, n in base.execute(matching).fetchall())
        else:
            sizes = tuple(int(row[-1]) for row in classes)
        inside: dict[str, tuple[Counts, ...]] = {}
        for number, name in enumerate(sensitive):
            same = " AND ".join(f"b.q{i} IS NOT DISTINCT FROM e.q{i}" for i in range(len(quasi)))
            base.execute(
                f"CREATE OR REPLACE TABLE value_counts AS SELECT b.id, e.s{number} AS v, count(*) AS n "
                f"FROM every e JOIN class b ON {same} WHERE NOT e.hidden GROUP BY ALL"
            )
            joined = f"class a JOIN class b ON {fits} JOIN value_counts h ON h.id = b.id"
            pairs = f"SELECT a.id, h.v, sum(h.n) FROM {joined} GROUP BY ALL"
            counts: list[dict[str | None, int]] = [{} for _ in classes]
            for place, value, n in base.execute(pairs if blank else "SELECT id, v, n FROM value_counts").fetchall():
                counts[place][value] = int(n)
            inside[name] = tuple(counts)
        people, unmatched = None, False
        if population is not None:
            people, unmatched = _population(base, population, quasi, len(classes))
    overall, order = {}, {}
    for name in sensitive:
        table = _compared(release, original, name)
        count = table.get_column(name).alias("value").value_counts().sort("value", nulls_last=True)
        values_in_order = count.get_column("value").cast(pl.String).to_list()
        overall[name] = dict(zip(values_in_order, count.get_column("count").to_list(), strict=True))
        order[name] = _ordered(values_in_order, (paths or {}).get(name, {}), words=table.schema[name] == pl.String)
    return ReleaseCounts(
        keys=tuple(row[:-1] for row in classes),
        sizes=sizes,
        own_rows=tuple(int(row[-1]) for row in classes),
        inside=inside,
        overall=overall,
        order=order,
        paths=paths or {},
        population=people,
        unmatched_population=unmatched,
        rows=SqlRowQueries(release=release),
    )


def _compared(release: pl.DataFrame, original: pl.DataFrame | None, name: str) -> pl.DataFrame:
    """The table that a sensitive column is compared with: the original, unless its values were altered since."""
    if original is None or name not in original.columns:
        return release
    before, after = (set(frame.get_column(name).cast(pl.String)) for frame in (original, release))
    return original if after <= before else release


def _ordered(values: list[str | None], listed: Iterable[str | None], *, words: bool) -> tuple[str | None, ...]:
    """Values in ascending order; text in the order of its hierarchy."""
    if not words:
        return tuple(values)
    place = {value: number for number, value in enumerate(listed)}
    return tuple(sorted(values, key=lambda value: (value is None, place.get(value, len(place)))))


def _population(base: Any, population: pl.DataFrame, quasi: Sequence[str], count: int) -> tuple[tuple[int, ...], bool]:
    base.register("population_rows", population.to_arrow())
    same = " AND ".join(f"c.q{i} IS NOT DISTINCT FROM CAST(p.{quoted_name(n)} AS VARCHAR)" for i, n in enumerate(quasi))
    rows = base.execute(
        f"SELECT c.id, count(*) FROM population_rows p LEFT JOIN class c ON {same} GROUP BY ALL"
    ).fetchall()
    people = [0] * count
    unmatched = False
    for place, n in rows:
        if place is None:
            unmatched = True
        else:
            people[place] = int(n)
    return tuple(people), unmatched
