"""One adversary who multiplies all evidence against attacks that use one kind of evidence each, on real files.

python benchmarks/posterior.py [rows]

For each file and masking the share of people found by `posterior-linkage` stands beside that of every other attack that
applies. All attackers know all columns of everybody. An attack that never finds more is a candidate for deletion.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

import sfumato
from sfumato.attacks import Outcome

FILES = Path(__file__).parents[1] / "tests" / "samples" / "sdcmicro"
ATTACKS: list[Any] = [
    "posterior-linkage",
    "distance-linkage",
    "rank-window",
    "view-linkage",
    {"assignment": {"by": "values"}},
    {"assignment": {"by": "likelihood"}},
    "simulation",
    "rare-values",
]


def files(rows: int) -> Iterator[tuple[str, pl.DataFrame]]:
    yield "CASC", pl.read_csv(FILES / "CASCrefmicrodata.csv")[:rows, :6]
    yield "Tarragona", pl.read_csv(FILES / "Tarragona.csv")[:rows, :6]
    people = pl.read_csv(FILES / "testdata.csv").sample(rows, seed=1)
    yield "testdata", people.select("age", "roof", "relat", "expend", "income", "savings")


def maskings(names: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "noise 0.3", {"noise": {"variance_ratio": 0.3}}
    yield "correlated noise 0.3", {"noise": {"variance_ratio": 0.3, "variant": "correlated"}}
    yield "rank-swap 10", {"rank-swap": {"p": 10}}
    yield "rank-swap 30", {"rank-swap": {"p": 30}}
    yield "rank-swap 30, three columns", {"rank-swap": {"p": 30, "columns": names[3:]}}
    pairs = [{"columns": names[place : place + 2], "k": 5} for place in (0, 2, 4)]
    yield "microaggregate 5, pairs", {"microaggregate": {"groups": pairs}}
    yield "microaggregate 5, fuzzy 2", {"microaggregate": {"k": 5, "fuzzy": 2.0}}
    yield "shuffle", {"shuffle": {"columns": names[3:]}}


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print(f"{'file':10} {'masking':28} share of people found")
    for file, frame in files(rows):
        for masking, step in maskings(frame.columns):
            recipe = {"sfumato": 1, "seed": 3, "columns": dict.fromkeys(frame.columns, "quasi"), "steps": [step]}
            done = sfumato.protect({**recipe, "attacks": ATTACKS}, frame, unmet=True)
            found = [item for item in done.attacks if isinstance(item, Outcome) and not item.any_columns]
            shares = [f"{item.attack} {item.setting} {item.main.rate:.3f}".replace("  ", " ") for item in found]
            print(f"{file:10} {masking:28} {', '.join(shares)}", flush=True)


if __name__ == "__main__":
    main()
