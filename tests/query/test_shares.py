"""Counts, sums, means and variances out of shares: exact without noise, and with the noise that was promised."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import approximate, concentrated, pure
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.mechanisms.thresholded_laplace import ThresholdedLaplace
from sfumato.dp.noise_sums import combined_error, laplace_tail
from sfumato.errors import BadParameter
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.plan.aggregates import BernsteinSum, Count, Sum
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.outputs import Measured
from sfumato.query.plan.planner import plan_query
from sfumato.query.results.explain import explain
from sfumato.query.sql.parse import parse_query

HUGE = 10**7


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


COLUMNS = {
    "person": column("integer"),
    "city": column("category", values=("a", "b", "c")),
    "plain": column("number", low=0, high=100),
    "far": column("number", low=80, high=100),
    "both": column("number", low=-20, high=10),
    "whole": column("integer", low=-5, high=2**38),
    "same": column("integer", low=7, high=7),
    "flag": column("boolean"),
    "word": column("category"),
}
ROWS: list[dict[str, Any]] = [
    {
        "person": i // 3, "city": "abc"[i % 3], "plain": None if i % 5 == 0 else (i * 7.25) % 101,
        "far": 80 + i % 21, "both": (i * 3) % 31 - 20.5, "whole": (i * 10**9) % 2**38, "same": 7 if i % 2 else None,
        "flag": i % 4 == 0, "word": f"w{i % 2}",
    }
    for i in range(90)
]  # fmt: skip


def catalog(unit: str | None = None, rows: int = 3, groups: int = 3) -> Catalog:
    limits = {"rows": rows, "groups": groups} if unit else {}
    table = PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit=unit), **limits)
    return Catalog(dataset="d", private={"t": table})


def session(known: Catalog, rows: list[dict[str, Any]] = ROWS) -> Session:
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10**9, "0.5"), dataset="d")
    return Session(known, {"t": pl.DataFrame(rows, infer_schema_length=None)}, ledger=book, analyst="ana")


def plan(sql: str, cost: Any = None, **limits: Any) -> NoisePlan:
    return plan_query(parse_query(sql, catalog("person", **limits) if limits else catalog()), cost or pure(1))


def errors(strategy: NoisePlan) -> list[float]:
    return [strategy.error(o.number, "0.95") for _, o in strategy.query.outputs if isinstance(o, Measured)]  # type: ignore


def values(name: str, keep: Callable[[dict[str, Any]], bool] = lambda _row: True) -> list[float]:
    domain = COLUMNS[name].domain
    assert domain is not None
    assert domain.low is not None
    assert domain.high is not None
    return [min(domain.high, max(domain.low, row[name])) for row in ROWS if row[name] is not None and keep(row)]


@pytest.mark.parametrize("unit", [None, "person"])
@pytest.mark.parametrize("name", ["plain", "far", "both", "whole", "same"])
def test_all_of_it_is_exact_without_noise(name: str, unit: str | None) -> None:
    asked = session(catalog(unit))
    sql = f"SELECT COUNT(*), COUNT({name}), SUM({name}), AVG({name}), VAR_POP({name}) FROM t"
    x = values(name)
    [row] = asked.ask(sql, epsilon=HUGE).rows
    got = [cell.value for cell in row]
    assert got[:2] == [90, len(x)]
    assert got[2:4] == pytest.approx([sum(x), statistics.fmean(x)], rel=1e-5)
    assert got[4] == pytest.approx(statistics.pvariance(x), rel=1e-4, abs=1e-6)
    [pair] = asked.ask(f"SELECT COUNT(*), SUM({name}) FROM t WHERE flag", epsilon=HUGE).rows
    assert pair[0].value == 23
    assert pair[1].value == pytest.approx(sum(values(name, lambda row: row["flag"])), rel=1e-5, abs=1e-4)
    [pair] = asked.ask(f"SELECT COUNT(*), SUM({name}) FILTER (WHERE flag) FROM t", epsilon=HUGE).rows
    assert pair[1].value == pytest.approx(sum(values(name, lambda row: row["flag"])), rel=1e-5, abs=1e-4)
    [several] = asked.ask(f"SELECT COUNT(*), SUM({name}), SUM(far), SUM(both) FROM t", epsilon=HUGE).rows
    assert several[3].value == pytest.approx(sum(values("both")), rel=1e-5)


def test_the_sum_is_as_exact_as_if_it_had_been_asked_alone() -> None:
    """A count's variance doubles, from 2 to 4 of its unit; half the cost for each would make both eight."""
    both = plan("SELECT COUNT(*), SUM(plain) FROM t")
    assert [type(m) for m in both.query.aggregates] == [BernsteinSum, BernsteinSum]
    [draw] = both.measurements
    assert draw.mechanism == Laplace(scale=1, grid=draw.mechanism.grid)  # type: ignore[attr-defined]
    count, total = errors(both)
    assert total == pytest.approx(errors(plan("SELECT SUM(plain) FROM t"))[0])
    assert total == pytest.approx(100 * math.log(20))
    assert count == pytest.approx(4.113, abs=0.01)  # (1 + t/2)·exp(-t) = 0.05
    assert errors(plan("SELECT COUNT(*), SUM(far), SUM(both) FROM t"))[1] == pytest.approx(2 * 100 * math.log(20))


