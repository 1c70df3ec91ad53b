"""Counterfeits copy: who knows that tells them from real rows."""

from __future__ import annotations

import numpy as np
import polars as pl

from tacit.attack import Outcome, Scene, battery, examine, risk
from tacit.attack.attacks.attribute_linkage import AttributeLinkage
from tacit.attack.attacks.counterfeits import Counterfeits
from tacit.attack.attacks.linkage import Linkage
from tacit.data.table import Table
from tacit.protect.methods.add_counterfeits import AddCounterfeits
from tacit.protect.pipeline import protect
from tacit.release import Release
from tacit.rng import Rng
from tacit.schema import Column, Dataset, Schema

COUNT = 400


def scene() -> Scene:
    draw = np.random.default_rng(1)
    table = pl.DataFrame(
        {"zip": draw.permutation(COUNT), "pay": np.exp(draw.normal(8, 1, COUNT)), "rent": draw.normal(size=COUNT)}
    )
    roles = {"zip": "quasi", "pay": "sensitive", "rent": "plain"}
    original = Dataset.of(Table(frame=table), Schema(columns={n: Column(role=role) for n, role in roles.items()}))
    made = protect(original, steps=[AddCounterfeits(fraction=1.0)], rng=Rng(2))
    release = Release(table=made.data.table, manifest={"steps": [done.public() for done in made.done]})
    return Scene(original=original, release=release, lineage=made.lineage)


def test_rows_that_copy_nobody_are_named() -> None:
    where = scene()
    plain, seeing = (risk(examine(attack, where, rng=Rng(1))) for attack in (Linkage(), Counterfeits()))
    assert seeing.low > plain.high
    assert "counterfeits" in [attack.part_name() for attack in battery(where)]


def test_secrets_are_read_off_rows_that_copy_nobody() -> None:
    where = scene()
    read = examine(AttributeLinkage(secret="pay"), where, rng=Rng(1))
    assert isinstance(read, Outcome)
    assert risk(read).low > risk(examine(Linkage(), where, rng=Rng(1))).high


def test_without_the_method_it_is_linkage() -> None:
    where = scene()
    blind = risk(
        examine(Counterfeits(transparent=False), Scene(**{**vars(where), "release": where.release}), rng=Rng(1))
    )
    plain = risk(examine(Linkage(transparent=False), where, rng=Rng(1)))
    assert abs(blind.value - plain.value) < 0.1
