"""The contract of a privacy model, as a check that anyone can run on their own."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.data.table import Table
from sfumato.masking.equivalence_classes import ClassGroups, compress
from sfumato.masking.model import Monotonicity, PrivacyModel
from sfumato.release import State
from sfumato.schema import Column, Dataset, Role, Schema
from sfumato.verification.counts import count_classes
from sfumato.verification.rules import verify

__all__ = ["check_model"]


def check_model(model: PrivacyModel, data: Dataset | None = None) -> None:
    """Raise AssertionError unless ``model`` keeps the contract of a privacy model.

    The model states its promise, what it protects and which parameters strengthen it. On every table the independent
    check gives the same verdict as the model. Merging equivalence classes respects the declared monotonicity. Without
    ``data`` (quasi-identifiers and one sensitive column), small random tables are used.
    """
    _check_declarations(type(model))
    for table in (data,) if data is not None else tuple(_random_table(seed) for seed in range(6)):
        verdict = model.check(table)
        if verdict.state is State.NOT_CHECKED:
            assert verdict.reason, "a verdict of `not checked` gives no reason"
            continue
        counts = count_classes(
            table.table.frame,
            quasi=table.quasi,
            sensitive=table.sensitive,
            missing={name: table.schema.column(name).missing for name in table.quasi},
            population=model.population_frame(table),
        )
        [second] = verify([{model.part_name(): model.public()}], counts)
        assert second.state is not State.NOT_CHECKED, f"the independent check says: {second.reason}"
        assert second.state is verdict.state, "the independent check and the model disagree"
        assert second.failing == verdict.failing, "the independent check counts other failing rows"
        _check_monotonicity(model, table)


def _check_declarations(kind: type[PrivacyModel]) -> None:
    fields = {*kind.model_fields}
    assert kind.promise, "`promise` is empty"
    assert kind.promise != kind.promise.format(known="", worst=""), "`promise` has no {known} or {worst}"
    assert kind.protects, "`protects` is empty"
    assert kind.stronger, "`stronger` names no parameter"
    assert set(kind.stronger) <= fields, "`stronger` names something that is not a parameter"
    assert kind.size_parameter is None or kind.size_parameter in fields, "`size_parameter` is not a parameter"
    assert kind.independent_check is not PrivacyModel.independent_check, "`independent_check` is missing"


def _check_monotonicity(model: PrivacyModel, data: Dataset) -> None:
    table = compress(data, population=model.population_frame(data))
    rule = model.bind(table)
    groups = table.groups(columns=rule.columns)
    groups = groups.take(groups.sizes > 0)
    passed = rule.passes(groups) & (groups.sizes >= rule.least)
    left, right = np.random.default_rng(1).integers(0, len(groups), (2, 1000))
    left, right = left[left != right], right[left != right]
    if not len(left):
        return
    one, other = groups.take(left), groups.take(right)
    people = None
    if one.population is not None and other.population is not None:
        people = one.population + other.population
    histograms = {name: matrix + other.histograms[name] for name, matrix in one.histograms.items()}
    merged = ClassGroups(sizes=one.sizes + other.sizes, histograms=histograms, population=people)
    holds = rule.passes(merged) & (merged.sizes >= rule.least)
    if rule.closure is Monotonicity.ANY:
        assert holds[passed[left] | passed[right]].all(), "merging a passing class with another made it fail"
    if rule.closure is Monotonicity.PASSING:
        assert holds[passed[left] & passed[right]].all(), "merging two passing classes made them fail"


def _random_table(seed: int, rows: int = 200) -> Dataset:
    """A table of two quasi-identifiers, from few large to many small equivalence classes, and a sensitive column."""
    draw = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "zip": [str(code) for code in draw.integers(0, (1, 2, 6, 30, 100, 5000)[seed], rows)],
            "sex": draw.choice(["F", "M"], rows),
            "grade": draw.choice([1, 2, 3, 4], rows, p=[0.4, 0.3, 0.2, 0.1]),
        }
    )
    roles = {"zip": Role.QUASI, "sex": Role.QUASI, "grade": Role.SENSITIVE}
    return Dataset.of(Table(frame=frame), Schema(columns={name: Column(role=role) for name, role in roles.items()}))
