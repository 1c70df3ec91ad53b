"""Contract of a privacy model: its verdicts, its declared monotonicity, and an independent check that agrees."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import isclose
from typing import Any

import numpy as np
import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.evaluation.counts import count_classes
from sfumato.evaluation.rules import verify
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses, compress
from sfumato.masking.model import ModelRule, Monotonicity, PrivacyModel
from sfumato.release import State
from sfumato.testing.parts import check_part

_SAMPLES = ((1, 2), (2, 6), (3, 30), (4, 1), (0, 6), (5, 5000))
"""Seed and number of ZIP codes of each random table, from few large to many small equivalence classes."""
_TAXONOMY = {"table": {"rows": [["1", "low", "*"], ["2", "low", "*"], ["3", "high", "*"], ["4", "high", "*"]]}}


def _on_classes(check: Callable[[PrivacyModel], None]) -> Callable[[PrivacyModel], None]:
    """A check for models that are conditions on equivalence classes; others have nothing to keep."""

    @wraps(check)
    def checked(model: PrivacyModel) -> None:
        if model.on_classes:
            check(model)

    return checked


def check_model(model: PrivacyModel, data: Data | None = None) -> None:
    """Raise AssertionError unless ``model`` keeps the contract of a privacy model.

    The model states its promise, what it protects and which parameters strengthen it. On every table the independent
    check gives the same verdict as the model. Merging and dropping equivalence classes respects what the rule declares.
    Without ``data`` (quasi-identifiers and one sensitive column), small random tables are used; a model with a
    population needs one that contains :func:`model_samples`.
    """
    check_part(model)
    if data is not None:
        declarations_are_complete(model)
        _independent_check_agrees(model, data)
        return
    for check in MODEL_CHECKS:
        check(model)


def model_sample(seed: int = 1, *, rows: int = 200, distinct: int = 6) -> Data:
    """A random table of two quasi-identifiers and a sensitive column with a hierarchy."""
    draw = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "zip": [f"{value}" for value in draw.integers(0, distinct, rows)],
            "sex": draw.choice(["F", "M"], rows),
            "grade": draw.choice([1, 2, 3, 4], rows, p=[0.4, 0.3, 0.2, 0.1]),
        }
    )
    grade = Column.model_validate({"role": "sensitive", "hierarchy": _TAXONOMY})
    columns = {"zip": Column(role=Role.QUASI), "sex": Column(role=Role.QUASI), "grade": grade}
    return Data.of(Table(frame=frame), Schema(columns=columns))


def model_samples() -> tuple[Data, ...]:
    """The tables on which :func:`check_model` tries a model."""
    return tuple(model_sample(seed, distinct=distinct) for seed, distinct in _SAMPLES)


def _bind(model: PrivacyModel, data: Data) -> tuple[EquivalenceClasses, ModelRule]:
    table = compress(data, population=model.population_frame(data))
    return table, model.bind(table)


def _random_classes(
    table: EquivalenceClasses, count: int, largest: int, mixed: float, beyond: int, seed: int
) -> ClassGroups:
    """Random equivalence classes; the sensitive values of a class are purer for a smaller ``mixed``."""
    draw = np.random.default_rng(seed)
    shares = draw.dirichlet(np.full(4, mixed), count)
    sizes = draw.integers(1, largest, count)
    matrix = np.stack([draw.multinomial(size, share) for size, share in zip(sizes, shares, strict=True)])
    people = sizes + draw.integers(0, beyond, count)
    return ClassGroups(
        sizes=sizes,
        histograms=dict.fromkeys(table.tracked, matrix.astype(np.int64)),
        population=people if table.population is not None else None,
    )


def _merge(*groups: ClassGroups) -> ClassGroups:
    """Class by class, the union of several equivalence classes."""
    people = None if any(group.population is None for group in groups) else _sum([g.population for g in groups])
    names = groups[0].histograms
    histograms = {name: _sum([group.histograms[name] for group in groups]) for name in names}
    return ClassGroups(sizes=_sum([group.sizes for group in groups]), histograms=histograms, population=people)


def _sum(arrays: list[Any]) -> Any:
    return np.sum(np.stack(arrays), axis=0)


def _passes(rule: ModelRule, groups: ClassGroups) -> Any:
    return rule.passes(groups) & (groups.sizes >= rule.min_class_size)


def declarations_are_complete(model: PrivacyModel) -> None:
    kind = type(model)
    fields = {*kind.model_fields}
    assert kind.promise, "`promise` is empty"
    assert kind.promise != kind.promise.format(known="", worst=""), "`promise` has no {known} or {worst}"
    assert kind.protects or not kind.on_classes, "`protects` is empty"
    assert kind.stronger or not kind.on_classes, "`stronger` names no parameter"
    assert set(kind.stronger) <= fields, "`stronger` names something that is not a parameter"
    assert kind.size_parameter is None or kind.size_parameter in fields, "`size_parameter` is not a parameter"
    assert kind.independent_check is not PrivacyModel.independent_check, "`independent_check` is missing"


def one_verdict_for_every_table(model: PrivacyModel) -> None:
    for seed in range(5):
        verdict = model.check(model_sample(seed))
        assert verdict.model == model.part_name(), "the verdict names another model"
        assert verdict.state in (State.HOLDS, State.FAILS), "a table is not checked"
        assert verdict.worst is not None, "the verdict has no worst value"
        assert (verdict.failing == 0) is verdict.holds, "rows fail and the model holds, or the other way round"
        assert bool(verdict.reason) is not verdict.holds, "a failing verdict needs a reason, a holding one none"


@_on_classes
def without_quasi_identifiers_nothing_is_checked(model: PrivacyModel) -> None:
    data = model_sample()
    bare = Data(table=data.table, schema=Schema(columns={"grade": data.schema.columns["grade"]}))
    verdict = model.check(bare)
    assert verdict.state is State.NOT_CHECKED, "a table without quasi-identifiers has a verdict"
    assert verdict.reason, "a verdict of `not checked` gives no reason"


@_on_classes
def monotone_as_declared(model: PrivacyModel) -> None:
    """Random classes, some pure and some mixed, merged in pairs."""
    table, rule = _bind(model, model_sample())
    groups = _random_classes(table, 300, largest=12, mixed=0.4, beyond=6, seed=5)
    passed = _passes(rule, groups)
    left, right = np.random.default_rng(6).integers(0, len(groups), (2, 5000))
    merged = _passes(rule, _merge(groups.take(left), groups.take(right)))
    if rule.monotonicity is Monotonicity.ANY:
        assert merged[passed[left] | passed[right]].all(), "merging a passing class with another made it fail"
    if rule.monotonicity is Monotonicity.PASSING:
        assert merged[passed[left] & passed[right]].all(), "merging two passing classes made them fail"
    assert rule.about_table or passed.any() or not rule.columns, "no random class passes"


@_on_classes
def rows_that_are_due_are_suppressed_by_every_split(model: PrivacyModel) -> None:
    """Unions of four random classes: at least the rows that are due belong to classes that fail."""
    table, rule = _bind(model, model_sample())
    parts = _random_classes(table, 4000, largest=40, mixed=2.0, beyond=30, seed=8)
    suppressed = np.where(_passes(rule, parts), 0, parts.sizes).reshape(-1, 4).sum(axis=1)
    whole = _merge(*(parts.take(slice(start, None, 4)) for start in range(4)))
    passed = rule.passes(whole)
    due = rule.min_suppressed_rows(whole, passed)
    assert (due[passed] == 0).all(), "rows of a passing class are due"
    assert (due <= suppressed).all(), "more rows are due than a finer table suppresses"
    if rule.monotonicity is not Monotonicity.NONE:
        assert (due[~passed] >= 1).all(), "no row of a failing class is due"


@_on_classes
def classes_below_the_least_size_fail(model: PrivacyModel) -> None:
    _, rule = _bind(model, model_sample())
    size = rule.min_class_size - 1
    if size:
        matrix = np.full((1, 4), size // 4)
        matrix[0, 0] += size - matrix.sum()
        small = ClassGroups(sizes=np.array([size]), histograms=dict.fromkeys(rule.columns, matrix))
        assert not _passes(rule, small)[0], "a class of fewer than `least` rows passes"


def independent_check_agrees(model: PrivacyModel) -> None:
    states = {_independent_check_agrees(model, data) for data in model_samples()}
    assert states == {State.HOLDS, State.FAILS}, "the parameters do not try both verdicts"


def _independent_check_agrees(model: PrivacyModel, data: Data) -> State:
    verdict = model.check(data)
    if verdict.state is State.NOT_CHECKED:
        assert verdict.reason, "a verdict of `not checked` gives no reason"
        return verdict.state
    hierarchies = {n: data.bound_hierarchy(n) for n in data.sensitive if data.schema.column(n).hierarchy is not None}
    counts = count_classes(
        data,
        quasi=data.quasi,
        sensitive=data.sensitive,
        missing={name: data.schema.column(name).missing for name in data.quasi},
        population=model.population_frame(data),
        paths={name: {row[0]: tuple(row) for row in bound.rows()} for name, bound in hierarchies.items()},
    )
    assert not {*model.public()} & {*model.unpublished}, "a parameter in `unpublished` is published"
    if model.unpublished:
        [blind] = verify([{model.part_name(): model.public()}], counts, lookup=lambda name: type(model))
        assert blind.state is State.NOT_CHECKED, "a verdict rests on parameters that are not published"
    for parameters in (model.to_dict(), *(() if model.unpublished else (model.public(),))):
        [second] = verify([{model.part_name(): parameters}], counts, lookup=lambda name: type(model))
        assert second.state is not State.NOT_CHECKED, f"the independent check says: {second.reason}"
        assert second.state is verdict.state, "the independent check and the model disagree"
        assert second.failing == verdict.failing, "the independent check counts other failing rows"
        assert second.worst is not None, "the independent check has no worst value"
        assert verdict.worst is not None, "the verdict has no worst value"
        assert isclose(second.worst, verdict.worst, rel_tol=1e-6, abs_tol=1e-12), "the worst values differ"
    return verdict.state


def unreadable_parameters_are_not_checked(model: PrivacyModel) -> None:
    """A manifest of somebody else may hold anything; nothing of it may be taken for a model that holds."""
    counts = count_classes(model_sample(), quasi=("zip", "sex"), sensitive=("grade",))
    published: tuple[object, ...] = ({}, None, {"unheard-of": 1})
    for parameters in published:
        [verdict] = verify([{model.part_name(): parameters}], counts, lookup=lambda name: type(model))
        assert verdict.state is State.NOT_CHECKED, f"parameters {parameters} are checked"
        assert verdict.reason, "a verdict of `not checked` gives no reason"


@_on_classes
def size_parameter_is_the_least_size(model: PrivacyModel) -> None:
    if model.size_parameter is not None:
        _, rule = _bind(model, model_sample())
        assert rule.min_class_size >= getattr(model, model.size_parameter) >= 2, (
            "`size_parameter` is not the least size"
        )


@_on_classes
def dropping_a_class_hurts_no_other(model: PrivacyModel) -> None:
    """Where a rule is ``monotone_under_suppression``, its judgement of the other classes survives a loss."""
    table, rule = _bind(model, model_sample())
    groups = table.groups(columns=rule.columns)
    groups = groups.take(groups.sizes > 0)
    passed = rule.passes(groups)
    for dropped in range(len(groups)):
        rest = np.arange(len(groups)) != dropped
        assert (rule.passes(groups.take(rest)) == passed[rest]).all(), "dropping a class changes another"
        if rule.monotone_under_suppression and rule.table_holds(groups):
            assert rule.table_holds(groups.take(rest)), (
                "`monotone_under_suppression` is wrong: dropping a class makes the table fail"
            )
    assert rule.monotone_under_suppression is not rule.about_table, (
        "a rule about the whole table is not monotone under suppression, and every other is"
    )


@_on_classes
def sizes_are_enough_where_declared(model: PrivacyModel) -> None:
    """Searches count rows alone where ``sizes_only``, and drop classes smaller than ``least`` before other tests."""
    table, rule = _bind(model, model_sample())
    sizes = np.arange(1, 40)
    spread = sizes[:, None] // 4 + (sizes[:, None] % 4 > np.arange(4))
    people = sizes + 1 if table.population is not None else None
    groups = ClassGroups(sizes=sizes, histograms=dict.fromkeys(table.tracked, spread), population=people)
    if rule.sizes_only:
        assert (rule.passes(groups) == (sizes >= rule.min_class_size)).all(), "`sizes_only` is wrong"
    assert rule.min_class_size >= 1, "`min_class_size` is below 1"


MODEL_CHECKS = (
    declarations_are_complete,
    one_verdict_for_every_table,
    without_quasi_identifiers_nothing_is_checked,
    monotone_as_declared,
    rows_that_are_due_are_suppressed_by_every_split,
    classes_below_the_least_size_fail,
    independent_check_agrees,
    unreadable_parameters_are_not_checked,
    size_parameter_is_the_least_size,
    dropping_a_class_hurts_no_other,
    sizes_are_enough_where_declared,
)
