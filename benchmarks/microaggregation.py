"""Squared error of microaggregation on the CASC reference files: MDAV, V-MDAV, and both after local search.

    python benchmarks/microaggregation.py [--record]

Prints 100 SSE / SST on standardized columns, and the CPU seconds of the local search after one run that loads the
compiled code. sdcMicro 5.8.1 reaches the MDAV figures to the last printed digit (tests/golden/test_mdav.py).
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from record import Figures

from sfumato.masking.methods._exchange import refine_groups
from sfumato.masking.methods._grouping import group_rows

FOLDER = Path(__file__).parents[1] / "tests" / "samples" / "sdcmicro"
FILES = {"Tarragona": "Tarragona", "Census": "CASCrefmicrodata", "EIA": "EIA"}
TEXT = ("UTILNAME", "STATE", "YEAR", "MONTH")

Floats = npt.NDArray[np.float64]


def points_of(name: str) -> Floats:
    table = pl.read_csv(FOLDER / f"{FILES[name]}.csv", infer_schema_length=None)
    values = table.drop([column for column in TEXT if column in table.columns]).to_numpy().astype(float)
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0))


def loss(points: Floats, groups: npt.NDArray[np.int32]) -> float:
    sums = np.stack([np.bincount(groups, points[:, j]) for j in range(points.shape[1])], axis=1)
    centres = sums / np.bincount(groups)[:, None]
    return float(100 * ((points - centres[groups]) ** 2).sum() / (points**2).sum())


def main() -> None:
    columns = {
        "file": "", "k": "d", "mdav": ".3f", "vmdav": ".3f", "refined": ".3f", "vrefined": ".3f", "gain": ".0%",
        "seconds": ".2f",
    }  # fmt: skip
    titles = {
        "mdav": "MDAV", "vmdav": "V-MDAV", "refined": "MDAV, refined", "vrefined": "V-MDAV, refined",
        "gain": "less than MDAV", "seconds": "CPU seconds of the local search",
    }  # fmt: skip
    figures = Figures("microaggregation", "casc", columns, titles)
    refine_groups(np.random.default_rng(1).normal(size=(100, 2)), np.repeat(np.arange(25, dtype=np.int32), 4), 3)
    for name in FILES:
        points = points_of(name)
        for k in (3, 5, 10):
            mdav, vmdav = (group_rows(points, k, algorithm, 0.2) for algorithm in ("mdav", "v-mdav"))
            started = time.process_time()
            refined = refine_groups(points, mdav, k)
            seconds = time.process_time() - started
            vrefined = refine_groups(points, vmdav, k)
            assert min(np.bincount(refined).min(), np.bincount(vrefined).min()) >= k
            plain, better = loss(points, mdav), loss(points, refined)
            figures.add(
                file=name, k=k, mdav=plain, vmdav=loss(points, vmdav), refined=better, vrefined=loss(points, vrefined),
                gain=1 - better / plain, seconds=seconds,
            )  # fmt: skip


if __name__ == "__main__":
    main()
