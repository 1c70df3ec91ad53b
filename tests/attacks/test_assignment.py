"""Everybody given a row at once: finds more than one by one, and reads secrets off the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from sfumato.attacks import AttackScenario, default_attacks, evaluate_attack, risk
from sfumato.attacks.inference.posterior_inference import PosteriorInference
from sfumato.attacks.record_linkage import _min_cost_assignment as one_to_one
from sfumato.attacks.record_linkage.assignment import Assignment
from sfumato.attacks.record_linkage.distance_linkage import DistanceLinkage
from sfumato.attacks.record_linkage.linkage import Linkage
from sfumato.attacks.record_linkage.posterior_linkage import PosteriorLinkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.masking.methods.rank_swap import RankSwap
from sfumato.masking.pipeline import protect
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

COUNT = 400


def numbers(seed: int = 1) -> Data:
    draw = np.random.default_rng(seed)
    table = pl.DataFrame({name: np.exp(draw.normal(size=COUNT)) for name in "abcd"}).with_columns(
        ill=pl.Series(draw.choice(["flu", "none", "asthma"], COUNT)), pay=pl.Series(np.exp(draw.normal(8, 1, COUNT)))
    )
    roles = {**dict.fromkeys("abcd", "quasi"), "ill": "sensitive", "pay": "sensitive"}
    return Data.of(Table(frame=table), Schema(columns={name: Column(role=role) for name, role in roles.items()}))


def shuffled(original: Data, frame: pl.DataFrame, manifest: dict[str, object]) -> AttackScenario:
    order = np.random.default_rng(2).permutation(frame.height)
    release = Release(table=Table(frame=frame[order]), manifest=manifest)
    return AttackScenario(original=original, release=release, lineage=Lineage(order))


def noisy() -> AttackScenario:
    """Somebody else's release: noise of four tenths of a deviation, and not a word about it."""
    original = numbers()
    draw = np.random.default_rng(3)
    frame = original.table.frame.with_columns(
        pl.col(name) + 0.4 * original.table.column(name).std() * draw.normal(size=COUNT)  # type: ignore[operator]
        for name in "abcd"
    )
    return shuffled(original, frame, {})


def test_more_are_found_together_than_one_by_one() -> None:
    scenario = noisy()
    alone = risk(evaluate_attack(DistanceLinkage(), scenario, rng=Rng(1)))
    together = risk(evaluate_attack(Assignment(), scenario, rng=Rng(1)))
    assert together.value > alone.high


def test_likely_moves_find_more_than_distances() -> None:
    original = numbers()
    made = protect(original, steps=[RankSwap(p=15)], rng=Rng(5))
    release = Release(table=made.data.table, manifest={"steps": [step.public() for step in made.steps]})
    scenario = AttackScenario(original=original, release=release, lineage=made.lineage)
    alone = risk(evaluate_attack(Assignment(by="ranks"), scenario, rng=Rng(1)))
    together = risk(evaluate_attack(PosteriorLinkage(), scenario, rng=Rng(1)))
    assert together.value > alone.high


def test_the_secret_is_read_off_the_row() -> None:
    scenario = noisy()
    found = risk(evaluate_attack(Assignment(), scenario, rng=Rng(1)))
    for secret, tolerance in (("ill", 0.0), ("pay", 0.05)):
        read = risk(evaluate_attack(PosteriorInference(secret=secret, tolerance=tolerance), scenario, rng=Rng(1)))
        assert read.high >= found.value, "within sampling error, whoever is found is read"


