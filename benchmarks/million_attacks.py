"""The default attacks on a million synthetic rows: risk with interval, CPU seconds and memory.

python benchmarks/million_attacks.py swap|microaggregate|mondrian [targets] [rows] [seconds]

With seconds, the attacks are run under that limit first, as `sfumato attack --seconds` does, and then without one.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
import polars as pl

import sfumato
from sfumato.attacks import Attack, AttackScenario, Outcome, default_attacks, evaluate_attack, risk
from sfumato.dataset import Data
from sfumato.deadline import Deadline
from sfumato.errors import NotApplicable
from sfumato.evaluation import run_attacks
from sfumato.rng import Rng

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


def main(method: str = "swap", tries: int = 2000, rows: int = 1_000_000, seconds: int = 0) -> None:
    frame = people(rows)
    known = ["age", "sex", "region"] + (list(AMOUNTS) if method != "mondrian" else [])
    recipe = {
        "sfumato": 1,
        "seed": 7,
        "columns": {name: {"role": "quasi"} for name in known} | {"diagnosis": {"role": "sensitive"}},
        "models": [{"k-anonymity": {"k": 5}}] if method == "mondrian" else [],
        "steps": [STEPS[method]],
        "attacks": [{"linkage": {}}],
        "measures": ["class-sizes"],
    }
    done = sfumato.protect(recipe, frame, n_targets=1)  # type: ignore[operator]
    original = Data.of(done.original.table, done.recipe.schema)
    scenario = AttackScenario(original=original, release=done.release, lineage=done.lineage)
    if seconds:
        limited(scenario, tries, seconds)
    for attack in default_attacks(scenario):
        used = time.process_time()
        try:
            outcome = evaluate_attack(attack, scenario, rng=Rng(1), n_targets=tries)
        except NotApplicable as refusal:
            show(attack, refusal)
            continue
        show(attack, outcome, f"  {time.process_time() - used:6.1f} CPU seconds")
    print(f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB")


def limited(scenario: AttackScenario, tries: int, seconds: int) -> None:
    attacks = default_attacks(scenario)
    began = time.monotonic()
    until = Deadline(until=began + seconds)
    for attack, outcome in zip(
        attacks, run_attacks(scenario, attacks, rng=Rng(1), n_targets=tries, progress=until), strict=True
    ):
        show(attack, outcome)
    print(f"{seconds} seconds allowed, {time.monotonic() - began:.1f} taken\n", flush=True)


def show(attack: Attack, outcome: Outcome | NotApplicable, more: str = "") -> None:
    name = " ".join(filter(None, (attack.part_name(), attack.setting)))
    if isinstance(outcome, Outcome):
        found = risk(outcome)
        said = f"{found.value:7.1%} ({found.low:.1%} to {found.high:.1%}) of {outcome.main.trials} people"
        print(f"{name:28s} {said}{' (stopped)' if outcome.stopped else ''}{more}", flush=True)
    else:
        print(f"{name:28s} {outcome}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:2], *(int(value) for value in sys.argv[2:]))
