"""Held-out simple attackers against the attacks of the battery: percent found, and the upper end of its interval.

    python benchmarks/held_out_attackers.py DATA [--record]

DATA is a folder with the EIA file and the household survey of sdcMicro (`sdcmicro/`), the MACH test
(`genetic-benchmark/mach2019_int.csv.gz`) and UCI Adult (`uci-adult/test.csv.gz`). These attackers were written after
the attacks, on files or maskings that had not been used to develop them; where one was stronger, the battery was mended
and the row kept. The attacks named in the table are part of the default battery; methods are not published.
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

import sfumato
from sfumato.attacks import Attack, AttackScenario, evaluate_attack, risk
from sfumato.attacks.inference.membership import Membership
from sfumato.attacks.inference.model_inference import ModelInference
from sfumato.attacks.inference.singling_out import SinglingOut
from sfumato.attacks.record_linkage.posterior_linkage import PosteriorLinkage
from sfumato.attacks.record_linkage.view_linkage import ViewLinkage
from sfumato.data.table import Table
from sfumato.dataset import Data
from sfumato.masking.base import Context, Step
from sfumato.masking.methods.microaggregate import Microaggregate
from sfumato.masking.methods.rank_swap import RankSwap
from sfumato.masking.methods.synthesize import Synthesize
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

Floats = npt.NDArray[np.float64]
FIGURES = Figures(
    "held_out_attackers",
    "duels",
    {"release": "", "attacker": "", "simple": ".1f", "attack": "", "high": ".1f"},
    {"simple": "found, %", "attack": "attack of the battery", "high": "upper end, %"},
)


def dataset(frame: pl.DataFrame, secret: str | None = None) -> Data:
    quasi = [name for name in frame.columns if name != secret]
    return Data.of(
        Table(frame=frame), sfumato.Schema.of(frame, quasi=quasi, sensitive=[] if secret is None else [secret])
    )


def masked(frame: pl.DataFrame, step: Step) -> pl.DataFrame:
    return step.apply(dataset(frame), Context(rng=Rng(3))).table.frame


def numbers(values: Floats) -> pl.DataFrame:
    return pl.DataFrame(values, schema=[f"c{place}" for place in range(values.shape[1])])


def show(release: str, attacker: str, simple: float, attack: Attack, where: AttackScenario) -> None:
    outcome = evaluate_attack(attack, where, rng=Rng(1))
    name = f"{outcome.attack} {outcome.setting}".strip()
    FIGURES.add(release=release, attacker=attacker, simple=100 * simple, attack=name, high=100 * risk(outcome).high)


def identity(
    release: str,
    attacker: str,
    known: pl.DataFrame,
    released: pl.DataFrame,
    scores: Callable[[pl.DataFrame, pl.DataFrame], npt.NDArray[np.int64]],
    attack: Attack,
) -> None:
    order = np.random.default_rng(7).permutation(released.height)
    mixed = released[order]
    simple = float((scores(known, mixed) == np.argsort(order)).mean())
    where = AttackScenario(
        original=dataset(known), release=Release(table=Table(frame=mixed), manifest={}), lineage=Lineage(order)
    )
    show(release, attacker, simple, attack, where)


def by_rank_assignment(known: pl.DataFrame, released: pl.DataFrame) -> npt.NDArray[np.int64]:
    left, right = (rankdata(part.to_numpy(), axis=0) for part in (known, released))
    cost = np.square(left).sum(axis=1)[:, None] + np.square(right).sum(axis=1)[None] - 2 * left @ right.T
    return np.asarray(linear_sum_assignment(cost)[1])


def by_rarity(known: pl.DataFrame, released: pl.DataFrame) -> npt.NDArray[np.int64]:
    score = np.zeros((known.height, released.height), dtype=np.float32)
    for name in known.columns:
        share = released[name].to_frame("v").select(pl.len().over("v")).to_series().to_numpy() / released.height
        score += (known[name].to_numpy()[:, None] == released[name].to_numpy()[None]) * -np.log(share)
    return np.asarray(score.argmax(axis=1))


def by_norm(known: pl.DataFrame, released: pl.DataFrame) -> npt.NDArray[np.int64]:
    left, right = (np.linalg.norm(part.to_numpy(), axis=1)[:, None] for part in (known, released))
    return np.asarray(cKDTree(right).query(left)[1])


def by_sorted_row(known: pl.DataFrame, released: pl.DataFrame) -> npt.NDArray[np.int64]:
    left, right = (np.sort(part.to_numpy(), axis=1) for part in (known, released))
    return np.asarray(cKDTree(right).query(left)[1])


def by_components(known: pl.DataFrame, released: pl.DataFrame) -> npt.NDArray[np.int64]:
    values = known.to_numpy()
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    turned = values @ np.linalg.svd(values, full_matrices=False)[2].T
    return np.asarray(cKDTree(np.abs(released.to_numpy())).query(np.abs(turned))[1])


def by_blanks(known: pl.DataFrame, released: pl.DataFrame) -> npt.NDArray[np.int64]:
    left, right = (
        part.select(pl.all().is_null()).to_numpy() @ 2 ** np.arange(part.width) for part in (known, released)
    )
    return np.array([np.random.default_rng(1).permutation(np.flatnonzero(right == one))[0] for one in left])


def replaced(frame: pl.DataFrame, share: float) -> pl.DataFrame:
    draw = np.random.default_rng(3)
    return frame.with_columns(
        pl.when(pl.Series(draw.random(frame.height) < share))
        .then(frame[name].gather(draw.permutation(frame.height)))
        .otherwise(frame[name])
        .alias(name)
        for name in frame.columns
    )


def linkage(folder: Path) -> None:
    draw = np.random.default_rng(11)
    eia = pl.read_csv(folder / "sdcmicro" / "EIA.csv").select(pl.selectors.numeric()).to_numpy()[:, -10:].astype(float)
    few, views, posterior = numbers(eia[:2000]), ViewLinkage(), PosteriorLinkage()
    swapped = masked(few, RankSwap(p=15))
    identity("EIA, rank swapping p = 15", "ranks, one-to-one", few, swapped, by_rank_assignment, views)
    scaled = numbers((eia - eia.mean(axis=0)) / eia.std(axis=0))
    turned = numbers(scaled.to_numpy() @ np.linalg.qr(draw.normal(size=(10, 10)))[0])
    identity("EIA, rotated", "norm of the row", scaled, turned, by_norm, views)
    exchanged = numbers(draw.permuted(eia, axis=1))
    identity("EIA, values exchanged within rows", "sorted row", numbers(eia), exchanged, by_sorted_row, views)
    survey = pl.read_csv(folder / "sdcmicro" / "testdata.csv").drop_nulls()
    amounts = survey.select(pl.col("expend", "income", "savings").cast(pl.Float64))
    values = amounts.to_numpy()
    standard = (values - values.mean(axis=0)) / values.std(axis=0)
    parts = pl.DataFrame(standard @ np.linalg.svd(standard, full_matrices=False)[2].T, schema=amounts.columns)
    identity("survey, principal components", "the same components", amounts, parts, by_components, views)
    keys = survey.select("expend", "income", "savings", "age", "urbrur", "roof", "walls", "water")[:2000]
    answers = pl.read_csv(folder / "genetic-benchmark" / "mach2019_int.csv.gz")[:2000]
    for name, frame, share in (("survey", keys, 0.3), ("survey", keys, 0.8), ("MACH", answers, 0.4)):
        release = f"{name}, {share:.0%} of the cells exchanged".replace("%", " %")
        identity(release, "equal values by rarity", frame, replaced(frame, share), by_rarity, posterior)
    blank = draw.random((2000, 10)) < 0.3
    noisy = eia[:2000] + draw.normal(0, 3, (2000, 10)) * eia[:2000].std(axis=0)
    sides = [
        numbers(part).with_columns(
            pl.when(pl.Series(blank[:, place])).then(None).otherwise(pl.col(f"c{place}")).alias(f"c{place}")
            for place in range(10)
        )
        for part in (eia[:2000], noisy)
    ]
    identity("EIA with blanks, noise 300 %", "pattern of blanks", sides[0], sides[1], by_blanks, posterior)
    where = AttackScenario(
        original=dataset(few),
        release=Release(table=Table(frame=swapped), manifest={}),
        lineage=Lineage(np.arange(2000)),
    )
    single = [swapped[name].filter(swapped[name].is_unique()) for name in few.columns]
    hits = sum(int(one.is_in(few[one.name].filter(few[one.name].is_unique()).implode()).sum()) for one in single) / sum(
        map(len, single)
    )
    exact = SinglingOut(columns=1, exact=True)
    show("EIA, rank swapping p = 15: singling out", "released values that are unique", hits, exact, where)
    half, others = few[:1000], few[1000:]
    centres = masked(half, Microaggregate(k=3))
    scale = half.to_numpy().std(axis=0)
    near = [cKDTree(centres.to_numpy() / scale).query(part.to_numpy() / scale)[0] for part in (half, others)]
    guessed = np.isin(np.argsort(np.concatenate(near))[:1000], np.arange(1000)).mean()
    where = AttackScenario(
        original=dataset(half),
        release=Release(table=Table(frame=centres), manifest={}),
        lineage=Lineage(np.arange(1000)),
        control=Table(frame=others),
    )
    show("EIA, microaggregated, k = 3: membership", "nearest row", float(guessed), Membership(), where)


def inference(folder: Path) -> None:
    adult = pl.read_csv(folder / "uci-adult" / "test.csv.gz")
    secret = adult.columns[-1]
    known = ["age", "workclass", "education", "marital-status", "occupation", "sex", "hours-per-week", "native-country"]
    people, others = adult.select(*known, secret)[:3000], adult.select(*known, secret)[3000:6000]
    data = dataset(people, secret)
    made = Synthesize(model="trees").apply(data, Context(rng=Rng(3))).table.frame

    def where(release: pl.DataFrame, *, synthetic: bool) -> AttackScenario:
        return AttackScenario(
            original=data,
            release=Release(table=Table(frame=release), manifest={}),
            lineage=Lineage(np.full(3000, -1) if synthetic else np.arange(3000)),
            control=Table(frame=others),
        )

    distance = np.zeros((3000, made.height), dtype=np.float32)
    for name in known:
        left, right = people[name].to_numpy()[:, None], made[name].to_numpy()[None]
        numeric = people[name].dtype.is_numeric()
        distance += np.abs(left - right) / np.ptp(left) if numeric else left != right
    hits = float((made[secret].to_numpy()[distance.argmin(axis=1)] == people[secret].to_numpy()).mean())
    model = ModelInference(secret=secret)
    show("Adult, trees: salary class", "nearest row (Gower)", hits, model, where(made, synthetic=True))
    present = [
        part.join(made.select(known).unique(), on=known, how="semi", nulls_equal=True).height / 3000
        for part in (people, others)
    ]
    simple = (1 + present[0] - present[1]) / 2
    show("Adult, trees: membership", "the record occurs", simple, Membership(), where(made, synthetic=True))
    draw = np.random.default_rng(1)
    moved = pl.when(pl.Series(draw.random(3000) < 0.3)).then(people[secret].gather(draw.permutation(3000)))
    swapped = people.with_columns(moved.otherwise(people[secret]).alias(secret))
    mode = swapped.group_by(known).agg(pl.col(secret).mode().sort().first().alias("guess"))
    guess = people.join(mode, on=known, how="left", maintain_order="left", nulls_equal=True)["guess"]
    hits = float((guess == people[secret]).mean())
    show("Adult, 30 % of the secrets exchanged", "mode of equal rows", hits, model, where(swapped, synthetic=False))


if __name__ == "__main__":
    linkage(Path(sys.argv[1]))
    inference(Path(sys.argv[1]))
