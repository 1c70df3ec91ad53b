"""Masking methods on tables they do not expect: numbers beyond a float's digits, squares that overflow, odd names."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import BadParameter, SfumatoError, WrongKind
from sfumato.masking.base import Context
from sfumato.registry import registry
from sfumato.release import Change
from sfumato.rng import Rng


def masked(name: str, parameters: dict[str, Any], frame: pl.DataFrame, seed: int = 1) -> Change:
    schema = Schema(columns={column: Column(role=Role.QUASI) for column in frame.columns})
    step = registry("method").get(name).build(parameters)
    change = step.apply(Data.of(Table(frame=frame), schema), Context(rng=Rng(seed)))  # type: ignore[attr-defined]
    assert isinstance(change, Change)
    return change


BIG = [2**60 + 1, 2**60 + 3, 5, 10**18 + 7, -(2**62) - 1]


@pytest.mark.parametrize("variant", ["nearest", "random", "controlled"])
@pytest.mark.parametrize("base", [1, 10, 7])
def test_rounding_long_whole_numbers_is_exact(variant: str, base: int) -> None:
    found = masked("round", {"base": base, "variant": variant}, pl.DataFrame({"a": BIG})).table.frame["a"].to_list()
    reach = base / 2 if variant == "nearest" else base
    assert all(value % base == 0 for value in found)
    assert all(abs(value - old) <= reach for value, old in zip(found, BIG, strict=True))
    if variant == "controlled":
        assert abs(sum(found) - sum(BIG)) <= base / 2


def test_rounding_long_whole_numbers_keeps_gaps_and_agrees_with_short_ones() -> None:
    small = [None, 15, 25, -15, 4]
    short = masked("round", {"base": 10}, pl.DataFrame({"a": small})).table.frame["a"].to_list()
    long = masked("round", {"base": 10}, pl.DataFrame({"a": [*small, 2**60]})).table.frame["a"].to_list()
    assert long[:-1] == short == [None, 20, 20, -20, 0]


def test_rounding_out_of_range_is_refused_without_a_value() -> None:
    frame = pl.DataFrame({"a": pl.Series([2**64 - 1], dtype=pl.UInt64)})
    with pytest.raises(WrongKind) as refusal:
        masked("round", {"base": 10}, frame)
    assert "18446744" not in str(refusal.value)
    assert "1.8" not in str(refusal.value)
    with pytest.raises(WrongKind, match="base"):
        masked("round", {"base": 1e-3}, pl.DataFrame({"a": [1e308, 2.0]}))


@pytest.mark.parametrize("parameters", [{"top": 2**61}, {"bottom": -(2**63)}, {"top_percent": 20}])
def test_top_coding_leaves_long_whole_numbers_alone(parameters: dict[str, Any]) -> None:
    found = masked("top-bottom-code", parameters, pl.DataFrame({"a": BIG})).table.frame["a"]
    assert found.dtype == pl.Int64
    kept = [new == old for new, old in zip(found, BIG, strict=True)]
    assert sum(kept) >= 4
    assert "top_percent" in parameters or all(kept)


def test_thresholds_that_cross_are_refused() -> None:
    with pytest.raises(BadParameter, match="below"):
        registry("method").get("top-bottom-code").build({"top": 10, "bottom": 20})
    with pytest.raises(BadParameter, match="below"):
        registry("method").get("top-bottom-code").build({"top": {"a": 10}, "bottom": 20})
    with pytest.raises(BadParameter, match="below"):
        masked("top-bottom-code", {"top": 10, "bottom_percent": 50}, pl.DataFrame({"a": list(range(100))}))


@pytest.mark.parametrize(
    "variant", ["additive", "correlated", "robust", "corrected", "multiplicative", "outlier-aware"]
)
def test_noise_whose_variance_overflows_is_refused(variant: str) -> None:
    frame = pl.DataFrame({"x": [1e308, -1e308, 1e307, 5.0, 3.0, 1e200] * 3, "y": [1.0, 2, 3, 4, 5, 6] * 3})
    with pytest.raises(WrongKind, match="too large"):
        masked("noise", {"variance_ratio": 0.1, "variant": variant}, frame)


def test_synthesis_by_trees_takes_large_numbers() -> None:
    frame = pl.DataFrame({"x": [1e308, -1e308, 1e307, 5.0, 3.0, 1e200] * 5, "y": list(range(30))})
    made = masked("synthesize", {}, frame).table.frame
    assert made.height == 30
    assert set(made["x"]) <= set(frame["x"])


@pytest.mark.parametrize("name", ["row #", "value", "len", "gone", "by 0"])
def test_strata_may_have_any_name(name: str) -> None:
    frame = pl.DataFrame(
        {
            name: ["a", "b"] * 20 + ["a"] * 3,
            "cat": ["u", "v", "v", "u"] * 10 + ["u", "v", "w"],
            "num": np.arange(43.0),
            "home": np.arange(43) // 2,
            "day": [date(2020, 1, 1)] * 43,
        }
    )
    methods: dict[str, dict[str, Any]] = {
        "merge-rare": {"min_count": 2, "columns": ["cat"]},
        "swap": {"rate": 0.5, "columns": ["cat"], "household": "home"},
        "rank-swap": {"p": 20, "columns": ["num"]},
        "microaggregate": {"k": 3, "columns": ["num", "cat"]},
        "pram": {"keep": 0.5, "columns": ["cat"]},
        "shuffle": {"columns": ["num"], "given": []},
        "noise": {"variance_ratio": 0.1, "columns": ["num"]},
    }
    for method, parameters in methods.items():
        found = masked(method, {**parameters, "strata": [name]}, frame).table.frame
        assert found.columns == frame.columns, method
        assert found[name].equals(frame[name]), method
    shifted = masked("shift-dates", {"days": 5, "person": name, "columns": ["day"]}, frame).table.frame
    assert shifted.group_by(name).agg(pl.col("day").n_unique())["day"].to_list() == [1, 1]


def test_rare_categories_are_merged_within_a_stratum_of_any_name() -> None:
    frame = pl.DataFrame({"value": ["p"] * 5 + ["q"] * 5, "cat": ["a", "a", "a", "b", "b", "a", "a", "a", "a", "b"]})
    found = masked("merge-rare", {"min_count": 2, "columns": ["cat"], "strata": ["value"]}, frame).table.frame["cat"]
    assert found.to_list() == ["a", "a", "a", "b", "b", "other", "other", "other", "other", "other"]


@pytest.mark.parametrize("day", [date(9999, 12, 31), date(1, 1, 1)])
def test_dates_that_stand_for_no_date_are_not_shifted(day: date) -> None:
    # 9999-12-31 moved by the person's shift tells the shift, and with it every other date of that person.
    frame = pl.DataFrame({"came": [date(2020, 5, 1), date(2021, 5, 1)], "went": [date(2020, 5, 3), day]})
    with pytest.raises(SfumatoError, match="`went`") as refusal:
        masked("shift-dates", {"days": 30}, frame)
    assert "12-31" not in str(refusal.value)
    assert "0001" not in str(refusal.value)


def test_a_table_of_identifiers_has_nothing_to_synthesize() -> None:
    schema = Schema(columns={"name": Column(role=Role.IDENTIFIER)})
    data = Data.of(Table(frame=pl.DataFrame({"name": [f"p{row}" for row in range(40)]})), schema)
    with pytest.raises(BadParameter, match="every column"):
        registry("method").get("synthesize").build({}).apply(data, Context(rng=Rng(1)))  # type: ignore[attr-defined]


@pytest.mark.parametrize("top", [2**64 - 1, 2**63 - 1, 7])
def test_counterfeits_get_household_numbers_of_any_length(top: int) -> None:
    frame = pl.DataFrame({"home": pl.Series([1, top], dtype=pl.UInt64), "age": [30, 40]})
    schema = Schema(columns={"home": Column(role=Role.HOUSEHOLD), "age": Column(role=Role.QUASI)})
    step = registry("method").get("add-counterfeits").build({"fraction": 5})
    made = step.apply(Data.of(Table(frame=frame), schema), Context(rng=Rng(1))).table.frame  # type: ignore[attr-defined]
    assert made.height == 12
    assert made["home"].null_count() == 0
    assert made["home"].max() <= top
