"""Mondrian on ten million rows and six quasi-identifiers: seconds and loss.

    python benchmarks/mondrian.py [rows] [--record]

Prints wall and CPU seconds of the whole step (rows in, masked rows out) for strict and relaxed cuts. The first run
compiles; its seconds are not counted.
"""

from __future__ import annotations

import os
import resource
import sys
import time

import numpy as np
import polars as pl
from record import Figures

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.dataset.hierarchies.taxonomy import TaxonomyHierarchy
from sfumato.masking.base import Context
from sfumato.masking.methods.mondrian import Mondrian
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.rng import Rng


def tree(values: int, width: int) -> TaxonomyHierarchy:
    groups = {f"group {g}": [str(v) for v in range(values) if v // width == g] for g in range(-(-values // width))}
    return TaxonomyHierarchy.build({"tree": groups})


def people(rows: int) -> Data:
    draw = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "age": np.clip(draw.normal(45, 18, rows), 0, 99).astype(np.int64),
            "zip": draw.zipf(1.3, rows) % 1000,
            "income": np.round(np.exp(draw.normal(10, 1, rows)), -2),
            "sex": pl.Series(draw.integers(0, 2, rows)).replace_strict({0: "f", 1: "m"}),
            "job": pl.Series(draw.integers(0, 40, rows)).cast(pl.String),
            "education": pl.Series(draw.integers(0, 16, rows)).cast(pl.String),
        }
    )
    hierarchies = {"job": tree(40, 8), "education": tree(16, 4)}
    columns = {name: Column(role=Role.QUASI, hierarchy=hierarchies.get(name)) for name in frame.columns}
    return Data.of(Table(frame=frame), Schema(columns=columns))


def main(rows: int = 10_000_000) -> None:
    context = Context(rng=Rng(1), models=(KAnonymity(k=5),))
    small = people(2_000)
    for cuts in ("strict", "relaxed"):
        Mondrian(cuts=cuts).apply(small, context)
    data = people(rows)
    forms = {"cuts": "", "choose": "", "wall": ".0f", "cpu": ".1f", "boxes": ",", "ncp": ".4f"}
    titles = {"wall": "wall seconds", "cpu": "CPU seconds", "boxes": "partitions", "ncp": "NCP"}
    figures = Figures("mondrian", "ten_million" if rows == 10_000_000 else f"rows_{rows}", forms, titles)
    for cuts in ("strict", "relaxed"):
        for choose in ("gain", "widest"):
            wall, cpu = time.perf_counter(), time.process_time()
            private = Mondrian(cuts=cuts, choose=choose).apply(data, context).private
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            figures.add(cuts=cuts, choose=choose, wall=wall, cpu=cpu, boxes=private["classes"], ncp=private["ncp"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak memory {peak:.1f} GB; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
