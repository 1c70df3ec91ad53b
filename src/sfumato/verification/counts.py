"""What a release shows: its classes by plain GROUP BY statements in DuckDB, for checks that share no other code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from sfumato.data.sql_quoting import quoted_name

__all__ = ["Counts", "ReleaseCounts", "count_classes"]

Counts = Mapping[str | None, int]


@dataclass(frozen=True, kw_only=True)
class ReleaseCounts:
    """What a release shows: its classes by the values they show, and the values inside them."""

    keys: tuple[tuple[str | None, ...], ...]
    sizes: tuple[int, ...]
    """Rows that fit each class; more than its own where empty cells match everything."""
    own: tuple[int, ...]
    inside: Mapping[str, tuple[Counts, ...]] = field(default_factory=dict)
    """By sensitive column, for each class how often each value occurs."""
    whole: Mapping[str, Counts] = field(default_factory=dict)
    """By sensitive column, how often each value occurs in the table to compare with."""
    order: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    """By sensitive column, its values from the smallest to the largest."""
    paths: Mapping[str, Mapping[str | None, tuple[str | None, ...]]] = field(default_factory=dict)
    """By sensitive column with a taxonomy, each value's labels up to the root."""
    people: tuple[int, ...] | None = None
    """People of the population who fit each class."""
    absent: bool = False
    """Whether somebody of the population fits no class."""


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

    Rows that show ``*`` (or an empty cell that matches everything) in every quasi-identifier form no class. Empty cells
    of columns whose ``missing`` is "wildcard" or "suppressed" match every value. ``population`` must show the same
    labels as the release. Sensitive columns are compared with ``original`` where it holds all values of the release.
    """
    import duckdb

    jokers = [name for name in quasi if (missing or {}).get(name, "category") != "category"]
    keys = [f"CAST({quoted_name(name)} AS VARCHAR)" for name in quasi]
    hidden = " AND ".join(
        f"({key} IS NOT DISTINCT FROM '*'" + (f" OR {key} IS NULL)" if name in jokers else ")")
        for name, key in zip(quasi, keys, strict=True)
    )
    # both sides of every comparison are spelled by Polars: DuckDB writes large numbers and moments in another way
    written = release.with_columns(release.get_column(name).cast(pl.String) for name in (*quasi, *sensitive))
    with duckdb.connect(":memory:") as base:
        base.register("release_rows", written.to_arrow())
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
        found = base.execute(f"SELECT {names}, n FROM class ORDER BY id").fetchall()
        blank = [i for i, name in enumerate(quasi) if name in jokers and release[name].null_count()]
        fits = " AND ".join(
            f"(a.q{i} = b.q{i} OR a.q{i} IS NULL OR b.q{i} IS NULL)"
            if i in blank
            else f"a.q{i} IS NOT DISTINCT FROM b.q{i}"
            for i in range(len(quasi))
        )
        if blank:
            crowd = "SELECT a.id, sum(b.n) FROM class a JOIN class b ON " + fits + " GROUP BY a.id ORDER BY a.id"
            sizes = tuple(int(n) for _, n in base.execute(crowd).fetchall())
        else:
            sizes = tuple(int(row[-1]) for row in found)
        inside: dict[str, tuple[Counts, ...]] = {}
        for number, name in enumerate(sensitive):
            same = " AND ".join(f"b.q{i} IS NOT DISTINCT FROM e.q{i}" for i in range(len(quasi)))
            base.execute(
                f"CREATE OR REPLACE TABLE held AS SELECT b.id, e.s{number} AS v, count(*) AS n "
                f"FROM every e JOIN class b ON {same} WHERE NOT e.hidden GROUP BY ALL"
            )
            joined = f"class a JOIN class b ON {fits} JOIN held h ON h.id = b.id"
            pairs = f"SELECT a.id, h.v, sum(h.n) FROM {joined} GROUP BY ALL"
            counts: list[dict[str | None, int]] = [{} for _ in found]
            for place, value, n in base.execute(pairs if blank else "SELECT id, v, n FROM held").fetchall():
                counts[place][value] = int(n)
            inside[name] = tuple(counts)
        people, absent = _population(base, population, quasi, len(found)) if population is not None else (None, False)
    whole, order = {}, {}
    for name in sensitive:
        table = _compared(release, original, name)
        count = table.get_column(name).alias("value").value_counts().sort("value", nulls_last=True)
        found_values = count.get_column("value").cast(pl.String).to_list()
        whole[name] = dict(zip(found_values, count.get_column("count").to_list(), strict=True))
        order[name] = _ordered(found_values, (paths or {}).get(name, {}), words=table.schema[name] == pl.String)
    return ReleaseCounts(
        keys=tuple(row[:-1] for row in found),
        sizes=sizes,
        own=tuple(int(row[-1]) for row in found),
        inside=inside,
        whole=whole,
        order=order,
        paths=paths or {},
        people=people,
        absent=absent,
    )


def _compared(release: pl.DataFrame, original: pl.DataFrame | None, name: str) -> pl.DataFrame:
    """The table that a sensitive column is compared with: the original, unless its values were altered since."""
    if original is None or name not in original.columns:
        return release
    before, after = (set(frame.get_column(name).cast(pl.String)) for frame in (original, release))
    return original if after <= before else release


def _ordered(values: list[str | None], listed: Iterable[str | None], *, words: bool) -> tuple[str | None, ...]:
    """Values from the smallest to the largest: words as a taxonomy lists them."""
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
    absent = False
    for place, n in rows:
        if place is None:
            absent = True
        else:
            people[place] = int(n)
    return tuple(people), absent
