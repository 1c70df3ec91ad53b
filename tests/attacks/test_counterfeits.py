"""Counterfeits copy: who knows that tells them from real rows."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.attacks import AttackScenario, Outcome, default_attacks, evaluate_attack, risk
from sfumato.attacks.inference.attribute_linkage import AttributeLinkage
from sfumato.attacks.record_linkage.linkage import Linkage
from sfumato.attacks.record_linkage.posterior_linkage import PosteriorLinkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.masking.methods.add_counterfeits import AddCounterfeits
from sfumato.masking.pipeline import protect
from sfumato.release import Release
from sfumato.rng import Rng

COUNT = 400


def scenario() -> AttackScenario:
    draw = np.random.default_rng(1)
    table = pl.DataFrame(
        {"zip": draw.permutation(COUNT), "pay": np.exp(draw.normal(8, 1, COUNT)), "rent": draw.normal(size=COUNT)}
    )
    roles = {"zip": "quasi", "pay": "sensitive", "rent": "plain"}
    original = Data.of(Table(frame=table), Schema(columns={n: Column(role=role) for n, role in roles.items()}))
    made = protect(original, steps=[AddCounterfeits(fraction=1.0)], rng=Rng(2))
    release = Release(table=made.data.table, manifest={"steps": [step.public() for step in made.steps]})
    return AttackScenario(original=original, release=release, lineage=made.lineage)


def test_rows_that_copy_nobody_are_named() -> None:
    where = scenario()
    plain, seeing = (risk(evaluate_attack(attack, where, rng=Rng(1))) for attack in (Linkage(), PosteriorLinkage()))
    assert seeing.low > plain.high
    assert "posterior-linkage" in [attack.part_name() for attack in default_attacks(where)]


def test_secrets_are_read_off_rows_that_copy_nobody() -> None:
    where = scenario()
    read = evaluate_attack(AttributeLinkage(secret="pay"), where, rng=Rng(1))
    assert isinstance(read, Outcome)
    assert risk(read).low > risk(evaluate_attack(Linkage(), where, rng=Rng(1))).high


def test_without_the_method_it_is_linkage() -> None:
    where = scenario()
    blind = risk(evaluate_attack(PosteriorLinkage(transparent=False), where, rng=Rng(1)))
    plain = risk(evaluate_attack(Linkage(transparent=False), where, rng=Rng(1)))
    assert abs(blind.value - plain.value) < 0.1
