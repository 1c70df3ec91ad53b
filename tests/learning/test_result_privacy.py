"""Result privacy: rules, item sets, correlations and accuracies are hidden, by the fewest changes where that is proved.

The six baskets are those of Verykios et al. (2004), doi:10.1109/TKDE.2004.1269668: ABC, ABC, ABC, AB, A, AC.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.attacks import AttackScenario, evaluate_attack
from sfumato.attacks.inference.hidden_results import HiddenResults
from sfumato.data.table import Table
from sfumato.dataset import Data, Schema
from sfumato.errors import BadParameter, NotApplicable
from sfumato.evaluation.counts import count_classes
from sfumato.evaluation.rules import verify
from sfumato.masking.base import Context
from sfumato.masking.item_sets import frequent_item_sets, rules_of
from sfumato.masking.methods.hide_results import HideResults
from sfumato.masking.models.result_privacy import ResultPrivacy
from sfumato.masking.results import Accuracy, Correlation, accuracy, correlation
from sfumato.masking.search.hide_item_sets import HiddenSet, ItemProgram, border_removal, exact_removal
from sfumato.measures import ReleasePair, judge
from sfumato.measures.utility.ghost_rules import GhostRules
from sfumato.measures.utility.lost_rules import LostRules
from sfumato.release import Lineage, Release, State
from sfumato.rng import Rng

BASKETS = pl.DataFrame({item: [item in basket for basket in ("ABC", "ABC", "ABC", "AB", "A", "AC")] for item in "ABC"})
RULE = {"if": {"A": True, "C": True}, "then": {"B": True}}


def dataset(frame: pl.DataFrame) -> Data:
    return Data.of(Table(frame=frame), Schema(columns={}))


def hide(frame: pl.DataFrame, **parameters: Any) -> Any:
    return HideResults.build(parameters).apply(dataset(frame), Context(rng=Rng(3)))


def test_supports_and_rules_of_the_published_baskets() -> None:
    """By hand: A 6, B 4, C 4, AB 4, AC 4, BC 3, ABC 3 of 6; nine rules have a confidence of at least 0.7."""
    found = frequent_item_sets(BASKETS, "ABC", support=0.33)
    named = {"".join(sorted(name for name, _ in items)): count for items, count in found.items()}
    assert named == {"A": 6, "B": 4, "C": 4, "AB": 4, "AC": 4, "BC": 3, "ABC": 3}
    rules = {
        "".join(sorted(name for name, _ in left)) + ">" + "".join(sorted(name for name, _ in right))
        for left, right in rules_of(found, confidence=0.7)
    }
    assert rules == {"B>A", "C>A", "B>C", "C>B", "AB>C", "AC>B", "BC>A", "B>AC", "C>AB"}


@pytest.mark.parametrize(
    ("result", "support", "cells"),
    [
        (RULE, 0.33, 1),  # confidence 3/4 falls to 2/4 or 2/3 when one basket loses B or C
        ({"together": {"B": True, "C": True}}, 0.5, 1),  # 3 baskets; 2 are below half of 6
        ({"together": {"B": True, "C": True}}, 0.33, 2),  # 1 basket is below 0.33 of 6
        ({"if": {"B": True}, "then": {"A": True}}, 0.33, 2),  # 4 of 4; 2 of 4 have both is below 0.7
        ({"if": {"A": True}, "then": {"C": True}}, 0.33, 0),  # 4 of 6 does not come out at 0.7
    ],
)
def test_fewest_cells_by_hand(result: dict[str, Any], support: float, cells: int) -> None:
    change = hide(BASKETS, results=[result], support=support, confidence=0.7, search="exact")
    assert change.private["cells"] == cells
    assert change.private["optimal"] is True
    model = ResultPrivacy.build({"results": [result], "support": support, "confidence": 0.7})
    assert model.check(dataset(change.table.frame)).state is State.HOLDS
    before = model.check(dataset(BASKETS))
    assert before.holds is (cells == 0)
    assert before.worst == (cells > 0)


def brute_force(program: ItemProgram) -> tuple[int, int]:
    """The fewest removed cells, and the fewest lost item sets among these, by trying all removals."""
    places = [(r, c) for r, c in zip(*np.nonzero(program.matrix), strict=True) if c in program.removable]
    for size in range(len(places) + 1):
        lost = []
        for chosen in combinations(places, size):
            kept = program.matrix.copy()
            for place in chosen:
                kept[place] = False
            if not any(program.needed(kept, one) for one in program.hidden):
                lost.append(program.lost(kept))
        if lost:
            return size, min(lost)
    raise AssertionError("nothing can be hidden")


@pytest.mark.parametrize("seed", range(4))
def test_exact_hiding_agrees_with_brute_force(seed: int) -> None:
    draw = np.random.default_rng(seed)
    matrix = draw.random((5, 4)) < 0.75
    least = 3
    sets = [frozenset(s) for s in ({0, 1}, {1, 2}, {0, 2}, {2, 3}, {0, 3}, {1, 3})]
    hidden = (HiddenSet(items=sets[0]), HiddenSet(items=sets[1], antecedent=frozenset({1})))
    watched = tuple(s for s in sets[2:] if matrix[:, sorted(s)].all(axis=1).sum() >= least)
    program = ItemProgram(matrix=matrix, hidden=hidden, least=least, confidence=Fraction(3, 5), watched=watched)
    exact = exact_removal(program, draw)
    assert exact is not None
    assert exact.optimal
    assert ((matrix & ~exact.kept).sum(), exact.lost) == brute_force(program)
    heuristic = border_removal(program, draw)
    for kept in (exact.kept, heuristic.kept):
        assert not any(program.needed(kept, one) for one in hidden)
        assert not (kept & ~matrix).any()
    assert (matrix & ~heuristic.kept).sum() >= (matrix & ~exact.kept).sum()


def shop(rows: int = 2000) -> pl.DataFrame:
    draw = np.random.default_rng(7)
    bread = draw.random(rows) < 0.5
    milk = draw.random(rows) < np.where(bread, 0.7, 0.3)
    region = draw.choice(["north", "south", "west"], rows)
    x = draw.normal(size=rows)
    return pl.DataFrame(
        {
            "bread": bread,
            "milk": milk,
            "region": region,
            "loyal": draw.random(rows) < 0.4,
            "x": x,
            "y": x + draw.normal(size=rows),
            "label": np.where(x + 0.3 * draw.normal(size=rows) > 0, "high", "low"),
        }
    )


@pytest.mark.parametrize("by", ["change", "blank"])
@pytest.mark.parametrize("search", ["exact", "border"])
def test_categories_are_hidden_and_other_columns_stay(by: str, search: str) -> None:
    frame = shop()
    result = {"if": {"region": "north"}, "then": {"bread": True}}
    change = hide(frame, results=[result], support=0.1, confidence=0.3, by=by, search=search)
    model = ResultPrivacy.build({"results": [result], "support": 0.1, "confidence": 0.3})
    assert not model.check(dataset(frame)).holds
    assert model.check(dataset(change.table.frame)).holds
    assert set(change.public["columns"]) <= {"region", "bread"}
    assert change.table.frame.select("milk", "x", "label").equals(frame.select("milk", "x", "label"))
    north = frame.filter(pl.col("region") == "north")
    allowed = max(0.1 * frame.height, math.ceil(0.3 * north.height)) - 1
    assert change.private["cells"] == int(north["bread"].sum()) - allowed


def test_a_correlation_falls_and_both_distributions_stay() -> None:
    frame, wanted = shop(), Correlation(correlation=("x", "y"), at_most=0.2)
    change = hide(frame, results=[wanted.model_dump()])
    after = correlation(change.table.frame, wanted)
    assert after is not None
    assert 0.19 < after <= 0.2
    assert change.table.frame["y"].sort().equals(frame["y"].sort())
    assert change.table.frame["x"].equals(frame["x"])
    # A random shuffle of y in so few rows would leave a correlation of about 0.6.
    assert change.private["cells"] < 0.15 * frame.height


def test_an_accuracy_falls_below_its_limit_in_any_order_of_rows() -> None:
    frame, wanted = shop(600), Accuracy(predict="label", using=("x", "region"), at_most=0.7)
    assert accuracy(frame, wanted) > 0.85
    released = hide(frame, results=[wanted.model_dump()]).table.frame
    assert 0.6 < accuracy(released, wanted) <= 0.7
    assert accuracy(released.sample(fraction=1, shuffle=True, seed=1), wanted) == accuracy(released, wanted)
    assert released["label"].sort().equals(frame["label"].sort())
    with pytest.raises(NotApplicable, match="most frequent value"):
        hide(frame, results=[{**wanted.model_dump(), "at_most": 0.3}])


def test_the_check_recounts_by_sql() -> None:
    results = [RULE, {"together": {"B": True, "C": True}}]
    parameters = {"results": results, "support": 0.33, "confidence": 0.7}
    for frame, state, worst in ((BASKETS, "fails", 2), (BASKETS.with_columns(C=pl.lit(False)), "holds", 0)):
        counts = count_classes(Data.plain(frame), quasi=("A",))
        [verdict] = verify([{"result-privacy": parameters}], counts)
        assert (verdict.state, verdict.worst) == (state, worst)
    [verdict] = verify([{"result-privacy": {"results": [{"correlation": ["x", "y"], "at_most": 0.5}]}}], counts)
    assert verdict.holds  # the columns are not released
    [verdict] = verify([{"result-privacy": {"results": [{"predict": "A", "using": ["B"]}]}}], counts)
    assert verdict.state is State.NOT_CHECKED


def test_lost_and_ghost_rules_by_hand() -> None:
    """Without B in the first basket: B 3, AB 3, BC 2, ABC 2. At 0.7 the rules B>A, C>A, BC>A are left."""
    release = BASKETS.with_columns(B=pl.Series([False, True, True, True, False, False]))
    pair = ReleasePair(original=dataset(BASKETS), release=Release(table=Table(frame=release), manifest={}))
    given = {"support": 0.33, "confidence": 0.7}
    lost = judge(LostRules(**given), pair, rng=Rng(1))
    assert lost.detail == {"rules_before": 9, "rules_after": 3, "lost": 6}
    assert lost.value == pytest.approx(6 / 9)
    ghost = judge(GhostRules(**given), pair, rng=Rng(1))
    assert ghost.value == 0
    back = ReleasePair(original=dataset(release), release=Release(table=Table(frame=BASKETS), manifest={}))
    assert judge(GhostRules(**given), back, rng=Rng(1)).value == pytest.approx(6 / 9)


def scenario(change: Any, frame: pl.DataFrame) -> AttackScenario:
    manifest = {"steps": [{"step": "hide-results", **change.public}]}
    release = Release(table=change.table, manifest=manifest)
    return AttackScenario(original=dataset(frame), release=release, lineage=Lineage.identity(frame.height))


def test_a_near_miss_gives_the_hidden_rule_away_and_a_margin_does_not(tmp_path: Path) -> None:
    frame = shop().select("bread", "milk", "region", "loyal")
    result = {"together": {"bread": True, "milk": True}}
    tight = hide(frame, results=[result], support=0.2, longest=2)
    found = evaluate_attack(HiddenResults(longest=2), scenario(tight, frame), rng=Rng(1))
    assert found.main.rate == 1
    assert found.baseline is not None
    assert found.baseline.rate < 0.2
    wide = hide(frame, results=[result], support=0.11, longest=2)
    published = scenario(wide, frame)
    published.release.manifest["steps"][0]["support"] = 0.2  # what analysts use
    missed = evaluate_attack(HiddenResults(longest=2), published, rng=Rng(1))
    assert missed.main.rate == 0
    frame.write_csv(tmp_path / "earlier.csv")
    earlier = HiddenResults(longest=2, earlier=tmp_path / "earlier.csv")
    assert evaluate_attack(earlier, published, rng=Rng(1)).main.rate == 1


def test_a_release_does_not_name_what_it_hides(tmp_path: Path) -> None:
    shop(400).write_csv(tmp_path / "shop.csv")
    recipe = tmp_path / "recipe.yaml"
    plain = "{role: plain, decided_by: A. Steward, reason: synthetic}"
    recipe.write_text(
        "sfumato: 1\ndata: shop.csv\ncolumns:\n  region: quasi\n"
        + "".join(f"  {name}: {plain}\n" for name in ("bread", "milk", "loyal", "x", "y", "label"))
        + "models:\n- result-privacy:\n    results: [{if: {bread: true}, then: {milk: true}}]\n"
        "    support: 0.1\n    confidence: 0.4\n"
        "steps: [hide-results]\nattacks: [hidden-results: {longest: 2}]\nmeasures: [lost-rules, ghost-rules]\n"
    )
    done = sfumato.protect(recipe)
    assert done.verdicts[0].model == "result-privacy"
    assert done.verdicts[0].holds
    published = json.dumps(done.release.manifest)
    assert "hide-results" in published
    assert '"results"' not in published
    assert '"then"' not in published
    blind = sfumato.check(done.release)
    assert [v.state for v in blind.verdicts if v.model == "result-privacy"] == [State.NOT_CHECKED]
    informed = sfumato.check(done.release, recipe=recipe)
    assert [v.state for v in informed.verdicts if v.model == "result-privacy"] == [State.HOLDS]


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(BadParameter, match="need `support`"):
        ResultPrivacy.build({"results": [{"together": {"A": True}}]})
    with pytest.raises(BadParameter, match="need `confidence`"):
        HideResults.build({"results": [RULE], "support": 0.5})
    with pytest.raises(BadParameter, match="no result is named"):
        hide(BASKETS)
    with pytest.raises(NotApplicable, match="not say"):
        evaluate_attack(
            HiddenResults(),
            AttackScenario(
                original=dataset(BASKETS), release=Release(table=Table(frame=BASKETS), manifest={}), aligned=True
            ),
            rng=Rng(1),
        )
