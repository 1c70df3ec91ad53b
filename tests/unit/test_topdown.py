"""TopDown tables: estimates, constraints, and the budget."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.dp import Ledger, concentrated
from sfumato.errors import BadParameter, HierarchyNotNested, NoReceipt, UnknownColumn
from sfumato.tables import Geography, HierarchicalTables, TopDownPlan
from sfumato.tables.hierarchical_gls import LevelResiduals, marginal_of, tree_estimate
from sfumato.tables.topdown import CENSUS_2020_LEVELS, topdown
from sfumato.tables.transport_rounding import round_to_sum, round_with_sums

COLUMNS = {"sex": ("F", "M"), "age": tuple(range(5))}
QUERIES = {(): Fraction(1, 4), ("sex",): Fraction(1, 4), ("sex", "age"): Fraction(1, 2)}


def country(seed: int = 1, blocks: int = 40) -> tuple[pl.DataFrame, Geography]:
    random = np.random.default_rng(seed)
    places = pl.DataFrame({"state": [n // 20 for n in range(blocks)], "county": [n // 5 for n in range(blocks)],
                           "block": [f"block {n}" for n in range(blocks)]})  # fmt: skip
    sizes = random.integers(0, 60, blocks)
    home = np.repeat(np.arange(blocks), sizes)
    people = places[home].with_columns(
        sex=pl.Series(random.choice(["F", "M"], len(home))),
        age=pl.Series(random.choice(5, len(home), p=[0.4, 0.3, 0.2, 0.08, 0.02])),
    )
    return people, Geography(frame=places, levels=("state", "county", "block"))


def plan(**changes: Any) -> TopDownPlan:
    settings: dict[str, Any] = {
        "columns": COLUMNS,
        "rho": Fraction(1),
        "levels": (Fraction(1, 4),) * 4,
        "queries": QUERIES,
    }
    return TopDownPlan(**{**settings, **changes})


def run(people: pl.DataFrame, places: Geography, wanted: TopDownPlan) -> HierarchicalTables:
    ledger = Ledger.open(":memory:")
    ledger.set_cap(wanted.loss, dataset="country")
    receipt = ledger.reserve(wanted.loss, dataset="country", analyst="office", query="topdown")
    tables = topdown(people, places, wanted, receipt=receipt)
    assert wanted.rho * Fraction(99, 100) < receipt.used.size <= wanted.rho
    return tables


def test_tree_estimate_is_generalized_least_squares() -> None:
    """Against the dense solution over all cells of all smallest areas, with areas of different numbers of children."""
    shape, random = (2, 3), np.random.default_rng(2)
    parents = [np.array([0, 0]), np.array([0, 0, 1, 1, 1])]
    above = [np.zeros(5, dtype=int), parents[1], np.arange(5)]
    queries: list[list[tuple[tuple[int, ...], float]]] = [
        [((), 2.0), ((0, 1), 1.0)],
        [((0,), 0.5)],
        [((1,), 3.0), ((0, 1), 4.0)],
    ]
    levels, lines, values = [], [], []
    cells = list(product(range(5), range(2), range(3)))

    def line(level: int, node: int, columns: tuple[int, ...], key: tuple[int, ...]) -> list[float]:
        return [
            float(above[level][c[0]] == node and all(c[1 + a] == k for a, k in zip(columns, key, strict=True)))
            for c in cells
        ]

    for number, asked in enumerate(queries):
        level = LevelResiduals(shape)
        nodes = (1, 2, 5)[number]
        for columns, variance in asked:
            noisy = random.normal(20, 9, (nodes, *(shape[c] for c in columns)))
            level.add(columns, noisy, variance=variance)
            for node, *key in np.ndindex(noisy.shape):
                lines.append(np.array(line(number, node, columns, tuple(key))) / variance**0.5)
                values.append(noisy[(node, *key)] / variance**0.5)
        levels.append(level)
    solution = np.linalg.lstsq(np.array(lines), np.array(values), rcond=None)[0]
    for number, effects in enumerate(tree_estimate(levels, parents)):
        nodes = (1, 2, 5)[number]
        got = marginal_of(effects, (0, 1), shape, np.arange(nodes))
        wanted = [
            np.array(line(number, node, (0, 1), key)) @ solution
            for node in range(nodes)
            for key in product(range(2), range(3))
        ]
        np.testing.assert_allclose(got.ravel(), wanted, atol=1e-8)


def test_tables_add_up_are_not_negative_and_match_their_microdata() -> None:
    people, places = country()
    tables = run(people, places, plan())
    assert tables.failsafe == 0
    for number, parent in enumerate(places.parents):
        summed = np.zeros_like(tables.counts[number])
        np.add.at(summed, parent, tables.counts[number + 1])
        assert (summed == tables.counts[number]).all()
    assert min(counts.min() for counts in tables.counts) >= 0
    made = tables.microdata()
    assert made.columns == ["state", "county", "block", "sex", "age"]
    again = made.group_by("county", "sex").len().sort("county", "sex")
    published = tables.table("county", "sex").filter(pl.col("count") > 0).sort("county", "sex")
    assert again["len"].to_list() == published["count"].to_list()
    assert tables.table(None)["count"].to_list() == [made.height]
    assert abs(made.height - people.height) < 40


def test_exact_totals_are_exact_down_to_their_level_and_noisy_below() -> None:
    people, places = country()
    tables = run(people, places, plan(exact_totals="state"))
    true = people.group_by("state").len().sort("state")["len"].to_list()
    assert tables.table("state")["count"].to_list() == true
    blocks = {row["block"]: row["len"] for row in people.group_by("block").len().iter_rows(named=True)}
    got = tables.table("block")
    assert any(blocks.get(name, 0) != count for name, count in zip(got["block"], got["count"], strict=True))


def test_errors_are_smaller_than_those_of_noisy_tables_on_every_level() -> None:
    """Mean absolute error of area totals, against the total query alone."""
    people, places = country(blocks=200)
    wanted = plan(rho=Fraction(1, 5))
    tables = run(people, places, wanted)
    for number, level in enumerate(("state", "county", "block"), start=1):
        true = {row[level]: row["len"] for row in people.group_by(level).len().iter_rows(named=True)}
        got = tables.table(level)
        error = np.mean([abs(true.get(name, 0) - count) for name, count in zip(got[level], got["count"], strict=True)])
        variance = wanted.variance(number, ())
        assert variance is not None
        assert error < 0.95 * (2 * float(variance) / np.pi) ** 0.5


@pytest.mark.parametrize("seed", range(5))
def test_rounding_keeps_both_sums_and_stays_near(seed: int) -> None:
    random = np.random.default_rng(seed)
    true = random.poisson(random.uniform(0, 4, (6, 4, 7)))
    noisy = true + random.normal(0, 1.5, true.shape)
    whole, failed = round_with_sums(noisy, true.sum(axis=2), true.sum(axis=1))
    assert failed == 0
    assert (whole.sum(axis=2) == true.sum(axis=2)).all()
    assert (whole.sum(axis=1) == true.sum(axis=1)).all()
    assert whole.min() >= 0
    assert np.abs(whole - true).mean() < 1.0
    lines = round_to_sum(noisy.reshape(24, 7), true.sum(axis=2).ravel())
    assert (lines.sum(axis=1) == true.sum(axis=2).ravel()).all()
    assert lines.min() >= 0


def test_the_shares_of_the_2020_census_are_all_of_the_budget() -> None:
    assert sum(CENSUS_2020_LEVELS) == 1
    assert len(CENSUS_2020_LEVELS) == 6


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"levels": (Fraction(1, 2),) * 4}, BadParameter),
        ({"levels": (Fraction(3, 2), Fraction(-1, 2), Fraction(0), Fraction(0))}, BadParameter),
        ({"queries": {("income",): Fraction(1)}}, UnknownColumn),
        ({"rho": Fraction(0)}, BadParameter),
        ({"columns": {str(n): tuple(range(100)) for n in range(6)}, "queries": {(): Fraction(1)}}, BadParameter),
        ({"columns": {"sex": ("F", "F")}, "queries": {(): Fraction(1)}}, BadParameter),
    ],
)
def test_bad_plans_are_refused(changes: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        plan(**changes)


def test_bad_input_is_refused_before_the_receipt_is_used() -> None:
    people, places = country()
    ledger = Ledger.open(":memory:")
    ledger.set_cap(concentrated(1), dataset="country")
    receipt = ledger.reserve(concentrated(1), dataset="country", analyst="office", query="topdown")
    with pytest.raises(BadParameter, match="not declared"):
        topdown(people.with_columns(age=pl.lit(77)), places, plan(), receipt=receipt)
    with pytest.raises(BadParameter, match="does not list"):
        topdown(people.with_columns(block=pl.lit("elsewhere")), places, plan(), receipt=receipt)
    with pytest.raises(UnknownColumn):
        topdown(people, places, plan(exact_totals="planet"), receipt=receipt)
    assert receipt.used.size == 0
    with pytest.raises(NoReceipt):
        topdown(people, places, plan(rho=Fraction(2)), receipt=receipt)
    with pytest.raises(HierarchyNotNested):
        Geography(
            frame=pl.DataFrame({"state": [1, 2], "county": [7, 7], "block": [1, 2]}),
            levels=("state", "county", "block"),
        )
    with pytest.raises(BadParameter, match="twice"):
        Geography(frame=pl.DataFrame({"block": [1, 1]}), levels=("block",))
