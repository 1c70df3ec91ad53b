"""Original values in a release: membership, singling out, and synthesizers that do not release them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from sfumato.attacks import Attack, AttackScenario, Outcome, default_attacks, evaluate_attack, risk
from sfumato.attacks.inference.membership import Membership
from sfumato.attacks.inference.singling_out import SinglingOut
from sfumato.attacks.inference.value_presence import ValuePresence
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.masking.base import Context, Step
from sfumato.masking.methods._smoothing import smoothed
from sfumato.masking.methods.noise import Noise
from sfumato.masking.methods.rank_swap import RankSwap
from sfumato.masking.methods.synthesize import Synthesize
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

COUNT = 400


def people(seed: int, count: int = COUNT) -> pl.DataFrame:
    """Incomes to the cent, a rent that many do not pay, and a category."""
    draw = np.random.default_rng(seed)
    income = np.exp(draw.normal(10, 0.6, count))
    return pl.DataFrame(
        {
            "income": income.round(2),
            "rent": np.where(draw.random(count) < 0.3, 0.0, (income * draw.uniform(0.1, 0.4, count)).round(2)),
            "savings": np.exp(draw.normal(8, 1, count)).round().astype(np.int64),
            "town": draw.choice(["a", "b", "c"], count),
        }
    )


SCHEMA = Schema(columns={name: Column(role="quasi") for name in people(1).columns})


def scenario(step: Step | None, seed: int = 1) -> AttackScenario:
    """A release of 400 people by a step (the people themselves in shuffled columns without one), and 400 others."""
    data = Data.of(Table(frame=people(seed)), SCHEMA)
    manifest: dict[str, Any] = {}
    if step is None:
        released = data.table.frame.select(pl.all().shuffle(seed=seed))
        rows = np.arange(COUNT)
    else:
        change = step.apply(data, Context(rng=Rng(seed)))
        released = change.table.frame
        rows = np.arange(COUNT) if change.rows is None else change.rows
        manifest = {"steps": [{"step": step.part_name(), "parameters": step.public(), **change.public}]}
    return AttackScenario(
        original=data,
        release=Release(table=Table(frame=released), manifest=manifest),
        lineage=Lineage(rows),
        control=Table(frame=people(seed + 1000)),
    )


def attacked(attack: Attack, where: AttackScenario) -> Outcome:
    return evaluate_attack(attack, where, rng=Rng(1))


KEEPING: dict[str, Step | None] = {
    "rank swapping": RankSwap(p=100),
    "shuffled columns": None,
    "copula that keeps values": Synthesize(model="copula", keep_values=True),
    "trees that keep values": Synthesize(model="trees", keep_values=True),
}


@pytest.mark.parametrize("name", KEEPING)
def test_members_are_known_by_their_exact_values(name: str) -> None:
    where = scenario(KEEPING[name])
    assert any(isinstance(attack, ValuePresence) for attack in default_attacks(where))
    assert risk(attacked(ValuePresence(), where)).low > 0.85


@pytest.mark.parametrize("model", ["copula", "trees"])
def test_a_synthesizer_releases_no_original_amounts(model: str) -> None:
    """Released amounts equal an original one no more often than those of other people do."""
    where = scenario(Synthesize(model=model))  # type: ignore[arg-type]
    original, released, others = where.original.table.frame, where.release.table.frame, where.control
    assert others is not None
    for name in ("income", "rent", "savings"):
        rare = original[name].filter(original[name] != 0).implode()
        present, chance = (int(frame[name].is_in(rare).sum()) for frame in (released, others.frame))
        assert present <= binom.isf(1e-6, COUNT, (chance + 5) / COUNT)
    assert risk(attacked(ValuePresence(), where)).low < 0.55
    exact = attacked(SinglingOut(columns=1, exact=True), where)
    assert risk(exact).high < 0.1


@pytest.mark.parametrize("model", ["copula", "trees"])
def test_a_synthesizer_keeps_distributions(model: str) -> None:
    """Quantiles, the share of zeros and the correlation, each within about four standard errors."""
    data = Data.of(Table(frame=people(3, 4000)), SCHEMA)
    made = Synthesize(model=model).apply(data, Context(rng=Rng(2))).table.frame  # type: ignore[arg-type]
    before = data.table.frame
    for name in ("income", "savings"):
        for share in (0.1, 0.5, 0.9):
            place = float((made[name] <= before[name].quantile(share)).mean())  # type: ignore[arg-type]
            assert abs(place - share) < 4 * (2 * share * (1 - share) / 4000) ** 0.5
    assert abs(float((made["rent"] == 0).mean()) - float((before["rent"] == 0).mean())) < 0.04  # type: ignore[arg-type]
    ranks = [frame.select(pl.corr("income", "rent", method="spearman")).item() for frame in (before, made)]
    assert abs(ranks[0] - ranks[1]) < 0.08
    assert made["savings"].dtype == pl.Int64
    assert made["income"].equals(made["income"].round(2))


def test_exact_values_single_people_out() -> None:
    where = scenario(Synthesize(model="copula", keep_values=True))
    outcome = attacked(SinglingOut(columns=1, exact=True), where)
    assert risk(outcome).low > 0.9
    assert outcome.baseline is not None
    assert outcome.baseline.rate < 0.3


def test_exact_values_single_people_out_of_a_swapped_release_with_a_row_map() -> None:
    where = scenario(RankSwap(p=30))
    [attack] = [attack for attack in default_attacks(where) if isinstance(attack, SinglingOut)]
    assert risk(attacked(attack, where)).low > 0.9
    assert not [
        attack for attack in default_attacks(scenario(Noise(variance_ratio=0.1))) if isinstance(attack, SinglingOut)
    ]


def test_copied_rows_are_reported() -> None:
    """A file in which one row in twenty is a copy of a person's record, the others being of other people."""
    original = people(1)
    mixed = pl.concat([original.head(20), people(50).head(380)])
    where = AttackScenario(
        original=Data.of(Table(frame=original), SCHEMA),
        release=Release(table=Table(frame=mixed), manifest={}),
        lineage=Lineage(np.full(COUNT, -1)),
    )
    [attack] = [attack for attack in default_attacks(where) if attack.setting == "copied rows"]
    outcome = attacked(attack, where)
    assert outcome.main.hits == 20
    assert outcome.baseline is not None
    assert outcome.baseline.hits == 0


