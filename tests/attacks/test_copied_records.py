"""Synthetic data that copies records is detected, and every kind of disclosure has a limit."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from sfumato import attack
from sfumato.attacks import AttackScenario, default_attacks, evaluate_attack, risk
from sfumato.attacks.inference.membership import Membership
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.errors import NotApplicable
from sfumato.evaluation import judge_limits, same_limit
from sfumato.recipe import Recipe
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

COUNT = 300


def people(seed: int = 1) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": draw.integers(18, 90, COUNT),
            "zip": [f"{code}" for code in draw.integers(10_000, 10_030, COUNT)],
            "income": np.exp(draw.normal(10, 0.6, COUNT)).round(2),
            "rent": np.exp(draw.normal(7, 0.6, COUNT)).round(2),
        }
    )


SCHEMA = Schema(columns={name: Column(role="quasi") for name in people().columns})


def made_up(frame: pl.DataFrame) -> AttackScenario:
    manifest = {"steps": [{"step": "synthesize", "parameters": {}, "truthful": False, "columns": frame.columns}]}
    release = Release(table=Table(frame=frame), manifest=manifest)
    return AttackScenario(
        original=Data.of(Table(frame=people()), SCHEMA), release=release, lineage=Lineage(np.full(frame.height, -1))
    )


def found(scenario: AttackScenario) -> float:
    """What the strongest attack of the battery that applies gets beyond its baseline."""
    gained = []
    for one in default_attacks(scenario):
        try:
            outcome = evaluate_attack(one, scenario, rng=Rng(1))
        except NotApplicable:
            continue
        assert outcome.baseline is not None
        gained.append(risk(outcome).value - outcome.baseline.rate)
    return max(gained)


def test_a_synthesizer_that_copies_is_called_out() -> None:
    copied = people().sample(COUNT, with_replacement=True, seed=3)
    assert found(made_up(copied)) > 0.5


def test_one_that_does_not_is_not() -> None:
    assert found(made_up(people(seed=9))) < 0.2


def test_a_release_whose_rows_nobody_knows_is_judged_all_the_same() -> None:
    release = Release(table=Table(frame=people().sample(COUNT, shuffle=True, seed=3)), manifest={})
    scenario = AttackScenario(original=Data.of(Table(frame=people()), SCHEMA), release=release)
    assert found(scenario) > 0.5


def test_singling_out_has_a_limit() -> None:
    outcomes = attack(people(), original=people(), attacks=["singling-out"], knows=people().columns, seed=1, limit=0.1)
    judged = judge_limits(same_limit(0.1, outcomes), outcomes)
    assert [(entry.limit, entry.met) for entry in judged] == [("singling-out", False)]


@pytest.mark.parametrize("name", ["risk", "attribute", "membership", "singling-out"])
def test_limits_are_written_as_they_are_read(name: str) -> None:
    recipe = Recipe.parse({"sfumato": 1, "columns": {"age": "quasi"}, "limits": {name: 0.2}})
    assert recipe.limits.items() == {name: 0.2}
    assert Recipe.parse(recipe.to_dict()).limits == recipe.limits


@pytest.mark.parametrize(("copied", "least"), [(1.0, 0.99), (0.6, 0.75), (0.2, 0.57)])
def test_members_are_those_who_were_copied(copied: float, least: float) -> None:
    """Saying "member" of those alone whose copy is there is right about them and about all strangers."""
    draw = np.random.default_rng(5)
    members, strangers, invented = (draw.normal(size=(400, 4)) for _ in range(3))
    count = round(copied * 400)
    released = draw.permutation(np.vstack([members[:count], invented[count:]]))
    tables = [Table(frame=pl.DataFrame(rows, schema=list("abcd"))) for rows in (members, strangers, released)]
    schema = Schema(columns={name: Column(role="quasi") for name in "abcd"})
    scenario = AttackScenario(
        original=Data.of(tables[0], schema), release=Release(table=tables[2], manifest={}), control=tables[1]
    )
    assert risk(evaluate_attack(Membership(), scenario, rng=Rng(1))).value >= least