def test_the_city_question_has_less_noise_than_an_even_split() -> None:
    """2 groups of a person, epsilon 1: an even split has Laplace scales 4 and 400, and 2/3 for the count 3 and 600."""
    count, total = errors(plan("SELECT city, COUNT(*), SUM(plain) FROM t GROUP BY city", rows=1, groups=2))
    assert count < 3 * math.log(20)
    assert total == pytest.approx(200 * math.log(20))


@pytest.mark.parametrize("cost", [pure(1), concentrated("1/2")])
def test_gaussian_and_laplace_shares_cost_what_a_count_costs(cost: Any) -> None:
    for item in ("COUNT(*), SUM(plain)", "AVG(far)", "VARIANCE(plain), COUNT(*)"):
        shared, alone = plan(f"SELECT {item} FROM t", cost), plan("SELECT COUNT(*) FROM t", cost)
        assert len(shared.measurements) == 1
        assert shared.measurements[0].loss == alone.measurements[0].loss
        assert shared.measurements[0].error("0.95") <= alone.measurements[0].error("0.95")


def test_what_has_no_rows_in_common_is_measured_apart() -> None:
    question = plan("SELECT COUNT(*) FILTER (WHERE flag), SUM(plain) FROM t").query
    assert [type(m) for m in question.aggregates] == [Count, Sum]
    assert [type(m) for m in plan("SELECT COUNT(DISTINCT person), SUM(plain) FROM t").query.aggregates][-1] is Sum


HEAVY = [{**ROWS[1], "person": 1, "plain": 30.0} for _ in range(5)]


def test_people_with_too_many_rows_keep_their_mean_in_every_statistic() -> None:
    """Five rows of 30, of which one may count: 30, whatever stands beside the sum, so that a quotient is the mean."""
    asked = session(catalog("person", rows=1, groups=1), HEAVY)
    for beside in ("", ", COUNT(*)", ", AVG(plain)", ", COUNT(plain)", ", AVG(plain), COUNT(*)", ", VAR_POP(plain)"):
        [[total, *_]] = asked.ask(f"SELECT SUM(plain){beside} FROM t", epsilon=HUGE).rows
        assert total.value == pytest.approx(30, abs=0.01)
    for quotient in ("SUM(plain) / COUNT(*)", "SUM(plain) / COUNT(plain)"):
        assert asked.ask(f"SELECT {quotient} FROM t", epsilon=HUGE).value == pytest.approx(30, abs=0.01)
    assert asked.ask("SELECT AVG(plain) FROM t", epsilon=HUGE).value == pytest.approx(30, abs=0.01)
    assert asked.ask("SELECT VAR_POP(plain) FROM t", epsilon=HUGE).value == pytest.approx(0, abs=0.1)


def test_means_survive_clipping_in_norm() -> None:
    """Everybody is in all groups with many rows; count and sum are scaled down alike."""
    rows = [{**ROWS[1], "person": p, "city": c, "plain": 30.0} for p in range(20) for c in "abc" for _ in range(4)]
    asked = session(catalog("person", rows=1, groups=2), rows)
    answer = asked.ask("SELECT city, AVG(plain) AS m FROM t GROUP BY city", epsilon=HUGE, delta="0.01", bounding="clip")
    assert answer.frame["m"].to_list() == pytest.approx([30.0] * 3, abs=0.01)


