"""The contribution of one person beyond all limits is exactly what the noise is sized for: not more, and not less.

Everybody else fits the limits, so that the difference between the exact numbers with and without that person is their
contribution. A bound that is off by one row, one group or half in a statement or in a sensitivity fails here.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import PrivacyLoss, approximate, concentrated, pure
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.contribution_bounding import FIT, Bounded, Term, bounded_totals
from sfumato.engines.engine import Running
from sfumato.query import Catalog, PrivateTable
from sfumato.query.execute.executor import additive_measurements, additive_totals, stated_totals
from sfumato.query.execute.fitting import fitting_sql
from sfumato.query.execute.grouped_rows import group_columns
from sfumato.query.execute.row_sampling import bin_counts_sql, distinct_count_sql
from sfumato.query.execute.sqlgen import additive_sql
from sfumato.query.plan.aggregates import BinCounts, DistinctCount, FittingUnits, ValueCounts
from sfumato.query.plan.first_rows import MOST_JOINED_ROWS
from sfumato.query.plan.noise import NoisePlan, grid_of
from sfumato.query.plan.outputs import LinearCombination
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query
from sfumato.secret import Permit

ROWS, GROUPS = 3, 2
PERMIT = Permit("a test")


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


COLUMNS = {
    "who": column("integer"), "town": column("category", values=tuple("abcdef")), "name": column("category"),
    "n": column("integer", low=-4, high=9), "x": column("number", low=-1, high=2.5),
}  # fmt: skip


def tables() -> tuple[Running, Running]:
    """Twenty people with one row each; and one more with nine different rows in each of six towns."""
    others = [(i, "abcdef"[i % 6], "abcdef"[i % 6], i % 9, 0.5) for i in range(20)]
    heavy = [(99, town, town, 9 + i, 2.5 + i) for town in "abcdef" for i in range(9)]
    frames = [pl.DataFrame(rows, schema=list(COLUMNS), orient="row") for rows in (others, others + heavy)]
    return tuple(Duckdb(threads=1).start({"t": frame}) for frame in frames)  # type: ignore[return-value]


@pytest.fixture(scope="module")
def pair() -> tuple[Running, Running]:
    return tables()


def plan(sql: str, cost: PrivacyLoss, **options: Any) -> NoisePlan:
    table = PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit="who"), rows=ROWS, groups=GROUPS)
    return plan_query(parse_query(sql, Catalog(dataset="d", private={"t": table})), cost, **options)


def moved(pair: tuple[Running, Running], rows_of: Any, keys: int) -> dict[Any, list[int]]:
    """By key, how far the person moves each number."""
    without, with_them = ({tuple(row[:keys]): [int(v) for v in row[keys:]] for row in rows_of(one)} for one in pair)
    width = len(next(iter(with_them.values())))
    return {key: [b - a for a, b in zip(without.get(key, [0] * width), numbers, strict=True)]
            for key, numbers in with_them.items()}  # fmt: skip


ADDITIVE = ["COUNT(*)", "COUNT(DISTINCT who)", "SUM(n)", "SUM(CLIP(n, -9, 0) - 9)", "SUM(x)", "AVG(x)", "VARIANCE(x)",
            "COUNT(*), SUM(x)", "COUNT(n), COUNT(DISTINCT who)"]  # fmt: skip


def totals(found: NoisePlan, running: Running, way: str) -> list[tuple[Any, ...]]:
    """The exact numbers by compiled code where there is some, or by SQL; without the count of fitting units."""
    if way != "compiled":
        return running.run(additive_sql(found, 5, passes=way == "passes")).open(PERMIT)
    rows = additive_totals(found, running, 5).open(PERMIT)
    return rows[1:] if group_columns(found.query) and rows[0][0] == FIT else rows


@pytest.mark.parametrize("what", ADDITIVE)
@pytest.mark.parametrize("keys", ["", "town", "name"])
@pytest.mark.parametrize("way", ["compiled", "sql", "passes"])
def test_counts_and_sums_of_sampled_groups(pair: tuple[Running, Running], what: str, keys: str, way: str) -> None:
    sql = f"SELECT {what} FROM t" + (f" GROUP BY {keys}" if keys else "")
    found = plan(sql, approximate(1, "1e-6") if keys == "name" else pure(1), bounding="sample")
    width = len(group_columns(found.query))
    change = moved(pair, lambda one: totals(found, one, way), width)
    groups = GROUPS if keys else 1
    assert found.groups == groups
    place = 0
    for measurement in additive_measurements(found):
        parts = [numbers[place : place + measurement.parts] for numbers in change.values()]
        aggregate = found.query.aggregates[measurement.aggregate or 0]
        grid = grid_of(aggregate, "sample")
        reach = sum(abs(part) for one in parts for part in one) * grid
        stated = groups * aggregate.sensitivity(ROWS) * grid
        assert reach == stated
        if measurement.mechanism.part_name() in ("laplace", "thresholded-laplace"):
            assert measurement.sensitivity == stated
        place += measurement.parts
    if keys:
        assert sum(bool(numbers[-1]) for numbers in change.values()) == groups
        assert sum(numbers[-1] for numbers in change.values()) == groups  # each unit counts once per key


@pytest.mark.parametrize("what", ["COUNT(*)", "SUM(n)", "SUM(x)", "AVG(x)"])
@pytest.mark.parametrize("cost", [concentrated(1), approximate(1, "1e-6")])
@pytest.mark.parametrize("way", ["compiled", "sql"])
def test_vectors_scaled_to_a_norm(pair: tuple[Running, Running], what: str, cost: PrivacyLoss, way: str) -> None:
    """The norm is that of the limit, up to the rounding of a millionth."""
    found = plan(f"SELECT town, {what} FROM t GROUP BY town", cost, bounding="clip")
    change = moved(pair, lambda one: totals(found, one, way), 1)
    place = 0
    for measurement in additive_measurements(found):
        aggregate = found.query.aggregates[measurement.aggregate or 0]
        grid = grid_of(aggregate, "clip")
        parts = [part for numbers in change.values() for part in numbers[place : place + measurement.parts]]
        squared = sum(part * part for part in parts) * grid**2
        stated = GROUPS * (aggregate.sensitivity(ROWS) * grid_of(aggregate, "sample")) ** 2
        assert measurement.sensitivity == stated
        assert Fraction(999, 1000) * stated < squared <= stated
        place += measurement.parts


@pytest.mark.parametrize("what", ["MEDIAN(n)", "MAX(x)", "MODE(town)", "QUANTILE_CONT(x, 0.9)", "COUNT(DISTINCT n)"])
@pytest.mark.parametrize("keys", ["", "town", "name"])
def test_rows_that_quantiles_modes_and_distinct_values_see(pair: tuple[Running, Running], what: str, keys: str) -> None:
    sql = f"SELECT {what} FROM t" + (f" GROUP BY {keys}" if keys else "")
    found = plan(sql, approximate(1, "1e-6") if keys == "name" else pure(1))
    aggregate, width = found.query.aggregates[0], len(group_columns(found.query))
    assert isinstance(aggregate, BinCounts | ValueCounts | DistinctCount)
    distinct = isinstance(aggregate, DistinctCount)
    statement = distinct_count_sql(found, aggregate, 5) if distinct else bin_counts_sql(found, aggregate, 5)  # type: ignore[arg-type]
    # Values of others, 0 to 8, are not those of the person, 9 to 17.
    change = moved(pair, lambda one: one.run(statement).open(PERMIT), width if distinct else width + 1)
    own = {key: numbers[0] for key, numbers in change.items() if numbers[0]}
    touched = {key[:width] for key in own}
    groups = GROUPS if keys else 1
    assert len(touched) == groups
    assert all(sum(n for key, n in own.items() if key[:width] == group) == ROWS for group in touched)
    measurement = found.of(0)
    assert measurement.sensitivity == (groups * ROWS if distinct else ROWS)
    assert aggregate.sensitivity(ROWS) == ROWS


def test_whom_the_limits_cut_counts_once(pair: tuple[Running, Running]) -> None:
    for options in ({"bounding": "sample"}, {"bounding": "clip"}):
        found = plan("SELECT town, COUNT(*) FROM t GROUP BY town", approximate(1, "1e-6"), fit="0.1", **options)
        [index] = [i for i, m in enumerate(found.query.aggregates) if isinstance(m, FittingUnits)]
        fit, cut = moved(pair, lambda one: one.run(fitting_sql(found)).open(PERMIT), 0)[()]  # noqa: B023
        assert (fit, cut) == (0, 1)
        assert found.of(index).sensitivity == 1


def test_rows_that_are_units_count_as_often_as_a_union_repeats_them() -> None:
    table = PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit=None))
    twice = "(SELECT n FROM t UNION ALL SELECT n FROM t)"
    query = parse_query(f"SELECT COUNT(*) FROM {twice}", Catalog(dataset="d", private={"t": table}))
    found = plan_query(query, pure(1))
    assert found.of(0).sensitivity == 2
    assert found.of(0).mechanism.loss_at(2) == pure(1)


def test_of_each_side_of_a_join_so_many_rows_of_a_person_are_combined() -> None:
    many = 300
    rows = [(1, "a", "a", i, 0.5) for i in range(many)] + [(None, "a", "a", 0, 0.5)]
    running = Duckdb(threads=1).start({"t": pl.DataFrame(rows, schema=list(COLUMNS), orient="row")})
    sql = "SELECT COUNT(*) FROM t JOIN (SELECT who, 1 AS one FROM t) u ON t.who = u.who"
    found = plan(sql, pure(1), rows=10**6)
    [(count, units)] = totals(found, running, "sql")
    assert (count, units) == (MOST_JOINED_ROWS**2, 1)  # and none without a person


@pytest.mark.parametrize(("n", "x", "bounds"), [(50, 99.0, (9, Fraction(5, 2))), (-50, -99.0, (-4, Fraction(-1)))])
def test_a_value_beyond_the_bounds_counts_as_the_bound(n: int, x: float, bounds: tuple[int, Fraction]) -> None:
    frame = pl.DataFrame([(1, "a", "a", n, x)], schema=list(COLUMNS), orient="row")
    running = Duckdb(threads=1).start({"t": frame})
    for what, bound in zip(("n", "x"), bounds, strict=True):
        found = plan(f"SELECT SUM({what}) FROM t", pure(1), rows=50)
        [(*shares, _)] = totals(found, running, "sql")
        [(_, output)] = found.query.outputs
        [number] = output.leaves()
        assert isinstance(number, LinearCombination)
        grid = grid_of(found.query.aggregates[0], "sample")
        assert sum(weight * shares[index] * grid for index, weight in number.terms) == bound
        found = plan(f"SELECT MEDIAN({what}) FROM t", pure(1))
        [cells] = found.query.aggregates
        assert isinstance(cells, BinCounts)
        [(cell, _)] = running.run(bin_counts_sql(found, cells, 5)).open(PERMIT)
        assert cells.low + cell * cells.grid == bound


@pytest.mark.parametrize("bounding", ["sample", "clip"])
def test_rows_without_a_unit_do_not_count(bounding: str) -> None:
    """Nothing bounds how many of them are one person's."""
    frame = pl.DataFrame({"who": [1, None, None], "town": ["a"] * 3, "name": ["a"] * 3, "n": [9] * 3, "x": [2.5] * 3})
    found = plan("SELECT town, COUNT(*), SUM(n) FROM t GROUP BY town", approximate(1, "1e-6"), bounding=bounding)
    whole, alone = (Duckdb(threads=1).start({"t": rows}) for rows in (frame, frame[:1]))
    for way in ("compiled", "sql", "passes"):
        assert totals(found, whole, way) == totals(found, alone, way) != []


