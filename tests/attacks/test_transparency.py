"""Attacks that know the method: strata of rank swapping, and columns that move together."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from sfumato.attacks import Attack, AttackScenario, Outcome, default_attacks, evaluate_attack
from sfumato.attacks.record_linkage.posterior_linkage import PosteriorLinkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.masking.base import Context, Step
from sfumato.registry import registry
from sfumato.release import Release
from sfumato.rng import Rng


def people(count: int = 600, seed: int = 3) -> Data:
    draw = np.random.default_rng(seed)
    town = draw.choice(["a", "b", "c"], count)
    # Towns differ so much that a window over the whole column says nothing about one of them.
    level = np.select([town == "a", town == "b"], [0.0, 100.0], 200.0)
    common = draw.normal(size=count)
    frame = pl.DataFrame({"town": town} | {f"x{i}": level + common + draw.normal(size=count) for i in range(4)})
    return Data.of(Table(frame=frame), Schema(columns={name: Column(role="quasi") for name in frame.columns}))


def masked(method: str, **parameters: Any) -> AttackScenario:
    original = people()
    step = registry("method").get(method).build(parameters)
    assert isinstance(step, Step)
    change = step.apply(original, Context(rng=Rng(11)))
    manifest = {"steps": [{"step": method, "parameters": step.public(), "truthful": False, **change.public}]}
    return AttackScenario(original=original, release=Release(table=change.table, manifest=manifest), aligned=True)


def run(attack: Attack, where: AttackScenario) -> Outcome:
    return evaluate_attack(attack, where, rng=Rng(5), n_targets=600)


def test_swaps_within_strata_are_likely_within_strata() -> None:
    where = masked("rank-swap", p=10, strata=["town"], columns=["x0", "x1", "x2", "x3"])
    within = run(PosteriorLinkage(), where)
    step = {**where.release.manifest["steps"][0]}
    step["parameters"] = {**step["parameters"], "strata": []}
    unaware = AttackScenario(
        original=where.original,
        release=Release(table=where.release.table, manifest={"steps": [step]}),
        aligned=True,
    )
    assert within.main.rate > run(PosteriorLinkage(), unaware).main.rate + 0.03


def test_correlated_noise_is_linked_by_its_joint_likelihood() -> None:
    """Who takes the noise of the columns as independent finds fewer people."""
    columns = ["x0", "x1", "x2", "x3"]
    where = masked("noise", variance_ratio=0.00002, variant="correlated", columns=columns)
    step = {**where.release.manifest["steps"][0]}
    step["parameters"] = {**step["parameters"], "variant": "additive"}
    apart = AttackScenario(
        original=where.original, release=Release(table=where.release.table, manifest={"steps": [step]}), aligned=True
    )
    assert run(PosteriorLinkage(), where).main.hits > run(PosteriorLinkage(), apart).main.hits


def test_the_battery_learns_distances_where_it_can_be_told_who_is_who() -> None:
    where = masked("noise", variance_ratio=0.1, columns=["x0", "x1", "x2", "x3"])
    chosen = [attack for attack in default_attacks(where) if attack.part_name() == "learned-linkage"]
    assert [attack.setting for attack in chosen] == ["taught by the targets", "30% known"]
    unknown = AttackScenario(original=where.original, release=where.release)
    assert "learned-linkage" not in [attack.part_name() for attack in default_attacks(unknown)]
    coarse = Release(table=where.release.table, manifest={"steps": [{"step": "generalize", "truthful": True}]})
    exact = AttackScenario(original=where.original, release=coarse, aligned=True)
    assert "learned-linkage" not in [attack.part_name() for attack in default_attacks(exact)]


def test_columns_too_wide_to_learn_over_are_left_out() -> None:
    draw = np.random.default_rng(1)
    frame = people().table.frame.with_columns(pl.Series("code", draw.integers(0, 60, 600).astype(str)))
    original = Data.of(Table(frame=frame), Schema(columns={name: Column(role="quasi") for name in frame.columns}))
    where = AttackScenario(original=original, release=Release(table=Table(frame=frame), manifest={}), aligned=True)
    [first, _] = [attack for attack in default_attacks(where) if attack.part_name() == "learned-linkage"]
    assert first.knows == ("town", "x0", "x1", "x2", "x3")
