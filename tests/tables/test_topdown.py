"""TopDown tables: estimates, constraints, and the budget."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.dp import concentrated
from sfumato.errors import BadParameter, HierarchyNotNested, NoReceipt, UnknownColumn
from sfumato.ledger import Charge, Ledger
from sfumato.tables import AreaBound, Geography, HierarchicalTables, TopDownPlan
from sfumato.tables.hierarchical_gls import LevelResiduals, marginal_of, sum_children, tree_estimate
from sfumato.tables.topdown import check_data, topdown
from sfumato.tables.topdown_plan import CENSUS_2020_LEVELS
from sfumato.tables.transport_rounding import _projected, round_to_sum, round_with_sums

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
    receipt = ledger.charge(Charge(loss=wanted.loss, unit="row", what="topdown"), dataset="country", analyst="office")
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
    assert (tables.relaxed, tables.unsolved) == (0, 0)
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
    runs = [run(people, places, wanted) for _ in range(4)]
    for number, level in enumerate(("state", "county", "block"), start=1):
        true = {row[level]: row["len"] for row in people.group_by(level).len().iter_rows(named=True)}
        made = [tables.table(level) for tables in runs]
        error = np.mean([abs(true.get(n, 0) - c) for t in made for n, c in zip(t[level], t["count"], strict=True)])
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
    receipt = ledger.charge(
        Charge(loss=concentrated(1), unit="row", what="topdown"), dataset="country", analyst="office"
    )
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


HOMES = {"home": ("flat", "prison"), "adult": ("yes", "no"), "sex": ("F", "M")}


def homes(seed: int = 4, blocks: int = 30) -> tuple[pl.DataFrame, Geography]:
    """Blocks with flats, some with a prison; prisons hold adults only. Facilities and flats are public."""
    random = np.random.default_rng(seed)
    flats, prison = random.integers(0, 6, blocks), (random.random(blocks) < 0.3).astype(int)
    lines = []
    for block in range(blocks):
        lines += [(block, "flat", a) for a in random.choice(["yes", "no"], 2 * flats[block])]
        lines += [(block, "prison", "yes")] * (prison[block] * int(random.integers(1, 9)))
    people = pl.DataFrame(lines, schema=["block", "home", "adult"], orient="row")
    people = people.with_columns(sex=pl.Series(random.choice(["F", "M"], people.height)))
    places = pl.DataFrame({"state": np.arange(blocks) // 10, "block": np.arange(blocks), "prisons": prison,
                           "beds": 50 * prison, "room": 4 * flats})  # fmt: skip
    return people, Geography(frame=places, levels=("state", "block"))


def strict(**changes: Any) -> TopDownPlan:
    settings: dict[str, Any] = {
        "columns": HOMES,
        "rho": Fraction(1, 50),
        "levels": (Fraction(1, 3),) * 3,
        "queries": {tuple(HOMES): Fraction(1)},
        "exact_totals": "state",
        "impossible": ({"home": ("prison",), "adult": ("no",)},),
        "bounds": (
            AreaBound(where={"home": "prison"}, at_least="prisons", at_most="beds"),
            AreaBound(where={"home": "flat"}, at_most="room"),
        ),
    }
    return TopDownPlan(**{**settings, **changes})


def met(tables: HierarchicalTables, people: pl.DataFrame, places: Geography) -> None:
    """All invariants, edit constraints and sums hold on every level."""
    counts = [level.reshape(-1, 2, 2, 2) for level in tables.counts]
    for number, parent in enumerate(places.parents):
        summed = np.zeros_like(counts[number])
        np.add.at(summed, parent, counts[number + 1])
        assert (summed == counts[number]).all()
    assert all(level.min() >= 0 and level[:, 1, 1].sum() == 0 for level in counts)
    flat, prison = counts[-1].sum(axis=(2, 3)).T
    assert (prison >= places.frame["prisons"].to_numpy()).all()
    assert (prison <= places.frame["beds"].to_numpy()).all()
    assert (flat <= places.frame["room"].to_numpy()).all()
    states = people.join(places.frame.select("block", "state"), on="block").group_by("state").len().sort("state")
    assert counts[1].sum(axis=(1, 2, 3)).tolist() == states["len"].to_list()


def test_invariants_and_edit_constraints_hold_on_every_level() -> None:
    """With so much noise that they would be violated without the rules."""
    people, places = homes()
    met(run(people, places, strict()), people, places)
    loose = run(people, places, strict(impossible=(), bounds=()))
    with pytest.raises(AssertionError):
        met(loose, people, places)


def test_an_infeasible_node_is_relaxed_and_reported() -> None:
    """A state where nobody but prisoners can live: the noisy whole almost never has enough prisoners."""
    places = Geography(
        frame=pl.DataFrame({"state": [0, 1, 1], "block": [0, 1, 2], "room": [0, 500, 500]}), levels=("state", "block")
    )
    people = pl.DataFrame({"block": [0] * 300 + [1] * 200, "home": ["prison"] * 300 + ["flat"] * 200, "sex": "F"})
    wanted = TopDownPlan(
        columns={"home": ("flat", "prison"), "sex": ("F", "M")},
        rho=Fraction(1, 10**6),
        levels=(Fraction(1), Fraction(0), Fraction(0)),
        queries={("home", "sex"): Fraction(1)},
        exact_totals="state",
        bounds=(AreaBound(where={"home": "flat"}, at_most="room"),),
    )
    seen = set()
    for _ in range(40):  # the noise exceeds 200 people, so that one of two runs is infeasible
        tables = run(people, places, wanted)
        seen.add(tables.relaxed)
        assert tables.table("state")["count"].to_list() == [300, 200]
        flats = tables.counts[-1].reshape(3, 2, 2).sum(axis=2)[:, 0]
        assert flats[0] == 0
        for number, parent in enumerate(places.parents):
            summed = np.zeros_like(tables.counts[number])
            np.add.at(summed, parent, tables.counts[number + 1])
            assert (summed == tables.counts[number]).all()
    assert seen == {0, 1}


def test_tables_add_up_if_the_solver_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rounding fallback: right sums on every level, and the parts are counted."""
    people, places = country(blocks=20)
    monkeypatch.setattr("sfumato.tables.transport_rounding._increments", lambda *_: None)
    tables = run(people, places, plan())
    assert tables.unsolved > 0
    for number, parent in enumerate(places.parents):
        summed = np.zeros_like(tables.counts[number])
        np.add.at(summed, parent, tables.counts[number + 1])
        assert (summed == tables.counts[number]).all()
    assert min(counts.min() for counts in tables.counts) >= 0


