"""Count the equivalence classes of a release by plain GROUP BY statements.

The rows are grouped where they lie (:meth:`sfumato.dataset.rows.Rows.group`); the combinations are then counted as text
in DuckDB.

This is a second, independent implementation of :mod:`sfumato.masking.equivalence_classes` and must stay one: checks
built on it would repeat the mistakes of any code that they shared with the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from sfumato.data.in_process import open_duckdb
from sfumato.data.sql_quoting import quoted_name
from sfumato.dataset.rows import Rows
from sfumato.evaluation.row_queries import SqlRowQueries
from sfumato.release.class_counts import Counts, ReleaseCounts

if TYPE_CHECKING:
    import duckdb


def count_classes(
    release: Rows,
    *,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    missing: Mapping[str, str] | None = None,
    original: Rows | None = None,
    population: pl.DataFrame | None = None,
    paths: Mapping[str, Mapping[str | None, tuple[str | None, ...]]] | None = None,
    suppressed: bool = True,
) -> ReleaseCounts:
    """Group a release by its quasi-identifiers.

    Rows that show ``*`` (or an empty cell that matches everything) in every quasi-identifier belong to no class, if
    ``suppressed`` says that steps put it there; otherwise ``*`` is a value like any other. Empty
    cells of columns whose ``missing`` is "wildcard" or "suppressed" match every value. ``population`` must have the
    same labels as the release. Sensitive columns are compared with ``original`` if it has all values of the release.
    """
    wildcards = [name for name in quasi if (missing or {}).get(name, "category") != "category"]
    names = ", ".join(f"q{i}" for i in range(len(quasi)))
    # what no step suppressed is a value: it is compared with itself
    star = "'*'" if suppressed else "NULL"
    hidden = " AND ".join(
        f"coalesce(q{i} = {star}, {'true' if name in wildcards else 'false'} AND q{i} IS NULL)"
        for i, name in enumerate(quasi)
    )
    with open_duckdb() as base:
        blank = _count_rows(base, release, quasi, "shown")
        base.execute(f"CREATE TABLE every AS SELECT {names}, n, ({hidden}) AS hidden FROM shown")
        if base.execute("SELECT bool_and(hidden) FROM every").fetchone() == (True,):
            base.execute("UPDATE every SET hidden = false")
        base.execute(
            f"CREATE TABLE class AS SELECT row_number() OVER (ORDER BY {names}) - 1 AS id, * FROM "
            f"(SELECT {names}, CAST(sum(n) AS BIGINT) AS n FROM every WHERE NOT hidden GROUP BY {names})"
        )
        classes = base.execute(f"SELECT {names}, n FROM class ORDER BY id").fetchall()
        left_out = sum(int(n) for (n,) in base.execute("SELECT n FROM every WHERE hidden").fetchall())
        blank = [i for i in blank if quasi[i] in wildcards]
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
        for name in sensitive:
            _count_rows(base, release, [*quasi, name], "with_value")
            same = " AND ".join(f"b.q{i} IS NOT DISTINCT FROM e.q{i}" for i in range(len(quasi)))
            # a combination that is suppressed is in no class
            base.execute(
                f"CREATE OR REPLACE TABLE value_counts AS SELECT b.id, e.q{len(quasi)} AS v, sum(e.n) AS n "
                f"FROM with_value e JOIN class b ON {same} GROUP BY ALL"
            )
            joined = f"class a JOIN class b ON {fits} JOIN value_counts h ON h.id = b.id"
            # in one order everywhere, so that sums of fractions are the same in every engine
            pairs = f"SELECT a.id, h.v, sum(h.n) FROM {joined} GROUP BY ALL ORDER BY ALL"
            counts: list[dict[str | None, int]] = [{} for _ in classes]
            for place, value, n in base.execute(pairs if blank else "FROM value_counts ORDER BY ALL").fetchall():
                counts[place][value] = int(n)
            inside[name] = tuple(counts)
        people, unmatched = None, False
        if population is not None:
            people, unmatched = _population(base, population, quasi, len(classes))
    overall, order = {}, {}
    for name in sensitive:
        values, totals = _compared(release, original, name)
        overall[name] = dict(zip(values.cast(pl.String).to_list(), totals, strict=True))
        order[name] = _ordered(list(overall[name]), (paths or {}).get(name, {}), words=values.dtype == pl.String)
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
        suppressed_rows=left_out,
        rows=SqlRowQueries(release=release),
    )


def _count_rows(base: duckdb.DuckDBPyConnection, release: Rows, names: Sequence[str], table: str) -> list[int]:
    """Make a table of the combinations of some columns (``q0``, ``q1``, ...) with their rows (``n``), and say which
    columns have empty cells."""
    groups = release.group(names)
    # Polars formats both sides of every comparison: DuckDB writes large numbers and timestamps differently
    text = [column.cast(pl.String).alias(f"q{i}") for i, column in enumerate(groups.values)]
    base.register(table, pl.DataFrame([*text, pl.Series("n", groups.rows)]).to_arrow())
    return [i for i, column in enumerate(text) if column.null_count()]


def _compared(release: Rows, original: Rows | None, name: str) -> tuple[pl.Series, list[int]]:
    """The values that a sensitive column is compared with, in order, and their frequencies: those of the original,
    unless values were altered since."""
    groups = release.group([name])
    if original is not None and name in original.columns:
        before = original.group([name])
        known, shown = (set(counts.values.to_series().cast(pl.String)) for counts in (before, groups))
        groups = before if shown <= known else groups
    values = groups.values.to_series()
    place = values.arg_sort(nulls_last=True)
    return values.gather(place), groups.rows[place.to_numpy()].tolist()


def _ordered(values: list[str | None], listed: Iterable[str | None], *, words: bool) -> tuple[str | None, ...]:
    """Values in ascending order; text in the order of its hierarchy."""
    if not words:
        return tuple(values)
    place = {value: number for number, value in enumerate(listed)}
    return tuple(sorted(values, key=lambda value: (value is None, place.get(value, len(place)))))


def _population(
    base: duckdb.DuckDBPyConnection, population: pl.DataFrame, quasi: Sequence[str], count: int
) -> tuple[tuple[int, ...], bool]:
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
