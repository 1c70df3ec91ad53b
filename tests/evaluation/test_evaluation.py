"""One evaluation: limits, advice, terminal and report judge the same outcome by the same value."""

from __future__ import annotations

from functools import partial
from typing import Any

import polars as pl
import pytest

import sfumato
from report_sample import sample_account
from sfumato.attacks import Arm, AttackScenario, Discloses, Outcome, risk
from sfumato.attacks.evaluation.outcome import excess
from sfumato.evaluation import Evaluation, evaluate, judge_limits, judged_risk, reference_rate
from sfumato.evaluation.disclosures import DISCLOSURES, disclosure_of
from sfumato.evaluation.limits import limit_of, limit_position
from sfumato.recipe import Limits
from sfumato.reports.report_data import ReportData
from sfumato.reports.text import pairings
from sfumato.rng import KeyedRng, Rng
from sfumato.studies.cell import run_cell

LEARNED = Outcome(
    attack="attribute-linkage",
    discloses=Discloses.ATTRIBUTE,
    main=Arm(hits=30, trials=200),
    baseline=Arm(hits=0, trials=200),
    control=Arm(hits=8, trials=60),
    secret="diagnosis",
)
"""15 % of 200 targets, up to 20.6 %; 13.3 % of 60 people outside the release, at least 6.9 %."""


def evaluation(limit: float) -> Evaluation:
    return Evaluation(manifest={"steps": [], "models": []}, attacks=(LEARNED,), limit_set=Limits(attribute=limit))


def drawn_limit(found: Evaluation) -> float:
    results = found.to_dict()
    [pair] = pairings(results["attacks"], [])
    position = pair.limit_position(results["limits"])
    assert position is not None
    return position


def test_limits_advice_and_picture_agree_on_a_small_control_group() -> None:
    found = evaluation(0.1)
    [limit] = found.limits
    assert limit.value == pytest.approx(0.1115, abs=5e-5)
    assert limit.met is False
    [item] = found.advice
    assert "11.2%" in item.finding
    assert "10%" in item.finding
    assert drawn_limit(found) < risk(LEARNED).high
    report: ReportData = sample_account(
        attacks=tuple(found.to_dict()["attacks"]), limits=tuple(found.to_dict()["limits"])
    )
    assert report.advice == found.advice
    assert "attribute" in found.unmet[0]


@pytest.mark.parametrize("limit", [0.05, 0.12, 0.14, 0.15, 0.2, 0.5])
def test_the_drawn_limit_is_passed_exactly_when_the_limit_is_not_met(limit: float) -> None:
    found = evaluation(limit)
    assert found.limits[0].met == (risk(LEARNED).high <= drawn_limit(found)) == (not found.advice)


def test_the_position_of_a_limit_is_the_inverse_of_the_rule() -> None:
    for reference in (0.0, 0.2, 0.9):
        for wanted in (0.0, 0.1, 0.7, 1.0):
            assert excess(limit_position(wanted, reference), reference) == pytest.approx(wanted)


def test_identity_counts_in_full_and_a_computed_risk_is_a_point() -> None:
    found = Outcome(
        attack="linkage",
        discloses=Discloses.IDENTITY,
        main=Arm(hits=2, trials=97),
        baseline=Arm(hits=1, trials=97),
        computed=True,
    )
    assert reference_rate(found) == 0
    assert judged_risk(found) == risk(found).low == risk(found).high == 2 / 97
    assert judge_limits(Limits(risk=2 / 97), [found])[0].met


PEOPLE = pl.DataFrame(
    {"age": [20 + i % 30 for i in range(120)], "ill": ["flu" if i % 4 else "none" for i in range(120)]}
)
RECIPE: dict[str, Any] = {
    "sfumato": 1,
    "seed": 7,
    "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}}, "ill": "sensitive"},
    "models": [{"k-anonymity": 4}],
    "steps": ["generalize"],
    "measures": ["marginals", "propensity"],
    "limits": {"risk": 0.01},
}


def test_a_study_cell_has_the_results_of_protect(monkeypatch: pytest.MonkeyPatch) -> None:
    done = sfumato.protect({**RECIPE, "limits": {"risk": 0.9, "attribute": 0.9}}, PEOPLE)
    assert done.original is not None
    monkeypatch.setattr("sfumato.studies.cell.Rng", partial(KeyedRng, key=done.key))
    cell = run_cell(done.recipe, done.original, n_targets=5000)
    document = done.to_dict()
    same = ("attack", "discloses", "risk", "low", "high", "baseline", "judged")
    assert [[entry.get(key) for key in same] for entry in cell["attacks"]] == [
        [entry.get(key) for key in same]
        for entry in document["attacks"]
        if entry["discloses"] in ("identity", "attribute")
    ]
    assert [entry["value"] for entry in cell["measures"]] == [entry["value"] for entry in document["measures"]]
    assert cell["verdicts"] == document["verdicts"]


def test_a_file_larger_than_memory_is_judged_like_a_small_one(tmp_path: Any) -> None:
    PEOPLE.write_parquet(tmp_path / "people.parquet")
    small = sfumato.protect(RECIPE, PEOPLE, engine="memory", unmet=True)
    large = sfumato.protect(RECIPE, tmp_path / "people.parquet", engine="duckdb", unmet=True)
    assert set(large.to_dict()) == set(small.to_dict())
    assert [(entry.limit, entry.met) for entry in large.limits] == [(entry.limit, entry.met) for entry in small.limits]
    assert large.advice
    assert [word.split(":")[0] for word in large.unmet] == [word.split(":")[0] for word in small.unmet]
    assert large.data.collect().height == small.data.height


def test_columns_are_attributed_only_beyond_a_limit() -> None:
    done = sfumato.protect({**RECIPE, "limits": {}}, PEOPLE)
    scenario = AttackScenario(original=done.original, release=done.release, lineage=done.lineage)  # type: ignore[arg-type]
    found = evaluate(scenario, limits=Limits(risk=1.0), rng=Rng(1), n_targets=50)
    assert not any(isinstance(item, Outcome) and item.without for item in found.attacks)


def test_every_kind_of_disclosure_has_its_words_and_its_limit() -> None:
    assert set(DISCLOSURES) == set(Discloses)
    assert {limit_of(kind) for kind in Discloses} == set(Limits.names())
    assert disclosure_of("of another version").achieves == "succeeds for"
