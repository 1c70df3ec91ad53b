"""Disclosure and utility measures on tables small enough to count by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.measures import MeasureResult, ReleasePair, judge
from sfumato.measures.base import Measure
from sfumato.measures.classes import classes
from sfumato.measures.disclosure.prosecutor import against_population
from sfumato.registry import registry
from sfumato.release import Lineage, Release
from sfumato.rng import Rng


def pair(before: pl.DataFrame, after: pl.DataFrame, **roles: str) -> ReleasePair:
    columns = {name: Column(role=Role(roles.get(name, "quasi"))) for name in before.columns}
    original = Data.of(Table(frame=before), Schema(columns=columns))
    return ReleasePair(
        original=original,
        release=Release(table=Table(frame=after), manifest={}),
        lineage=Lineage.identity(after.height) if after.height == before.height else None,
    )


def run(name: str, where: ReleasePair, **parameters: object) -> MeasureResult:
    part = registry("measure").get(name).build(parameters)
    assert isinstance(part, Measure)
    return judge(part, where, rng=Rng(1))


def test_certainty_penalty_by_hand() -> None:
    before = pl.DataFrame({"age": [20, 25, 30, 40], "sex": ["F", "M", "F", "M"]})
    after = pl.DataFrame({"age": ["20-25", "20-25", "30", "*"], "sex": ["F", "*", "F", "M"]})
    found = run("ncp", pair(before, after))
    # Ages: 5/20, 5/20, 0, 1. Sex: 0, 1, 0, 0.
    assert dict(found.columns) == pytest.approx({"age": 0.375, "sex": 0.25})
    assert found.value == pytest.approx(0.3125)


def test_dropped_rows_and_columns_count_in_full() -> None:
    before = pl.DataFrame({"age": [20, 25, 30, 40], "sex": ["F", "M", "F", "M"]})
    found = run("ncp", pair(before, before.select("age").head(2)))
    assert dict(found.columns) == pytest.approx({"age": 0.5, "sex": 1.0})


def test_a_made_up_row_is_no_substitute_for_a_dropped_one() -> None:
    before = pl.DataFrame({"age": [20, 25, 30, 40]})
    after = pl.DataFrame({"age": [20, 25, 40]})
    two = ReleasePair(
        original=pair(before, before).original,
        release=Release(table=Table(frame=after), manifest={}),
        lineage=Lineage(np.array([0, 1, -1])),
    )
    found = run("ncp", two)
    assert found.detail["dropped"] == 2
    assert found.value == pytest.approx(2 / 5)


@pytest.mark.parametrize("weight", [None, 0.0, float("nan"), float("inf")])
def test_weights_that_are_none_give_a_reason(weight: float | None) -> None:
    frame = pl.DataFrame({"age": [1, 1, 2], "w": [5.0, 5.0, 5.0]})
    released = frame.with_columns(w=pl.Series([5.0, 5.0, weight]))
    for name in ("individual-risk", "household-risk"):
        found = run(name, pair(frame.with_columns(h=1), released.with_columns(h=1), w="weight", h="household"))
        assert found.value is None
        assert "positive" in found.reason


@pytest.mark.parametrize("meaning", ["wildcard", "suppressed"])
def test_an_original_that_says_nothing(meaning: str) -> None:
    frame = pl.DataFrame({"age": pl.Series([None] * 3, dtype=pl.Int64)})
    schema = Schema(columns={"age": Column(role=Role.QUASI, missing=meaning)})  # type: ignore[arg-type]
    original = Data.of(Table(frame=frame), schema)
    empty = ReleasePair(original=original, release=Release(table=original.table, manifest={}))
    for name in ("class-sizes", "uniqueness", "prosecutor"):
        found = run(name, empty)
        assert found.value is None
        assert "suppressed" in found.reason


def test_blanks_fit_every_class_that_they_could_be() -> None:
    """Counts and weights against a comparison of every two rows, with blanks that match in two of three columns."""
    draw = np.random.default_rng(4)
    for rows in (1, 7, 60):
        cells = draw.choice(["x", "y", "z", None], (rows, 3), p=[0.3, 0.3, 0.2, 0.2])
        weights = draw.uniform(1, 9, rows)
        frame = pl.DataFrame(dict(zip("abc", cells.T.tolist(), strict=True)), schema=dict.fromkeys("abc", pl.String))
        found = classes(frame, ("a", "b", "c"), {"a": "wildcard", "b": "suppressed"}, weights)

        def agree(one: list[str | None], other: list[str | None]) -> bool:
            joker = [None in pair for pair in zip(one[:2], other[:2], strict=True)]
            return all(a == b or j for a, b, j in zip(one, other, [*joker, False], strict=True))

        lines = cells.tolist()
        for row, line in enumerate(lines):
            fits = [agree(line, other) for other in lines]
            label = found.label[row]
            assert found.fit[label] == sum(fits)
            assert found.weight[label] == pytest.approx(weights[fits].sum())


def test_a_row_without_a_household_stands_alone() -> None:
    frame = pl.DataFrame({"age": [1, 2, 3, 4], "w": [4.0] * 4, "h": [7, 7, None, None]})
    found = run("household-risk", pair(frame, frame, w="weight", h="household"))
    one = run("individual-risk", pair(frame, frame, w="weight", h="household")).value
    assert one is not None
    assert found.detail["households"] == 3
    assert found.value == pytest.approx((2 * (1 - (1 - one) ** 2) + 2 * one) / 4)


def test_perturbed_columns_have_no_penalty() -> None:
    before = pl.DataFrame({"age": [20, 25, 30, 40]})
    found = run("ncp", pair(before, before.with_columns(pl.col("age") + 0.5)))
    assert found.value is None
    assert "perturbed" in found.reason


def test_coarse_values_are_spread_evenly() -> None:
    before = pl.DataFrame({"age": [20, 20, 20, 21], "sex": ["F", "F", "M", "M"]})
    after = before.with_columns(age=pl.lit("20-21"))
    found = run("marginals", pair(before, after))
    # Ages were 3/4 and 1/4 and read as 1/2 and 1/2.
    assert dict(found.columns) == pytest.approx({"age": 0.25, "sex": 0.0})
    joint = run("pairs", pair(before, after))
    # Cells (20,F) 1/2, (20,M) 1/4, (21,M) 1/4 against 1/4 each.
    assert dict(joint.columns) == pytest.approx({"age × sex": 0.25})


def test_values_that_stand_for_nothing_count_in_full() -> None:
    before = pl.DataFrame({"sex": ["F", "F", "M", "M"]})
    found = run("marginals", pair(before, pl.DataFrame({"sex": ["F", "F", "X", "X"]})))
    assert found.value == pytest.approx(0.5)


def test_journalist_and_marketer_count_in_the_population() -> None:
    before = pl.DataFrame({"age": [20, 21, 30]})
    after = pl.DataFrame({"age": ["20-21", "20-21", "30-31"]})
    population = Table(frame=pl.DataFrame({"age": [20, 20, 21, 21, 30, 31]}))
    found = against_population(pair(before, after), population)
    assert found["journalist"] == pytest.approx(0.5)
    assert found["marketer"] == pytest.approx((2 / 4 + 1 / 2) / 3)


def test_prosecutor_is_a_mean_over_rows() -> None:
    before = pl.DataFrame({"a": ["x", "x", "x", "y"]})
    found = run("prosecutor", pair(before, before), limit=0.5)
    assert found.value == pytest.approx(0.5)
    assert (found.detail["largest"], found.detail["above"]) == (1.0, 0.25)


def test_suppressed_rows_are_counted_apart() -> None:
    before = pl.DataFrame({"a": ["x", "x", "y"], "b": ["1", "1", "2"]})
    after = pl.DataFrame({"a": ["x", "x", "*"], "b": ["1", "1", "*"]})
    found = run("class-sizes", pair(before, after))
    assert (found.value, found.detail["suppressed"]) == (2.0, 1)
    assert run("uniqueness", pair(before, after)).value == 0.0
    nothing = pl.DataFrame({"a": ["*"] * 3, "b": ["*"] * 3})
    assert run("class-sizes", pair(before, nothing)).value is None


def test_classes_share_sensitive_values() -> None:
    before = pl.DataFrame({"a": ["x", "x", "y", "y"], "ill": ["flu", "flu", "flu", "none"]})
    found = run("class-attributes", pair(before, before, ill="sensitive"))
    assert found.value == pytest.approx(0.75)
    inside = found.detail["by_column"]["ill"]
    assert inside["fewest_values"] == 1
    assert inside["homogeneous"] == pytest.approx(0.5)
    assert inside["largest_distance"] == pytest.approx(0.25)
    [tab] = found.detail["tabs"]
    assert tab["head"] == ["a", "rows", "flu", "none"]
    assert tab["lines"] == [["x", 2, "100%", ""], ["y", 2, "50%", "50%"]]


def test_the_tab_of_many_classes_and_values_is_short() -> None:
    before = pl.DataFrame({"a": [str(row // 2) for row in range(100)], "ill": [str(row % 10) for row in range(100)]})
    [tab] = run("class-attributes", pair(before, before, ill="sensitive")).detail["tabs"]
    assert (len(tab["lines"]), tab["title"]) == (20, "ill by class; 30 more classes")
    assert tab["head"] == ["a", "rows", *"0123456", "others"]
    assert {line[-1] for line in tab["lines"]} <= {"", "50%", "100%"}


def test_intervals_hold_unmasked_values_and_few_others() -> None:
    draw = np.random.default_rng(1)
    before = pl.DataFrame({"x": draw.normal(size=2000)})
    same = run("interval-disclosure", pair(before, before), width=1)
    assert same.value == 1.0
    assert same.detail["blind"] == pytest.approx(0.02, abs=0.015)
    noisy = before.with_columns(pl.col("x") + draw.normal(size=2000))
    assert run("interval-disclosure", pair(before, noisy), width=10, kind="deviation").value == pytest.approx(
        0.11, abs=0.04
    )


@pytest.mark.parametrize(("off", "inside"), [(-6, False), (-5, True), (0, True), (5, True), (6, False)])
def test_an_interval_reaches_as_many_ranks_to_either_side(off: int, inside: bool) -> None:
    """Values 1 to 100 and 5 % of the ranks: a true value up to 5 away from its masked one lies in the interval."""
    masked = pl.DataFrame({"x": [float(value) for value in range(1, 101)]})
    true = masked.with_columns(pl.when(pl.col("x") == 50).then(50.0 + off).otherwise("x").alias("x"))
    found = run("interval-disclosure", pair(true, masked), width=5)
    assert found.value == (1.0 if inside else 0.99)


@pytest.mark.parametrize(("off", "inside"), [(0.49, True), (0.51, False), (-0.49, True), (-0.51, False)])
def test_an_interval_of_a_tenth_of_a_deviation(off: float, inside: bool) -> None:
    """Half the values 0, half 10: the deviation is 5, a tenth of it half a unit."""
    masked = pl.DataFrame({"x": [0.0, 10.0] * 50})
    true = masked.with_columns(x=pl.Series([0.0 + off, *masked["x"].to_list()[1:]]))
    found = run("interval-disclosure", pair(true, masked), width=10, kind="deviation")
    assert found.value == (1.0 if inside else 0.99)


def test_neighbours_find_the_unmasked_row() -> None:
    draw = np.random.default_rng(1)
    before = pl.DataFrame({name: draw.normal(size=500) for name in "abc"})
    assert run("neighbour-risk", pair(before, before), k=1).value == 1.0
    noisy = before.with_columns(pl.all() + 0.3 * pl.Series(draw.normal(size=500)))
    found = run("neighbour-risk", pair(before, noisy), k=5)
    shares = list(found.detail["by_k"].values())
    assert shares == sorted(shares)
    assert 0.2 < shares[0] < shares[-1] < 1.0


def test_without_quasi_identifiers_there_is_a_reason_and_no_number() -> None:
    before = pl.DataFrame({"a": ["x", "y"]})
    for name in ("class-sizes", "uniqueness", "prosecutor", "ncp", "suda"):
        found = run(name, pair(before, before, a="plain"))
        assert found.value is None
        assert "quasi" in found.reason


def test_people_become_unique_with_the_things_known() -> None:
    """Three people: one thing never tells them apart, all their things do for two of them."""
    frame = pl.DataFrame({"who": [1, 1, 2, 2, 3, 3], "film": ["a", "b", "a", "c", "a", "c"]})
    schema = Schema(columns={"film": Column(role=Role.QUASI)}, unit="who")
    original = Data.of(Table(frame=frame), schema)
    where = ReleasePair(original=original, release=Release(table=original.table, manifest={}))
    found = run("item-uniqueness", where, item="film", events=2)
    assert found.value == pytest.approx(1 / 3)
    assert found.low is not None
    assert found.low < 1 / 3
