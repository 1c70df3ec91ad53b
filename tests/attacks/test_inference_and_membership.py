"""Inference, membership, singling out and intersection on cases whose answer is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.attacks import AttackScenario, evaluate_attack
from sfumato.attacks.base import Attack, Guesses, Predicate, View
from sfumato.attacks.evaluation.predicates import isolated
from sfumato.attacks.inference.intersection import Intersection
from sfumato.attacks.inference.membership import Membership
from sfumato.attacks.inference.model_inference import ModelInference
from sfumato.attacks.inference.singling_out import SinglingOut
from sfumato.attacks.record_linkage.distance_linkage import DistanceLinkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import NotApplicable
from sfumato.masking.base import Context
from sfumato.masking.methods.rank_swap import RankSwap
from sfumato.progress import SILENT, Progress
from sfumato.release import Lineage, Release
from sfumato.rng import Rng


def people(count: int, seed: int = 1) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    age = draw.integers(20, 80, count)
    return pl.DataFrame(
        {
            "age": age,
            "zip": [f"{code}" for code in draw.integers(10_000, 10_020, count)],
            "weight": draw.normal(75, 12, count).round(2),
            "ill": [f"ill {value}" for value in draw.integers(0, 8, count)],
            "pay": 1000.0 + 50 * age + draw.normal(0, 20, count),
        }
    )


SCHEMA = Schema(
    columns={
        "age": Column(role=Role.QUASI),
        "zip": Column(role=Role.QUASI),
        "weight": Column(role=Role.QUASI),
        "ill": Column(role=Role.SENSITIVE),
        "pay": Column(role=Role.SENSITIVE),
    }
)


def original(count: int = 600) -> Data:
    return Data.of(Table(frame=people(count)), SCHEMA)


def coarse(frame: pl.DataFrame, step: int, digits: int) -> pl.DataFrame:
    low = pl.col("age") // step * step
    return frame.with_columns(
        age=pl.format("{}-{}", low, low + step - 1), zip=pl.col("zip").str.head(digits) + "*" * (5 - digits)
    ).drop("weight")


def test_two_releases_show_what_each_hides(tmp_path: Path) -> None:
    many = np.random.default_rng(9).integers(0, 60, 600)
    data = Data.of(Table(frame=people(600).with_columns(ill=pl.Series([f"ill {value}" for value in many]))), SCHEMA)
    frame = data.table.frame
    coarse(frame, 7, 5).write_csv(tmp_path / "second.csv")
    first = Release(table=Table(frame=coarse(frame, 10, 5)), manifest={})
    scenario = AttackScenario(original=data, release=first, aligned=True, knows=("age", "zip"))
    one = evaluate_attack(Intersection(secret="ill"), scenario, rng=Rng(1))
    two = evaluate_attack(Intersection(secret="ill", releases=(tmp_path / "second.csv",)), scenario, rng=Rng(1))
    assert two.main.rate > one.main.rate + 0.05
    assert two.detail["releases"] == 2


def test_regression_is_what_everybody_shares() -> None:
    """Pay follows age: a model guesses it for people outside the release as well as for those inside."""
    data = original()
    kept = np.arange(400)
    released = data.table.frame[kept]
    scenario = AttackScenario(
        original=data,
        release=Release(table=Table(frame=released), manifest={}),
        lineage=Lineage(kept),
        knows=("age",),
        control=Table(frame=data.table.frame[400:]),
    )
    outcome = evaluate_attack(
        ModelInference(secret="pay", model="neighbours", neighbours=15, tolerance=0.02), scenario, rng=Rng(1)
    )
    assert outcome.control is not None
    assert outcome.main.rate > 0.8
    assert abs(outcome.main.rate - outcome.control.rate) < 0.1
    assert outcome.baseline.rate < 0.2


def test_boosting_learns_a_rule() -> None:
    pytest.importorskip("sklearn")
    draw = np.random.default_rng(0)
    frame = people(500).with_columns(ill=pl.when(pl.col("age") > 50).then(pl.lit("old")).otherwise(pl.lit("young")))
    data = Data.of(Table(frame=frame), SCHEMA)
    release = Release(table=Table(frame=frame[draw.permutation(500)]), manifest={})
    scenario = AttackScenario(original=data, release=release, knows=("age",))
    outcome = evaluate_attack(ModelInference(secret="ill", model="boosting"), scenario, rng=Rng(1))
    assert outcome.main.rate > 0.98


def test_a_release_that_is_the_original_gives_everybodys_secret_away() -> None:
    """Illness follows from nothing, so five neighbours know little of it, and the row itself all."""
    data = original()
    scenario = AttackScenario(original=data, release=Release(table=data.table, manifest={}), aligned=True)
    outcome = evaluate_attack(ModelInference(secret="ill"), scenario, rng=Rng(1))
    assert outcome.main.rate == 1.0
    assert outcome.main.trials == 450
    assert (outcome.detail["picked"], outcome.detail["picked on"]) == ("by nearest", 150)
    assert outcome.detail["shares"] == {"by nearest": 1.0}  # nothing is stronger, so no other model was tried
    neighbours = evaluate_attack(ModelInference(secret="ill", model="neighbours"), scenario, rng=Rng(1))
    assert neighbours.main.rate < 0.7
    most = evaluate_attack(ModelInference(secret="ill"), scenario, rng=Rng(1), n_targets=100)
    assert (most.main.trials, most.planned, most.detail["picked on"]) == (100, 100, 25)


def test_a_rule_is_learned_where_rows_say_nothing_of_their_people() -> None:
    pytest.importorskip("sklearn")
    draw = np.random.default_rng(0)
    age = draw.uniform(20, 80, 800)
    frame = pl.DataFrame({"age": age, "ill": np.where((age > 50) ^ (draw.random(800) < 0.2), "yes", "no")})
    data = Data.of(Table(frame=frame), Schema(columns={"age": Column(role="quasi"), "ill": Column(role="sensitive")}))
    others = draw.uniform(20, 80, 800)
    made = pl.DataFrame({"age": others, "ill": np.where((others > 50) ^ (draw.random(800) < 0.2), "yes", "no")})
    outcome = evaluate_attack(
        ModelInference(),
        AttackScenario(original=data, release=Release(table=Table(frame=made), manifest={})),
        rng=Rng(1),
    )
    assert outcome.detail["picked"] != "by nearest"
    assert outcome.main.rate > outcome.detail["shares"]["by nearest"]


def test_the_best_of_several_blind_models_is_not_counted_as_luck() -> None:
    """Twenty coins: the best of them does well where it was picked, and as a coin where it is counted.

    Some 4,000 tosses, seeded: more than six standard errors from one half would fail.
    """

    class Coin(ModelInference):
        @property
        def alternatives(self) -> tuple[Attack, ...]:
            return tuple(Coin(secret="ill", neighbours=number) for number in range(1, 21))

        @property
        def setting(self) -> str:
            return f"coin {self.neighbours}"

        def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
            toss = rng.child(self.neighbours).generator.random(view.targets.height) < 0.5
            value = pl.Series(np.where(toss, "yes", "no"))
            return Guesses(value=value, made=np.ones(len(value), dtype=np.bool_), confidence=np.zeros(len(value)))

    frame = pl.DataFrame({"age": np.arange(5060), "ill": np.where(np.arange(5060) % 2 == 0, "yes", "no")})
    data = Data.of(Table(frame=frame), Schema(columns={"age": Column(role="quasi"), "ill": Column(role="sensitive")}))
    scenario = AttackScenario(original=data, release=Release(table=data.table, manifest={}), aligned=True)
    outcome = evaluate_attack(Coin(secret="ill"), scenario, rng=Rng(1), n_targets=5000)
    assert max(outcome.detail["shares"].values()) > 0.5
    assert abs(outcome.main.rate - 0.5) < 0.05


def test_membership_is_seen_in_copies_and_not_in_strangers() -> None:
    data = original()
    noise = np.random.default_rng(5)
    copied = data.table.frame.with_columns(pl.col("weight") + noise.normal(0, 0.01, 600))
    control = Table(frame=people(600, seed=77))
    near = AttackScenario(
        original=data, release=Release(table=Table(frame=copied), manifest={}), aligned=True, control=control
    )
    assert evaluate_attack(Membership(knows=("age", "weight", "zip")), near, rng=Rng(1)).main.rate > 0.9
    strange = Release(table=Table(frame=people(600, seed=78)), manifest={})
    far = AttackScenario(original=data, release=strange, aligned=True, control=control)
    found = evaluate_attack(Membership(knows=("age", "weight", "zip")), far, rng=Rng(1))
    assert abs(found.main.rate - 0.5) < 0.08


def test_shadow_releases_teach_the_threshold() -> None:
    data = original()
    step = RankSwap(p=0.5)
    masked = step.apply(data, Context(rng=Rng(3)))
    steps = [{"step": "rank-swap", "parameters": step.public(), "truthful": False, **masked.public}]
    scenario = AttackScenario(
        original=data,
        release=Release(table=masked.table, manifest={"steps": steps}),
        aligned=True,
        control=Table(frame=people(600, seed=77)),
    )
    outcome = evaluate_attack(Membership(knows=("age", "weight", "zip"), shadows=5), scenario, rng=Rng(1))
    assert outcome.main.rate > 0.75
    assert outcome.detail["shadows"] == 5


def test_membership_needs_people_outside() -> None:
    data = original()
    scenario = AttackScenario(original=data, release=Release(table=data.table, manifest={}), aligned=True)
    with pytest.raises(NotApplicable, match="not in the release"):
        evaluate_attack(Membership(), scenario, rng=Rng(1))


def test_descriptions_fit_exactly_one() -> None:
    frame = pl.DataFrame({"a": ["x", "x", "y"], "n": [1, 2, 3]})
    released = Release(table=Table(frame=pl.DataFrame({"a": ["x", "y"], "n": ["1-2", "3"]})), manifest={})
    tried = (
        Predicate(conditions=(("a", "=", "y"),)),
        Predicate(conditions=(("a", "=", "x"),)),
        Predicate(conditions=(("a", "=", "x"), ("n", "=", "1-2"))),
    )
    assert isolated(tried, frame, released).tolist() == [True, False, False]
    plain = (Predicate(conditions=(("a", "=", "x"), ("n", "<=", 1))), Predicate(conditions=(("n", ">=", 2),)))
    assert isolated(plain, frame, Release(table=Table(frame=frame), manifest={})).tolist() == [True, False]


def test_a_predicate_names_a_group_of_the_published_hierarchy() -> None:
    """Before, "Europe" was true of nobody, so that no predicate on a taxonomy singled anybody out."""
    frame = pl.DataFrame({"country": ["France", "Poland", "China"]})
    taxonomy = {"taxonomy": {"tree": {"Europe": {"West": ["France"], "East": ["Poland"]}, "Asia": ["China"]}}}
    manifest = {"columns": {"country": {"hierarchy": taxonomy}}}
    released = Release(table=Table(frame=pl.DataFrame({"country": ["Europe", "Asia"]})), manifest=manifest)
    tried = [Predicate(conditions=(("country", "=", name),)) for name in ("Asia", "Europe", "West", "Africa")]
    assert isolated(tried, frame, released).tolist() == [True, False, True, False]


def test_singling_out_ends_where_classes_are_large() -> None:
    data = original()
    fine = AttackScenario(original=data, release=Release(table=data.table, manifest={}), aligned=True)
    wide = Release(table=Table(frame=coarse(data.table.frame, 60, 3)), manifest={})
    attack = SinglingOut(descriptions=100)
    assert evaluate_attack(attack, fine, rng=Rng(1)).main.rate == 1.0
    with pytest.raises(NotApplicable, match="exactly one"):
        evaluate_attack(
            attack, AttackScenario(original=data, release=wide, aligned=True, knows=("age", "zip")), rng=Rng(1)
        )


def test_ties_of_distance_linkage_count_with_their_probability() -> None:
    """Groups of three equal rows: a third of a hit for everybody, whatever the random choice is."""
    frame = pl.DataFrame({"a": np.repeat(np.arange(40.0), 3), "b": np.repeat(np.arange(40.0)[::-1], 3)})
    data = Data.of(Table(frame=frame), Schema(columns={"a": Column(role="quasi"), "b": Column(role="quasi")}))
    scenario = AttackScenario(original=data, release=Release(table=data.table, manifest={}), aligned=True)
    for seed in range(3):
        outcome = evaluate_attack(DistanceLinkage(), scenario, rng=Rng(seed))
        assert outcome.main.hits == pytest.approx(40)
