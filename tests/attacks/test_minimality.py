"""Minimality: finest labels tell how the values beneath them are split; labels fixed in advance do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.attacks import AttackScenario, Outcome, default_attacks, evaluate_attack, risk
from sfumato.attacks.transparency._minimal_labels import _Branches
from sfumato.attacks.transparency.downcoding import Downcoding
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.dataset.hierarchy import hierarchy_from_dict
from sfumato.errors import NotApplicable
from sfumato.masking.base import Context, Step
from sfumato.masking.methods.generalize import Generalize
from sfumato.masking.methods.local_recode import LocalRecode
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.release import Release
from sfumato.rng import Rng

PLACES = {"taxonomy": {"tree": {side: [f"{side}{number}" for number in range(4)] for side in "ABCDEFGH"}}}
HALVES = {"taxonomy": {"tree": {"A": ["a0", "a1"], "B": ["b0", "b1"]}}}
RARE = {"taxonomy": {"tree": {"usual": [f"u{number}" for number in range(9)], "rare": ["r"]}}}


def dataset(frame: pl.DataFrame, hierarchy: dict[str, Any]) -> Data:
    column = Column(role="quasi", hierarchy=hierarchy_from_dict(hierarchy))
    return Data.of(Table(frame=frame), Schema(columns=dict.fromkeys(frame.columns, column)))


def scenario(data: Data, hierarchy: dict[str, Any], step: Step, k: int, **changed: Any) -> AttackScenario:
    change = step.apply(data, Context(rng=Rng(3), models=(KAnonymity(k=k),)))
    published = {"step": step.part_name(), "parameters": step.public(), "truthful": True, **change.public}
    manifest = {
        "columns": {name: {"hierarchy": hierarchy} for name in data.table.columns},
        "models": [{"k-anonymity": {"k": k}}],
        "steps": [published],
        **changed,
    }
    return AttackScenario(original=data, release=Release(table=change.table, manifest=manifest), aligned=True)


def attacked(where: AttackScenario) -> Outcome:
    assert any(isinstance(attack, Downcoding) for attack in default_attacks(where))
    return evaluate_attack(Downcoding(), where, rng=Rng(1))


def binary(rows: int) -> Data:
    draw = np.random.default_rng(2)
    frame = pl.DataFrame({name: draw.choice(["a0", "a1", "b0", "b1"], rows) for name in ("x", "y", "z", "u", "v")})
    return dataset(frame, HALVES)


def test_two_people_with_a_lowest_common_group_are_in_different_branches() -> None:
    outcome = attacked(scenario(binary(90), HALVES, LocalRecode(), 2))
    assert outcome.main.trials > 20
    assert outcome.baseline is not None
    assert outcome.baseline.rate < 0.4
    assert risk(outcome).low > outcome.baseline.rate + 0.2


def test_bands_of_a_hierarchy_are_divided_and_not_taken_for_smallest_ranges() -> None:
    """Released as 20-39, two people are one below 30 and one above; before, somebody was assumed to be 20."""
    draw = np.random.default_rng(7)
    frame = pl.DataFrame({name: draw.integers(0, 40, 120) for name in ("age", "years", "weeks")})
    bands = {"intervals": {"widths": [5, 10, 20, 40]}}
    outcome = attacked(scenario(dataset(frame, bands), bands, LocalRecode(), 2))
    assert outcome.main.trials > 20
    assert outcome.baseline is not None
    assert risk(outcome).low > outcome.baseline.rate + 0.1


def test_groups_whose_labels_were_fixed_in_advance_are_split_as_by_chance() -> None:
    """The same manifest, but values drawn anew beneath the released labels: the attack succeeds as the baseline says.

    The proportions are drawn as the attacker assumes, so a baseline that is off by 12 points would be seen.
    """
    where = scenario(binary(90), HALVES, LocalRecode(), 2)
    draw = np.random.default_rng(5)
    released = where.release.table.frame
    beneath = {"*": ["A", "B"], "A": ["a0", "a1"], "B": ["b0", "b1"]}
    columns: dict[str, list[str]] = {name: [""] * released.height for name in released.columns}
    for _, rows in released.with_row_index("row").group_by(released.columns, maintain_order=True):
        for name in released.columns:
            label = rows[name][0]
            share = draw.random()
            for row in rows["row"].to_list():
                value = beneath[label][int(draw.random() < share)] if label in beneath else label
                columns[name][row] = beneath[value][0] if value in beneath else value
    fixed = AttackScenario(original=dataset(pl.DataFrame(columns), HALVES), release=where.release, aligned=True)
    outcome = evaluate_attack(Downcoding(), fixed, rng=Rng(1))
    assert outcome.baseline is not None
    assert abs(outcome.main.rate - outcome.baseline.rate) < 0.12


def test_levels_that_no_column_can_leave_say_that_somebody_is_rare() -> None:
    """Ten columns, each with one person of a rare group; k = 2 forces every column up to the root, in one class."""
    draw = np.random.default_rng(4)
    frame = pl.DataFrame({f"c{number}": draw.choice([f"u{value}" for value in range(9)], 200) for number in range(10)})
    frame = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == number).then(pl.lit("r")).otherwise(pl.col(f"c{number}")).alias(f"c{number}")
        for number in range(10)
    )
    where = scenario(dataset(frame, RARE), RARE, Generalize(), 2)
    assert where.release.manifest["steps"][0]["levels"] == dict.fromkeys(frame.columns, 2)
    outcome = attacked(where)
    assert (outcome.main.trials, outcome.main.rate) == (10, 1.0)
    assert outcome.baseline is not None
    assert outcome.baseline.rate < 0.1
    # Without knowledge of the method, after suppression, or with another model nothing follows.
    with pytest.raises(NotApplicable, match="No published step"):
        evaluate_attack(Downcoding(transparent=False), where, rng=Rng(1))
    [step] = where.release.manifest["steps"]
    for changed in (
        {"steps": [{**step, "parameters": {**step["parameters"], "suppression": 0.05}}]},
        {"steps": [{**step, "optimal": False}]},
        {"models": [{"k-anonymity": {"k": 2}}, {"l-diversity": {"l": 2}}]},
        {"columns": {}},
    ):
        other = AttackScenario(
            original=where.original,
            release=Release(table=where.release.table, manifest={**where.release.manifest, **changed}),
            aligned=True,
        )
        assert not any(isinstance(attack, Downcoding) for attack in default_attacks(other))
        with pytest.raises(NotApplicable, match="says nothing about single people"):
            evaluate_attack(Downcoding(), other, rng=Rng(1))


def test_with_many_classes_a_level_says_nothing_about_one_of_them() -> None:
    draw = np.random.default_rng(6)
    places = [f"{side}{number}" for side in "ABCDEFGH" for number in range(4)]
    data = dataset(pl.DataFrame({name: draw.choice(places, 1000) for name in ("home", "work")}), PLACES)
    where = scenario(data, PLACES, Generalize(), 5)
    assert set(where.release.manifest["steps"][0]["levels"].values()) == {1}
    assert not any(isinstance(attack, Downcoding) for attack in default_attacks(where))


def test_numbers_of_people_in_branches_are_those_of_drawn_proportions() -> None:
    """60,000 drawn splits of seven people; a difference of 0.01 in a probability would be seen."""
    branches = _Branches(labels=("a", "b", "c"), weight=np.array([0.5, 1.0, 1.5]))
    draw = np.random.default_rng(8)
    counts = np.array([draw.multinomial(7, share) for share in draw.dirichlet(branches.weight, 60_000)])
    assert np.abs(branches.people(7, [1]) - (counts == 1).mean(axis=0)).max() < 0.01
    assert abs(branches.divided(7) - (counts.max(axis=1) < 7).mean()) < 0.01
    few = ((counts > 0) & (counts < 3)).any(axis=1).mean()
    assert branches.has_few(7, 3) > few - 0.01