def test_intervals_hold_the_value_and_counts_are_whole() -> None:
    asked = session(catalog())
    for i in range(30):
        [row] = asked.ask(
            f"SELECT COUNT(*), SUM(both), AVG(both), VARIANCE(both) FROM t WHERE {i} = {i}", epsilon=2
        ).rows
        assert isinstance(row[0].value, int)
        for cell in row[:3]:
            assert cell.low is not None
            assert cell.high is not None
            assert cell.low <= cell.value <= cell.high
        assert -20 <= row[2].low <= row[2].high <= 10  # type: ignore[operator]


def test_a_wanted_error_holds_for_all_that_is_shown() -> None:
    told = session(catalog()).explain("SELECT COUNT(*) AS n, SUM(both) AS s FROM t ERROR 50 CONFIDENCE 95%")
    assert max(noise.error for noise in told.noises) == pytest.approx(50, rel=2e-3)
    assert {noise.what for noise in told.noises} == {"Number of rows", "Sum"}


def test_private_keys_cost_no_epsilon_of_their_own() -> None:
    cost = approximate(1, "1e-6")
    for item in ("COUNT(*)", "COUNT(*), SUM(plain)", "AVG(plain)", "SUM(plain)"):
        made = plan(f"SELECT word, {item} FROM t GROUP BY word", cost)
        assert made.partition_selection is None
        assert made.threshold_selection is not None
        assert isinstance(made.threshold_selection.mechanism, ThresholdedLaplace)
        assert made.threshold_selection.loss.size == 1
        assert 0 < made.threshold_selection.loss.delta <= cost.delta
    apart = plan("SELECT word, MEDIAN(plain) FROM t GROUP BY word", cost)
    assert apart.threshold_selection is None
    assert apart.partition_selection is not None
    asked = session(catalog())
    answer = asked.ask("SELECT word, COUNT(*) AS n, SUM(far) AS s FROM t GROUP BY word", epsilon=50, delta="1e-6")
    assert answer.frame["word"].to_list() == ["w0", "w1"]
    assert answer.frame["n"].to_list() == pytest.approx([45, 45], abs=3)
    assert isinstance(
        asked.ask("SELECT word, COUNT(*) AS n FROM t GROUP BY word", epsilon=9, delta="1e-6").rows[0][1].value,
        int,
    )
    assert (
        len(asked.ask("SELECT CAST(whole AS VARCHAR) AS k, COUNT(*) FROM t GROUP BY k", epsilon=1, delta="1e-6").rows)
        == 0
    )


@pytest.mark.parametrize("wanted", ["COUNT(*)", "AVG(plain)"])
def test_an_explanation_says_which_keys_will_be_named(wanted: str) -> None:
    strategy = plan(f"SELECT word, {wanted} FROM t GROUP BY word", approximate(1, "1e-6"))
    assert strategy.threshold_selection is not None
    mechanism, told = strategy.threshold_selection.mechanism, explain(strategy)
    assert isinstance(mechanism, ThresholdedLaplace)
    assert told.needed is not None
    assert mechanism.named(str(told.needed)) == pytest.approx(0.95, abs=0.01)
    assert f"a count of {math.ceil(told.needed)} is reported with probability 0.95" in str(told)
    assert explain(plan("SELECT city, COUNT(*) FROM t GROUP BY city", approximate(1, "1e-6"))).needed is None


def test_combined_noise_is_bounded_as_its_parts_are() -> None:
    one = Laplace(scale=3, grid="1/1024")
    assert combined_error([(2, one)], confidence="0.95") == 2 * one.error(confidence="0.95")
    assert combined_error([], confidence="0.95") == 0
    normal = Gaussian(variance=9, grid="1/1024")
    assert combined_error([(1, normal), (-1, normal)], confidence="0.95") == pytest.approx(1.96 * 18**0.5, abs=0.01)
    mixed = combined_error([(1, one), (1, normal)], confidence="0.95")
    assert mixed > combined_error([(1, one), (1, one)], confidence="0.95") * 0.8
    assert laplace_tail([1.0, 1.0001], 2.0) == pytest.approx(2 * math.exp(-2), rel=1e-3)  # (1 + t/2)·exp(-t) at 2
    with pytest.raises(BadParameter):
        combined_error([(1, one)] * 5, confidence="0.95")


