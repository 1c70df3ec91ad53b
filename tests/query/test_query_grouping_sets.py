"""ROLLUP, CUBE and GROUPING SETS: one measurement, totals that add up, one cost."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import approximate, concentrated, pure, sequential
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.receipt import issue
from sfumato.errors import OverBudget
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.execute.executor import exact_vectors
from sfumato.query.plan.grouping_sets import CubePlan, plan_sets
from sfumato.query.plan.marginals import MarginalEstimator
from sfumato.query.plan.pooled_noise import pooled_error
from sfumato.query.sql.compound import parse_compound

WARDS, SEXES = ("a", "b", "c"), ("f", "m")


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


COLUMNS = {
    "id": column("integer"),
    "ward": column("category", values=WARDS),
    "sex": column("category", values=SEXES),
    "grade": column("integer", low=1, high=4),
    "bill": column("number", low=0, high=10),
}
ROWS = pl.DataFrame(
    [{"id": i // 3, "ward": ("a", "b", "c", "d", None)[i % 5], "sex": "fm"[i // 3 % 2], "grade": i % 6,
      "bill": i % 7 + 0.5} for i in range(600)]
)  # fmt: skip


def session(rows: int = 3, groups: int = 6, data: pl.DataFrame = ROWS, unit: str | None = "id") -> Session:
    table = PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit=unit), rows=rows, groups=groups)
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10**9, "0.1"), dataset="d")
    return Session(Catalog(dataset="d", private={"t": table}), {"t": data}, ledger=book, analyst="a")


def numbers(answer: Any, keys: int) -> dict[tuple[Any, ...], Any]:
    return {tuple(cell.value for cell in row[:keys]): row[keys].value for row in answer.rows}


def test_least_squares_as_a_general_solver_finds_it() -> None:
    sizes = (3, 4, 2)
    variances = {(0, 1, 2): 1.0, (0,): 0.3, (1, 2): 2.0, (): 0.5}
    cells = list(product(*map(range, sizes)))
    draw = np.random.default_rng(5)

    def summed(keys: tuple[int, ...]) -> Any:
        groups = product(*(range(sizes[key]) for key in keys))
        return np.array([[float(all(cell[k] == v for k, v in zip(keys, g, strict=True))) for cell in cells]
                         for g in groups])  # fmt: skip

    noisy = {keys: draw.normal(size=[sizes[key] for key in keys]) for keys in variances}
    weighted = np.vstack([summed(keys) / variance**0.5 for keys, variance in variances.items()])
    seen = np.concatenate([np.ravel(noisy[keys]) / variance**0.5 for keys, variance in variances.items()])
    solved = np.linalg.lstsq(weighted, seen, rcond=None)[0]
    spread = np.linalg.pinv(weighted.T @ weighted)
    marginals = MarginalEstimator(sizes, variances)
    for keys in [(0, 1, 2), (0, 2), (1,), ()]:
        assert np.ravel(marginals.estimate(noisy, keys)) == pytest.approx(summed(keys) @ solved)
        assert np.diag(summed(keys) @ spread @ summed(keys).T) == pytest.approx(marginals.variance(keys))


def test_the_error_of_many_noises_is_the_quantile_of_their_sum() -> None:
    """It detects a bound that is 1 % too small or 4 % too large."""
    draw = np.random.default_rng(3)
    terms = [(1.0, 5, Laplace(scale=30)), (0.4, 40, Laplace(scale=50)), (2.5, 1, Laplace(scale=60))]
    drawn = [w * draw.laplace(scale=float(m.scale), size=(100_000, n)).sum(axis=1) for w, n, m in terms]
    for level in ("0.95", "0.99"):
        true = np.quantile(np.abs(sum(drawn)), float(level))
        assert 0.99 * true < pooled_error(terms, confidence=level) < 1.04 * true


@pytest.mark.parametrize(("level", "most"), [("0.9", 1.01), ("0.999999", 1.01), ("0.999999999999", 2)])
def test_errors_at_high_confidence_are_those_of_two_laplace_noises(level: str, most: float) -> None:
    """abs(X + Y) of two exceeds x times their scale with probability (1 + x/2) e^-x."""
    x = pooled_error([(1.0, 2, Laplace(scale=1024, grid=1))], confidence=level) / 1024
    missed = float(1 - Fraction(level))
    assert (1 + x / 2) * exp(-x) <= missed < (1 + x / most / 2) * exp(-x / most)


@pytest.mark.parametrize("cost", [{"epsilon": 1}, {"epsilon": 1, "delta": "1e-6"}, {"rho": "0.5"}])
def test_totals_are_the_sums_of_their_groups(cost: dict[str, Any]) -> None:
    """Also of those that are not shown: what is missing from the shown ones is the same in every total."""
    answer = session().ask("SELECT ward, sex, SUM(bill), COUNT(*) FROM t GROUP BY CUBE (ward, sex)", **cost)
    for place in (2, 3):
        got = {(row[0].value, row[1].value): row[place].value for row in answer.rows}
        other = {sex: got[None, sex] - sum(got[ward, sex] for ward in WARDS) for sex in (*SEXES, None)}
        unknown_sex = got[None, None] - sum(got[None, sex] for sex in SEXES)
        assert got[None, None] == pytest.approx(sum(got[w, None] for w in WARDS) + other[None])
        assert abs(unknown_sex) > 0  # noise of the group that is not shown


def test_explain_names_the_grouping_sets() -> None:
    asked = session()
    for sql in ("SELECT ward, sex, COUNT(*) FROM t GROUP BY ROLLUP (ward, sex)",
                "SELECT ward, sex, COUNT(*) FROM t GROUP BY ROLLUP (1, 2)"):  # fmt: skip
        found = asked.explain(sql, epsilon=1)
        names = ["Number of rows by ward, sex", "Number of rows by ward", "Number of rows in total"]
        assert [noise.what for noise in found.noises] == names
        assert asked.ask(sql, epsilon=1).explanation.noises == found.noises
    apart = asked.explain("SELECT ward, MEDIAN(bill) FROM t GROUP BY ROLLUP (ward)", epsilon=1)
    assert [noise.what.split(")")[1] for noise in apart.noises] == [" by ward", " in total"]


def test_rows_with_missing_and_undeclared_keys_are_in_the_totals() -> None:
    answer = session(rows=10).ask("SELECT ward, grade, COUNT(*) FROM t GROUP BY ROLLUP (ward, grade)", epsilon=10**6)
    got = numbers(answer, 2)
    assert got[None, None] == pytest.approx(600, abs=0.1)
    assert [got[ward, None] for ward in WARDS] == pytest.approx([120] * 3, abs=0.1)
    assert got["a", 1] == pytest.approx(ROWS.filter((pl.col("ward") == "a") & (pl.col("grade") == 1)).height, abs=0.1)
    assert len(got) == 3 * 4 + 3 + 1


def test_all_sets_cost_once_and_are_better_than_one_after_the_other() -> None:
    asked = session(unit=None)
    sql = "SELECT ward, sex, COUNT(*) AS n FROM t GROUP BY ROLLUP (ward, sex)"
    errors = [noise.error for noise in asked.explain(sql, epsilon=1).noises]
    apart = asked.explain("SELECT COUNT(*) FROM t", epsilon="1/3").noises[0].error
    assert len(errors) == 3
    assert sum(error**2 for error in errors) < 3 * apart**2
    answer = asked.ask(sql, epsilon=1)
    assert answer.loss == pure(1)
    assert asked.ledger.balance(dataset="d").spent == pure(1)
    again = asked.ask(f"{sql} ORDER BY n", epsilon=1)
    assert again.cached
    assert sorted(numbers(again, 2).values()) == sorted(numbers(answer, 2).values())
    asked.ledger.set_cap(pure("1.5"), dataset="d")
    with pytest.raises(OverBudget):
        asked.ask(sql, epsilon="0.6")
    assert asked.ledger.balance(dataset="d").spent == pure(1)


def test_intervals_hold_the_truth() -> None:
    """1,440 numbers of 60 answers at 95 %, where one answer's are correlated: an interval half as wide fails."""
    asked, held = session(unit=None), []
    sql = "SELECT ward, sex, COUNT(*) AS n, SUM(bill) AS m FROM t GROUP BY CUBE (ward, sex)"
    truth = [[cell.value for cell in row[2:]] for row in asked.ask(sql, epsilon=10**7).rows]
    for place in range(60):
        for row, true in zip(asked.ask(sql, epsilon=1 + place / 1000).rows, truth, strict=True):
            held += [cell.low <= value <= cell.high for cell, value in zip(row[2:], true, strict=True)]
    assert 0.88 < np.mean(held) < 0.99


