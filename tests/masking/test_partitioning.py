"""Mondrian, local recoding and cell suppression: what they show, when they stop, what they refuse."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.attacks.value_parser import Known, reader
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Kind, Role, Schema
from sfumato.dataset.hierarchies.intervals import IntervalsHierarchy
from sfumato.dataset.hierarchies.taxonomy import TaxonomyHierarchy
from sfumato.errors import BadParameter, NotApplicable, Unmet, WrongKind
from sfumato.masking.base import Context, Step
from sfumato.masking.methods.generalize import Generalize
from sfumato.masking.methods.local_recode import LocalRecode
from sfumato.masking.methods.mondrian import Mondrian
from sfumato.masking.methods.suppress_cells import SuppressCells
from sfumato.masking.model import PrivacyModel
from sfumato.masking.models.average_risk import AverageRisk
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.masking.models.k_map import KMap
from sfumato.masking.models.l_diversity import LDiversity
from sfumato.masking.models.t_closeness import TCloseness
from sfumato.masking.search.cell_suppression import sets_by_cost
from sfumato.release import Change
from sfumato.rng import Rng

CITY = TaxonomyHierarchy.build({"tree": {"north": ["Kiel", "Jena"], "south": ["Ulm", "Bonn"]}})


def data(frame: pl.DataFrame, **columns: Column) -> Data:
    declared = {name: columns.get(name, Column(role=Role.QUASI)) for name in frame.columns}
    return Data.of(Table(frame=frame), Schema(columns=declared))


def run(step: Step, table: Data, *models: PrivacyModel) -> Change:
    return step.apply(table, Context(rng=Rng(1), models=models))


def crowd(rows: int = 400, seed: int = 5) -> Data:
    draw = Rng(seed).generator
    frame = pl.DataFrame(
        {
            "age": draw.integers(18, 90, rows),
            "height": np.round(draw.normal(170, 10, rows), 1),
            "city": [("Kiel", "Jena", "Ulm", "Bonn")[i] for i in draw.integers(0, 4, rows)],
            "sex": [("f", "m")[i] for i in draw.integers(0, 2, rows)],
            "illness": [("flu", "cold", "gout", "none")[i] for i in draw.integers(0, 4, rows)],
        }
    )
    return data(
        frame,
        age=Column(role=Role.QUASI, hierarchy=IntervalsHierarchy.build([5, 20])),
        height=Column(role=Role.QUASI, hierarchy=IntervalsHierarchy.build([5.0, 20.0])),
        city=Column(role=Role.QUASI, hierarchy=CITY),
        illness=Column(role=Role.SENSITIVE),
    )


# --- Mondrian -----------------------------------------------------------------------------------------------------


def test_mondrian_cuts_at_the_median() -> None:
    ages = data(pl.DataFrame({"age": [20, 21, 22, 40, 41, 42]}))
    assert run(Mondrian(), ages, KAnonymity(k=3)).table.frame["age"].to_list() == ["20–22"] * 3 + ["40–42"] * 3


@pytest.mark.parametrize("cuts", ["strict", "relaxed"])
def test_mondrian_refuses_labels_of_an_earlier_step_without_quoting_them(cuts: Any) -> None:
    age = Column(role=Role.QUASI, kind=Kind.INTEGER, hierarchy=IntervalsHierarchy.build([10, 20]))
    ages = data(pl.DataFrame({"age": [20, 21, 22, 40, 41, 42]}), age=age)
    labelled = ages.with_frame(run(Generalize(lowest={"age": 1}), ages, KAnonymity(k=3)).table.frame)
    labels = labelled.table.column("age").unique().to_list()
    assert len(labels) == 2
    with pytest.raises(WrongKind, match="`age` is declared integer but holds text") as refusal:
        run(Mondrian(cuts=cuts), labelled, KAnonymity(k=3))
    assert not any(label in str(refusal.value) for label in labels)
    assert "run mondrian before it" in refusal.value.fix


def test_mondrian_cuts_along_the_hierarchy() -> None:
    cities = data(
        pl.DataFrame({"city": ["Kiel", "Jena", "Ulm", "Bonn", "Bonn"]}), city=Column(role=Role.QUASI, hierarchy=CITY)
    )
    shown = run(Mondrian(), cities, KAnonymity(k=2)).table.frame["city"].to_list()
    assert shown == ["north", "north", "south", "south", "south"]
    assert run(Mondrian(cuts="relaxed"), cities, KAnonymity(k=2)).table.frame["city"].to_list() == shown


def test_strict_keeps_equal_values_together_and_relaxed_shares_them_out() -> None:
    ages = data(pl.DataFrame({"age": [20, 30, 30, 30, 30, 40]}))
    assert run(Mondrian(), ages, KAnonymity(k=3)).table.frame["age"].to_list() == ["20–40"] * 6
    relaxed = run(Mondrian(cuts="relaxed"), ages, KAnonymity(k=3)).table.frame["age"].value_counts().rows()
    assert sorted(relaxed) == [("20–30", 3), ("30–40", 3)]


def test_relaxed_puts_small_groups_together() -> None:
    towns = TaxonomyHierarchy.build({"tree": {"a": ["a1"], "b": ["b1"], "c": ["c1"], "d": ["d1"]}})
    table = data(
        pl.DataFrame({"town": ["a1"] * 4 + ["b1"] * 4 + ["c1", "d1"]}), town=Column(role=Role.QUASI, hierarchy=towns)
    )
    assert run(Mondrian(), table, KAnonymity(k=2)).table.frame["town"].to_list() == ["*"] * 10
    relaxed = run(Mondrian(cuts="relaxed"), table, KAnonymity(k=2)).table.frame["town"].to_list()
    assert relaxed == ["a1"] * 4 + ["b1"] * 4 + ["*"] * 2


def test_mondrian_shows_ranges_sets_and_means() -> None:
    frame = pl.DataFrame(
        {
            "age": [-3, 1, 2, 30, 31, 35],
            "weight": [1.5, 2.5, 3.5, 60.0, 61.0, 65.0],
            "born": [date(2001, 1, d) for d in (1, 2, 3)] + [date(1980, 5, d) for d in (1, 2, 6)],
            "kind": ["x", "x", "y", "z", "z", "z"],
        }
    )
    table, three = data(frame), KAnonymity(k=3)
    ranges = run(Mondrian(), table, three).table.frame
    assert ranges.row(0) == ("-3 to 2", "[1.5, 3.5]", "[2001-01-01, 2001-01-03]", "{x, y}")
    assert ranges.row(5) == ("30–35", "[60, 65]", "[1980-05-01, 1980-05-06]", "z")
    sets = run(Mondrian(values="set"), table, three).table.frame
    assert sets.row(0) == ("{-3, 1, 2}", "{1.5, 2.5, 3.5}", "{2001-01-01, 2001-01-02, 2001-01-03}", "{x, y}")
    change = run(Mondrian(values="mean"), table, three)
    means = change.table.frame
    assert means.row(5) == (32.0, 62.0, date(1980, 5, 3), "z")
    assert change.public["truthful"] is False
    assert means.schema["born"] == pl.Date


@pytest.mark.parametrize("values", ["range", "set"])
@pytest.mark.parametrize("cuts", ["strict", "relaxed"])
def test_what_mondrian_shows_still_fits_every_row(cuts: Any, values: Any) -> None:
    table = crowd()
    shown = run(Mondrian(cuts=cuts, values=values), table, KAnonymity(k=5)).table.frame
    for name in ("age", "height", "sex"):
        known, truth = Known(values=table.table.column(name)), table.table.column(name).cast(pl.String).to_list()
        for row, label in enumerate(shown[name].cast(pl.String).to_list()):
            read = reader(label)
            fits = read(known)[row] if read is not None else label == truth[row].removesuffix(".0")
            assert fits, f"{name}: the label of row {row} does not cover its value"


def test_empty_cells_form_boxes_of_their_own_or_make_a_box_vague() -> None:
    gaps = data(pl.DataFrame({"age": [20, 21, 22, None, None, None]}))
    assert run(Mondrian(), gaps, KAnonymity(k=3)).table.frame["age"].to_list() == ["20–22"] * 3 + [None] * 3
    assert run(Mondrian(), gaps, KAnonymity(k=4)).table.frame["age"].to_list() == ["*"] * 6
    assert run(Mondrian(values="set"), gaps, KAnonymity(k=4)).table.frame["age"].to_list() == ["*"] * 6


def test_a_column_of_weight_zero_is_never_cut() -> None:
    shown = run(Mondrian(weights={"age": 0}), crowd(), KAnonymity(k=5)).table.frame
    assert shown["age"].n_unique() > 1  # ranges are those of the rows in a box
    assert shown["height"].n_unique() > run(Mondrian(), crowd(), KAnonymity(k=5)).table.frame["height"].n_unique()


def test_values_that_cannot_be_written_in_a_set_are_not() -> None:
    odd = data(pl.DataFrame({"job": ["a, b", "c", "c", "a, b"]}))
    assert run(Mondrian(), odd, KAnonymity(k=4)).table.frame["job"].to_list() == ["*"] * 4


# --- all three ----------------------------------------------------------------------------------------------------

STEPS: list[Step] = [
    Mondrian(),
    Mondrian(cuts="relaxed", choose="widest"),
    Mondrian(choose="entropy", values="set"),
    LocalRecode(),
    SuppressCells(),
]
MODELS: list[tuple[PrivacyModel, ...]] = [
    (KAnonymity(k=7),),
    (KAnonymity(k=3), LDiversity(l=3, kind="distinct")),
    (LDiversity(l=2.5, kind="entropy"),),
    (TCloseness(t=0.25),),
    (AverageRisk(limit=0.03),),
]


@pytest.mark.parametrize("models", MODELS, ids=lambda models: "+".join(m.part_name() for m in models))
@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step.part_name()}-{len(str(step))}")
def test_every_model_holds_where_the_step_stops(step: Step, models: tuple[PrivacyModel, ...]) -> None:
    table = crowd()
    change = run(step, table, *models)
    assert change.table.rows == table.rows
    masked = Data(table=change.table, schema=table.schema)
    for model in models:
        assert model.check(masked).holds
    assert change.private["classes" if "classes" in change.private else "cells"] > 1
    assert change.table.frame["illness"].equals(table.table.frame["illness"])


@pytest.mark.parametrize("step", STEPS[2:], ids=lambda step: step.part_name())
def test_what_cannot_be_met_is_refused_with_what_can(step: Step) -> None:
    with pytest.raises(Unmet) as refusal:
        run(step, crowd(rows=20), KAnonymity(k=21))
    assert refusal.value.facts["closest"] == 20
    with pytest.raises(BadParameter, match="needs a privacy model"):
        run(step, crowd(rows=20))


@pytest.mark.parametrize("step", STEPS[2:], ids=lambda step: step.part_name())
def test_a_population_is_refused(step: Step, tmp_path: Path) -> None:
    crowd().table.frame.write_csv(tmp_path / "all.csv")
    with pytest.raises(NotApplicable, match="k-map"):
        run(step, crowd(), KMap(k=3, population=tmp_path / "all.csv"))


@pytest.mark.parametrize("step", [Mondrian(), LocalRecode()], ids=lambda step: step.part_name())
def test_wildcards_are_refused_where_classes_cannot_overlap(step: Step) -> None:
    gaps = data(pl.DataFrame({"age": [20, 21, None]}), age=Column(role=Role.QUASI, missing="wildcard"))
    with pytest.raises(NotApplicable, match="match every value"):
        run(step, gaps, KAnonymity(k=2))


def test_unknown_columns_are_refused() -> None:
    for step in (Mondrian(weights={"x": 1}), LocalRecode(weights={"x": 1}), SuppressCells(importance={"x": 1})):
        with pytest.raises(BadParameter, match="x"):
            run(step, crowd(), KAnonymity(k=2))


# --- local recoding -----------------------------------------------------------------------------------------------


def test_a_cluster_shows_its_lowest_common_groups() -> None:
    frame = pl.DataFrame({"city": ["Kiel", "Jena", "Ulm", "Ulm"], "age": [21, 23, 50, 50]})
    table = data(
        frame,
        city=Column(role=Role.QUASI, hierarchy=CITY),
        age=Column(role=Role.QUASI, hierarchy=IntervalsHierarchy.build([5, 20])),
    )
    change = run(LocalRecode(), table, KAnonymity(k=2))
    assert change.table.frame.rows() == [("north", "20–24"), ("north", "20–24"), ("Ulm", "50"), ("Ulm", "50")]
    assert change.private["suppressed"] == 0


def test_nothing_is_coarsened_that_need_not_be() -> None:
    table = data(pl.DataFrame({"age": [20, 20, 30, 30]}))
    change = run(LocalRecode(), table, KAnonymity(k=2))
    assert change.table.frame.equals(table.table.frame)
    assert change.private["granularity"] == 1


def test_large_classes_lend_rows_to_lonely_ones() -> None:
    frame = pl.DataFrame({"city": ["Kiel"] * 10 + ["Jena"]})
    change = run(LocalRecode(), data(frame, city=Column(role=Role.QUASI, hierarchy=CITY)), KAnonymity(k=3))
    assert sorted(change.table.frame["city"].value_counts().rows()) == [("Kiel", 8), ("north", 3)]


def test_weights_spare_a_column() -> None:
    table = crowd()

    def left(name: str, **weights: float) -> int:
        shown = run(LocalRecode(weights=weights), table, KAnonymity(k=5)).table.frame
        return int((shown[name].cast(pl.String) == table.table.column(name).cast(pl.String)).sum())

    assert left("age", age=20) > left("age")


def test_metrics_without_cell_prices_are_refused() -> None:
    with pytest.raises(NotApplicable, match="no cell losses"):
        run(LocalRecode(metric="discernibility"), crowd(), KAnonymity(k=2))


# --- cells --------------------------------------------------------------------------------------------------------

WILD = Column(role=Role.QUASI, missing="wildcard")


def test_sets_of_columns_come_cheapest_first() -> None:
    costs = np.array([3.0, 1.0, 2.0, 2.5])
    found = list(sets_by_cost(costs))
    assert len({chosen for _, chosen in found}) == 15
    assert [cost for cost, _ in found] == sorted(cost for cost, _ in found)
    assert all(np.isclose(cost, costs[list(chosen)].sum()) for cost, chosen in found)


def test_one_cell_is_enough_and_the_dear_column_is_spared() -> None:
    frame = pl.DataFrame({"a": [1, 1, 1, 2], "b": [1, 1, 1, 1], "c": [1, 1, 1, 2]})
    table = data(frame, a=WILD, b=WILD, c=WILD)
    change = run(SuppressCells(), table, KAnonymity(k=2))
    assert change.table.frame.row(3) == (None, 1, None)
    assert change.private["cells"] == 2
    assert change.private["optimal"] is True
    other = data(pl.DataFrame({"a": [1, 1, 1, 2, 2], "c": [1, 1, 1, 2, 1]}), a=WILD, c=WILD)
    assert run(SuppressCells(), other, KAnonymity(k=2)).private["cells_by_column"] == {"a": 1, "c": 1}
    dear = run(SuppressCells(importance={"a": 3.0}), other, KAnonymity(k=2))
    assert dear.private["cells_by_column"] == {"a": 0, "c": 2}


def test_a_row_does_not_count_on_cells_left_out_elsewhere() -> None:
    # if one row left everything out, the others would be "safe" by matching it: 2 cells instead of 4
    frame = pl.DataFrame({"a": [1, 2, 3, 4], "b": ["p", "p", "q", "q"]})
    change = run(SuppressCells(), data(frame, a=WILD, b=WILD), KAnonymity(k=2))
    assert change.table.frame["a"].null_count() == 4
    assert change.table.frame["b"].equals(frame["b"])


def test_rows_with_gaps_start_from_what_they_show() -> None:
    frame = pl.DataFrame({"a": [1, 1, None, 7], "b": [1, 1, 1, 1]})
    change = run(SuppressCells(), data(frame, a=WILD, b=WILD), KAnonymity(k=2))
    # the gap matches everything, so the last row has company already
    assert change.private["cells"] == 0
    assert change.table.frame.equals(frame)


def test_empty_cells_that_are_a_category_of_their_own_must_agree() -> None:
    frame = pl.DataFrame({"a": [1, 1, 1, 2, 3], "b": [1, 1, 1, 1, 1]})
    change = run(SuppressCells(), data(frame), KAnonymity(k=2))
    assert change.table.frame["a"].to_list() == [1, 1, 1, None, None]
    assert change.private["cells"] == 2


def test_types_stay_and_mixed_meanings_are_refused() -> None:
    frame = pl.DataFrame({"a": [date(2000, 1, 1)] * 2 + [date(2001, 1, 1)], "b": [1.5, 1.5, 1.5]})
    change = run(SuppressCells(), data(frame, a=WILD, b=WILD), KAnonymity(k=2))
    assert change.table.frame.schema == frame.schema
    with pytest.raises(NotApplicable, match="in some quasi-identifiers and not in others"):
        run(SuppressCells(), data(frame, a=WILD), KAnonymity(k=2))
    wild = dict.fromkeys(("age", "height", "city", "sex"), WILD)
    table = data(crowd().table.frame, **wild, illness=Column(role=Role.SENSITIVE))
    with pytest.raises(NotApplicable, match="supports only k-anonymity"):
        run(SuppressCells(), table, LDiversity(l=2, kind="distinct"))


@pytest.mark.parametrize("values", [["x"] * 6, [None] * 6])
def test_a_table_without_differences_stays_as_it_is(values: list[str | None]) -> None:
    frame = pl.DataFrame({"a": values, "b": [1] * 6}, schema_overrides={"a": pl.String})
    columns = {name: Column(role=Role.QUASI) for name in frame.columns}
    data = Data.of(Table(frame=frame), Schema(columns=columns))
    for step in (LocalRecode(), Mondrian(), SuppressCells(), Generalize()):
        change = step.apply(data, Context(rng=Rng(1), models=(KAnonymity(k=3),)))
        assert change.table.frame.equals(frame)
