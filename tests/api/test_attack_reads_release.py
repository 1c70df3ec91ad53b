"""An attack that cannot read a release, or a part of it, must not report that nothing was found."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.api.attack import attack
from sfumato.api.protect import protect
from sfumato.attacks import AttackScenario, Outcome, default_attacks, evaluate_attack
from sfumato.attacks.evaluation.outcome import Arm
from sfumato.attacks.inference.attribute_linkage import AttributeLinkage
from sfumato.attacks.record_linkage.distance_linkage import DistanceLinkage
from sfumato.attacks.record_linkage.learned_linkage.attack import LearnedLinkage
from sfumato.attacks.record_linkage.linkage import Linkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import NotApplicable
from sfumato.evaluation import judge_limits
from sfumato.recipe import Limits
from sfumato.release import Release
from sfumato.rng import Rng


def people(count: int = 400) -> pl.DataFrame:
    draw = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "zip": [str(code) for code in draw.integers(10_000, 10_200, count)],
            "age": draw.integers(18, 90, count),
            "job": draw.choice(["clerk", "nurse", "smith", "baker", "judge"], count, p=[0.4, 0.3, 0.2, 0.06, 0.04]),
            "pay": draw.normal(3000, 500, count).round(2),
        }
    )


def protected(steps: list[dict[str, Any]], **more: Any) -> dict[str, dict[str, Any]]:
    columns = {"zip": {"role": "quasi", "kind": "category"}, "age": "quasi", "job": "quasi", "pay": "sensitive"}
    done = protect({"sfumato": 1, "columns": columns, "steps": steps, **more}, people(), seed=3)
    return {one["attack"]: dict(one) for one in done.report_data.attacks}


def scenario(
    original: pl.DataFrame, released: pl.DataFrame, sensitive: str | None = None, **more: Any
) -> AttackScenario:
    roles = {name: Column(role=Role.SENSITIVE if name == sensitive else Role.QUASI) for name in original.columns}
    data = Data.of(Table(frame=original), Schema(columns=roles))
    return AttackScenario(
        original=data, release=Release(table=Table(frame=released), manifest={}), aligned=True, **more
    )


def test_rare_categories_that_were_merged_are_still_found() -> None:
    found = protected([{"merge-rare": {"min_count": 80, "columns": ["zip", "job"]}}])
    # Every ZIP code is rare, so only age and job are left to tell people apart: far from nothing.
    assert found["linkage"]["risk"] > 0.3


def test_categories_merged_in_one_stratum_only_are_still_found() -> None:
    found = protected([{"merge-rare": {"min_count": 20, "columns": ["zip"], "strata": ["job"]}}])
    assert found["linkage"]["risk"] > 0.3


def test_a_column_in_another_coding_is_left_out_of_the_comparison() -> None:
    original = people().select("zip", "age", "job")
    other = original.with_columns(
        pl.col("job").replace({"clerk": "1", "nurse": "2", "smith": "3", "baker": "4", "judge": "5"})
    )
    found = evaluate_attack(Linkage.build(), scenario(original, other), rng=Rng(1))
    assert found.main.rate > 0.9
    noisy = original.with_columns(pl.col("age") + pl.Series(np.random.default_rng(2).normal(size=original.height)))
    found = evaluate_attack(Linkage.build(), scenario(original, noisy), rng=Rng(1))
    assert found.main.rate > 0.3
    assert found.detail["left out"] == ["age"]


def test_counterfeits_do_not_stop_a_lookup() -> None:
    assert protected([{"add-counterfeits": {"fraction": 0.1}}])["linkage"]["risk"] > 0.9


def test_steps_on_columns_the_attacker_does_not_know_are_no_obstacle() -> None:
    found = protected(
        [{"rank-swap": {"p": 2, "columns": ["age"]}}, {"noise": {"variance_ratio": 0.1, "columns": ["pay"]}}]
    )
    assert found["posterior-linkage"]["risk"] > 0.5


@pytest.mark.parametrize(
    "step",
    [
        {"noise": {"variance_ratio": 1e-6, "columns": ["pay"]}},
        {"round": {"base": 10, "columns": ["pay"]}},
        {"categorize": {"bins": 50, "columns": ["pay"]}},
        {"rank-swap": {"p": 1, "columns": ["pay"]}},
    ],
)
def test_a_sensitive_number_that_was_hardly_changed_is_disclosed(step: dict[str, Any]) -> None:
    found = protected([step], limits={"attribute": 0.2})
    assert found["attribute-linkage"]["risk"] > 0.9
    assert found["attribute-linkage"]["baseline"] < 0.5


def test_a_changed_number_is_not_compared_to_the_last_digit() -> None:
    original = people().select("zip", "age", "pay")
    noisy = original.with_columns(pl.col("pay") + pl.Series(np.random.default_rng(2).normal(size=original.height)))
    with pytest.raises(NotApplicable, match="tolerance"):
        evaluate_attack(
            AttributeLinkage.build({"secret": "pay", "knows": ["zip", "age"]}),
            scenario(original, noisy, "pay"),
            rng=Rng(1),
        )
    found = evaluate_attack(
        AttributeLinkage.build({"secret": "pay", "knows": ["zip", "age"], "tolerance": 0.05}),
        scenario(original, noisy, "pay"),
        rng=Rng(1),
    )
    assert found.main.rate > 0.9


def test_a_suppressed_value_is_no_disclosure() -> None:
    original = people().select("zip", "age", "job")
    hidden = original.with_columns(job=pl.lit("*"))
    with pytest.raises(NotApplicable, match="`job`"):
        evaluate_attack(
            AttributeLinkage.build({"secret": "job", "knows": ["zip", "age"]}),
            scenario(original, hidden, "job"),
            rng=Rng(1),
        )


def test_a_control_that_cannot_be_attacked_does_not_end_the_attack() -> None:
    original = people().select("zip", "age", "job")
    stranger = pl.DataFrame({"zip": ["none"], "age": [117], "job": ["clerk"]})
    found = evaluate_attack(
        AttributeLinkage.build({"secret": "job", "knows": ["zip", "age"]}),
        scenario(original, original, "job", control=Table(frame=stranger)),
        rng=Rng(1),
    )
    assert found.main.rate > 0.9
    assert found.control is None


def test_one_lucky_outsider_does_not_excuse_a_disclosure() -> None:
    outcome = Outcome(
        attack="attribute-linkage",
        discloses=AttributeLinkage.discloses,
        main=Arm(hits=90, trials=100),
        baseline=Arm(hits=30, trials=100),
        control=Arm(hits=1, trials=1),
    )
    [judged] = judge_limits(Limits(attribute=0.2), [outcome])
    assert judged.met is False
    assert judged.value > 0.8


def test_made_up_rows_are_attacked_for_secrets_and_membership() -> None:
    draw = np.random.default_rng(5)
    twice = draw.normal(size=(400, 2))
    everybody = pl.DataFrame({"a": twice[:, 0], "b": twice[:, 1], "ill": np.where(twice.sum(axis=1) > 0, "yes", "no")})
    members, others = everybody[:200], everybody[200:]
    recipe = {"sfumato": 1, "columns": {"a": "quasi", "b": "quasi", "ill": "sensitive"}, "steps": [{"synthesize": {}}]}
    done = protect(recipe, members, seed=1)
    by_name = {one["attack"]: dict(one) for one in done.report_data.attacks}
    assert by_name["model-inference"]["risk"] > 0.7
    # Fifty show which model is the strongest, the others how strong it is.
    assert by_name["model-inference"]["tried"] == 150
    assert "synthetic" in by_name["distance-linkage"]["reason"]
    found = attack(done.release, original=members, control=others, lineage=done.lineage, attacks=["membership"])
    assert isinstance(found[0], Outcome)
    assert found[0].main.trials == 400
    assert found[0].baseline is not None
    assert 0.35 < found[0].baseline.rate < 0.65


def test_a_guess_of_an_amount_is_the_one_near_enough_to_most() -> None:
    # Five people alike, with four salaries around 1000 and one of 5000 that stands twice in the whole release.
    original = pl.DataFrame({"zip": ["a"] * 5 + ["b"], "pay": [980.0, 1000.0, 1010.0, 1020.0, 5000.0, 5000.0]})
    rule = AttributeLinkage.build({"secret": "pay", "knows": ["zip"], "tolerance": 0.05})
    found = evaluate_attack(rule, scenario(original, original, "pay"), rng=Rng(1))
    assert found.main.hits == 5
    rule = AttributeLinkage.build({"secret": "pay", "knows": ["zip"]})
    assert evaluate_attack(rule, scenario(original, original, "pay"), rng=Rng(1)).main.hits == 2


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis"])
def test_a_constant_category_gives_no_distance(metric: str) -> None:
    original = pl.DataFrame({"job": ["clerk"] * 5})
    with pytest.raises(NotApplicable, match="constant"):
        evaluate_attack(DistanceLinkage.build({"metric": metric}), scenario(original, original), rng=Rng(1))


def test_a_partly_perturbed_release_is_attacked_on_all_that_is_known() -> None:
    found = protected([{"pram": {"keep": 0.95, "columns": ["zip", "job"]}}])
    assert {"attribute-linkage", "model-inference"} <= set(found)
    found = protected([{"merge-rare": {"min_count": 5, "columns": ["job"]}}])
    assert "model-inference" not in found


def test_whole_numbers_with_few_values_are_codes() -> None:
    original = people().select("zip", "age").with_columns(code=pl.Series([row % 60 for row in range(400)]))
    secrets = [
        attack
        for attack in default_attacks(scenario(original, original, "code"))
        if str(attack.discloses) == "attribute"
    ]
    assert {getattr(attack, "tolerance", None) for attack in secrets} == {0.0}
    noisy = original.with_columns(pl.col("code") + 0.25)
    secrets = [
        attack for attack in default_attacks(scenario(original, noisy, "code")) if str(attack.discloses) == "attribute"
    ]
    assert {getattr(attack, "tolerance", None) for attack in secrets} == {0.05}


def test_a_distance_can_be_learned_from_one_person() -> None:
    original = pl.DataFrame({"job": ["clerk", "nurse"]})
    rule = LearnedLinkage.build({"distance": "bilinear", "taught": 0.5})
    assert evaluate_attack(rule, scenario(original, original), rng=Rng(1)).main.trials == 1
