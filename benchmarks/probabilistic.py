"""Probabilistic linkage of two files with blocking: pairs compared per second.

python benchmarks/probabilistic.py [rows] [blocks]
"""

from __future__ import annotations

import sys
import time

import numpy as np
import polars as pl

from tacit.attack import View
from tacit.attack.attacks.probabilistic_linkage import ProbabilisticLinkage
from tacit.data.table import Table
from tacit.release import Release
from tacit.rng import Rng


def main(rows: int = 100_000, blocks: int = 400) -> None:
    draw = np.random.default_rng(1)
    names = ["a", "b", "c", "d"]
    original = pl.DataFrame({name: draw.normal(size=rows) for name in names}).with_columns(
        pl.Series("area", draw.integers(blocks, size=rows)), pl.Series("kind", draw.choice(list("uvwxyz"), rows))
    )
    masked = original.with_columns(pl.col(name) + 0.1 * draw.normal(size=rows) for name in names)
    view = View(
        release=Release(table=Table(frame=masked), manifest={}), targets=original, knows=("area", "kind", *names)
    )
    attack = ProbabilisticLinkage(block=("area",))
    small = View(
        release=Release(table=Table(frame=masked.head(500)), manifest={}), targets=original.head(500), knows=view.knows
    )
    attack.guess(small, Rng(1))  # compile
    started, used = time.perf_counter(), time.process_time()
    found = attack.guess(view, Rng(1))
    wall, cpu = time.perf_counter() - started, time.process_time() - used
    assert found.row is not None
    pairs = rows * rows / blocks
    print(f"{rows:,} x {rows:,}, {pairs / 1e6:.0f} million blocked pairs: {wall:.2f} s wall, {cpu:.2f} s CPU")
    print(f"linked correctly: {np.mean(found.row == np.arange(rows)):.4f}")


if __name__ == "__main__":
    main(*(int(value) for value in sys.argv[1:]))
