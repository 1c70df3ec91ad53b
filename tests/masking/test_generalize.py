"""The generalize step: what it shows, what it suppresses, what it refuses, and how it stops."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.dataset.hierarchy import hierarchy_from_dict
from sfumato.errors import BadParameter, NotApplicable, TooFewRows, UnknownColumn, Unmet
from sfumato.masking.base import Context
from sfumato.masking.equivalence_classes import ClassGroups, compress
from sfumato.masking.methods.generalize import Generalize
from sfumato.masking.metrics.loss import Loss
from sfumato.masking.model import PrivacyModel
from sfumato.masking.models.average_risk import AverageRisk
from sfumato.masking.models.delta_presence import DeltaPresence
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.masking.models.k_map import KMap
from sfumato.masking.models.l_diversity import LDiversity
from sfumato.masking.models.population_uniqueness import PopulationUniqueness
from sfumato.masking.models.t_closeness import TCloseness
from sfumato.masking.pipeline import protect
from sfumato.masking.search.lattice import bound, heuristic, optimal
from sfumato.masking.search.lattice.level_range import LevelRange
from sfumato.masking.search.lattice.space import LatticeSpace
from sfumato.registry import registry
from sfumato.release import Change
from sfumato.rng import Rng

BANDS = {"intervals": [5, 10, 20]}


def people(rows: int = 300, seed: int = 1, **changes: Any) -> Data:
    draw = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "age": np.minimum(18 + draw.gamma(2, 9, rows).astype(int), 80),
            "zip": [f"{code:05d}" for code in 2130 + draw.integers(0, 12, rows)],
            "sex": draw.choice(["F", "M"], rows),
            "illness": draw.choice(["none", "flu", "asthma"], rows, p=[0.6, 0.3, 0.1]),
            "note": [f"note {row}" for row in range(rows)],
        }
    )
    columns: dict[str, Any] = {
        "age": Column(role=Role.QUASI, hierarchy=BANDS),  # type: ignore[arg-type]
        "zip": Column(role=Role.QUASI, hierarchy={"mask": "right"}),  # type: ignore[arg-type]
        "sex": Column(role=Role.QUASI),
        "illness": Column(role=Role.SENSITIVE),
    } | changes
    return Data.of(Table(frame=frame), Schema(columns=columns))


def run(data: Data, *models: PrivacyModel, **parameters: Any) -> Change:
    return Generalize(**parameters).apply(data, Context(rng=Rng(1), models=models or (KAnonymity(k=4),)))


def after(data: Data, change: Change) -> Data:
    return Data(table=change.table, schema=data.schema)


def test_removed_rows_are_named_in_the_row_map() -> None:
    data = people()
    change = run(data, suppression=0.1, highest={"age": 3})
    assert change.rows is not None
    assert 0 < change.private["suppressed"] <= 30
    assert change.table.rows == 300 - change.private["suppressed"] == len(change.rows)
    assert change.table.frame["note"].to_list() == data.table.frame["note"][change.rows.tolist()].to_list()
    assert KAnonymity(k=4).check(after(data, change)).holds


def test_starred_rows_stay_with_everything_but_their_quasi_identifiers() -> None:
    data = people()
    change = run(data, suppression=0.1, suppressed="star", highest={"age": 3})
    assert change.rows is None
    assert change.table.rows == 300
    starred = change.table.frame.filter(pl.all_horizontal(pl.col("age", "zip", "sex") == "*"))
    assert starred.height == change.private["suppressed"] > 0
    assert starred["illness"].is_in(["none", "flu", "asthma"]).all()
    assert KAnonymity(k=4).check(after(data, change)).holds


def test_suppressing_only_some_columns_keeps_more() -> None:
    data = people()
    whole = run(data, suppression=0.2)
    partly = run(data, suppression=0.2, only=["age"])
    assert partly.private["suppressed"] == whole.private["suppressed"]
    assert partly.private["suppressed_whole"] < whole.private["suppressed_whole"]
    assert partly.table.rows > whole.table.rows
    shown = partly.table.frame.filter(pl.col("age") == "*")
    assert shown.height > 0
    assert KAnonymity(k=4).check(after(data, partly)).holds


def test_every_shown_value_is_the_label_of_the_true_one() -> None:
    data = people()
    change = run(data)
    for name, level in change.public["levels"].items():
        expected = data.bound_hierarchy(name).generalize(data.table.column(name), level)
        assert change.table.column(name).to_list() == expected.to_list()
    assert change.public["optimal"] is True


def test_levels_stay_within_their_limits() -> None:
    data = people()
    change = run(data, lowest={"zip": 2}, highest={"age": 2}, suppression=0.3)
    assert change.public["levels"]["zip"] >= 2
    assert change.public["levels"]["age"] <= 2


def test_weights_move_the_loss_to_other_columns() -> None:
    data = people()
    heavy = run(data, weights={"zip": 0.01}, suppression=0.1).public["levels"]
    light = run(data, weights={"age": 0.01}, suppression=0.1).public["levels"]
    assert heavy["age"] < light["age"]
    assert heavy["zip"] > light["zip"]


@pytest.mark.parametrize("metric", ["ncp", {"classification": {"column": "note"}}, {"classification": "illness"}])
def test_metrics_by_name_or_with_parameters(metric: Any) -> None:
    change = run(people(), metric=metric, suppression=0.05)
    assert change.public["metric"] in ("ncp", "classification")


def test_several_models_on_several_sensitive_columns() -> None:
    data = people(note=Column(role=Role.SENSITIVE))
    models = (KAnonymity(k=5), LDiversity(l=2, column="illness"), LDiversity(l=5, column="note"))
    released = after(data, run(data, *models, suppression=0.1))
    assert all(model.check(released, original=data).holds for model in models)


def test_models_about_the_whole_table_suppress_the_smallest_classes() -> None:
    data = people()
    for model in (AverageRisk(limit=0.2), PopulationUniqueness(limit=0.05, fraction=0.5)):
        change = run(data, model, suppression=0.2)
        assert model.check(after(data, change)).holds
        assert change.private["suppressed"] <= 60


@pytest.mark.parametrize("low", [0.0, 0.05])
def test_models_about_a_population(tmp_path: Path, low: float) -> None:
    data = people(100)
    extra = people(400, seed=9).table.frame
    pl.concat([data.table.frame, extra]).write_csv(tmp_path / "all.csv")
    map_ = KMap(k=8, population=tmp_path / "all.csv")
    presence = DeltaPresence(low=low, high=0.5, population=tmp_path / "all.csv")
    for model in (map_, presence):
        change = run(data, model, suppression=0.1)
        assert model.check(after(data, change)).holds
    assert run(data, map_).public["levels"] != run(data, KAnonymity(k=8)).public["levels"]


# --- refusals -------------------------------------------------------------------------------------------------------


def test_more_rows_per_class_than_rows() -> None:
    with pytest.raises(TooFewRows, match="300 rows"):
        run(people(), KAnonymity(k=301))


def test_more_values_than_there_are() -> None:
    with pytest.raises(Unmet, match="l-diversity wants >= 4 and the coarsest table gives 3") as refusal:
        run(people(), LDiversity(l=4))
    assert refusal.value.status == 1
    assert refusal.value.closest == {"l-diversity": 3.0}  # type: ignore[attr-defined]


def test_an_empty_table_is_no_answer() -> None:
    with pytest.raises(Unmet, match=r"100\.0% of the rows"):
        run(people(), LDiversity(l=4), suppression=1.0)


def test_a_distance_below_what_the_highest_levels_reach() -> None:
    with pytest.raises(Unmet, match="t-closeness wants <= 0 and the coarsest table gives"):
        run(people(), TCloseness(t=0), highest={"sex": 0})
    assert run(people(), TCloseness(t=0)).public["levels"]["sex"] == 1


def test_nothing_to_reach_and_nothing_to_generalize() -> None:
    data = people()
    with pytest.raises(BadParameter, match="no privacy model"):
        Generalize().apply(data, Context(rng=Rng(1)))
    bare = Data(table=data.table, schema=Schema(columns={"illness": Column(role=Role.SENSITIVE)}))
    with pytest.raises(NotApplicable, match="quasi"):
        run(bare)


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"lowest": {"illness": 1}}, UnknownColumn),
        ({"highest": {"age": 9}}, BadParameter),
        ({"lowest": {"age": 2}, "highest": {"age": 1}}, BadParameter),
        ({"only": ["nobody"]}, UnknownColumn),
    ],
)
def test_bad_columns_and_levels(parameters: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="generalize"):
        run(people(), **parameters)


@pytest.mark.parametrize("weight", [float("inf"), float("nan"), 1e308, -1])
def test_a_weight_is_a_number_that_can_be_summed(weight: float) -> None:
    with pytest.raises(BadParameter, match=r"weights\.age"):
        Generalize.build({"weights": {"age": weight}})


def test_an_unknown_metric_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadParameter, match="Did you mean `discernibility`"):
        Generalize.build({"metric": "discernability"})


@pytest.mark.parametrize("meaning", ["wildcard", "suppressed"])
def test_cells_that_match_everything_are_refused_by_the_search(meaning: str) -> None:
    data = people(sex=Column(role=Role.QUASI, missing=meaning))  # type: ignore[arg-type]
    holes = data.table.frame.with_columns(pl.when(pl.arange(0, 300) > 5).then(pl.col("sex")).alias("sex"))
    with pytest.raises(NotApplicable, match=meaning):
        run(data.with_frame(holes))


def test_zero_is_written_without_a_sign() -> None:
    frame = pl.DataFrame({"owed": [0.0, -0.0, 1.5, 1.5]})
    data = Data.of(Table(frame=frame), Schema(columns={"owed": Column(role=Role.QUASI)}))
    change = run(data, KAnonymity(k=2))
    assert sorted(change.table.frame["owed"].cast(pl.String).to_list()) == ["0.0", "0.0", "1.5", "1.5"]


def test_a_gap_is_a_value_of_its_own_by_default() -> None:
    data = people()
    holes = data.with_frame(
        data.table.frame.with_columns(pl.when(pl.arange(0, 300) % 3 > 0).then(pl.col("sex")).alias("sex"))
    )
    change = run(holes, highest={"sex": 0})
    classes = change.table.frame.group_by("age", "zip", "sex").len()
    assert classes["sex"].null_count() > 0
    assert classes["len"].min() >= 4  # type: ignore[operator]


# --- stopping -------------------------------------------------------------------------------------------------------


def space(metric: str = "loss") -> LatticeSpace:
    table = compress(people())
    part = registry("metric").get(metric).build()
    return LatticeSpace(table, (KAnonymity(k=4).bind(table),), part, limit=30)  # type: ignore[arg-type]


def whole(judged: LatticeSpace) -> LevelRange:
    return LevelRange(low=(0,) * len(judged.heights), high=judged.table.heights)


def test_an_interrupt_gives_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = space()
    exact = optimal.search(space(), whole(judged))
    calls = 0
    judge = LatticeSpace.evaluate

    def once_too_often(self: LatticeSpace, *args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise KeyboardInterrupt
        return judge(self, *args, **more)

    monkeypatch.setattr(LatticeSpace, "evaluate", once_too_often)
    found = optimal.search(judged, whole(judged))
    assert found.best is not None
    assert exact.best is not None
    assert not found.optimal
    assert found.bound <= exact.best.score <= found.best.score


def test_a_time_limit_gives_a_bound() -> None:
    judged = space()
    ticks = iter(range(1000))
    found = optimal.search(judged, whole(judged), seconds=2, clock=lambda: float(next(ticks)))
    exact = optimal.search(space(), whole(judged))
    assert exact.best is not None
    assert not found.optimal
    assert found.bound <= exact.best.score


def test_a_lattice_too_big_to_prove_asks_for_the_heuristic(monkeypatch: pytest.MonkeyPatch) -> None:
    few = run(people(), search="auto").public
    assert few == run(people()).public
    monkeypatch.setattr(optimal, "LARGEST", 10)
    with pytest.raises(BadParameter, match="search: auto"):
        run(people())
    assert run(people(), search="heuristic", seconds=5).public["optimal"] is True
    proved = optimal.search
    monkeypatch.setattr(optimal, "search", None)
    assert run(people(), search="auto", seconds=5).public["levels"] == few["levels"]
    monkeypatch.setattr(optimal, "search", proved)


@pytest.mark.parametrize("metric", ["loss", "ncp", "entropy", "precision"])
def test_groups_of_columns_that_are_not_searched_to_the_end_still_bound(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = space(metric)
    exact = optimal.search(space(metric), whole(judged))
    assert exact.best is not None
    searched = optimal.search
    monkeypatch.setattr(bound, "search", lambda small, part, **_: searched(small, part, seconds=1e-9))
    given = bound.lower_bound(judged, whole(judged), judged.evaluate(whole(judged).low), seconds=0.02, rng=Rng(1))
    assert 0 <= given <= exact.best.score * (1 + 1e-9)


def test_a_search_limited_by_work_stops_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = []

    def until_told(*_: Any, seconds: float, clock: Callable[[], float], **__: Any) -> float:
        stop, give_up = clock() + seconds, time.monotonic() + 30
        while clock() < stop and time.monotonic() < give_up:
            time.sleep(0.001)
        stopped.append(clock() >= stop)
        return 0.0

    monkeypatch.setattr(heuristic, "_SMALL", 0)
    monkeypatch.setattr(heuristic, "lower_bound", until_told)
    assert run(people(), search="heuristic", evaluations=20).public["levels"]
    assert stopped == [True]


def test_an_interrupted_heuristic_stops_the_bound_and_returns_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def until_told(*_: Any, seconds: float, clock: Callable[[], float], **__: Any) -> float:
        end = clock() + seconds
        for _step in range(20_000):
            if clock() > end:
                return 0.25
            time.sleep(0.001)
        return float("nan")

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    judged = space()
    monkeypatch.setattr(heuristic, "_SMALL", 0)
    monkeypatch.setattr(heuristic, "lower_bound", until_told)
    monkeypatch.setattr(heuristic._HeuristicSearch, "breed", interrupted)
    found = heuristic.search(judged, whole(judged), seconds=1e6, rng=Rng(1))
    assert found.best is not None
    assert found.bound == min(0.25, found.best.score)


def test_progress_is_told() -> None:
    told: list[float] = []

    class Listener:
        def task(self, title: str, total: float | None) -> Any:
            from contextlib import nullcontext

            assert total == whole(space()).nodes
            return nullcontext(told.append)

    optimal.search(space(), whole(space()), progress=Listener())
    assert sum(told) == whole(space()).nodes


def test_loss_of_a_column_without_choice_is_nothing() -> None:
    data = people()
    one = data.with_frame(data.table.frame.with_columns(pl.lit("F").alias("sex")))
    losses = Loss().bind(compress(one))
    assert losses.star[2] == 0.0


def test_a_column_with_one_value_stays_as_it_is() -> None:
    frame = pl.DataFrame({"town": ["Bonn"] * 40, "age": range(40)})
    data = Data.of(Table(frame=frame), Schema(columns={name: Column(role=Role.QUASI) for name in frame.columns}))
    done = Generalize().apply(data, Context(rng=Rng(1), models=(KAnonymity(k=5),)))
    assert done.public["levels"] == {"town": 0, "age": 1}


@pytest.mark.parametrize("distance", ["equal", "ordered", "hierarchical"])
def test_rows_due_to_t_closeness_are_the_fewest_that_any_choice_suppresses(distance: Any) -> None:
    """Every way to keep rows of a small class, by brute force. Exact for equal distance, never too high for others."""
    values = ["a", "b", "c", "d"]
    frame = pl.DataFrame({"q": [1] * 40, "s": ["a"] * 16 + ["b"] * 12 + ["c"] * 8 + ["d"] * 4})
    hierarchy = {"taxonomy": {"tree": {"x": ["a", "b"], "y": ["c", "d"]}}} if distance == "hierarchical" else None
    columns = {"q": Column(role=Role.QUASI), "s": Column(role=Role.SENSITIVE, hierarchy=hierarchy)}
    table = compress(Data.of(Table(frame=frame), Schema(columns=columns)))
    assert table.track("s").hierarchy.leaves.to_list() == values
    rule = TCloseness(t=0.2, distance=distance).bind(table)
    random = np.random.default_rng(4)
    exact = 0
    for _ in range(60):
        counts = random.integers(0, 7, 4)
        if not counts.sum():
            continue
        whole = ClassGroups(sizes=np.array([counts.sum()]), histograms={"s": counts[None, :]})
        kept = np.array(list(product(*(range(int(n) + 1) for n in counts))), dtype=np.int64)
        passing = kept[
            rule.passes(ClassGroups(sizes=kept.sum(axis=1), histograms={"s": kept})) & (kept.sum(axis=1) > 0)
        ]
        fewest = int(counts.sum() - passing.sum(axis=1).max(initial=0))
        due = int(rule.min_suppressed_rows(whole, rule.passes(whole))[0])
        assert due <= fewest
        exact += due == fewest
    assert exact >= (55 if distance == "equal" else 40)


def test_a_survey_holds_where_the_step_alone_would_and_finds_the_same_best() -> None:
    draw = np.random.default_rng(5)
    frame = pl.DataFrame({"age": draw.integers(20, 60, 80), "sex": draw.choice(["F", "M"], 80)})
    columns = {
        "age": Column(role=Role.QUASI, hierarchy=hierarchy_from_dict({"intervals": [5, 10, 20]})),
        "sex": Column(role=Role.QUASI),
    }
    data, models = Data.of(Table(frame=frame), Schema(columns=columns)), (KAnonymity(k=4),)
    found = Generalize(suppression=0.05).survey(data, Context(rng=Rng(1), models=models))
    assert len(found.nodes) == found.within.nodes == 10
    for node in found.nodes:
        levels = dict(zip(found.columns, node.levels, strict=True))
        try:
            made = protect(data, steps=[Generalize(suppression=0.05, lowest=levels, highest=levels)], models=models,
                           rng=Rng(1))  # fmt: skip
        except Unmet:
            assert not node.meets
        else:
            assert node.meets
            assert made.data.rows == 80 - node.shape.suppressed
    [chosen] = protect(data, steps=[Generalize(suppression=0.05)], models=models, rng=Rng(1)).steps[:1]
    assert found.best is not None
    assert chosen.change.public["levels"] == dict(zip(found.columns, found.best.levels, strict=True))
    assert 0 < sum(node.meets for node in found.nodes) < 10


def test_a_lattice_too_large_to_look_at_is_refused() -> None:
    names = [f"c{number}" for number in range(15)]
    frame = pl.DataFrame({name: ["a", "b"] * 10 for name in names})
    data = Data.of(Table(frame=frame), Schema(columns={name: Column(role=Role.QUASI) for name in names}))
    with pytest.raises(BadParameter, match="32,768 combinations"):
        Generalize().survey(data, Context(rng=Rng(1), models=(KAnonymity(k=2),)))
