"""Private synthesis of the Adult table: errors of all two-way marginals, and classifiers trained on synthetic rows.

python benchmarks/synthesis.py FOLDER [--record]     # FOLDER holds train.csv.gz and test.csv.gz of UCI Adult

14 columns (without fnlwgt); numbers in 20 equally wide bins of public ranges; 80 % of the 48,842 rows; delta = 1e-5.
TV2: mean total variation distance of the 91 two-way marginals to the training rows. AUC: gradient boosting trained on
synthetic rows and tested on the other 20 % of the real ones.
"""

from __future__ import annotations

import resource
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import Figures
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from sfumato.data.table import Table
from sfumato.schema import Dataset, Schema
from sfumato.synthesis import PrivateSynthesis

RANGES = {"age": (17, 90), "capital-gain": (0, 99_999), "capital-loss": (0, 4356), "hours-per-week": (1, 99)}
BINS = 20
TARGET = "income"


def coded(folder: Path) -> pl.DataFrame:
    """All rows as small whole numbers."""
    frame = pl.concat([pl.read_csv(folder / f"{part}.csv.gz", null_values=["?"]) for part in ("train", "test")]).drop(
        "fnlwgt"
    )
    columns = []
    for series in frame:
        if series.name in RANGES:
            low, high = RANGES[series.name]
            columns.append(((series - low) * BINS // (high - low + 1)).cast(pl.Int64).clip(0, BINS - 1))
        else:
            ranks = series.cast(pl.String).fill_null("?").rank("dense")
            columns.append((ranks - 1).cast(pl.Int64).alias(series.name))
    return pl.DataFrame(columns)


def tv2(real: pl.DataFrame, other: pl.DataFrame, sizes: dict[str, int]) -> float:
    """Mean total variation distance of all two-way marginals."""

    def shares(frame: pl.DataFrame, a: str, b: str) -> Any:
        cells = frame[a].to_numpy() * sizes[b] + frame[b].to_numpy()
        return np.bincount(cells, minlength=sizes[a] * sizes[b]) / frame.height

    pairs = combinations(real.columns, 2)
    return float(np.mean([np.abs(shares(real, a, b) - shares(other, a, b)).sum() / 2 for a, b in pairs]))


def auc(train: pl.DataFrame, test: pl.DataFrame) -> float:
    """Gradient boosting on the coded columns."""
    model = HistGradientBoostingClassifier(random_state=0)
    model.fit(train.drop(TARGET).to_numpy(), train[TARGET].to_numpy())
    return float(roc_auc_score(test[TARGET], model.predict_proba(test.drop(TARGET).to_numpy())[:, 1]))


def main(folder: Path) -> None:
    rows = coded(folder)
    sizes = {name: int(rows[name].max()) + 1 for name in rows.columns}  # type: ignore[arg-type]
    mixed = np.random.default_rng(0).permutation(rows.height)
    cut = int(0.8 * rows.height)
    real, test = rows[mixed[:cut]], rows[mixed[cut:]]
    ordered = {*RANGES, "education-num"}
    domains = {
        name: {"low": 0, "high": size - 1} if name in ordered else {"values": list(range(size))}
        for name, size in sizes.items()
    }
    data = Dataset.of(Table(frame=real), Schema(columns={}))
    table = Figures(
        "synthesis", "adult",
        {"mechanism": "", "epsilon": "g", "seconds": ".2f", "tv2": ".4f", "auc": ".3f", "pairs": "", "memory": ".0f"},
        {"epsilon": "ε", "seconds": "CPU s", "tv2": "TV2", "auc": "AUC", "pairs": "pairs measured",
         "memory": "peak MB of the process"},
    )  # fmt: skip
    again = real[np.random.default_rng(1).integers(cut, size=cut)]
    table.add(mechanism="real rows", tv2=0.0, auc=auc(real, test))
    table.add(mechanism="bootstrap", tv2=tv2(real, again, sizes), auc=auc(again, test))
    for mechanism in ("mst", "adaptive"):
        for epsilon in (0.1, 0.3, 1.0, 3.0, 10.0):
            start = time.process_time()
            step = PrivateSynthesis.build(
                {"epsilon": epsilon, "delta": 1e-5, "mechanism": mechanism, "domains": domains}
            )
            model = step.fit(data)
            made = model.sample(random=np.random.default_rng(2)).fill_null(0)
            seconds = time.process_time() - start
            table.add(
                mechanism=mechanism, epsilon=epsilon, seconds=seconds, tv2=tv2(real, made, sizes), auc=auc(made, test),
                pairs=sum(len(columns) == 2 for columns in model.estimates.measured),
                memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            )  # fmt: skip
    table.save()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
