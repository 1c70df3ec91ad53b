"""Downcoding: the ends of smallest ranges single people out, although every group has k rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from sfumato.attacks import AttackScenario, default_attacks, evaluate_attack, risk
from sfumato.attacks.transparency.downcoding import Downcoding
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.errors import NotApplicable
from sfumato.masking.base import Context, Step
from sfumato.masking.methods.local_recode import LocalRecode
from sfumato.masking.methods.mondrian import Mondrian
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.release import Release
from sfumato.rng import Rng


def people() -> Data:
    draw = np.random.default_rng(1)
    frame = pl.DataFrame({"age": draw.integers(18, 95, 600), "income": draw.integers(10_000, 90_000, 600)})
    return Data.of(Table(frame=frame), Schema(columns={name: Column(role="quasi") for name in frame.columns}))


def scenario(step: Step) -> AttackScenario:
    change = step.apply(people(), Context(rng=Rng(3), models=(KAnonymity(k=5),)))
    published = {"step": step.part_name(), "parameters": step.public(), "truthful": True, **change.public}
    release = Release(table=change.table, manifest={"steps": [published]})
    return AttackScenario(original=people(), release=release, aligned=True)


def test_the_end_of_a_smallest_range_is_somebody() -> None:
    where = scenario(Mondrian())
    assert any(isinstance(attack, Downcoding) for attack in default_attacks(where))
    outcome = evaluate_attack(Downcoding(), where, rng=Rng(1))
    assert risk(outcome).low > 0.9
    assert outcome.baseline is not None
    assert outcome.baseline.rate < 0.2


def test_each_value_of_a_set_is_somebodys() -> None:
    """Groups of five to nine people with sets of about as many jobs: before, groups without numbers were left out."""
    draw = np.random.default_rng(1)
    frame = pl.DataFrame(
        {name: draw.choice([f"{name} {number}" for number in range(60)], 500) for name in ("job", "town")}
    )
    data = Data.of(Table(frame=frame), Schema(columns={name: Column(role="quasi") for name in frame.columns}))
    change = Mondrian().apply(data, Context(rng=Rng(3), models=(KAnonymity(k=5),)))
    published = {"step": "mondrian", "parameters": {}, "truthful": True, **change.public}
    release = Release(table=change.table, manifest={"steps": [published]})
    where = AttackScenario(original=data, release=release, aligned=True)
    outcome = evaluate_attack(Downcoding(), where, rng=Rng(1))
    assert risk(outcome).low > 0.6
    # The attack states how sure it is, and is about as often right.
    assert abs(outcome.confidence.mean() - outcome.main.rate) < 0.15


def test_fixed_bands_are_not_downcoded() -> None:
    """Bands that do not depend on the values in them: the same attack succeeds about as often as one in e."""
    where = scenario(Mondrian())
    band = pl.col("income") // 20_000 * 20_000
    frame = people().table.frame.select(age=pl.lit("18-94"), income=pl.format("{}-{}", band, band + 19_999))
    fixed = AttackScenario(
        original=where.original,
        release=Release(table=Table(frame=frame), manifest=where.release.manifest),
        aligned=True,
    )
    assert evaluate_attack(Downcoding(), fixed, rng=Rng(1)).main.rate < 0.5


def test_a_method_that_is_unknown_or_has_fixed_levels_is_not_exploited() -> None:
    where = scenario(Mondrian())
    with pytest.raises(NotApplicable, match="smallest range"):
        evaluate_attack(Downcoding(transparent=False), where, rng=Rng(1))
    bare = AttackScenario(
        original=where.original, release=Release(table=where.release.table, manifest={}), aligned=True
    )
    assert not any(isinstance(attack, Downcoding) for attack in default_attacks(bare))


def test_local_recoding_is_exploited() -> None:
    assert Downcoding.exploits(LocalRecode)
    assert not Downcoding.exploits(Step)
