"""What every privacy model must do: its verdict, its declared monotonicity, and a second opinion that agrees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.errors import NotApplicable
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses, compress
from sfumato.masking.model import ModelRule, Monotonicity, PrivacyModel
from sfumato.registry import registry
from sfumato.release import State
from sfumato.schema import Column, Dataset, Role, Schema
from sfumato.testing import check_model
from sfumato.verification.counts import count_classes
from sfumato.verification.rules import verify

CASES = [
    pytest.param(kind, parameters, id=f"{kind.part_name()}-{number}")
    for kind in registry("model")
    for number, parameters in enumerate(kind.examples)
]
every = pytest.mark.parametrize(("kind", "parameters"), CASES)
TABLES = ((1, 2), (2, 6), (3, 30), (4, 1), (0, 6), (5, 5000))
"""Seed and number of ZIP codes of the tables that are tried."""
TAXONOMY = {"table": {"rows": [["1", "low", "*"], ["2", "low", "*"], ["3", "high", "*"], ["4", "high", "*"]]}}


def dataset(seed: int = 1, rows: int = 200, distinct: int = 6) -> Dataset:
    draw = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "zip": [f"{value}" for value in draw.integers(0, distinct, rows)],
            "sex": draw.choice(["F", "M"], rows),
            "grade": draw.choice([1, 2, 3, 4], rows, p=[0.4, 0.3, 0.2, 0.1]),
        }
    )
    columns = {
        "zip": Column(role=Role.QUASI),
        "sex": Column(role=Role.QUASI),
        "grade": Column(role=Role.SENSITIVE, hierarchy=TAXONOMY),  # type: ignore[arg-type]
    }
    return Dataset.of(Table(frame=frame), Schema(columns=columns))


def built(kind: type[PrivacyModel], parameters: dict[str, Any], folder: Path) -> PrivacyModel:
    people = pl.concat([dataset(seed, distinct=distinct).table.frame for seed, distinct in TABLES])
    people.write_csv(folder / "population.csv")
    return kind.build(parameters, base=folder)


def bound(model: PrivacyModel, data: Dataset) -> tuple[EquivalenceClasses, ModelRule]:
    table = compress(data, population=model.population_frame(data))
    return table, model.bind(table)


def merged(groups: ClassGroups, left: Any, right: Any) -> ClassGroups:
    one, other = groups.take(left), groups.take(right)
    people = None
    if one.population is not None and other.population is not None:
        people = one.population + other.population
    histograms = {name: matrix + other.histograms[name] for name, matrix in one.histograms.items()}
    return ClassGroups(sizes=one.sizes + other.sizes, histograms=histograms, population=people)


@every
def test_survives_the_way_through_a_recipe(
    kind: type[PrivacyModel], parameters: dict[str, Any], tmp_path: Path
) -> None:
    model = built(kind, parameters, tmp_path)
    assert kind.build(model.to_dict()) == model


@every
def test_one_verdict_for_every_table(kind: type[PrivacyModel], parameters: dict[str, Any], tmp_path: Path) -> None:
    model = built(kind, parameters, tmp_path)
    for seed in range(5):
        verdict = model.check(dataset(seed))
        assert verdict.model == kind.part_name()
        assert verdict.state in (State.HOLDS, State.FAILS)
        assert verdict.worst is not None
        assert (verdict.failing == 0) is verdict.holds
        assert bool(verdict.reason) is not verdict.holds


@every
def test_without_quasi_identifiers_nothing_is_checked(
    kind: type[PrivacyModel], parameters: dict[str, Any], tmp_path: Path
) -> None:
    data = dataset()
    bare = Dataset(table=data.table, schema=Schema(columns={"grade": data.schema.columns["grade"]}))
    verdict = built(kind, parameters, tmp_path).check(bare)
    assert verdict.state is State.NOT_CHECKED
    assert verdict.reason


@every
def test_monotone_as_declared(kind: type[PrivacyModel], parameters: dict[str, Any], tmp_path: Path) -> None:
    """Random classes, some pure and some mixed, merged in pairs."""
    model = built(kind, parameters, tmp_path)
    table, rule = bound(model, dataset())
    draw = np.random.default_rng(5)
    count = 300
    shares = draw.dirichlet(np.full(4, 0.4), count)
    sizes = draw.integers(1, 12, count)
    matrix = np.stack([draw.multinomial(size, share) for size, share in zip(sizes, shares, strict=True)])
    people = sizes + draw.integers(0, 6, count)
    histograms = {name: matrix.astype(np.int64) for name in table.tracked}
    groups = ClassGroups(
        sizes=sizes, histograms=histograms, population=people if table.population is not None else None
    )
    passed = rule.passes(groups) & (groups.sizes >= rule.least)
    left, right = draw.integers(0, count, (2, 5000))
    after = merged(groups, left, right)
    good = rule.passes(after) & (after.sizes >= rule.least)
    if rule.closure is Monotonicity.ANY:
        assert good[passed[left] | passed[right]].all()
    if rule.closure is Monotonicity.PASSING:
        assert good[passed[left] & passed[right]].all()
    assert rule.about_table or passed.any() or not rule.columns


@every
def test_rows_that_are_due_are_suppressed_by_every_split(
    kind: type[PrivacyModel], parameters: dict[str, Any], tmp_path: Path
) -> None:
    """Classes that are unions of four random ones: at least the rows that are due stand in parts that fail."""
    table, rule = bound(built(kind, parameters, tmp_path), dataset())
    draw = np.random.default_rng(8)
    count = 4000
    shares = draw.dirichlet(np.full(4, 2.0), count)
    sizes = draw.integers(1, 40, count)
    matrix = np.stack([draw.multinomial(size, share) for size, share in zip(sizes, shares, strict=True)])
    people = sizes + draw.integers(0, 30, count) if table.population is not None else None
    parts = ClassGroups(
        sizes=sizes, histograms=dict.fromkeys(table.tracked, matrix.astype(np.int64)), population=people
    )
    passed = rule.passes(parts) & (parts.sizes >= rule.least)
    gone = np.where(passed, 0, sizes).reshape(-1, 4).sum(axis=1)
    quarters = [parts.take(slice(start, None, 4)) for start in range(4)]
    whole = ClassGroups(
        sizes=sum(part.sizes for part in quarters),  # type: ignore[arg-type]
        histograms={name: sum(part.histograms[name] for part in quarters) for name in table.tracked},  # type: ignore[misc]
        population=None if people is None else people.reshape(-1, 4).sum(axis=1),
    )
    good = rule.passes(whole)
    due = rule.due(whole, good)
    assert (due[good] == 0).all()
    assert (due <= gone).all()
    if rule.closure is not Monotonicity.NONE:
        assert (due[~good] >= 1).all()


@every
def test_classes_below_the_least_size_fail(
    kind: type[PrivacyModel], parameters: dict[str, Any], tmp_path: Path
) -> None:
    _, rule = bound(built(kind, parameters, tmp_path), dataset())
    if rule.least == 1:
        pytest.skip("no least size")
    size = rule.least - 1
    matrix = np.full((1, 4), size // 4)
    matrix[0, 0] += size - matrix.sum()
    small = ClassGroups(sizes=np.array([size]), histograms=dict.fromkeys(rule.columns, matrix))
    assert not (rule.passes(small) & (small.sizes >= rule.least))[0]


@every
def test_a_second_opinion_agrees(kind: type[PrivacyModel], parameters: dict[str, Any], tmp_path: Path) -> None:
    model = built(kind, parameters, tmp_path)
    states = set()
    for seed, distinct in TABLES:
        data = dataset(seed, distinct=distinct)
        people = model.population_frame(data)
        ours = model.check(data)
        paths = {"grade": {row[0]: tuple(row) for row in data.bound_hierarchy("grade").rows()}}
        shown = count_classes(
            data.table.frame, quasi=("zip", "sex"), sensitive=("grade",), population=people, paths=paths
        )
        [theirs] = verify([{kind.part_name(): model.to_dict()}], shown)
        assert (theirs.state, theirs.failing) == (ours.state, ours.failing)
        assert theirs.worst == pytest.approx(ours.worst)
        states.add(ours.state)
    assert states == {State.HOLDS, State.FAILS}, "the tables do not try both"


@every
def test_the_shipped_check_accepts_it(kind: type[PrivacyModel], parameters: dict[str, Any], tmp_path: Path) -> None:
    model = built(kind, parameters, tmp_path)
    if model.population_frame(dataset()) is None and parameters.get("distance") != "hierarchical":
        check_model(model)
    if parameters.get("distance") != "hierarchical":
        check_model(model, dataset())


@every
def test_the_size_parameter_is_the_least_size(
    kind: type[PrivacyModel], parameters: dict[str, Any], tmp_path: Path
) -> None:
    model = built(kind, parameters, tmp_path)
    if kind.size_parameter is not None:
        _, rule = bound(model, dataset())
        assert rule.least >= getattr(model, kind.size_parameter) >= 2


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.part_name()) for kind in registry("model")])
@pytest.mark.parametrize("published", [{}, None, {"unheard-of": 1}], ids=str)
def test_parameters_that_say_nothing_are_not_checked(kind: type[PrivacyModel], published: Any) -> None:
    """A manifest of somebody else may hold anything; nothing of it passes for a model that holds."""
    data = dataset()
    counts = count_classes(data.table.frame, quasi=("zip", "sex"), sensitive=("grade",))
    [verdict] = verify([{kind.part_name(): published}], counts)
    assert verdict.state is State.NOT_CHECKED
    assert verdict.reason


def test_a_model_that_is_not_installed_is_not_checked() -> None:
    counts = count_classes(dataset().table.frame, quasi=("zip", "sex"))
    [verdict] = verify([{"of-another-package": {"k": 2}}], counts)
    assert verdict.state is State.NOT_CHECKED
    assert "No independent check" in verdict.reason


@every
def test_dropping_a_class_hurts_no_other(kind: type[PrivacyModel], parameters: dict[str, Any], tmp_path: Path) -> None:
    """Where a rule says so: what it makes of a class, and of all classes together, survives the loss of any other."""
    table, rule = bound(built(kind, parameters, tmp_path), dataset())
    groups = table.groups(columns=rule.columns)
    groups = groups.take(groups.sizes > 0)
    passed = rule.passes(groups)
    for gone in range(len(groups)):
        rest = np.arange(len(groups)) != gone
        assert (rule.passes(groups.take(rest)) == passed[rest]).all()
        if rule.shrinks and rule.table_holds(groups):
            assert rule.table_holds(groups.take(rest))
    assert rule.shrinks is not rule.about_table


@every
def test_size_is_all_where_it_is_said_to_be(
    kind: type[PrivacyModel], parameters: dict[str, Any], tmp_path: Path
) -> None:
    """Searches count rows alone where ``sizes_only``, and drop smaller classes than ``least`` before any other test."""
    table, rule = bound(built(kind, parameters, tmp_path), dataset())
    sizes = np.arange(1, 40)
    spread = np.minimum(np.maximum(sizes[:, None] // 4 + (sizes[:, None] % 4 > np.arange(4)), 0), sizes[:, None])
    people = sizes + 1 if table.population is not None else None
    groups = ClassGroups(sizes=sizes, histograms=dict.fromkeys(table.tracked, spread), population=people)
    if rule.sizes_only:
        assert (rule.passes(groups) == (sizes >= rule.least)).all()
    assert rule.least >= 1


@pytest.mark.parametrize(
    ("limit", "least"), [(1.0, 1), (0.5, 2), (0.34, 3), (0.3333, 4), (0.09, 12), (0.05, 20), (0.1, 10)]
)
def test_a_risk_as_a_number_of_rows(limit: float, least: int) -> None:
    """1 / limit rounded up, in exact numbers: 0.1 is a tenth and asks for 10 rows, not 9 or 11."""
    model = registry("model").get("maximum-risk").build(limit)
    assert model.bind(compress(dataset())).least == least  # type: ignore[attr-defined]


def test_a_sensitive_column_must_be_named_when_there_are_two() -> None:
    data = dataset()
    columns = {**data.schema.columns, "sex": Column(role=Role.SENSITIVE)}
    two = Dataset(table=data.table, schema=Schema(columns=columns))
    table = compress(two)
    model = registry("model").get("t-closeness").build({"t": 0.3})
    with pytest.raises(NotApplicable, match="column"):
        model.bind(table)  # type: ignore[attr-defined]
    assert registry("model").get("t-closeness").build({"t": 0.3, "column": "sex"}).bind(table).columns == ("sex",)  # type: ignore[attr-defined]
