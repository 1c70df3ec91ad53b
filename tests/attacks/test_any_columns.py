"""Attackers who know released columns that nobody declared: they are found, counted, judged and shown."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.attacks import AttackScenario, Outcome, evaluate_attack
from sfumato.attacks.column_codes import code_columns
from sfumato.attacks.column_search import search_columns
from sfumato.attacks.record_linkage.any_columns import AnyColumns
from sfumato.attacks.record_linkage.linkage import Linkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import InvalidRecipe, NotApplicable, PolicyNotMet
from sfumato.evaluation import advice
from sfumato.evaluation.adversaries import adversary_sentence, learned_sentences
from sfumato.recipe import Accepted, Recipe
from sfumato.release import Lineage, Release
from sfumato.reports.text import judgement, summary
from sfumato.rng import Rng

DRAW = np.random.default_rng(12)
ROWS = 400
BODY = pl.DataFrame(
    {
        "age": DRAW.integers(20, 80, ROWS),
        "sex": DRAW.choice(["f", "m"], ROWS),
        "ht": np.round(DRAW.normal(170, 9, ROWS), 1),
        "wt": np.round(DRAW.normal(72, 14, ROWS), 1),
        "smokes": DRAW.choice(["yes", "no"], ROWS),
        "ill": DRAW.choice(["yes", "no"], ROWS),
    }
)
RECIPE: dict[str, Any] = {
    "sfumato": 1,
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 30]}},
        "sex": "quasi",
        "ht": "plain",
        "wt": "plain",
        "smokes": "plain",
        "ill": "sensitive",
    },
    "models": [{"k-anonymity": 5}],
    "steps": ["generalize"],
    "attacks": ["linkage"],
    "limits": {"risk": 0.25},
    "seed": 1,
}
ACCEPTED = {"by": "data office", "reason": "nobody outside the clinic measured both"}


def scenario(original: pl.DataFrame, released: pl.DataFrame, **more: Any) -> AttackScenario:
    schema = Schema(columns={name: Column(role=Role.QUASI) for name in original.columns[:1]})
    return AttackScenario(
        original=Data.of(Table(frame=original), schema),
        release=Release(table=Table(frame=released), manifest=more.pop("manifest", {})),
        aligned="lineage" not in more and not more.pop("unknown", False),
        **more,
    )


def run(attack: AnyColumns, where: AttackScenario) -> Outcome:
    return evaluate_attack(attack, where, rng=Rng(1))


def test_plain_columns_that_single_people_out_exceed_the_limit() -> None:
    """k-anonymity holds and the declared attacker finds few, but height and weight find nearly everybody."""
    done = sfumato.protect(RECIPE, BODY)
    assert done.evaluation.holds
    declared, few, everything = done.attacks
    assert isinstance(declared, Outcome)
    assert isinstance(few, Outcome)
    assert isinstance(everything, Outcome)
    assert declared.main.rate < 0.1
    assert set(few.knows) == {"ht", "wt"}
    assert few.main.rate > 0.95
    assert everything.main.rate == 1.0
    [limit] = done.limits
    assert limit.met is False
    assert limit.attack == "any-columns"
    with pytest.raises(PolicyNotMet, match="any-columns"):
        done.save("never-written")
    assert judgement(done.report_data).standing == "not met"
    first = summary(done.report_data)[0]
    assert " ".join(str(done).split()).startswith(first)
    assert "one who knows “ht” and “wt” finds" in first
    assert "attackers who know the quasi-identifiers find" in first
    assert "“ht”, “wt”" in " ".join(change for item in done.advice for change in item.changes)


def test_acceptance_in_words_meets_the_limit_and_is_shown() -> None:
    done = sfumato.protect({**RECIPE, "limits": {"risk": 0.25, "accepted": ACCEPTED}}, BODY)
    [limit] = done.limits
    assert limit.met is True
    assert limit.attack == "linkage"
    assert limit.accepted is not None
    assert limit.accepted["value"] > 0.95
    for report in (done.report_data, done.report_data.external()):
        assert judgement(report).standing == "publish"
        assert any("accepted by data office" in sentence for sentence in summary(report))
    assert "accepted by data office" in str(done)
    assert Recipe.parse(done.recipe.to_dict()).limits.accepted == Accepted(**ACCEPTED)


def test_acceptance_does_not_cover_the_declared_columns() -> None:
    done = sfumato.protect({**RECIPE, "limits": {"risk": 0.001, "accepted": ACCEPTED}}, BODY)
    assert [limit.met for limit in done.limits] == [False]


@pytest.mark.parametrize(
    "accepted", ["yes", True, {}, {"by": "me"}, {"by": " ", "reason": "x"}, {"by": "a", "reason": 3}]
)
def test_an_acceptance_needs_a_name_and_a_reason(accepted: Any) -> None:
    with pytest.raises(InvalidRecipe, match="accept"):
        Recipe.parse({**RECIPE, "limits": {"risk": 0.25, "accepted": accepted}})


def test_without_a_limit_there_is_no_tick() -> None:
    done = sfumato.protect({key: value for key, value in RECIPE.items() if key != "limits"}, BODY)
    assert judgement(done.report_data).standing == "not judged"
    assert "No limit on risk was set" in str(done)


def test_a_release_without_telling_columns_stays_within_the_limit() -> None:
    """The search raises no false alarm: with the telling columns removed, the limit is met."""
    recipe = {**RECIPE, "columns": {name: RECIPE["columns"][name] for name in ("age", "sex", "smokes", "ill")}}
    done = sfumato.protect(recipe, BODY.drop("ht", "wt"))
    assert [limit.met for limit in done.limits] == [True]
    assert judgement(done.report_data).standing == "publish"


def test_the_search_finds_the_best_set_of_three() -> None:
    """Against a count of every set, on tables where the best set is a single column, a pair or a triple."""
    for seed in range(12):
        draw = np.random.default_rng(seed)
        rows = 120
        sizes = draw.integers(1, (4, 8, 30)[seed % 3], 7)
        frame = pl.DataFrame({f"c{i}": draw.integers(0, size + 1, rows) for i, size in enumerate(sizes)})
        people = code_columns(scenario(frame, frame), frame.columns)
        best = {
            size: max(frame.n_unique(subset=list(chosen)) for chosen in combinations(frame.columns, size)) / rows
            for size in (1, 2, 3)
        }
        for most in (1, 2, 3):
            found = search_columns(people, most).best
            assert found.share == pytest.approx(frame.n_unique(subset=list(found.columns)) / rows)
            assert len(found.columns) <= most
            # A smaller set that finds nearly all ends the search.
            wanted = next((best[size] for size in range(1, most + 1) if best[size] >= 0.9), best[most])
            assert found.share == pytest.approx(wanted) or found.share >= 0.9


def test_the_outcome_is_the_expected_number_over_all_people() -> None:
    outcome = run(AnyColumns(most="all"), scenario(BODY, BODY))
    assert outcome.main.trials == ROWS
    assert outcome.main.hits == BODY.n_unique()
    assert outcome.computed
    pair = run(AnyColumns(most=2, knows=("age", "sex")), scenario(BODY, BODY))
    assert pair.main.hits == pytest.approx(BODY.n_unique(subset=["age", "sex"]))
    assert pair.certain_hits == BODY.filter(pl.struct("age", "sex").is_unique()).height


def test_perturbed_numbers_are_linked_by_distance() -> None:
    """Small noise on every number changes all values, and still everybody is found."""
    noisy = BODY.with_columns(pl.Series(name, BODY[name] + DRAW.normal(0, 0.02, ROWS)) for name in ("ht", "wt"))
    order = DRAW.permutation(ROWS)
    where = scenario(BODY, noisy[order], lineage=Lineage(order))
    few = run(AnyColumns(knows=("ht", "wt", "sex")), where)
    assert {"ht", "wt"} <= set(few.knows)
    assert few.detail["linked by"] == "distance-linkage"
    assert few.main.rate > 0.9


def test_columns_of_other_people_are_no_risk() -> None:
    """The same columns about other people: the search picks the luckiest set, and finds hardly anybody with it."""
    draw = np.random.default_rng(3)
    others = BODY.select(pl.col(name).shuffle(seed=int(draw.integers(1 << 30))) for name in BODY.columns)
    for attack in (AnyColumns(), AnyColumns(most="all")):
        assert run(attack, scenario(BODY, others)).main.rate < 0.05


def test_a_column_that_tells_nothing_is_left_out() -> None:
    star = pl.DataFrame({"age": ["*"] * ROWS, "sex": ["*"] * ROWS})
    outcome = run(AnyColumns(), scenario(BODY.select("age", "sex"), star))
    assert outcome.knows == ()
    assert outcome.main.rate == pytest.approx(1 / ROWS)


def test_without_row_correspondence_class_sizes_decide_where_values_are_true() -> None:
    decade = pl.col("age") // 10 * 10
    coarse = BODY.select("sex", age=pl.format("{}-{}", decade, decade + 9))
    shuffled = coarse.sample(fraction=1.0, shuffle=True, seed=2)
    steps = {"steps": [{"step": "generalize", "columns": ["age"], "truthful": True}]}
    outcome = run(AnyColumns(), scenario(BODY.select("age", "sex"), shuffled, unknown=True, manifest=steps))
    assert outcome.main.rate == pytest.approx(coarse.n_unique() / ROWS)
    noisy = BODY.with_columns(pl.col("ht") + 0.01, pl.col("wt") * 1.01, age=pl.col("age") + 1).select("age", "ht", "wt")
    for attack in (AnyColumns(), Linkage(knows=("age", "ht"))):
        with pytest.raises(NotApplicable, match="row correspondence"):
            evaluate_attack(attack, scenario(BODY, noisy, unknown=True), rng=Rng(1))


def test_a_consistent_release_without_manifest_is_judged_by_its_class_sizes() -> None:
    """Nothing is published and nobody knows whose row is whose: values that may all be true are taken to be true."""
    shuffled = BODY.select("age", "sex", "smokes").sample(fraction=1.0, shuffle=True, seed=2)
    where = scenario(BODY, shuffled, unknown=True)
    known = evaluate_attack(Linkage(knows=("age", "sex")), where, rng=Rng(1))
    assert known.main.rate == pytest.approx(BODY.n_unique(subset=["age", "sex"]) / ROWS)
    assert known.truth == "size of matching class"
    assert run(AnyColumns(most="all"), where).main.rate == pytest.approx(shuffled.n_unique() / ROWS)
    # A column that was shuffled by itself agrees in its own values, but not together with the others.
    apart = shuffled.with_columns(pl.col("sex").shuffle(seed=1), pl.col("age").shuffle(seed=2))
    with pytest.raises(NotApplicable, match="row correspondence"):
        run(AnyColumns(most="all"), scenario(BODY, apart, unknown=True))


@pytest.mark.parametrize("names", [("age", "sex"), ("age", "sex", "smokes"), ("ht", "wt", "age")])
def test_of_a_sample_without_row_correspondence_nobody_is_found_who_is_not_in_it(names: tuple[str, ...]) -> None:
    """Of each class one guess is right on average, however many people look alike who are not in the release."""
    sample = BODY.select(names).sample(fraction=0.2, seed=3)
    where = scenario(BODY, sample, unknown=True)
    share = sample.n_unique() / ROWS
    assert run(AnyColumns(most="all"), where).main.rate == pytest.approx(share)
    assert evaluate_attack(Linkage(knows=names), where, rng=Rng(1)).main.rate == pytest.approx(share)
    best = max(sample.n_unique(list(some)) for size in (1, 2, 3) for some in combinations(names, min(size, len(names))))
    assert run(AnyColumns(), where).main.rate == pytest.approx(best / ROWS)


def test_named_attacks_of_a_recipe_do_not_switch_it_off_and_studies_leave_it_out() -> None:
    done = sfumato.protect(RECIPE, BODY)
    assert [entry["attack"] for entry in done.attacks.entries()] == ["linkage", "any-columns", "any-columns"]
    named = sfumato.attack(BODY, original=BODY, knows=["age"], aligned=True, attacks=["linkage"])
    assert [entry["attack"] for entry in named.entries()] == ["linkage"]
    assert adversary_sentence(named.entries()) == ""


def test_large_excess_is_called_out_without_a_limit() -> None:
    learned = {"attack": "attribute-linkage", "discloses": "attribute", "secret": "diabetes", "risk": 0.965}
    [sentence] = learned_sentences([{**learned, "reference": 0.511}, {**learned, "risk": 0.7, "reference": 0.511}], [])
    assert "“diabetes” of 96.5%" in sentence
    assert "51.1%" in sentence
    assert learned_sentences([{**learned, "reference": 0.95}], []) == ()
    assert learned_sentences([{**learned, "reference": 0.511}], [{"limit": "attribute"}]) == ()


def test_advice_never_asks_for_more_targets_than_there_are_records() -> None:
    entry = {"attack": "linkage", "discloses": "identity", "risk": 0.085, "low": 0.07, "high": 0.098, "judged": 0.098}
    limit = {"limit": "risk", "wanted": 0.09, "value": 0.098, "met": False}
    [few] = advice([{**entry, "tried": 1733}], [limit], {"rows": 1733, "steps": []})
    assert "too few records (1,733)" in few.changes[0]
    [many] = advice([{**entry, "tried": 1733}], [limit], {"rows": 100_000, "steps": []})
    assert "targets would be enough" in many.changes[0]
