"""Attacks that know the method: strata of rank swapping, and columns that move together."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.attacks import Attack, AttackScenario, Outcome, default_attacks, evaluate_attack
from sfumato.attacks.transparency.rank_window import RankWindow
from sfumato.attacks.transparency.simulation import Simulation
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.errors import NotApplicable
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


def test_windows_within_strata_hold_every_true_row_and_find_more() -> None:
    where = masked("rank-swap", p=10, strata=["town"], columns=["x0", "x1", "x2", "x3"])
    within = run(RankWindow(), where)
    # Everybody's row lies in her windows, so whoever is alone in them is found.
    assert within.certain_hits == within.certain > 0
    step = {**where.release.manifest["steps"][0]}
    step["parameters"] = {**step["parameters"], "strata": []}
    unaware = AttackScenario(
        original=where.original,
        release=Release(table=where.release.table, manifest={"steps": [step]}),
        aligned=True,
    )
    assert within.main.hits > run(RankWindow(), unaware).main.hits


def test_strata_that_the_attacker_does_not_know_are_refused() -> None:
    where = masked("rank-swap", p=10, strata=["town"], columns=["x0", "x1", "x2", "x3"])
    with pytest.raises(NotApplicable, match="strata that the attacker does not know"):
        run(RankWindow(knows=("x0", "x1")), where)


def test_correlated_noise_is_linked_by_its_joint_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting the columns' moves together finds more people than taking them as independent."""
    columns = ["x0", "x1", "x2", "x3"]
    where = masked("noise", variance_ratio=0.00002, variant="correlated", columns=columns)
    together = run(Simulation(rounds=40), where)
    assert together.detail["moved together"] == columns
    monkeypatch.setattr("sfumato.attacks.likelihood._MIN_CORRELATION", 9.0)
    apart = run(Simulation(rounds=40), where)
    assert apart.detail["moved together"] == []
    assert together.main.hits > apart.main.hits


def test_independent_noise_moves_nothing_together() -> None:
    where = masked("noise", variance_ratio=0.0001, columns=["x0", "x1", "x2", "x3"])
    assert run(Simulation(rounds=40), where).detail["moved together"] == []


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
