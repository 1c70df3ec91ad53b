"""Masking methods refuse what they cannot do, in words, and document what they do at the edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import BadParameter, ColumnsDiffer, SfumatoError, SingularData, TooFewRows, UnknownColumn, WrongKind
from sfumato.masking.base import Context, Step
from sfumato.masking.methods._pram_matrix import TransitionMatrix
from sfumato.registry import registry
from sfumato.release import Change
from sfumato.rng import Rng


def data(**values: Any) -> Data:
    schema = Schema(columns={name: Column(role=Role.QUASI) for name in values})
    return Data.of(Table(frame=pl.DataFrame(values)), schema)


def run(name: str, parameters: Any, table: Data) -> Change:
    step = registry("method").get(name).build(parameters)
    assert isinstance(step, Step)
    return step.apply(table, Context(rng=Rng(1)))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("rank-swap", {"p": 0}),
        ("rank-swap", {"p": 100.5}),
        ("rank-swap", {"p": -1}),
        ("rank-swap", {"p": float("nan")}),
        ("rank-swap", {"p": 5, "window": 3}),
        ("microaggregate", {"k": 1}),
        ("microaggregate", {}),
        ("microaggregate", {"k": 3, "groups": [{"columns": ["a"], "k": 3}]}),
        ("microaggregate", {"groups": [{"columns": ["a"], "k": 3}, {"columns": ["a"], "k": 3}]}),
        ("noise", {"variance_ratio": 0}),
        ("noise", {"variance_ratio": float("inf")}),
        ("pram", {}),
        ("pram", {"keep": 1.2}),
        ("pram", {"matrix": {"a": {"x": {"x": 0.7, "y": 0.2}, "y": {"y": 1.0}}}}),
        ("pram", {"matrix": {"a": {"x": {"x": 0.5, "z": 0.5}}}}),
        ("pram", {"matrix": {"a": {"x": {"x": float("nan"), "y": 0.1}, "y": {"y": 1.0}}}}),
        ("pram", {"keep": 0.5, "joint": True, "groups": {"a": [["x"]]}}),
        ("swap", {"rate": 0}),
        ("top-bottom-code", {}),
        ("top-bottom-code", {"top": 5, "top_percent": 5}),
        ("top-bottom-code", {"top_percent": 60, "bottom_percent": 60}),
        ("round", {"base": 0}),
        ("round", {"base": float("inf")}),
        ("mondrian", {"weights": {"a": float("inf")}}),
        ("local-recode", {"weights": {"a": float("inf")}}),
        ("suppress-cells", {"importance": {"a": float("inf")}}),
        ("categorize", {"breaks": [3, 1]}),
        ("categorize", {"breaks": [1], "bins": 3}),
        ("sample", {"fraction": 0}),
        ("merge-rare", {"min_count": 1}),
        ("shift-dates", {"days": 0}),
        ("add-counterfeits", {"fraction": 0}),
    ],
)
def test_parameters_out_of_range_are_refused_when_written(name: str, parameters: Any) -> None:
    with pytest.raises(BadParameter, match=name):
        registry("method").get(name).build(parameters)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("rank-swap", {"p": 10}),
        ("microaggregate", {"k": 2}),
        ("noise", {"variance_ratio": 0.1}),
        ("shuffle", {"columns": ["x"]}),
        ("round", {"base": 1}),
        ("top-bottom-code", {"top": 1}),
        ("categorize", {"bins": 2}),
        ("synthesize", {}),
    ],
)
def test_not_a_number_and_infinity_are_refused_by_count(name: str, parameters: Any, value: float) -> None:
    values = [1.0, 2.0, value, *np.arange(30.0)]
    opened = data(x=values)
    assert opened.table.frame["x"].null_count() == int(np.isnan(value))  # NaN is missing wherever a table is opened
    with pytest.raises(WrongKind, match="1 values that are NaN or infinite"):
        run(name, parameters, opened.with_frame(pl.DataFrame({"x": values})))


@pytest.mark.parametrize(("name", "parameters"), [("rank-swap", {"p": 5}), ("noise", {"variance_ratio": 0.1})])
def test_columns_that_do_not_fit_are_refused(name: str, parameters: dict[str, Any]) -> None:
    table = data(x=[1, 2, 3], t=["a", "b", "c"])
    with pytest.raises(UnknownColumn, match="`y`"):
        run(name, {**parameters, "columns": ["y"]}, table)
    with pytest.raises(WrongKind, match="`t` is category"):
        run(name, {**parameters, "columns": ["t"]}, table)
    with pytest.raises(BadParameter, match="twice"):
        run(name, {**parameters, "columns": ["x", "x"]}, table)
    with pytest.raises(BadParameter, match="stratum"):
        run(name, {**parameters, "columns": ["x"], "strata": ["x"]}, table)
    with pytest.raises(BadParameter, match="no quasi-identifier or sensitive column"):
        run(name, parameters, data(t=["a", "b"]))


def test_fewer_rows_than_k() -> None:
    with pytest.raises(TooFewRows, match="fewer than k = 5"):
        run("microaggregate", {"k": 5}, data(x=[1, 2, 3]))
    with pytest.raises(TooFewRows, match="a stratum"):
        run("microaggregate", {"k": 2, "columns": ["x"], "strata": ["s"]}, data(x=[1, 2, 3], s=["a", "a", "b"]))


def test_whole_window_and_constant_column() -> None:
    order = np.arange(101)
    after = run("rank-swap", 100, data(x=order)).table.frame["x"]
    assert sorted(after) == order.tolist()
    assert run("rank-swap", 5, data(x=[7] * 20)).table.frame["x"].to_list() == [7] * 20
    assert run("noise", 0.5, data(x=[7.0] * 20)).table.frame["x"].to_list() == [7.0] * 20
    assert run("microaggregate", 3, data(x=[7.0] * 20)).table.frame["x"].to_list() == [7.0] * 20


@pytest.mark.parametrize("variant", ["correlated", "corrected", "orthogonal", "robust", "outlier-aware"])
def test_collinear_columns_stay_collinear(variant: str) -> None:
    draw = np.random.default_rng(0).normal(size=(300, 2))
    table = data(a=draw[:, 0], b=draw[:, 1], c=draw[:, 0] - draw[:, 1])
    after = run("noise", {"variance_ratio": 0.2, "variant": variant}, table).table.frame
    assert np.allclose(after["a"] - after["b"], after["c"], atol=1e-8)
    assert not np.allclose(after["a"], draw[:, 0])


def test_robust_noise_on_one_dominant_value_is_refused() -> None:
    draw = np.random.default_rng(0).normal(size=100)
    with pytest.raises(SingularData):
        run(
            "noise",
            {"variance_ratio": 0.2, "variant": "robust"},
            data(a=np.where(np.arange(100) < 90, 0.0, draw), b=np.where(np.arange(100) < 90, 1.0, draw**2)),
        )


def test_too_few_rows_for_a_covariance() -> None:
    for variant in ("additive", "correlated", "orthogonal"):
        with pytest.raises(TooFewRows):
            run("noise", {"variance_ratio": 0.2, "variant": variant}, data(x=[1.0]))


def test_transition_matrices_are_checked() -> None:
    with pytest.raises(BadParameter, match="do not sum to 1"):
        TransitionMatrix(categories=("a", "b"), probabilities=np.array([[0.5, 0.4], [0.0, 1.0]]))
    with pytest.raises(BadParameter, match="2 × 2"):
        TransitionMatrix(categories=("a", "b"), probabilities=np.eye(3))
    with pytest.raises(BadParameter, match="probabilities"):
        TransitionMatrix(categories=("a", "b"), probabilities=np.array([[1.5, -0.5], [0.0, 1.0]]))
    with pytest.raises(SingularData):
        TransitionMatrix.generated(["a", "b"], keep=0.5).estimate(pl.Series(["a", "b"]))
    with pytest.raises(ColumnsDiffer, match="1 values"):
        TransitionMatrix.generated(["a", "b"], keep=0.9).estimate(pl.Series(["a", "c"]))
    with pytest.raises(BadParameter, match="1 categories of `x`"):
        run("pram", {"matrix": {"x": {"a": {"a": 1.0}}}}, data(x=["a", "b"]))


def test_no_message_shows_a_value() -> None:
    secret = "Zaphod"
    with pytest.raises(SfumatoError) as caught:
        run("pram", {"matrix": {"x": {"a": {"a": 1.0}}}}, data(x=["a", secret]))
    assert secret not in str(caught.value)


def test_too_many_categories_for_distances_are_refused_before_memory_is_taken() -> None:
    with pytest.raises(BadParameter, match="5000 coordinates"):
        run("microaggregate", {"k": 3}, data(x=[f"code {number}" for number in range(5000)]))
