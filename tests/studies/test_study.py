"""Studies: the grid, the map, resuming, and what is recommended."""

from __future__ import annotations

import json
import re
import sys
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
from sfumato.studies.map import risk_utility_map
from sfumato.studies.page import page

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
        "targets": 200,
    },
}


def table() -> pl.DataFrame:
    draw = np.random.default_rng(0)
    x = draw.normal(size=150)
    return pl.DataFrame({"x": x, "y": x + draw.normal(size=150), "z": draw.normal(size=150)})


@pytest.fixture(scope="module")
def study() -> Study:
    """The study of the plan: nothing changes it."""
    return run_study(StudyPlan.parse(PLAN), table(), workers=1)


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


def test_a_study_in_a_notebook_shows_the_map_and_the_table(study: Study) -> None:
    first, second = study._repr_html_(), study._repr_html_()
    assert first.count("<svg") == second.count("<svg") == 1
    assert re.search('<svg id="([^"]+)"', first)[1] != re.search('<svg id="([^"]+)"', second)[1]  # type: ignore[index]
    assert all(f"<td>{point.candidate.name}</td>" in first for point in study.points)
    assert first.count("<td>yes</td>") == sum(point.holds + point.efficient for point in study.points) > 0


def test_a_study_without_risks_shows_the_table(study: Study) -> None:
    unknown = replace(study, points=tuple(replace(point, risk=None, reason="none applies") for point in study.points))
    assert "<svg" not in unknown._repr_html_()
    assert "none applies" in unknown._repr_html_()


def test_the_page_is_for_every_screen(study: Study) -> None:
    text = page(study)
    start, _, shown = text.rpartition("<figure>")
    assert '<html lang="en">' in start
    assert 'name="viewport"' in start
    assert start.count("<title>") == 1
    assert "prefers-color-scheme: dark" in start
    assert 'class="scroll"' in shown
    assert "Content-Security-Policy" in start
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
        ({"candidates": [{"rank-swap": 5}], "methods": []}, "unknown field"),
        ({"candidates": [{"rank-swap": {"p": {"try": [1 + n / 1000 for n in range(600)]}}}], "seeds": 100}, "most"),
    ],
)
def test_a_bad_plan_is_refused_with_all_its_problems(study: Any, words: str) -> None:
    with pytest.raises(InvalidRecipe, match=words):
        StudyPlan.parse({**PLAN, "study": study})


def test_map_frontier_and_recommendation(study: Study) -> None:
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
    from sfumato.studies import workers

    original = workers.run_cell

    def counting(recipe: Recipe, data: Any, *, n_targets: int, seconds: float | None) -> dict[str, Any]:
        ran.append(recipe.steps[-1].part_name())
        if len(ran) == 4:
            raise KeyboardInterrupt
        return original(recipe, data, n_targets=n_targets, seconds=seconds)

    monkeypatch.setattr(workers, "run_cell", counting)
    with pytest.raises(KeyboardInterrupt):
        run_study(StudyPlan.parse(PLAN), table(), folder=tmp_path, workers=1)
    assert len(list((tmp_path / "cells").glob("*.json"))) == 5  # three runs, and two that were refused before
    assert "noise" not in ran
    monkeypatch.setattr(workers, "run_cell", original)
    first = run_study(StudyPlan.parse(PLAN), table(), folder=tmp_path, workers=1)
    assert first.resumed == 5
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
    assert "<script" not in text
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

    plan = {**PLAN, "study": {"candidates": [{"rank-swap": 5}], "targets": 50}}
    assert [point.candidate.name for point in sfumato.study(plan, table(), workers=1).points] == ["rank-swap 5"]


def point(name: str, risk: float, high: float, loss: float, **rest: Any) -> Point:
    return Point(
        candidate=Candidate(name=name, steps=()), risk=risk, risk_low=risk / 2, risk_high=high, risk_by="linkage",
        loss=loss, loss_low=loss, loss_high=loss, losses={"correlations": (loss, loss, loss)}, seconds=0.0, attacks={},
        measures={}, **{"holds": True, **rest},
    )  # fmt: skip


