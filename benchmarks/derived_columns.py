"""Time and memory of the search for derived columns: one million rows, 60 columns, six of them masked."""

from __future__ import annotations

import resource
import time

import numpy as np
import polars as pl

from sfumato.profiling.derived import find_determinations

ROWS = 1_000_000
TARGETS = ("c0", "c1", "c3", "c4", "c7", "c10")


def table() -> pl.DataFrame:
    """Independent columns, and three from which others follow: a function, a label, a sum."""
    draw = np.random.default_rng(0)
    columns = {
        f"c{i}": draw.normal(size=ROWS).round(3) if i % 3 == 0 else draw.integers(0, (2, 50, 5000)[i % 3], ROWS)
        for i in range(56)
    }
    return pl.DataFrame({**columns, "town": draw.integers(0, 30_000, ROWS)}).with_columns(
        function=pl.col("c0") ** 3 + pl.col("c0"),
        label=pl.col("c1").cast(pl.String) + "x",
        total=pl.col("c3") + pl.col("c6") + pl.col("c9"),
    )


def main() -> None:
    people = table()
    begun = time.process_time()
    found = find_determinations(people.drop(TARGETS), people.select(TARGETS))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{people.height:,} rows, {people.width} columns: {time.process_time() - begun:.1f} CPU s, peak {peak:.1f} GB"
    )
    print(*found, sep="\n")


if __name__ == "__main__":
    main()
