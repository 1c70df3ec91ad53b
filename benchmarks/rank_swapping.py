"""Percent re-identified under rank swapping by likelihood, distance (DLD) and probability (PLD).

    python benchmarks/rank_swapping.py census|eia [p ...] [--record]

PLD compares numbers at six levels of distance, PLD-2 at two.

The protocol of Nin, Herranz and Torra (2008): the average over adversaries who know the first 1 to half of the columns.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
from record import Figures

from sfumato.attacks import Attack, AttackScenario, evaluate_attack
from sfumato.attacks.record_linkage.distance_linkage import DistanceLinkage
from sfumato.attacks.record_linkage.posterior_linkage import PosteriorLinkage
from sfumato.attacks.record_linkage.probabilistic_linkage.attack import ProbabilisticLinkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.masking.base import Context
from sfumato.masking.methods.rank_swap import RankSwap
from sfumato.release import Release
from sfumato.rng import Rng

PUBLISHED = {
    2: (77.7, 73.5, 71.3),
    6: (54.7, 43.8, 22.5),
    10: (29.2, 23.6, 6.0),
    14: (16.1, 15.6, 2.1),
    20: (10.9, 10.9, 0.6),
}
"""Census, classic: windows, distance and probability by Nin, Herranz and Torra (2008)."""
DATA = Path(__file__).parents[1] / "tests" / "samples" / "sdcmicro"


def main(file: str, *percents: str) -> None:
    if file == "census":
        frame = pl.read_csv(DATA / "CASCrefmicrodata.csv")
    else:
        frame = pl.read_csv(DATA / "EIA.csv").select(
            pl.all().exclude("UTILITYID", "UTILNAME", "STATE", "YEAR", "MONTH")
        )
    data = Data.of(Table(frame=frame), Schema(columns={name: Column(role=Role.QUASI) for name in frame.columns}))
    attacks: tuple[Attack, ...] = (
        PosteriorLinkage(),
        DistanceLinkage(),
        ProbabilisticLinkage(),
        # Agreement or disagreement, as in the literature of the time: values agree that are nearer than 91 % of pairs.
        ProbabilisticLinkage(levels=2, nearest=0.09),
    )
    names = (
        "likelihood; published: windows (RSLD)",
        "distance",
        "probability, six levels",
        "probability, two levels",
    )
    table = "variants" if any(":" in text for text in percents) else file
    figures = Figures("rank_swapping", table, {"variant": "", "p": "g"} | dict.fromkeys(names, ""))
    for text in percents or ("2", "6", "10", "14", "20"):
        variant, _, number = text.rpartition(":")
        step = RankSwap(p=float(number), variant=variant or "classic")
        change = step.apply(data, Context(rng=Rng(1)))
        manifest = {"steps": [{"step": "rank-swap", "parameters": step.public(), **change.public}]}
        release = Release(table=change.table, manifest=manifest)
        shares = np.zeros(len(attacks))
        known = range(1, (len(frame.columns) + 1) // 2 + 1)
        for count in known:
            scenario = AttackScenario(original=data, release=release, aligned=True, knows=tuple(frame.columns[:count]))
            shares += [evaluate_attack(attack, scenario, rng=Rng(count)).main.rate / len(known) for attack in attacks]
        published = PUBLISHED.get(int(step.p), ()) if file == "census" and step.variant == "classic" else ()
        printed = [*(f" ({value})" for value in published), *[""] * len(names)]
        cells = {name: f"{100 * share:.1f}{more}" for name, share, more in zip(names, shares, printed, strict=False)}
        figures.add(variant=step.variant, p=step.p, **cells)


if __name__ == "__main__":
    main(*sys.argv[1:])
