"""Percent re-identified under rank swapping by windows (RSLD), distance (DLD), probability (PLD) and likelihood.

    python benchmarks/rank_swapping.py census|eia [p ...]

PLD compares numbers at six levels of distance, PLD-2 at two.

The protocol of Nin, Herranz and Torra (2008): the average over intruders who know the first 1 to half of the columns.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

from sfumato.attacks import Attack, AttackScenario, evaluate_attack
from sfumato.attacks.record_linkage.distance_linkage import DistanceLinkage
from sfumato.attacks.record_linkage.probabilistic_linkage.attack import ProbabilisticLinkage
from sfumato.attacks.transparency.rank_window import RankWindow
from sfumato.attacks.transparency.simulation import Simulation
from sfumato.data.table import Table
from sfumato.masking.base import Context
from sfumato.masking.methods.rank_swap import RankSwap
from sfumato.release import Release
from sfumato.rng import Rng
from sfumato.schema import Column, Dataset, Role, Schema

DATA = Path(__file__).parents[1] / "tests" / "data" / "sdcmicro"


def main(file: str, *percents: str) -> None:
    if file == "census":
        frame = pl.read_csv(DATA / "CASCrefmicrodata.csv")
    else:
        frame = pl.read_csv(DATA / "EIA.csv").select(
            pl.all().exclude("UTILITYID", "UTILNAME", "STATE", "YEAR", "MONTH")
        )
    data = Dataset.of(Table(frame=frame), Schema(columns={name: Column(role=Role.QUASI) for name in frame.columns}))
    attacks: tuple[Attack, ...] = (
        RankWindow(),
        DistanceLinkage(),
        ProbabilisticLinkage(),
        # Agreement or disagreement, as in the literature of the time: values agree that are nearer than 91 % of pairs.
        ProbabilisticLinkage(levels=2, nearest=0.09),
        Simulation(rounds=200 if file == "census" else 40),
    )
    print("variant          p     RSLD     DLD     PLD   PLD-2  likelihood")
    for text in percents or ("2", "6", "10", "14", "20"):
        variant, _, number = text.rpartition(":")
        step = RankSwap(p=float(number), variant=variant or "classic")
        change = step.apply(data, Context(rng=Rng(1)))
        published = {"steps": [{"step": "rank-swap", "parameters": step.public(), **change.public}]}
        release = Release(table=change.table, manifest=published)
        shares = np.zeros(len(attacks))
        known = range(1, (len(frame.columns) + 1) // 2 + 1)
        for count in known:
            scenario = AttackScenario(original=data, release=release, aligned=True, knows=tuple(frame.columns[:count]))
            shares += [evaluate_attack(attack, scenario, rng=Rng(count)).main.rate / len(known) for attack in attacks]
        figures = "  ".join(f"{100 * share:6.2f}" for share in shares)
        print(f"{step.variant:14s} {step.p:4g}   {figures}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
