"""The control arm: people who are not in the release and are like those who are, never suppressed outliers."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.attacks import AttackScenario, evaluate_attack
from sfumato.attacks.inference.attribute_linkage import AttributeLinkage
from sfumato.attacks.inference.membership import Membership
from sfumato.data import read
from sfumato.dataset import Data
from sfumato.errors import NotApplicable
from sfumato.evaluation import judged_risk
from sfumato.evaluation.cross_fit import folds_of
from sfumato.release import Lineage, Release
from sfumato.rng import Rng


def _pairs(count: int = 150) -> pl.DataFrame:
    """People in pairs who share a code and a secret; the secrets of the pairs are independent of the codes."""
    secret = np.random.default_rng(5).integers(0, 2, count)
    return pl.DataFrame({"code": np.repeat(np.arange(count), 2), "ill": np.array(["no", "yes"])[np.repeat(secret, 2)]})


def _pairs_with_suppressed_twins() -> AttackScenario:
    """All secrets can be read off the release, and those of suppressed rows too: they are twins of released ones."""
    released = _pairs()
    twins = released.filter(pl.col("ill") == "yes").head(60)
    original = pl.concat([released, twins])
    data = Data.of(read(original), sfumato.Schema.of(original, quasi=["code"], sensitive=["ill"]))
    steps = [{"step": "suppress", "truthful": True, "columns": []}]
    return AttackScenario(
        original=data,
        release=Release(table=read(released), manifest={"columns": {}, "steps": steps}),
        lineage=Lineage(np.arange(released.height)),
    )


def test_suppressed_rows_are_no_control_of_attribute_inference() -> None:
    outcome = evaluate_attack(AttributeLinkage(), _pairs_with_suppressed_twins(), rng=Rng(1))
    assert outcome.main.rate == 1.0
    assert outcome.control is None
    assert judged_risk(outcome) > 0.9  # with the twins as control it was 0
    assert outcome.to_dict()["excess"] is None


def test_suppressed_rows_are_no_control_of_membership() -> None:
    with pytest.raises(NotApplicable, match="not in the release"):
        evaluate_attack(Membership(), _pairs_with_suppressed_twins(), rng=Rng(1))


def _attacks(protection: Any) -> dict[str, Any]:
    return {item["attack"]: item for item in protection.evaluation.to_dict()["attacks"]}


def test_cross_fitting_shows_that_a_release_discloses_secrets() -> None:
    """Everybody's secret is read off their own class and nobody's is known without it."""
    recipe = {
        "sfumato": 1,
        "columns": {"code": "quasi", "ill": "sensitive"},
        "models": [{"k-anonymity": 2}],
        "steps": ["generalize"],
        "attacks": ["attribute-linkage"],
    }
    outcome = _attacks(sfumato.protect(recipe, _pairs(), seed=3))["attribute-linkage"]
    assert outcome["risk"] == 1.0
    assert 0.3 < outcome["control"] < 0.7  # of 2 × 60 people; 0.5 but once in a million runs
    assert outcome["excess"] > 0.9


def test_cross_fitting_shows_that_statistics_are_no_disclosure() -> None:
    """A synthetic release of two dependent columns tells the secret of anybody, in the data or not."""
    draw = np.random.default_rng(2)
    size = draw.normal(50, 15, 600).round(1)
    people = pl.DataFrame({"size": size, "cost": (size * 20 + draw.normal(0, 20, 600)).round(0)})
    recipe = {
        "sfumato": 1,
        "columns": {"size": "quasi", "cost": "sensitive"},
        "steps": [{"synthesize": {"model": "copula"}}],
        "attacks": [{"model-inference": {"tolerance": 0.1}}, "membership"],
    }
    outcome = _attacks(sfumato.protect(recipe, people, seed=3))
    inference = outcome["model-inference"]
    assert inference["risk"] > inference["baseline"] + 0.5
    assert abs(inference["risk"] - inference["control"]) < 0.1
    assert outcome["membership"]["truth"] == "cross-fitting"
    assert outcome["membership"]["tried"] == 2 * 2 * 120


def test_no_control_group_is_stated() -> None:
    """Too few rows, and a recipe that refuses the smaller table."""
    columns = {"code": "quasi", "ill": "sensitive"}
    recipe = {"sfumato": 1, "columns": columns, "attacks": ["attribute-linkage"]}
    outcome = _attacks(sfumato.protect(recipe, _pairs(60), seed=3))["attribute-linkage"]
    assert outcome["control"] is None
    assert outcome["excess"] is None
    assert "fewer than 200 rows" in outcome["detail"]["control"]
    refusing = {**recipe, "models": [{"k-anonymity": 300}], "steps": ["mondrian"]}
    outcome = _attacks(sfumato.protect(refusing, _pairs(150), seed=3))["attribute-linkage"]
    assert outcome["control"] is None
    assert "refuses part of the data" in outcome["detail"]["control"]


def test_households_stay_together_in_folds() -> None:
    frame = pl.DataFrame({"home": np.repeat(np.arange(100), 3), "age": np.arange(300)})
    data = Data.of(read(frame), sfumato.Schema.of(frame, quasi=["age"], household="home"))
    held_out: list[int] = []
    for kept, rest in folds_of(data, Rng(1)):
        assert (kept.rows, rest.rows) == (240, 60)
        assert not set(kept.table.column("home")) & set(rest.table.column("home"))
        held_out += rest.table.column("age").to_list()
    assert len(set(held_out)) == 120
