"""Percent re-identified under rank swapping by likelihood, distance (DLD) and probability (PLD).

    python benchmarks/rank_swapping.py census|eia [p ...] [--record]
    python benchmarks/rank_swapping.py readings [--record]

PLD compares numbers at six levels of distance, PLD-2 at two.

The protocol of Nin, Herranz and Torra (2008): the average over adversaries who know the first 1 to half of the columns.
``readings`` compares two readings of the method, whose partner must not have been swapped before (classic) or may
(literal), with the printed figures: by the published windows of ranks (RSLD), by distance and by probability (PLD-2).
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
PUBLISHED_EIA = {2: (43.3, 21.7)}
"""EIA, classic: windows and distance."""
DATA = Path(__file__).parents[1] / "tests" / "samples" / "sdcmicro"


def microdata(file: str) -> Data:
    if file == "census":
        frame = pl.read_csv(DATA / "CASCrefmicrodata.csv")
    else:
        frame = pl.read_csv(DATA / "EIA.csv").select(
            pl.all().exclude("UTILITYID", "UTILNAME", "STATE", "YEAR", "MONTH")
        )
    return Data.of(Table(frame=frame), Schema(columns={name: Column(role=Role.QUASI) for name in frame.columns}))


def rank_windows(known: np.ndarray, released: np.ndarray, p: float) -> float:
    """RSLD: the share of people whose row is the nearest of those in the window of ranks of every known column.

    The average over the first 1 to all of these columns; a row among equally near ones counts in part.
    """
    size, window = len(known), max(1, int(len(known) * p / 100))
    gap, inside, shares = np.zeros((size, size)), np.ones((size, size), dtype=bool), []
    for one, other in zip(known.T, released.T, strict=True):
        ordered = np.sort(other)
        low = ordered[np.maximum(np.searchsorted(ordered, one) - window, 0)]
        high = ordered[np.minimum(np.searchsorted(ordered, one, side="right") - 1 + window, size - 1)]
        inside &= (other >= low[:, None]) & (other <= high[:, None])
        gap += ((one[:, None] - other) / (other.std() or 1)) ** 2
        left = np.where(inside, gap, np.inf)
        nearest = left <= left.min(axis=1, keepdims=True)
        shares.append(np.where(np.isfinite(left.diagonal()), nearest.diagonal() / nearest.sum(axis=1), 0).mean())
    return float(np.mean(shares))


def readings() -> None:
    """Two readings of the method on two files, beside the printed figures."""
    names = ("windows", "distance", "probability")
    titles = dict(zip(names, ("windows (RSLD)", "distance (DLD)", "probability (PLD)"), strict=True))
    columns = {"file": "", "p": "g", "reading": ""} | dict.fromkeys(names, "")
    figures = Figures("rank_swapping", "readings", columns, titles)
    for file in ("census", "eia"):
        data = microdata(file)
        for p in (2, 6, 10, 14, 20):
            if printed := PUBLISHED.get(p) if file == "census" else PUBLISHED_EIA.get(p):
                cells = dict(zip(names, (f"{value:.1f}" for value in printed), strict=False))
                figures.add(file=file, p=p, reading="printed", **cells)
            for variant in ("literal", "classic"):
                step = RankSwap(p=p, variant=variant)
                shares = [_reading(data, step, seed) for seed in range(1, 4)]
                cells = {name: f"{100 * share:.1f}" for name, share in zip(names, np.mean(shares, axis=0), strict=True)}
                figures.add(file=file, p=p, reading=variant, **cells)


def _reading(data: Data, step: RankSwap, seed: int) -> list[float]:
    """Shares by windows, distance and probability for one random swap, averaged over the first 1 to 7 columns."""
    change = step.apply(data, Context(rng=Rng(seed)))
    release = Release(table=change.table, manifest={"steps": []})
    known, masked = (table.frame.to_numpy()[:, :7].astype(float) for table in (data.table, change.table))
    found = [rank_windows(known, masked, step.p)]
    for attack in (DistanceLinkage(), ProbabilisticLinkage(levels=2, nearest=0.09)):
        rates = []
        for count in range(1, 8):
            knows = tuple(data.table.columns[:count])
            scenario = AttackScenario(original=data, release=release, aligned=True, knows=knows)
            rates.append(evaluate_attack(attack, scenario, rng=Rng(count)).main.rate)
        found.append(float(np.mean(rates)))
    return found


def main(file: str, *percents: str) -> None:
    if file == "readings":
        readings()
        return
    data = microdata(file)
    frame = data.table.frame
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
