"""Simple attackers against the attacks of the battery: percent found, and the upper end of the battery's interval.

    python benchmarks/simple_attackers.py DATA [--record]

DATA is a folder with the CASC reference files (`sdcmicro/`) and UCI Adult (`uci-adult/train.csv.gz`). Each attacker is
a few lines on one view of the data. "Before" are the attacks without `view-linkage` and `value-presence`: distance
linkage and, up to 10,000 rows, assignment by values and by ranks; the distance of `membership`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from record import Figures
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree
from scipy.stats import rankdata

from sfumato.attacks import Attack, AttackScenario, evaluate_attack, risk
from sfumato.attacks.inference.membership import Membership
from sfumato.attacks.inference.value_presence import ValuePresence
from sfumato.attacks.record_linkage.assignment import Assignment
from sfumato.attacks.record_linkage.distance_linkage import DistanceLinkage
from sfumato.attacks.record_linkage.view_linkage import ViewLinkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.masking.base import Context, Step
from sfumato.masking.methods.noise import Noise
from sfumato.masking.methods.rank_swap import RankSwap
from sfumato.masking.methods.synthesize import Synthesize
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

Floats = npt.NDArray[np.float64]
Attacker = Callable[[Floats, Floats], npt.NDArray[np.int64]]


def by_ranks(known: Floats, released: Floats) -> npt.NDArray[np.int64]:
    left, right = (rankdata(part, axis=0) for part in (known, released))
    return np.asarray(cKDTree(right).query(left)[1])


def by_log_ratios(known: Floats, released: Floats) -> npt.NDArray[np.int64]:
    left, right = (np.log(part) - np.log(part[:, :1]) for part in (known, released))
    return np.asarray(cKDTree(right[:, 1:]).query(left[:, 1:])[1])


def by_noise_variance(known: Floats, released: Floats) -> npt.NDArray[np.int64]:
    scale = np.sqrt(np.maximum(released.var(axis=0) - known.var(axis=0), 1e-3 * known.var(axis=0)))
    return np.asarray(cKDTree(released / scale).query(known / scale)[1])


def by_mahalanobis_assignment(known: Floats, released: Floats) -> npt.NDArray[np.int64]:
    level, axes = np.linalg.eigh(np.cov(released / released.std(axis=0), rowvar=False))
    kept = level > 1e-10 * level.max()  # some columns are sums of others
    turn = (axes[:, kept] / np.sqrt(level[kept])) / released.std(axis=0)[:, None]
    left, right = known @ turn, released @ turn
    cost = np.square(left).sum(axis=1)[:, None] + np.square(right).sum(axis=1)[None] - 2 * left @ right.T
    return np.asarray(linear_sum_assignment(cost)[1])


def scenario(original: pl.DataFrame, released: pl.DataFrame, **more: object) -> AttackScenario:
    schema = Schema(columns={name: Column(role=Role.QUASI) for name in original.columns})
    return AttackScenario(
        original=Data.of(Table(frame=original), schema),
        release=Release(table=Table(frame=released), manifest={}),
        **more,  # type: ignore[arg-type]
    )


def show(figures: Figures, name: str, simple: float, where: AttackScenario, before: list[Attack], now: Attack) -> None:
    old = max(risk(evaluate_attack(attack, where, rng=Rng(1))).high for attack in before)
    new = evaluate_attack(now, where, rng=Rng(1))
    figures.add(release=name, attacker=100 * simple, before=100 * old, now=100 * risk(new).high)


def identity(figures: Figures, name: str, known: Floats, released: Floats, attacker: Attacker) -> None:
    order = np.random.default_rng(7).permutation(len(known))
    simple = float((attacker(known, released[order]) == np.argsort(order)).mean())
    columns = [f"c{place}" for place in range(known.shape[1])]
    where = scenario(
        pl.DataFrame(known, schema=columns), pl.DataFrame(released[order], schema=columns), lineage=Lineage(order)
    )
    before: list[Attack] = [DistanceLinkage()]
    if len(known) <= 10_000:
        before += [Assignment(), Assignment(by="ranks")]
    show(figures, name, simple, where, before, ViewLinkage())


def membership(figures: Figures, name: str, frame: pl.DataFrame, step: Step) -> None:
    """Half of the people are released; the attacker guesses "member" for the half with most values that occur."""
    mixed = frame.cast(pl.Float64).sample(fraction=1, shuffle=True, seed=1)
    half = mixed.height // 2
    members, others = mixed[:half], mixed[half : 2 * half]
    data = scenario(members, members).original
    released = step.apply(data, Context(rng=Rng(3))).table.frame.cast(pl.Float64)
    count = [
        sum(part[name].is_in(released[name].unique().implode()).cast(pl.Int64).to_numpy() for name in frame.columns)
        for part in (members, others)
    ]
    both = np.concatenate(count) + np.random.default_rng(1).random(2 * half)
    simple = float(np.isin(np.argsort(-both)[:half], np.arange(half)).mean())
    where = scenario(members, released, control=Table(frame=others))
    show(figures, name, simple, where, [Membership()], ValuePresence())


def main() -> None:
    folder = Path(sys.argv[1])
    draw = np.random.default_rng(5)
    frames = {
        name: pl.read_csv(folder / "sdcmicro" / f"{name}.csv").select(pl.selectors.numeric())
        for name in ("CASCrefmicrodata", "Tarragona", "EIA")
    }
    census, tarragona, eia = (frame.to_numpy().astype(float) for frame in frames.values())
    eia = 1 + np.maximum(eia[:, -10:], 0)
    adult = pl.read_csv(folder / "uci-adult" / "train.csv.gz").select(pl.selectors.numeric()).to_numpy().astype(float)
    columns = {"release": "", "attacker": ".1f", "before": ".1f", "now": ".1f"}
    titles = {
        "attacker": "simple attacker",
        "before": "battery before, upper end",
        "now": "with views and values, upper end",
    }
    figures = Figures("simple_attackers", "duels", columns, titles)
    twelve = pl.DataFrame(census[:, :12], schema=[f"c{place}" for place in range(12)])
    noise = Noise(variance_ratio=0.3, variant="correlated")
    noisy = noise.apply(scenario(twelve, twelve).original, Context(rng=Rng(3))).table.frame.to_numpy()
    identity(figures, "Census, correlated noise 0.3", census[:, :12], noisy, by_mahalanobis_assignment)
    uneven = tarragona + draw.normal(size=tarragona.shape) * tarragona.std(axis=0) * np.geomspace(0.01, 2, 13)
    identity(figures, "Tarragona, noise from 1 % to 200 %", tarragona, uneven, by_noise_variance)
    factor = np.exp(draw.normal(0, 0.5, (len(eia), 1)))
    identity(figures, "EIA, one factor per row", eia, eia * factor, by_log_ratios)
    identity(figures, "EIA, logarithms", eia, np.log(eia), by_ranks)
    identity(figures, "Adult (32,561 rows), logarithms", adult, np.log1p(adult), by_ranks)
    membership(figures, "Census, rank swapping p = 15: membership", frames["CASCrefmicrodata"], RankSwap(p=15))
    membership(figures, "Tarragona, rank swapping p = 100: membership", frames["Tarragona"], RankSwap(p=100))
    for keep in (True, False):
        made = Synthesize(model="trees", keep_values=keep)
        name = f"Census, trees, keep_values: {str(keep).lower()}: membership"
        membership(figures, name, frames["CASCrefmicrodata"], made)


if __name__ == "__main__":
    main()
