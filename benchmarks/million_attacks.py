"""The battery on a million made-up rows: what is found, with which interval, in how many CPU seconds and gigabytes.

python benchmarks/million_attacks.py swap|microaggregate|mondrian [people sought] [rows]
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
import polars as pl

import tacit
from tacit.attack import Scene, battery, examine, risk
from tacit.errors import NotApplicable
from tacit.rng import Rng
from tacit.schema import Dataset

AMOUNTS = ("income", "rent", "hours", "savings")
STEPS = {
    "swap": {"rank-swap": {"p": 1, "columns": list(AMOUNTS)}},
    "microaggregate": {
        "microaggregate": {
            "groups": [{"columns": ["income", "rent"], "k": 5}, {"columns": ["hours", "savings"], "k": 5}]
        }
    },
    "mondrian": {"mondrian": {}},
}


def people(rows: int) -> pl.DataFrame:
    """Eight columns about nobody."""
    draw = np.random.default_rng(5)
    income = np.round(draw.lognormal(10.2, 0.5, rows))
    return pl.DataFrame(
        {
            "age": draw.integers(18, 90, rows),
            "sex": draw.choice(["F", "M"], rows),
            "region": draw.choice([f"R{number:02d}" for number in range(20)], rows),
            "income": income,
            "rent": np.round(0.3 * income + draw.gamma(2, 1500, rows)),
            "hours": np.round(draw.normal(38, 9, rows).clip(0, 90), 1),
            "savings": np.round(draw.lognormal(8, 1.4, rows)),
            "diagnosis": draw.choice(["asthma", "diabetes", "flu", "none"], rows, p=[0.1, 0.1, 0.1, 0.7]),
        }
    )


def main(method: str = "swap", tries: int = 2000, rows: int = 1_000_000) -> None:
    frame = people(rows)
    known = ["age", "sex", "region"] + (list(AMOUNTS) if method != "mondrian" else [])
    recipe = {
        "tacit": 1,
        "seed": 7,
        "columns": {name: {"role": "quasi"} for name in known} | {"diagnosis": {"role": "sensitive"}},
        "models": [{"k-anonymity": {"k": 5}}] if method == "mondrian" else [],
        "steps": [STEPS[method]],
        "attacks": [{"linkage": {}}],
        "measures": ["class-sizes"],
    }
    done = tacit.protect(recipe, frame, tries=1)  # type: ignore[operator]
    original = Dataset.of(done.original.table, done.recipe.schema)
    scene = Scene(original=original, release=done.release, lineage=done.lineage)
    for attack in battery(scene):
        used = time.process_time()
        name = " ".join(filter(None, (attack.part_name(), attack.setting)))
        try:
            outcome = examine(attack, scene, rng=Rng(1), tries=tries)
        except NotApplicable as refusal:
            print(f"{name:28s} {refusal}", flush=True)
            continue
        found = risk(outcome)
        print(
            f"{name:28s} {found.value:7.1%} ({found.low:.1%} to {found.high:.1%}) of {outcome.main.tries} people"
            f"  {time.process_time() - used:6.1f} CPU seconds",
            flush=True,
        )
    print(f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB")


if __name__ == "__main__":
    main(*sys.argv[1:2], *(int(value) for value in sys.argv[2:]))