REPEATED: list[dict[str, Any]] = [
    {"person": 1, "city": "ab"[i % 2], "plain": None if i % 4 == 0 else float(i), "far": 80 + i % 7, "both": 0.0,
     "whole": 1, "same": 7, "flag": None if i == 9 else i % 10 < 8, "word": f"w{i % 3}"}
    for i in range(2000)
]  # fmt: skip
"""Many rows of one person: each numerator and denominator below has far more of them than may count."""
QUOTIENTS = (
    "COUNT_IF(flag) / COUNT(*)",
    "SUM(CASE WHEN flag THEN 1 ELSE 0 END) / COUNT(*)",
    "COUNT(*) FILTER (WHERE flag) / COUNT(*)",
    "COUNT(plain) / COUNT(*)",
    "COUNT(*) FILTER (WHERE flag) / COUNT(*) FILTER (WHERE NOT flag)",
    "COUNT_IF(flag) / COUNT_IF(word = 'w1')",
    "COUNT_IF(flag AND word = 'w1') / COUNT_IF(word = 'w1')",
    "COUNT_IF(flag AND word = 'w1') / COUNT_IF(flag AND city = 'a')",
    "COUNT_IF(flag) / COUNT(plain)",
    "SUM(far) FILTER (WHERE flag) / COUNT(*)",
    "SUM(plain) / COUNT(plain)",
    "SUM(plain) / COUNT_IF(flag)",
    "SUM(plain) FILTER (WHERE flag) / SUM(far) FILTER (WHERE word = 'w1')",
    "AVG(plain) * COUNT(plain) / COUNT(*)",
    "AVG(far) FILTER (WHERE flag) * COUNT_IF(flag) / SUM(far)",
    "VAR_POP(plain) * COUNT(plain) / COUNT(*)",
)


@pytest.mark.parametrize("where", ["TRUE", "flag IS NULL OR word <> 'w2'"])
@pytest.mark.parametrize("quotient", QUOTIENTS)
def test_the_two_sides_of_a_quotient_are_bounded_alike(quotient: str, where: str) -> None:
    """A person with far more rows than count has the quotient of these rows, whatever their conditions are."""
    sql = f"SELECT {quotient} FROM t WHERE {where}"
    with duckdb.connect() as exact:
        exact.register("t", pl.DataFrame(REPEATED, infer_schema_length=None).with_columns(pl.col("plain").clip(0, 100)))
        [(truth,)] = exact.execute(sql).fetchall()
    asked = session(catalog("person", rows=900, groups=1), REPEATED)
    assert asked.ask(sql, epsilon=HUGE).value == pytest.approx(truth, rel=0.005)


@pytest.mark.parametrize("bounding", ["sample", "clip"])
def test_the_two_sides_are_bounded_alike_in_every_group(bounding: str) -> None:
    rows = [dict(row, person=person) for person in range(20) for row in REPEATED[:200]]
    asked = session(catalog("person", rows=30, groups=2), rows)
    sql = "SELECT city, COUNT_IF(flag) AS n, COUNT(*) AS all, COUNT_IF(flag) / COUNT(*) AS share FROM t GROUP BY city"
    answer = asked.ask(sql, epsilon=HUGE, delta="0.01", bounding=bounding)
    a, b, c = answer.frame.sort("city").rows()
    truth = [sum(bool(r["flag"]) for r in REPEATED[:200] if r["city"] == name) / 100 for name in "ab"]
    assert [a[1] / a[2], b[1] / b[2]] == pytest.approx(truth, rel=0.005)
    assert [a[3], b[3]] == pytest.approx(truth, rel=0.005)
    assert max(a[2], b[2]) <= 20 * 45 < 20 * 100
    assert c[1:3] == pytest.approx((0, 0), abs=0.5)


def test_conditions_of_a_count_share_the_noise_of_one_count() -> None:
    """A conditional count beside the count of all rows: half the noise that an even split would have."""
    conditional, every = errors(plan("SELECT COUNT_IF(flag), COUNT(*) FROM t", rows=3, groups=1))
    [alone] = errors(plan("SELECT COUNT_IF(flag) FROM t", rows=3, groups=1)) or [math.nan]
    assert conditional == pytest.approx(3 * math.log(20), rel=0.02)
    assert conditional < every < 2 * conditional
    assert alone == pytest.approx(3 * math.log(20), rel=0.02)