def test_what_is_recommended_keeps_its_models_and_its_limit_at_the_upper_end() -> None:
    study = Study(
        plan=StudyPlan.parse(PLAN),
        points=(
            point("broken", 0.01, 0.02, 0.0, holds=False),
            point("out of time", 0.01, 0.02, 0.0, stopped=("learned-linkage",)),
            point("skipped", 0.01, 0.02, 0.0, skipped=("learned-linkage",)),
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
        ends = {"low": risk - 0.1, "high": risk + 0.1, "judged": risk + 0.1}
        return {"attack": name, "discloses": discloses, "risk": risk, **ends}

    measure = {"measure": "correlations", "value": 0.2, "better": "low", "low": None, "high": None}
    attacks = [told("weak", 0.1), told("strong", 0.4), told("other", 0.9, "attribute")]
    cell = {
        "attacks": attacks, "measures": [measure], "verdicts": [], "seconds": 1.0, "stopped": [], "skipped": [],
    }  # fmt: skip
    plan = replace(StudyPlan.parse(PLAN), seeds=(1,), risk=None)
    points = points_of(plan, {(number, 1): cell for number in range(len(plan.candidates))})
    assert [(p.risk, p.risk_high, p.risk_by) for p in points] == [(0.4, 0.5, "strong")] * len(points)


FAST = {**PLAN, "study": {**PLAN["study"], "candidates": [{"rank-swap": {"p": {"try": [1, 30]}}}], "seeds": 1}}


def battery(limit: float | None, **study: Any) -> StudyPlan:
    """A study with the default attacks."""
    plan = {key: value for key, value in FAST.items() if key not in ("attacks", "limits")}
    limits = {} if limit is None else {"limits": {"risk": limit}}
    return StudyPlan.parse({**plan, **limits, "study": {**FAST["study"], **study}})


@pytest.fixture(autouse=True)
def _few_attacks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A default battery of three inexpensive attacks, except where processes of their own run it."""
    from sfumato.evaluation import battery
    from sfumato.registry import registry

    if "processes" not in request.node.name:
        names = ("attribute-linkage", "distance-linkage", "assignment")
        attacks = [registry("attack").get(name).build() for name in names]
        monkeypatch.setattr(battery, "default_attacks", lambda _: attacks)


def test_impossible_candidates_are_refused_before_any_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.studies import workers

    def never(*_: Any, **__: Any) -> dict[str, Any]:
        raise AssertionError("a refused candidate ran")

    monkeypatch.setattr(workers, "run_cell", never)
    candidates = [{"noise": {"variance_ratio": 0.1, "columns": ["nowhere"]}}, {"microaggregate": {"k": 500}}]
    study = run_study(StudyPlan.parse({**PLAN, "study": {"candidates": candidates}}), table(), workers=1)
    assert [bool(point.reason) for point in study.points] == [True, True]
    assert "nowhere" in study.points[0].reason


def test_a_candidate_that_only_a_sample_refuses_runs() -> None:
    large = pl.concat([table()] * 3)
    plan = StudyPlan.parse({**PLAN, "study": {"candidates": [{"microaggregate": {"k": 210}}], "targets": 50}})
    assert run_study(plan, large, workers=1).points[0].reason == ""


def test_attacks_stop_once_the_limit_is_exceeded_and_run_again_under_another_limit(tmp_path: Path) -> None:
    strict = run_study(battery(0.05), table(), folder=tmp_path, workers=1)
    beyond = strict.points[0]
    assert beyond.skipped
    assert not beyond.complete
    assert not beyond.efficient
    assert "risk at least" in beyond.remark
    again = run_study(battery(0.04), table(), folder=tmp_path, workers=1)
    assert again.resumed == 2
    assert again.points == strict.points
    free = run_study(battery(None), table(), folder=tmp_path, workers=1)
    assert free.resumed < 2
    assert free.points[0].complete
    assert free.points[0].risk is not None and beyond.risk is not None  # noqa: PT018
    assert free.points[0].risk >= beyond.risk
    assert set(free.points[0].attacks) > set(beyond.attacks)


def test_only_attacks_that_the_study_compares_run() -> None:
    from sfumato.attacks import AttackScenario, default_attacks
    from sfumato.data import Table
    from sfumato.dataset import Data
    from sfumato.recipe import Limits
    from sfumato.release import Release
    from sfumato.studies.cell import compared_attacks

    data = Data.of(Table(frame=table()), battery(None).recipe.schema)
    scenario = AttackScenario(original=data, release=Release(table=data.table, manifest={}), aligned=True)
    kinds = {str(attack.discloses) for attack in compared_attacks(default_attacks(scenario), Limits()).values()}
    assert kinds == {"identity"}
    limited = compared_attacks(default_attacks(scenario), Limits(attribute=0.1))
    kinds = {str(attack.discloses) for attack in limited.values()}
    assert kinds == {"identity", "attribute"}


def test_a_run_out_of_time_is_no_recommendation_and_runs_again_with_more_time(tmp_path: Path) -> None:
    hurried = run_study(battery(1.0, seconds=1e-6), table(), folder=tmp_path, workers=1)
    assert not any(point.complete for point in hurried.points)
    assert hurried.recommend(risk=1.0) is None
    assert all("out of time" in point.remark or "time allowed" in point.remark for point in hurried.points)
    same = run_study(battery(1.0, seconds=1e-6), table(), folder=tmp_path, workers=1)
    assert same.resumed == 2
    patient = run_study(battery(1.0), table(), folder=tmp_path, workers=1)
    assert patient.resumed == 0
    assert patient.recommend(risk=1.0) is not None


def test_the_time_of_the_whole_study_is_shared_by_its_runs(tmp_path: Path) -> None:
    seconds = iter([0.0, 0.0, 4.0, 20.0, 20.0, 20.0])
    from sfumato.studies.run import _Budget

    budget = _Budget(seconds=None, until=12.0, workers=2, clock=lambda: next(seconds))
    assert budget.share(3) == 8.0  # two run at a time
    assert budget.share(1) == 12.0
    assert budget.share(2) == 8.0
    assert budget.share(2) == 0.0
    assert replace(budget, seconds=5.0, clock=lambda: 0.0).share(3) == 5.0
    ticking = iter(range(0, 1000, 50))
    late = run_study(battery(0.5, total=10), table(), folder=tmp_path, workers=1, clock=lambda: next(ticking))
    assert all("time for the whole study" in point.reason for point in late.points)
    assert run_study(battery(0.5), table(), folder=tmp_path, workers=1).resumed == 0


def test_several_utility_axes_have_a_map_each() -> None:
    plan = StudyPlan.parse({**FAST, "study": {**FAST["study"], "utility": ["correlations", "quantiles"]}})
    assert plan.utility == "correlations"
    study = run_study(plan, table(), workers=1)
    for found in study.points:
        assert set(found.losses) == {"correlations", "quantiles"}
        assert found.losses["correlations"] == (found.loss, found.loss_low, found.loss_high)
    text = page(study)
    assert text.count("<figure>") == 2
    assert "utility loss: quantiles" in text


def test_the_map_marks_the_recommended_point_the_limit_and_the_upper_ends() -> None:
    sure, doubtful = point("sure", 0.05, 0.08, 0.3, efficient=True), point("doubtful", 0.09, 0.12, 0.1, efficient=True)
    plan = StudyPlan.parse({**PLAN, "limits": {"risk": 0.1}})
    drawn = risk_utility_map(Study(plan=plan, points=(sure, doubtful)), "correlations", best=sure)
    assert drawn.count(">recommended</text>") == 1
    assert "limit 10%" in drawn
    limit = float(re.search(r'd="M([\d.]+) [\d.]+L[\d. ]+" stroke="#c4500a"', drawn)[1])  # type: ignore[index]
    ends = [float(x) for x in re.findall(r'd="M([\d.]+) [\d.]+L[\d. ]+" stroke="#1c2630" stroke-width="2"', drawn)]
    assert len(ends) == 2
    assert ends[0] < limit < ends[1]  # the risk of the second is below the limit, its upper end is not
    crowd = tuple(point(f"other {n}", 0.05 + n / 1000, 0.08, 0.3 + n / 1000) for n in range(-20, 20))
    crowded = risk_utility_map(Study(plan=plan, points=(*crowd, sure)), "correlations", best=sure)
    assert crowded.count(">recommended</text>") == 1
    dark = page(Study(plan=plan, points=(sure, doubtful)))
    for colour in re.findall(r'(?:fill|stroke)="(#[0-9a-f]+)"', drawn):
        assert f'="{colour}"] {{' in dark


def test_no_figure_is_rounded_across_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    from sfumato.cli.study import _show

    plan = StudyPlan.parse({**PLAN, "limits": {"risk": 0.1}})
    study = Study(plan=plan, points=(point("under", 0.05, 0.0996, 0.1), point("over", 0.05, 0.10004, 0.1)))
    _show(study, None)
    shown = capsys.readouterr().out
    for text in (shown, page(study)):
        assert "9.96%" in text
        assert "10.004%" in text
        assert "10%" not in text.replace("at most 10%", "").replace("limit 10%", "").replace(">10%</text>", "")


def test_progress_in_a_pipe_names_the_run_and_the_time_left() -> None:
    from sfumato.cli._console import LineProgress

    lines: list[str] = []
    times = iter(range(0, 100_000, 30))
    run_study(
        StudyPlan.parse(FAST), table(), workers=1, progress=LineProgress(lines.append, clock=lambda: float(next(times)))
    )
    assert "  running: rank-swap p=1" in lines
    assert any(re.fullmatch(r"study: 1 of 2, .*, about .* left", line) for line in lines)
    assert any(line.startswith("study: 2 of 2, ") for line in lines)


def test_a_risk_that_is_unknown_for_want_of_time_says_so() -> None:
    entry = {"attack": "linkage", "discloses": "identity", "risk": None}
    cell = {
        "attacks": [entry], "measures": [], "verdicts": [], "seconds": 1.0, "stopped": ["linkage"], "skipped": [],
    }  # fmt: skip
    plan = replace(StudyPlan.parse(PLAN), seeds=(1,), risk=None)
    points = points_of(plan, {(number, 1): cell for number in range(len(plan.candidates))})
    assert all("out of time" in found.reason for found in points)


def test_a_file_larger_than_memory_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table().write_csv(tmp_path / "t.csv")
    (tmp_path / "study.yaml").write_text(json.dumps({**PLAN, "data": "t.csv"}))
    monkeypatch.setattr(sys.modules["sfumato.data.scan"], "available_memory", lambda: 1000)
    assert main(["study", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "out")]) == 2
    assert "Study a sample of the rows" in capsys.readouterr().err
