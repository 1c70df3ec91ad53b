"""Evaluation of attacks: targets, success criteria, and what cannot be evaluated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

from sfumato import datasets
from sfumato.attacks import AttackScenario, default_attacks, evaluate_attack, lineage_by_key, risk
from sfumato.attacks.evaluation.attribute import best_constant
from sfumato.attacks.evaluation.outcome import Arm
from sfumato.attacks.inference.attribute_linkage import AttributeLinkage
from sfumato.attacks.record_linkage.linkage import Linkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import BadParameter, ColumnsDiffer, NotApplicable
from sfumato.release import Lineage, Release
from sfumato.rng import Rng
from sfumato.stats import wilson

PATIENTS = pl.read_csv(datasets.place("patients12"), schema_overrides={"zip": pl.String})
OUTSIDE = pl.read_csv(datasets.place("outside7"), schema_overrides={"zip": pl.String})
SCHEMA = Schema(
    columns={
        "name": Column(role=Role.IDENTIFIER),
        "zip": Column(role=Role.QUASI),
        "age": Column(role=Role.QUASI),
        "condition": Column(role=Role.SENSITIVE),
    }
)
ORIGINAL = Data.of(Table(frame=PATIENTS), SCHEMA)
PLAIN = PATIENTS.drop("name")
FOUR_ANONYMOUS = PLAIN.with_columns(
    zip=pl.Series(["130**"] * 4 + ["1485*"] * 4 + ["130**"] * 4),
    age=pl.Series(["<30"] * 4 + [">40"] * 4 + ["3*"] * 4),
)


def release(frame: pl.DataFrame, **manifest: object) -> Release:
    return Release(table=Table(frame=frame), manifest=manifest)


def test_outside_file_links_before_and_not_after() -> None:
    outside = Table(frame=OUTSIDE)
    before = evaluate_attack(
        Linkage(),
        AttackScenario(original=ORIGINAL, release=release(PLAIN), aligned=True, auxiliary=outside),
        rng=Rng(1),
    )
    # Two of the seven are patients; both are found for certain. The other five are nobody's rows.
    assert (before.main.hits, before.main.trials, before.certain_hits) == (2, 2, 2)
    assert before.detail["outsiders"] == 5
    hits = 0
    for seed in range(60):
        scenario = AttackScenario(original=ORIGINAL, release=release(FOUR_ANONYMOUS), aligned=True, auxiliary=outside)
        after = evaluate_attack(Linkage(), scenario, rng=Rng(seed))
        assert after.certain == 0
        hits += after.main.hits
    # One in four: 120 tries, so 0.25 within four standard errors.
    assert abs(hits / 120 - 0.25) < 0.16


def test_homogeneous_class_gives_the_condition_away() -> None:
    scenario = AttackScenario(original=ORIGINAL, release=release(FOUR_ANONYMOUS), aligned=True)
    outcome = evaluate_attack(AttributeLinkage(), scenario, rng=Rng(1))
    found = set(outcome.rows[(outcome.hit == 1.0) & (outcome.confidence == 1.0)].tolist())
    assert found == {8, 9, 10, 11}
    assert outcome.certain_hits == 4
    assert [row["row"] for row in outcome.riskiest(4)] == [8, 9, 10, 11]
    assert outcome.baseline == Arm(hits=5, trials=12)


def test_control_arm_is_the_people_of_the_control_file() -> None:
    kept = np.arange(8)
    scenario = AttackScenario(original=ORIGINAL, release=release(PLAIN[kept]), lineage=Lineage(kept))
    attack = AttributeLinkage(knows=("zip",))
    assert evaluate_attack(attack, scenario, rng=Rng(1)).control is None  # the rows left out are no control
    outcome = evaluate_attack(attack, replace(scenario, control=Table(frame=PLAIN[8:])), rng=Rng(1))
    assert outcome.control is not None
    assert outcome.control.trials == 4
    assert outcome.main.trials == 8


def test_identity_needs_to_know_who_is_who() -> None:
    """Where released values contradict the original; else the class sizes say how often a lookup is right."""
    older = release(PLAIN.with_columns(pl.col("age") + 1))
    with pytest.raises(NotApplicable, match="row map"):
        evaluate_attack(Linkage(), AttackScenario(original=ORIGINAL, release=older), rng=Rng(1))
    coarse = AttackScenario(original=ORIGINAL, release=release(FOUR_ANONYMOUS))
    assert evaluate_attack(Linkage(), coarse, rng=Rng(1)).main.hits == 3.0


def test_truthful_method_is_judged_by_class_size() -> None:
    generalized = release(FOUR_ANONYMOUS, steps=[{"step": "generalize", "parameters": {}, "truthful": True}])
    scenario = AttackScenario(original=ORIGINAL, release=generalized)
    assert evaluate_attack(Linkage(), scenario, rng=Rng(1)).main.rate == 0.25
    assert evaluate_attack(Linkage(), scenario, rng=Rng(1)).truth == "size of matching class"


def test_perturbed_values_are_not_a_risk_of_zero() -> None:
    noisy = PLAIN.with_columns(pl.col("age") + 1000, zip=pl.lit("99999"))
    with pytest.raises(NotApplicable, match="perturbed"):
        evaluate_attack(Linkage(), AttackScenario(original=ORIGINAL, release=release(noisy), aligned=True), rng=Rng(1))


def test_columns_must_exist_and_match() -> None:
    scenario = AttackScenario(original=ORIGINAL, release=release(PLAIN), aligned=True)
    with pytest.raises(ColumnsDiffer, match="shoe size"):
        evaluate_attack(Linkage(knows=("shoe size",)), scenario, rng=Rng(1))
    bare = AttackScenario(original=ORIGINAL, release=release(PLAIN.select("condition")), aligned=True)
    with pytest.raises(ColumnsDiffer, match="no quasi-identifier in common"):
        evaluate_attack(Linkage(), bare, rng=Rng(1))
    with pytest.raises(ColumnsDiffer, match="aligned"):
        AttackScenario(original=ORIGINAL, release=release(PLAIN.head(3)), aligned=True)
    stranger = Table(frame=OUTSIDE.drop("name"))
    nameless = AttackScenario(original=ORIGINAL, release=release(PLAIN), aligned=True, auxiliary=stranger)
    with pytest.raises(NotApplicable, match="no identifier column"):
        evaluate_attack(Linkage(), nameless, rng=Rng(1))
    with pytest.raises(BadParameter, match="both known"):
        evaluate_attack(AttributeLinkage(secret="age"), scenario, rng=Rng(1))


def test_renamed_columns_of_the_outside_file() -> None:
    outside = Table(frame=OUTSIDE.rename({"zip": "plz", "name": "who"}))
    scenario = AttackScenario(original=ORIGINAL, release=release(PLAIN), aligned=True, auxiliary=outside)
    outcome = evaluate_attack(Linkage(rename={"plz": "zip", "who": "name"}), scenario, rng=Rng(1))
    assert (outcome.main.hits, outcome.main.trials) == (2, 2)
    assert outcome.knows == ("zip", "age")


def test_one_person_alone() -> None:
    scenario = AttackScenario(original=ORIGINAL, release=release(PLAIN), aligned=True, targets=np.array([4]))
    outcome = evaluate_attack(Linkage(), scenario, rng=Rng(1))
    assert (outcome.main.hits, outcome.main.trials) == (1, 1)


def test_row_map_from_a_key_column() -> None:
    left = Table(frame=PATIENTS.select("name"))
    right = Table(frame=PATIENTS[[5, 3]].select("name"))
    assert lineage_by_key(left, right, "name").rows.tolist() == [5, 3]
    with pytest.raises(BadParameter, match="repeats"):
        lineage_by_key(Table(frame=PATIENTS), Table(frame=PATIENTS), "zip")


def test_suppressed_rows_are_not_preferred() -> None:
    """A row of stars fits everybody; it must not dilute a class that says more."""
    starred = pl.concat(
        [
            PLAIN[:6].with_columns(pl.col("age").cast(pl.String)),
            PLAIN[6:].with_columns(zip=pl.lit("*"), age=pl.lit("*")),
        ]
    )
    outcome = evaluate_attack(
        Linkage(), AttackScenario(original=ORIGINAL, release=release(starred), aligned=True), rng=Rng(1)
    )
    assert outcome.hit[:6].all()
    assert outcome.certain == 0


def test_battery_names_what_fits_the_release() -> None:
    names = [
        attack.part_name()
        for attack in default_attacks(AttackScenario(original=ORIGINAL, release=release(PLAIN), aligned=True))
    ]
    assert names[:2] == ["linkage", "attribute-linkage"]


def test_intervals() -> None:
    assert wilson(0, 5000)[1] == pytest.approx(0.000768, abs=1e-6)
    for hits in (0, 3, 7, 10):
        assert wilson(hits, 10) == pytest.approx(tuple(binomtest(hits, 10).proportion_ci(method="wilson")), abs=1e-12)
    with pytest.raises(BadParameter):
        wilson(3, 2)
    with pytest.raises(BadParameter):
        wilson(1, 2, level=1.0)


def test_best_constant() -> None:
    assert best_constant(pl.Series("x", [1, 1, 2]), 0.0).to_list() == [1]
    assert best_constant(pl.Series("x", [100.0, 101.0, 102.0, 500.0, 500.0]), 0.05).to_list()[0] in (
        100.0,
        101.0,
        102.0,
    )


def test_risk_uses_the_level() -> None:
    scenario = AttackScenario(original=ORIGINAL, release=release(FOUR_ANONYMOUS), aligned=True)
    outcome = evaluate_attack(AttributeLinkage(), scenario, rng=Rng(1))
    assert risk(outcome, 0.5).high - risk(outcome, 0.5).low < risk(outcome).high - risk(outcome).low


def test_perturbed_columns_are_not_linked_on() -> None:
    """A published step that swapped the ages: an adversary who knows it links on the ZIP code alone."""
    steps = [{"step": "rank-swap", "parameters": {"p": 50}, "truthful": False, "columns": ["age"]}]
    swapped = PLAIN.with_columns(pl.col("age").reverse())
    scenario = AttackScenario(original=ORIGINAL, release=release(swapped, steps=steps), aligned=True)
    assert evaluate_attack(Linkage(), scenario, rng=Rng(1)).claims == 12
    both = [{"step": "noise", "parameters": {}, "truthful": False, "columns": ["age", "zip"]}]
    noisy = AttackScenario(original=ORIGINAL, release=release(swapped, steps=both), aligned=True)
    with pytest.raises(NotApplicable, match="distance-linkage"):
        evaluate_attack(Linkage(), noisy, rng=Rng(1))


def test_battery_for_a_perturbed_release() -> None:
    steps = [{"step": "noise", "parameters": {}, "truthful": False, "columns": ["age", "zip"]}]
    scenario = AttackScenario(original=ORIGINAL, release=release(PLAIN, steps=steps), aligned=True)
    names = {attack.part_name() for attack in default_attacks(scenario)}
    assert names >= {"model-inference", "posterior-inference", "distance-linkage", "assignment", "posterior-linkage"}


def test_blanks_of_an_outside_file_are_unknown() -> None:
    """Lucas's ZIP code is missing from the outside file: his age alone still finds him."""
    gappy = OUTSIDE.with_columns(zip=pl.when(pl.col("name") == "Lucas").then(None).otherwise(pl.col("zip")))
    scenario = AttackScenario(original=ORIGINAL, release=release(PLAIN), aligned=True, auxiliary=Table(frame=gappy))
    outcome = evaluate_attack(Linkage(), scenario, rng=Rng(1))
    assert (outcome.main.hits, outcome.main.trials, outcome.certain_hits) == (2, 2, 2)