def planned(asked: Session, sql: str, cost: Any) -> CubePlan:
    compound = parse_compound(sql, asked.catalog)
    assert compound is not None
    plan = plan_sets(compound.parts, cost)
    assert plan is not None
    return plan


def cells(asked: Session, plan: CubePlan) -> list[Any]:
    receipt = issue(pure(1), dataset="d", entry=0)
    vectors = exact_vectors(plan.cells, asked.running, receipt).open(receipt)
    own = [draw.measurement for draw in plan.draws if draw.keys == plan.draws[0].keys]
    return [v.reshape(*plan.marginals.sizes, m.parts) for v, m in zip(vectors, own, strict=True)]


@pytest.mark.parametrize("cost", [pure(1), concentrated("0.5"), approximate(1, "1e-6")])
@pytest.mark.parametrize("what", ["COUNT(*)", "SUM(bill)", "AVG(bill)"])
def test_what_one_person_changes_in_all_marginals_is_paid_for(what: str, cost: Any) -> None:
    """A person far beyond the limits; all others fit them. A sensitivity of one group instead of all fails."""
    heavy = pl.DataFrame([{"id": 10**6, "ward": ward, "sex": sex, "grade": 1, "bill": 10.0}
                          for ward in WARDS for sex in SEXES for _ in range(4)])  # fmt: skip
    few = ROWS.unique("id", keep="first", maintain_order=True)
    pair = [session(rows=2, groups=4, data=data) for data in (few, pl.concat([few, heavy]))]
    plan = planned(pair[0], f"SELECT ward, sex, {what} FROM t GROUP BY CUBE (ward, sex)", cost)
    without, with_them = (cells(asked, plan) for asked in pair)
    losses, reached = [], 0.0
    own = [draw.measurement.aggregate for draw in plan.draws if draw.keys == plan.draws[0].keys]
    for draw in plan.draws:
        place = own.index(draw.measurement.aggregate)
        axes = tuple(axis for axis in range(2) if axis not in draw.keys)
        moved = (with_them[place] - without[place]).sum(axis=axes)
        mechanism = draw.measurement.mechanism
        steps = [abs(int(value)) for value in np.ravel(moved)]
        grid = mechanism.noise.grid
        distance = sum(steps) * grid if isinstance(mechanism, Laplace) else sum(n * n for n in steps) * grid**2
        assert distance <= draw.measurement.sensitivity
        reached = max(reached, float(distance / draw.measurement.sensitivity))
        losses.append(mechanism.loss_at(distance))
    assert sequential(losses).composable().within(plan.cost.composable())
    assert reached == 1  # the bound is met, so that no smaller one would do
