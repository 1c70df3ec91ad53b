"""Reading a CSV file: sfumato.data.read against plain Polars, same file, same run.

    python benchmarks/read_csv.py            # 1,000,000 rows, 10 columns, about 90 MB

Plain Polars guesses types from the first 100 lines and turns the ZIP code 02141 into 2141 unless told otherwise;
sfumato.data.read looks at every value. The ratio is what that costs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from sfumato.data import read, write
from sfumato.data.table import Table


def people(rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "id": np.arange(rows),
            "age": rng.integers(0, 100, rows),
            "income": rng.lognormal(10, 1, rows).round(2),
            "zip": [f"{code:05d}" for code in rng.integers(0, 99_999, rows)],
            "birth": np.datetime64("1930-01-01", "D") + rng.integers(0, 30_000, rows),
            "sex": rng.choice(["male", "female"], rows),
            "job": rng.choice(["clerk", "nurse", "teacher", "engineer, civil"], rows),
            "score": rng.normal(size=rows),
            "flag": rng.random(rows) < 0.5,
            "name": [f"person {number}" for number in range(rows)],
        }
    )


def best(action: Callable[[], object], repeats: int = 5) -> tuple[float, float]:
    """Shortest wall-clock and processor time; on a busy machine only the second means anything."""
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        action()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return min(walls), min(cpus)


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        quoted, plain = Path(folder, "quoted.csv"), Path(folder, "plain.csv")
        frame = people(rows)
        write(Table(frame=frame), quoted)
        write(Table(frame=frame.with_columns(pl.col("job").str.replace(", ", " "))), plain)
        for path in (quoted, plain):
            ours = best(lambda path=path: read(path))
            polars = best(lambda path=path: pl.read_csv(path, try_parse_dates=True))
            size = path.stat().st_size / 1e6
            print(f"{path.name}, {size:.0f} MB")
            for what, mine, theirs in zip(("wall", "processor"), ours, polars, strict=True):
                print(f"  {what}: sfumato {mine:.2f} s, polars {theirs:.2f} s, ratio {mine / theirs:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