@pytest.mark.parametrize("towns", ["abcd", "aaaa"])
@pytest.mark.parametrize("passes", [False, True])
def test_a_person_in_too_many_groups_or_rows_is_counted_as_cut(towns: str, passes: bool) -> None:
    rows = [(1, "a", "a", 1, 0.5), *((2, town, town, 1, 0.5) for town in towns)]
    running = Duckdb(threads=1).start({"t": pl.DataFrame(rows, schema=list(COLUMNS), orient="row")})
    found = plan("SELECT town, COUNT(*) FROM t GROUP BY town", pure(1), bounding="sample", fit="1/20")
    assert stated_totals(found, running, 5, passes=passes).open(PERMIT)[0][:3] == (FIT, 1, 1)


@pytest.mark.parametrize("sums", [[9], [9, 1], [-9, 15, 1]])
def test_a_norm_of_shortened_numbers_is_rounded_up(sums: list[int]) -> None:
    """With 3 binary digits less, 9 counts as 2 eighths and not as 1: what is left is within the bound."""
    bound, shift = 1, 3
    term = Term(reach=15, low=-15, high=15, bound=bound, shift=shift)
    unread: Any = None
    bounded = Bounded(source=unread, groups=len(sums), ends=None, terms=(term,))
    found = bounded_totals([("one", place, number) for place, number in enumerate(sums)], bounded)
    assert 0 < sum(row[1] ** 2 for row in found) <= bound << 2 * shift
