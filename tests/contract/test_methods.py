"""What every masking method must do, whoever wrote it: one list of checks over the registry."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from masking_table import OUTSIDE, constant, dataset, frame, hollow

from sfumato.errors import SfumatoError
from sfumato.masking.base import Context, Step, UnknownStep, method_of
from sfumato.masking.methods._masking import Masking
from sfumato.registry import registry
from sfumato.release import Change
from sfumato.rng import Rng
from sfumato.schema import Dataset

CASES = [
    pytest.param(kind, parameters, id=f"{kind.part_name()}-{number}")
    for kind in registry("method")
    for number, parameters in enumerate(kind.examples)
]
every = pytest.mark.parametrize(("kind", "parameters"), CASES)
in_place = pytest.mark.parametrize(
    ("kind", "parameters"), [case for case in CASES if issubclass(case.values[0], Masking)]
)
"""Methods that change values and keep every row where it is."""
stratified = pytest.mark.parametrize(
    ("kind", "parameters"), [case for case in CASES if "strata" in case.values[0].model_fields]
)


class SpiedRng(Rng):
    """Knows whether anybody drew from it or from a child of it."""

    __slots__ = ("_stream", "used")

    def __init__(self, seed: int) -> None:
        self.used = False
        super().__init__(seed)
        self.used = False

    @property
    def generator(self) -> np.random.Generator:  # type: ignore[override]
        self.used = True
        return self._stream

    @generator.setter
    def generator(self, stream: np.random.Generator) -> None:
        self._stream = stream

    def child(self, *names: object) -> Rng:
        self.used = True
        return super().child(*names)


def models() -> tuple[Any, ...]:
    known = registry("model")
    return (known.get("k-anonymity").build({"k": 3}),) if "k-anonymity" in known else ()


def run(step: Step, data: Dataset, rng: Rng | None = None) -> Change:
    return step.apply(data, Context(rng=rng or Rng(7), models=models()))


def run_or_refusal(step: Step, data: Dataset) -> tuple[Change | None, str]:
    """What the step made, or the words in which it was refused. Any other exception is a fault."""
    try:
        return run(step, data), ""
    except SfumatoError as refusal:
        return None, str(refusal)


def skip_if_exempt(kind: type[Step], check: str) -> None:
    if check in kind.exempt:
        pytest.skip(f"declared: {kind.exempt[check]}")


@every
def test_input_is_left_as_it_is(kind: type[Step], parameters: dict[str, Any]) -> None:
    data = dataset()
    before = data.table.frame.clone()
    run(kind.build(parameters), data)
    assert data.table.frame.equals(before)
    assert data.table.frame.schema == before.schema


@every
def test_repeatable_by_seed_and_random_only_by_its_stream(kind: type[Step], parameters: dict[str, Any]) -> None:
    skip_if_exempt(kind, "repeatable by seed")
    step, data = kind.build(parameters), dataset()
    spy = SpiedRng(7)
    first = run(step, data, spy)
    assert run(step, data).table.frame.equals(first.table.frame)
    others = [run(step, data, Rng(seed)).table.frame for seed in (8, 9, 10)]
    if spy.used:
        skip_if_exempt(kind, "differs by seed")
        assert not all(other.equals(first.table.frame) for other in others)
    else:
        assert all(other.equals(first.table.frame) for other in others)


@every
def test_row_map_is_valid(kind: type[Step], parameters: dict[str, Any]) -> None:
    data = dataset()
    change = run(kind.build(parameters), data)
    if change.rows is None:
        assert change.table.rows == data.rows
        return
    assert len(change.rows) == change.table.rows
    assert change.rows.min(initial=0) >= -1
    assert change.rows.max(initial=-1) < data.rows
    known = change.rows[change.rows >= 0]
    assert len(np.unique(known)) == len(known)


def leaves(node: Any) -> list[Any]:
    if isinstance(node, dict):
        return [leaf for key, value in node.items() for leaf in [key, *leaves(value)]]
    if isinstance(node, list | tuple):
        return [leaf for value in node for leaf in leaves(value)]
    return [node]


@every
def test_public_account_is_plain_and_holds_no_data(kind: type[Step], parameters: dict[str, Any]) -> None:
    data = dataset()
    step = kind.build(parameters)
    public = run(step, data).public
    said = json.loads(json.dumps(public, allow_nan=False))
    skip_if_exempt(kind, "no data value in public")
    told = {*leaves(said)} - {*data.table.columns} - {*map(str, leaves(step.to_dict()))}
    for series in data.table.frame:
        if series.dtype == pl.String or (series.dtype.is_float() and series.name != "weight"):
            values = {*series.drop_nulls().to_list()}
        else:
            values = {*series.cast(pl.String).drop_nulls().to_list()} if series.dtype.is_temporal() else set()
        assert not values & told, f"the public account shows values of {series.name}"


@every
def test_other_columns_stay_identical(kind: type[Step], parameters: dict[str, Any]) -> None:
    data = dataset()
    step = kind.build(parameters)
    change = run(step, data)
    declared = {str(leaf) for leaf in leaves(json.loads(json.dumps(change.public)))}
    rows = np.arange(data.rows) if change.rows is None else change.rows
    kept = np.flatnonzero(rows >= 0)
    if kept.size == 0:
        assert change.rows is not None
        return
    for name in OUTSIDE:
        if name not in declared and name in change.table.columns:
            before = data.table.column(name).gather(rows[kept])
            assert change.table.column(name).gather(kept).equals(before), name


@in_place
def test_missing_stays_missing(kind: type[Step], parameters: dict[str, Any]) -> None:
    skip_if_exempt(kind, "missing stays missing")
    data = dataset()
    change = run(kind.build(parameters), data)
    rows = np.arange(data.rows) if change.rows is None else change.rows
    kept = np.flatnonzero(rows >= 0)
    for name in ("income", "region"):
        gaps = data.table.column(name).is_null().gather(rows[kept])
        assert change.table.column(name).gather(kept).filter(gaps).is_null().all(), name


@every
@pytest.mark.parametrize("edge", ["one row", "constant", "hollow"])
def test_edges_work_or_are_refused(kind: type[Step], parameters: dict[str, Any], edge: str) -> None:
    data = {"one row": lambda: dataset(frame(1)), "constant": constant, "hollow": hollow}[edge]()
    before = data.table.frame.clone()
    change, refusal = run_or_refusal(kind.build(parameters), data)
    if change is None:
        assert refusal
        assert not any(str(value) in refusal for value in data.table.frame["name"])
    else:
        assert change.table.rows == (data.rows if change.rows is None else len(change.rows))
    assert data.table.frame.equals(before)


@stratified
def test_strata_are_masked_by_themselves(kind: type[Step], parameters: dict[str, Any]) -> None:
    """Where a method has strata, what stands in one stratum does not depend on what stands in the other."""
    skip_if_exempt(kind, "strata")
    step = kind.build({**parameters, "strata": ["stratum"]})
    data = dataset()
    change, refusal = run_or_refusal(step, data)
    if change is None:
        assert "strat" in refusal or "rows" in refusal
        return
    numbers = ("age", "height", "income", "rent")
    urban = pl.col("stratum") == "urban"
    other = data.table.frame.with_columns(
        pl.when(urban).then(pl.col(name)).otherwise(pl.col(name) * 2).alias(name) for name in numbers
    )
    again = run(step, dataset(other))
    assert change.table.frame.filter(urban).equals(again.table.frame.filter(urban))


@every
def test_what_a_method_says_of_itself_is_so(kind: type[Step], parameters: dict[str, Any]) -> None:
    data = dataset()
    step = kind.build(parameters)
    change = run(step, data)
    rows = np.arange(data.rows) if change.rows is None else change.rows
    kept = np.flatnonzero(rows >= 0)
    assert kind.adds_rows is bool(0 < len(kept) < len(rows))
    truthful = change.public.get("truthful", kind.truthful)
    assert not (truthful and kind.simulable), "true values are read, not simulated"
    for name in data.quasi if len(kept) else ():
        if name not in change.table.columns:
            continue
        before, after = data.table.column(name).gather(rows[kept]), change.table.column(name).gather(kept)
        if kind.leaves_values:
            assert after.equals(before), name
        if truthful and after.dtype == before.dtype:
            same = (after == before).fill_null(True) | after.is_null() | before.is_null()
            text = after.dtype == pl.String
            assert text or same.all(), f"{name} was altered"


@every
def test_a_simulable_method_can_be_rerun_from_what_it_publishes(kind: type[Step], parameters: dict[str, Any]) -> None:
    if not kind.simulable:
        pytest.skip("not simulable")
    step = kind.build(parameters)
    again = kind.build(step.public())
    assert run(again, dataset()).table.frame.equals(run(step, dataset()).table.frame)


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.part_name()) for kind in registry("method")])
def test_every_question_about_a_method_has_an_answer(kind: type[Step]) -> None:
    declared = {name for base in kind.__mro__ if base is not Step and issubclass(base, Step) for name in vars(base)}
    assert "simulable" in declared
    assert set(kind.stronger) <= set(kind.model_fields) | {
        field for example in kind.examples for group in example.get("groups", ()) for field in group
    }
    assert set(kind.stronger.values()) <= {"more", "less"}
    assert kind.pooled_label({}) is None or kind.truthful
    assert kind.joint_columns({}) == ()


def test_a_method_that_is_not_installed_is_the_worst_case() -> None:
    unknown = method_of({"step": "of-another-package"})
    assert unknown is UnknownStep
    assert not any((unknown.truthful, unknown.simulable, unknown.coarsens, unknown.leaves_values))
