"""Studies: the grid, the map, resuming, and what is recommended."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.cli import main
from sfumato.errors import BadParameter, InvalidRecipe
from sfumato.recipe import Recipe
from sfumato.studies import Candidate, Point, Study, StudyPlan, run_study
from sfumato.studies.folder import save_study
from sfumato.studies.frontier import points_of
from sfumato.studies.page import chart, page

PLAN: dict[str, Any] = {
    "sfumato": 1,
    "seed": 3,
    "columns": {"x": {"role": "quasi"}, "y": {"role": "quasi"}, "z": {"role": "sensitive"}},
    "attacks": ["distance-linkage"],
    "measures": ["correlations", "il1"],
    "limits": {"risk": 0.5},
    "study": {
        "candidates": [
            {"rank-swap": {"p": {"try": [1, 30]}}},
            {"microaggregate": {"k": {"try": [2, 20]}}},
            {"noise": {"variance_ratio": 0.1, "columns": ["nowhere"]}},
        ],
        "seeds": 2,
        "tries": 200,
    },
}


def table() -> pl.DataFrame:
    draw = np.random.default_rng(0)
    x = draw.normal(size=150)
    return pl.DataFrame({"x": x, "y": x + draw.normal(size=150), "z": draw.normal(size=150)})


def test_every_combination_is_a_candidate_with_a_recipe() -> None:
    plan = StudyPlan.parse(PLAN)
    names = [candidate.name for candidate in plan.candidates]
    assert names[:4] == ["rank-swap p=1", "rank-swap p=30", "microaggregate k=2", "microaggregate k=20"]
    assert plan.seeds == (3, 4)
    assert StudyPlan.parse({**PLAN, "seed": 0}).seeds == (0, 1)
    recipe = Recipe.parse(plan.recipe_of(plan.candidates[1]).to_dict())
    assert recipe.steps[0].to_dict()["p"] == 30
    assert recipe.seed == 3


def test_pipelines_bare_values_and_names_that_repeat() -> None:
    candidates = [
        [{"round": {"base": 1}}, {"noise": {"try": [0.1, 0.2]}}],
        {"rank-swap": 5},
        {"rank-swap": 5},
    ]
    plan = StudyPlan.parse({**PLAN, "study": {"candidates": candidates}})
    assert [c.name for c in plan.candidates] == [
        "round base=1 + noise variance_ratio=0.1",
        "round base=1 + noise variance_ratio=0.2",
        "rank-swap 5",
        "rank-swap 5 (2)",
    ]
    assert len(plan.candidates[0].steps) == 2


def test_columns_are_in_a_name_only_where_they_tell_candidates_apart() -> None:
    common = {"rank-swap": {"p": {"try": [2, 5]}, "columns": ["x", "y"]}}
    names = [c.name for c in StudyPlan.parse({**PLAN, "study": {"candidates": [common]}}).candidates]
    assert names == ["rank-swap p=2", "rank-swap p=5"]
    other = {"rank-swap": {"p": 2, "columns": ["z"]}}
    names = [c.name for c in StudyPlan.parse({**PLAN, "study": {"candidates": [common, other]}}).candidates]
    assert names == ["rank-swap columns=[x, y], p=2", "rank-swap p=5", "rank-swap p=2, columns=[z]"]


def test_a_study_in_a_notebook_shows_the_map_and_the_table() -> None:
    study = run_study(StudyPlan.parse(PLAN), table(), workers=1)
    first, second = study._repr_html_(), study._repr_html_()
    assert first.count("<svg") == second.count("<svg") == 1
    assert re.search('<svg id="([^"]+)"', first)[1] != re.search('<svg id="([^"]+)"', second)[1]  # type: ignore[index]
    assert all(f"<td>{point.candidate.name}</td>" in first for point in study.points)
    assert first.count("<td>yes</td>") == sum(point.holds + point.efficient for point in study.points) > 0


def test_a_study_without_risks_shows_the_table() -> None:
    study = run_study(StudyPlan.parse(PLAN), table(), workers=1)
    unknown = replace(study, points=tuple(replace(point, risk=None, reason="none applies") for point in study.points))
    assert "<svg" not in unknown._repr_html_()
    assert "none applies" in unknown._repr_html_()


def test_the_page_is_for_every_screen() -> None:
    text = page(run_study(StudyPlan.parse(PLAN), table(), workers=1))
    start, _, shown = text.rpartition('<figure class="chart" aria-label=')
    assert '<html lang="en">' in start
    assert 'name="viewport"' in start
    assert start.count("<title>") - start.count("<title>Chart") == 1
    assert "prefers-color-scheme: dark" in start
    assert "class='scroll'" in shown
    assert shown.count("<h2>") == 1


@pytest.mark.parametrize(
    ("study", "words"),
    [
        (None, "candidates"),
        ({"candidates": []}, "list of steps"),
        ({"candidates": [{"rank-swop": {}}]}, "rank-swap"),
        ({"candidates": [{"rank-swap": {"p": {"try": []}}}]}, "try"),
        ({"candidates": [{"rank-swap": {"p": 500}}]}, "p"),
        ({"candidates": [{"rank-swap": 5}], "seeds": 0}, "seeds"),
        ({"candidates": [{"rank-swap": 5}], "utility": "prosecutor"}, "disclosure"),
        ({"candidates": [{"rank-swap": 5}], "risk": "nothing"}, "no attack or measure"),
        ({"candidates": [{"rank-swap": 5}], "methods": []}, "unknown key"),
        ({"candidates": [{"rank-swap": {"p": {"try": [1 + n / 1000 for n in range(600)]}}}], "seeds": 100}, "most"),
    ],
)
def test_a_bad_plan_is_refused_with_all_its_problems(study: Any, words: str) -> None:
    with pytest.raises(InvalidRecipe, match=words):
        StudyPlan.parse({**PLAN, "study": study})


def test_map_frontier_and_recommendation() -> None:
    study = run_study(StudyPlan.parse(PLAN), table(), workers=1)
    by_name = {point.candidate.name: point for point in study.points}
    low, high = by_name["rank-swap p=30"], by_name["rank-swap p=1"]
    assert low.risk is not None and high.risk is not None and low.risk < high.risk  # noqa: PT018
    assert low.loss is not None and high.loss is not None and low.loss > high.loss  # noqa: PT018
    missing = by_name["noise variance_ratio=0.1"]
    assert missing.risk is None
    assert "nowhere" in missing.reason
    for point in study.frontier:
        others = [p for p in study.points if p.risk is not None and p.loss is not None and p is not point]
        assert not any(
            p.risk <= point.risk and p.loss <= point.loss and (p.risk, p.loss) != (point.risk, point.loss)  # type: ignore[operator]
            for p in others
        )
    best = study.recommend(risk=0.5)
    assert best is not None
    assert best.risk_high is not None
    assert best.risk_high <= 0.5
    assert study.recommend(risk=0.0) is None
    cheap = study.recommend(loss=high.loss)
    assert cheap is not None
    assert cheap.loss is not None
    assert cheap.loss <= high.loss


def test_finished_runs_are_kept_and_a_change_runs_only_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    from sfumato.studies import run as running

    original = running.run_cell

    def counting(recipe: Recipe, data: Any, *, n_targets: int) -> dict[str, Any]:
        ran.append(recipe.steps[-1].part_name())
        if len(ran) == 4:
            raise KeyboardInterrupt
        return original(recipe, data, n_targets=n_targets)

    monkeypatch.setattr(running, "run_cell", counting)
    with pytest.raises(KeyboardInterrupt):
        run_study(StudyPlan.parse(PLAN), table(), folder=tmp_path, workers=1)
    assert len(list((tmp_path / "cells").glob("*.json"))) == 3
    monkeypatch.setattr(running, "run_cell", original)
    first = run_study(StudyPlan.parse(PLAN), table(), folder=tmp_path, workers=1)
    assert first.resumed == 3
    again = run_study(StudyPlan.parse(PLAN), table(), folder=tmp_path, workers=1)
    assert again.resumed == 10
    assert [p.to_dict() for p in again.points] == [p.to_dict() for p in first.points]
    other = run_study(StudyPlan.parse(PLAN), table().with_columns(pl.col("x") + 1), folder=tmp_path, workers=1)
    assert other.resumed == 0


@pytest.mark.slow
def test_processes_give_the_same_as_one() -> None:
    plan = StudyPlan.parse(PLAN)
    alone, together = run_study(plan, table(), workers=1), run_study(plan, table(), workers=2)

    def without_time(study: Any) -> list[dict[str, Any]]:
        return [{**p.to_dict(), "seconds": 0} for p in study.points]

    assert without_time(alone) == without_time(together)


def test_folder_holds_page_table_and_recipes_that_run(tmp_path: Path) -> None:
    table().write_csv(tmp_path / "data.csv")
    plan = StudyPlan.parse({**PLAN, "data": "data.csv"}, base=tmp_path)
    study = run_study(plan, folder=tmp_path / "out", workers=1)
    save_study(study, tmp_path / "out")
    text = (tmp_path / "out" / "study.html").read_text()
    assert "https://cdn" not in text
    assert "rank-swap p=30" in text
    assert pl.read_csv(tmp_path / "out" / "study.csv").height == 5
    recipe = Recipe.load(sorted((tmp_path / "out" / "recipes").glob("*.yaml"))[0])
    assert recipe.source is not None
    assert Path(recipe.source.location).is_file()
    assert chart(study)["data"]["values"][0]["candidate"] == "rank-swap p=1"
    assert page(study).rpartition("<table>")[2].count("<tr") == 6


def test_command_prints_one_document_and_says_when_no_candidate_keeps_the_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table().write_csv(tmp_path / "data.csv")
    (tmp_path / "study.yaml").write_text(json.dumps({**PLAN, "data": "data.csv"}))
    arguments = ["study", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "out"), "--workers", "1", "--json"]
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["recommended"] in {entry["candidate"] for entry in document["candidates"]}
    assert main([*arguments, "--risk", "0"]) == 1
    assert json.loads(capsys.readouterr().out)["recommended"] is None
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "study.html").write_text("something else")
    assert main(["study", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "mine"), "--json"]) == 2
    assert (tmp_path / "mine" / "study.html").read_text() == "something else"


def test_a_study_needs_data() -> None:
    with pytest.raises(BadParameter, match="`data` is required"):
        run_study(StudyPlan.parse(PLAN))


def test_the_package_is_a_verb() -> None:
    import sfumato

    plan = {**PLAN, "study": {"candidates": [{"rank-swap": 5}], "tries": 50}}
    assert [point.candidate.name for point in sfumato.study(plan, table(), workers=1).points] == ["rank-swap 5"]


def point(name: str, risk: float, high: float, loss: float, *, holds: bool = True) -> Point:
    return Point(
        candidate=Candidate(name=name, steps=()), risk=risk, risk_high=high, risk_by="linkage", loss=loss,
        loss_low=loss, loss_high=loss, holds=holds, seconds=0.0, attacks={}, measures={},
    )  # fmt: skip


def test_what_is_recommended_keeps_its_models_and_its_limit_at_the_upper_end() -> None:
    study = Study(
        plan=StudyPlan.parse(PLAN),
        points=(
            point("broken", 0.01, 0.02, 0.0, holds=False),
            point("doubtful", 0.08, 0.12, 0.1),
            point("sure", 0.05, 0.08, 0.3),
            point("coarse", 0.01, 0.02, 0.6),
        ),
    )
    best = study.recommend(risk=0.1)
    assert best is not None
    assert best.candidate.name == "sure"
    safest = study.recommend(loss=0.5)
    assert safest is not None
    assert safest.candidate.name == "sure"
    assert study.recommend(risk=0.1, loss=0.2) is None
    assert study.recommend() is None


def test_the_worst_attack_on_identity_is_the_risk_of_a_candidate() -> None:
    def told(name: str, risk: float, discloses: str = "identity") -> dict[str, Any]:
        return {"attack": name, "discloses": discloses, "risk": risk, "high": risk + 0.1}

    measure = {"measure": "correlations", "value": 0.2, "better": "low", "high": None}
    attacks = [told("weak", 0.1), told("strong", 0.4), told("other", 0.9, "attribute")]
    cell = {"attacks": attacks, "measures": [measure], "verdicts": [], "seconds": 1.0}
    plan = replace(StudyPlan.parse(PLAN), seeds=(1,), risk=None)
    points = points_of(plan, {(number, 1): cell for number in range(len(plan.candidates))})
    assert [(p.risk, p.risk_high, p.risk_by) for p in points] == [(0.4, 0.5, "strong")] * len(points)
