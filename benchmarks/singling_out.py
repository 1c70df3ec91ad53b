"""How long it takes to find what singles people out: 30 columns by a million rows, up to four columns together.

Run: python benchmarks/singling_out.py [rows]. Beside it, the plain way: one GROUP BY per combination in DuckDB,
measured on a few combinations of each size and multiplied by their number.
"""

from __future__ import annotations

import math
import sys
import time

import duckdb
import numpy as np
import polars as pl

from sfumato.profiling.singling_out import single_out


def people(rows: int, seed: int = 7) -> pl.DataFrame:
    """A census-like table: three columns of many values, some of tens, most of a few, all skewed."""
    draw = np.random.default_rng(seed)

    def skewed(values: int, power: float) -> np.ndarray:
        chance = 1 / np.arange(1, values + 1) ** power
        return draw.choice(values, rows, p=chance / chance.sum())

    columns: dict[str, np.ndarray] = {
        "zip": skewed(30_000, 0.7),
        "birth": draw.integers(0, 29_000, rows),
        "income": np.round(np.exp(draw.normal(10.5, 0.7, rows)), -1).astype(int),
        "sex": draw.integers(0, 2, rows),
        "country": skewed(41, 2),
        "hours": np.where(draw.random(rows) < 0.45, 40, draw.integers(1, 99, rows)),
        "occupation": skewed(14, 0.5),
        "education": skewed(16, 0.8),
    }
    columns["age"] = columns["birth"] // 365
    for number in range(30 - len(columns)):
        columns[f"answer{number}"] = skewed([2, 3, 5, 8, 10, 20][number % 6], 0.7)
    return pl.DataFrame(columns)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    single_out(people(20_000), exact_visits=1_000)  # compile once
    frame = people(rows)
    wall, cpu = time.perf_counter(), time.process_time()
    found = single_out(frame)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"sfumato: {frame.width} columns x {rows:,} rows: {wall:.1f} s wall, {cpu:.1f} s CPU")
    print(
        f"  examined {found.examined}, ruled out {found.ruled_out}, screened on {found.sampled} rows, size {found.size}"
    )
    for combination in (*found.minimal, *found.others):
        print(f"  {combination.unique:7.2%}  {' + '.join(combination.columns)}")
    print(f"  and {found.more} more")
    draw, total = np.random.default_rng(0), 0.0
    for size in (2, 3, 4):
        tried = [draw.choice(frame.columns, size, replace=False) for _ in range(10)]
        start = time.process_time()
        for names in tried:
            listed = ", ".join(names)
            duckdb.sql(f"SELECT count(*) FROM (SELECT 1 FROM frame GROUP BY {listed} HAVING count(*) = 1)").fetchall()
        each = (time.process_time() - start) / len(tried)
        total += each * math.comb(frame.width, size)
        print(f"DuckDB GROUP BY, {size} columns: {each:.2f} s CPU each, {math.comb(frame.width, size)} combinations")
    print(f"DuckDB, all combinations: about {total / 60:.0f} min CPU; ratio {total / cpu:.0f}")


if __name__ == "__main__":
    main()
