"""A release that has nothing to do with the original: how often does each attack raise an alarm?

python benchmarks/null_release.py [runs] [rows]

Original and release are drawn independently from the same distribution, and which released row is whose is drawn at
random. An attack raises an alarm if the lower end of its 95 % interval lies above chance: one over the rows (identity),
the share of a category (attribute), one half (membership). For singling out it lies above the whole interval of the
control group. At nominal coverage that is at most 2.5 % of runs. Left out is learned linkage that is taught by its own
targets: it overfits, and has a baseline of its own.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable

import numpy as np
import polars as pl
from record import Figures

import sfumato
from sfumato.attacks import Attack, AttackScenario, Discloses, Outcome, default_attacks, risk
from sfumato.attacks.record_linkage.learned_linkage import LearnedLinkage
from sfumato.data import read
from sfumato.dataset import Data
from sfumato.evaluation import run_attacks
from sfumato.progress import SILENT
from sfumato.release import Lineage, Release
from sfumato.rng import Rng
from sfumato.stats import wilson

CATEGORIES = ("a", "b", "c", "d")


def people(rows: int, draw: np.random.Generator) -> pl.DataFrame:
    """Four known columns and a sensitive one, all independent of each other."""
    return pl.DataFrame(
        {
            "age": draw.integers(18, 90, rows),
            "income": draw.lognormal(10, 0.6, rows).round(),
            "rent": draw.lognormal(6, 0.5, rows).round(),
            "sex": draw.choice(["f", "m"], rows),
            "ill": draw.choice(CATEGORIES, rows),
        }
    )


def null_scenario(rows: int, seed: int) -> AttackScenario:
    """A release of other people, each of whose rows is said to be somebody's of the original."""
    draw = np.random.default_rng(seed)
    original, released, control = (people(rows, draw) for _ in range(3))
    schema = sfumato.Schema.of(original, quasi=["age", "income", "rent", "sex"], sensitive=["ill"])
    return AttackScenario(
        original=Data.of(read(original), schema),
        release=Release(table=read(released), manifest={}),
        lineage=Lineage(draw.permutation(rows).astype(np.int64)),
        control=read(control),
    )


def chance(outcome: Outcome, rows: int) -> float | None:
    """The success rate of a guess that has nothing to do with the truth; None where it is not known exactly."""
    known = {
        Discloses.IDENTITY: 1 / rows,
        Discloses.ATTRIBUTE: 1 / len(CATEGORIES),
        Discloses.MEMBERSHIP: 0.5,
    }
    return known.get(outcome.discloses)


def alarms(scenario: AttackScenario, attacks: Iterable[Attack], seed: int) -> Counter[tuple[str, bool]]:
    """For each attack with a result whether the lower end of its interval lies above chance."""
    found: Counter[tuple[str, bool]] = Counter()
    for outcome in run_attacks(scenario, attacks, rng=Rng(seed), n_targets=5000, progress=SILENT):
        if isinstance(outcome, Outcome):
            level = chance(outcome, scenario.release.table.rows)
            if level is None and outcome.control is not None:
                level = wilson(outcome.control.hits, outcome.control.trials)[1]
            if level is not None:
                name = f"{outcome.attack} {outcome.setting}".strip()
                found[name, risk(outcome).low > level] += 1
    return found


def _overfits(attack: Attack) -> bool:
    """Whether an attack learns from its own targets: what it links by chance is not known exactly."""
    return isinstance(attack, LearnedLinkage) and attack.taught >= 1


def main(runs: int = 120, rows: int = 300) -> None:
    total: Counter[tuple[str, bool]] = Counter()
    for seed in range(runs):
        scenario = null_scenario(rows, seed)
        total += alarms(scenario, [attack for attack in default_attacks(scenario) if not _overfits(attack)], seed)
    table = Figures("null_release", "alarms", {"attack": "", "runs": ",", "alarms": ","})
    for name in sorted({name for name, _ in total}):
        table.add(attack=name, runs=total[name, True] + total[name, False], alarms=total[name, True])
    table.save()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
