"""Integral privacy: trees learned per CPU second on the Census reference file, for subsamples and single deletions.

python benchmarks/integral.py CENSUS [--record]

CENSUS is CASCrefmicrodata.csv (1,080 records). The label is INTVAL above its median; the features are the other columns
but POTHVAL in four quantile bins. One core; compilation is not counted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl
from record import Figures

from sfumato.integral import Encoding, Records
from sfumato.integral.learners.decision_tree import DecisionTreeLearner
from sfumato.integral.masked_learner import MicroaggregatedLearner


def main(path: str) -> None:
    frame = pl.read_csv(path)
    features = [name for name in frame.columns if name not in ("INTVAL", "POTHVAL")]
    median = float(np.median(frame["INTVAL"].to_numpy()))
    encoding = Encoding.from_table(frame, features=features, label="INTVAL", threshold=median, bins=4)
    records = Records.of(frame, encoding)
    draw = np.random.default_rng(1)
    halves = np.stack([
        records.counts_of(draw.choice(frame.height, frame.height // 2, replace=False)) for _ in range(2000)
    ])  # fmt: skip
    deletions = records.counts[None, :] - np.eye(len(records.cells), dtype=np.int64)
    table = Figures(
        "integral", "speed",
        {"task": "", "depth": "d", "trees": ",d", "per_second": ",.0f"},
        {"per_second": "trees per CPU second"},
    )  # fmt: skip
    for depth in (2, 3, 4):
        tree = DecisionTreeLearner(depth=depth, min_leaf=5)
        tree.fit_many(records, halves[:2])
        for task, counts in (("subsamples of one half", halves), ("single deletions", deletions)):
            speed = measured(lambda tree=tree, counts=counts: tree.fit_many(records, counts), len(counts))  # type: ignore[misc]
            table.add(task=task, depth=depth, trees=len(counts), per_second=speed)
    masked = MicroaggregatedLearner.of(DecisionTreeLearner(depth=3), encoding, frame, group=5)
    cells = masked.records(frame)
    some = cells.counts[None, :] - np.eye(len(cells.cells), dtype=np.int64)[:100]
    speed = measured(lambda: masked.fit_many(cells, some), len(some))
    table.add(task="single deletions, microaggregated first", depth=3, trees=len(some), per_second=speed)


def measured(work: Callable[[], object], trees: int) -> float:
    """Trees per CPU second, the best of three."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return trees / best


if __name__ == "__main__":
    main(sys.argv[1])