def test_rounding_changes_as_little_as_possible() -> None:
    """Against all integer tables with these sums, group by group."""
    random = np.random.default_rng(3)
    real = random.dirichlet(np.ones(6), 8).reshape(8, 2, 3) * 6
    rows = np.array([round_to_sum(t.sum(axis=1)[None], np.array([6]))[0] for t in real])
    columns = np.array([round_to_sum(t.sum(axis=0)[None], np.array([6]))[0] for t in real])
    whole, failed = round_with_sums(real, rows, columns)
    assert failed == 0
    projected = _projected(real, rows, columns)
    for table, close, row, column in zip(whole, projected, rows, columns, strict=True):
        best = min(
            np.abs(np.array([first, column - first]) - close).sum()
            for first in product(*(range(c + 1) for c in column))
            if sum(first) == row[0]
        )
        assert np.abs(table - close).sum() == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"bounds": (AreaBound(where={"adult": "yes"}, at_most="beds"),)}, BadParameter, "first columns"),
        ({"bounds": (AreaBound(where={"home": "tent"}, at_most="beds"),)}, BadParameter, "does not have"),
        ({"bounds": (AreaBound(where={"home": "flat"}, at_most="nothing"),)}, UnknownColumn, "nothing"),
        ({"bounds": (AreaBound(where={"home": "flat"}, at_least="negative"),)}, BadParameter, "whole numbers"),
        (
            {"bounds": (AreaBound(where={"home": "prison"}, at_least="beds", at_most="prisons"),)},
            BadParameter,
            "No table meets the bounds",
        ),
        ({"impossible": ({"income": ("high",)},)}, UnknownColumn, "income"),
        ({"impossible": ({"sex": ("F", "M")},), "bounds": ()}, BadParameter, "All combinations"),
        ({"rho": Fraction(1, 10**15)}, BadParameter, "too small for anything"),
    ],
)
def test_bad_rules_are_refused_before_the_receipt_is_used(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    people, places = homes()
    places = Geography(frame=places.frame.with_columns(negative=-pl.col("beds") - 1), levels=places.levels)
    ledger = Ledger.open(":memory:")
    ledger.set_cap(concentrated(1), dataset="country")
    receipt = ledger.charge(
        Charge(loss=concentrated(1), unit="row", what="topdown"), dataset="country", analyst="office"
    )
    with pytest.raises(error, match=message):
        topdown(people, places, strict(**changes), receipt=receipt)
    assert receipt.used.size == 0


def test_people_who_fit_no_declared_cell_are_left_out_and_not_told_of() -> None:
    """A refusal would tell that there is such a person, and so would an exact total that counts them."""
    people, places = homes()
    odd = people.head(3).with_columns(
        home=pl.Series(["tent", "flat", "flat"]),
        block=pl.Series([-1, people["block"][0], None], dtype=people["block"].dtype),
    )
    limits, true = check_data(people, places, strict())
    _, more = check_data(pl.concat([people, odd[[0, 2]]]), places, strict())
    ledger = Ledger.open(":memory:")
    ledger.set_cap(concentrated(1), dataset="country")
    receipt = ledger.charge(
        Charge(loss=concentrated(1), unit="row", what="topdown"), dataset="country", analyst="office"
    )
    assert np.array_equal(true.open(receipt), more.open(receipt))
    _, fewer = check_data(people, places, strict(impossible=({"home": ("flat",)},), bounds=()))
    assert fewer.open(receipt).sum() == people.filter(pl.col("home") != "flat").height
    assert limits.possible.any()


def test_parents_without_children_have_the_sum_zero() -> None:
    values, parent = np.array([[1, 2], [3, 4], [5, 6]]), np.array([3, 1, 3])
    assert sum_children(values, parent, 5).tolist() == [[0, 0], [3, 4], [0, 0], [6, 8], [0, 0]]