def test_unrelated_values_raise_no_alarm() -> None:
    """20 releases about other people: the sum of correct guesses is that of a coin, except once in a million runs."""
    hits = trials = 0.0
    for seed in range(20):
        where = scenario(None, seed)
        other = Release(table=Table(frame=people(seed + 5000)), manifest={})
        outcome = attacked(
            ValuePresence(), AttackScenario(original=where.original, release=other, control=where.control)
        )
        hits, trials = hits + outcome.main.hits, trials + outcome.main.trials
    assert abs(hits - trials / 2) < 5 * (trials / 4) ** 0.5


def test_shadows_work_on_synthetic_data() -> None:
    """Trees with leaves of two that keep values copy parts of records; the learned threshold tells members."""
    where = scenario(Synthesize(model="trees", min_leaf=2, keep_values=True))
    outcome = attacked(Membership(shadows=3), where)
    assert outcome.detail["shadows"] == 3
    assert risk(outcome).low > 0.5


def test_common_values_times_and_lonely_values() -> None:
    draw = np.random.default_rng(1)
    days = pl.Series("day", draw.choice(20_000, 300, replace=False)).cast(pl.Int32).cast(pl.Date)
    made = smoothed(days, np.arange(300), 5, draw)
    assert made.dtype == pl.Date
    assert float(made.is_in(days.implode()).mean()) < 0.1  # type: ignore[arg-type]
    lonely = pl.Series("x", [1] * 9 + [777])
    assert smoothed(lonely, np.arange(10), 5, draw).to_list() == [1] * 9 + [None]
    text = pl.Series("t", ["a", "b"])
    assert smoothed(text, np.array([1, 0]), 5, draw).to_list() == ["b", "a"]
    at = pl.Series("at", draw.integers(0, 10**6, 200) * 60_000_000).cast(pl.Datetime("us"))
    assert (smoothed(at, np.arange(200), 5, draw).dt.second() == 0).all()
