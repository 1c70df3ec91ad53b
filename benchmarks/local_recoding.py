"""Local recoding and cell suppression against the figures of ARX 3.9.2 and sdcMicro 5.8.1.

    python benchmarks/local_recoding.py [folder with genetic-benchmark/] [--record]

Granularity is 1 minus the mean loss of detail per cell (leaves under the shown value, scaled from 0 to 1); nothing is
suppressed. Adult and testdata come with the tests; creditcard and mach2019 need the folder.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from record import Figures

from sfumato.data import read
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.dataset.hierarchies.file import FileHierarchy
from sfumato.masking.base import Context
from sfumato.masking.methods.local_recode import LocalRecode
from sfumato.masking.methods.suppress_cells import SuppressCells
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.rng import Rng

TESTS = Path(__file__).parents[1] / "tests" / "samples"
ARX = {"adult": 0.794, "creditcard_int": 0.451, "mach2019_int": 0.633}
KEYS = ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex")
SDCMICRO = {2: 157, 3: 293, 5: 500}


def load(path: Path) -> Data:
    table = read(path)
    columns = {}
    stem = path.name.split(".")[0]
    for name in table.columns:
        [file] = path.parent.glob(f"{stem}_hierarchy_{name}.csv*")
        columns[name] = Column(role=Role.QUASI, hierarchy=FileHierarchy.build(str(file)))
    return Data.of(table, Schema(columns=columns))


def recode(path: Path, figures: Figures) -> None:
    data = load(path)
    context = Context(rng=Rng(1), models=(KAnonymity(k=5),))
    name = path.name.split(".")[0]
    cpu = time.process_time()
    private = LocalRecode().apply(data, context).private
    cpu = time.process_time() - cpu
    found, theirs = private["granularity"], ARX[name]
    figures.add(
        data=name,
        rows=data.rows,
        quasi=len(data.quasi),
        granularity=found,
        arx=theirs,
        classes=private["classes"],
        cpu=cpu,
    )


def suppress() -> None:
    table = read(TESTS / "sdcmicro" / "testdata.csv")
    forms = {"k": "d", "sdcMicro 5.8.1": "d", "wildcard": "d", "category": "d"}
    figures = Figures("local_recoding", "cells", forms, {name: f"`{name}`" for name in ("wildcard", "category")})
    for k, theirs in SDCMICRO.items():
        cells = {"sdcMicro 5.8.1": theirs}
        for meaning in ("wildcard", "category"):
            columns = {name: Column(role=Role.QUASI, missing=meaning) for name in KEYS}  # type: ignore[arg-type]
            data = Data.of(table, Schema(columns=columns))
            private = SuppressCells().apply(data, Context(rng=Rng(1), models=(KAnonymity(k=k),))).private
            cells[meaning] = private["cells"]
        figures.add(k=k, **cells)


def main(folder: str | None = None) -> None:
    warm = Data.of(read(TESTS / "adult" / "adult_subset.csv"), load(TESTS / "adult" / "adult.csv").schema)
    LocalRecode().apply(warm, Context(rng=Rng(1), models=(KAnonymity(k=5),)))
    forms = {"data": "", "rows": ",", "quasi": "d", "granularity": ".3f", "arx": ".3f", "classes": ",", "cpu": ".1f"}
    titles = {"quasi": "quasi-identifiers", "arx": "ARX 3.9.2, local recoding", "cpu": "CPU seconds"}
    figures = Figures("local_recoding", "granularity", forms, titles)
    recode(TESTS / "adult" / "adult.csv", figures)
    if folder is not None:
        for name in ("creditcard_int", "mach2019_int"):
            recode(Path(folder, "genetic-benchmark", f"{name}.csv.gz"), figures)
    suppress()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