def test_nobody_shares_a_row_and_near_rows_do_as_well_as_all(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = noisy()
    exact = evaluate_attack(Assignment(), scenario, rng=Rng(1))
    monkeypatch.setattr(one_to_one, "_DENSE", 0)
    near = evaluate_attack(Assignment(), scenario, rng=Rng(1))
    assert abs(near.main.hits - exact.main.hits) <= 8


def test_perturbed_categories_of_an_unknown_release_are_found() -> None:
    draw = np.random.default_rng(4)
    columns = {f"q{number}": draw.integers(0, 12, COUNT) for number in range(7)}
    table = pl.DataFrame({name: [f"v{code}" for code in codes] for name, codes in columns.items()})
    original = Data.of(Table(frame=table), Schema(columns={name: Column(role="quasi") for name in table.columns}))
    blurred = {
        name: [f"v{code}" for code in np.where(draw.random(COUNT) < 0.3, draw.integers(0, 12, COUNT), codes)]
        for name, codes in columns.items()
    }
    scenario = shuffled(original, pl.DataFrame(blurred), {})
    assert risk(evaluate_attack(Linkage(), scenario, rng=Rng(1))).high < 0.3
    strongest = max(risk(evaluate_attack(attack, scenario, rng=Rng(1))).value for attack in default_attacks(scenario))
    assert strongest > 0.9


def test_fewer_people_than_rows_and_more_people_than_rows() -> None:
    scenario = noisy()
    few = evaluate_attack(Assignment(), replace(scenario, targets=np.arange(7)), rng=Rng(1))
    assert few.main.trials == 7
    rows = scenario.release.table.frame.height // 2
    assert scenario.lineage is not None
    half = Release(table=Table(frame=scenario.release.table.frame.head(rows)), manifest={})
    fewer = AttackScenario(original=scenario.original, release=half, lineage=Lineage(scenario.lineage.rows[:rows]))
    assert evaluate_attack(Assignment(), fewer, rng=Rng(1)).main.trials == rows


def test_the_battery_gives_everybody_a_row_where_values_may_have_been_perturbed() -> None:
    names = [(attack.part_name(), attack.setting) for attack in default_attacks(noisy())]
    assert {("assignment", "by values"), ("posterior-inference", "")} <= set(names)


def test_cells_emptied_after_swapping_do_not_stop_the_attack() -> None:
    """A truthful step that needs a model is read, not run again: the swapped numbers still find people."""
    original = numbers()
    frame = original.table.frame.with_columns(town=pl.Series([f"t{row % 40}" for row in range(COUNT)]))
    roles = {**dict.fromkeys("abcd", "quasi"), "town": "quasi"}
    people = Data.of(
        Table(frame=frame.drop("ill", "pay")), Schema(columns={n: Column(role=r) for n, r in roles.items()})
    )
    made = protect(people, steps=[RankSwap(p=5, columns=("a", "b", "c", "d"))], rng=Rng(5))
    draw = np.random.default_rng(6)
    masked = made.data.table.frame.with_columns(
        pl.when(pl.Series(draw.random(COUNT) < 0.2)).then(None).otherwise(pl.col(name)).alias(name) for name in roles
    )
    emptied = {"step": "suppress-cells", "parameters": {}, "truthful": True, "columns": list(roles)}
    manifest = {"steps": [*(step.public() for step in made.steps), emptied]}
    scenario = AttackScenario(
        original=people, release=Release(table=Table(frame=masked), manifest=manifest), lineage=made.lineage
    )
    assert risk(evaluate_attack(PosteriorLinkage(), scenario, rng=Rng(1))).value > 0.8


def test_numbers_that_no_step_changed_must_agree() -> None:
    original = numbers()
    draw = np.random.default_rng(7)
    frame = original.table.frame.with_columns(pl.Series(name, draw.permutation(COUNT)) for name in "abc")
    steps = [{"step": "shuffle", "parameters": {}, "truthful": False, "columns": ["a", "b", "c"]}]
    scenario = shuffled(original, frame, {"steps": steps})
    assert risk(evaluate_attack(Assignment(), scenario, rng=Rng(1))).value == 1.0


def test_noise_under_labels() -> None:
    """Noise, then everything in bands: bands are compared as they are."""
    original = numbers()
    frame = original.table.frame.with_columns(
        pl.format("[{}, {})", pl.col(n).floor(), pl.col(n).floor() + 1) for n in "abcd"
    )
    steps = [
        {"step": "noise", "parameters": {"variance_ratio": 0.1}, "truthful": False, "columns": list("abcd")},
        {"step": "generalize", "parameters": {}, "truthful": True, "columns": list("abcd")},
    ]
    scenario = shuffled(original, frame, {"steps": steps})
    assert risk(evaluate_attack(Assignment(), scenario, rng=Rng(1))).value > 0
    assert risk(evaluate_attack(PosteriorLinkage(), scenario, rng=Rng(1))).value > 0.1


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e300])
def test_numbers_of_any_size_are_compared(size: float) -> None:
    values = np.arange(1.0, 41.0)
    original = Data.of(Table(frame=pl.DataFrame({"x": values * size})), Schema(columns={"x": Column(role="quasi")}))
    scenario = shuffled(original, original.table.frame, {})
    assert risk(evaluate_attack(Assignment(), scenario, rng=Rng(1))).value == 1.0


def test_one_number_far_from_all_others_is_no_failure() -> None:
    """Farther than the squares of small floats reach, for somebody who knows too few people to tell its scale."""
    values = np.append(np.arange(1.0, 40.0), 1e30)
    original = Data.of(Table(frame=pl.DataFrame({"x": values})), Schema(columns={"x": Column(role="quasi")}))
    scenario = shuffled(original, original.table.frame.with_columns(pl.col("x").clip(0, 50)), {})
    found = evaluate_attack(Assignment(), replace(scenario, targets=np.array([38, 39])), rng=Rng(1))
    assert found.main.trials == 2
