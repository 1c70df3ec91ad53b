"""Intervals against a search through all values that the noise leaves possible."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import polars as pl
import pytest

import sfumato
from sfumato.dataset import Column, Kind, RangeDomain, Role, Schema, ValuesDomain
from sfumato.dp.loss import PrivacyLoss, approximate, pure
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.noise_sums import combined_error, laplace_tail
from sfumato.query import Catalog, PrivateTable
from sfumato.query.execute.executor import NoisyTable
from sfumato.query.plan.accuracy import doubling_plans
from sfumato.query.plan.aggregates import BinCounts
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.outputs import Ratio
from sfumato.query.plan.planner import plan_query
from sfumato.query.plan.sums import BernsteinSum
from sfumato.query.results.answer import answer_rows
from sfumato.query.results.explain import explain
from sfumato.query.results.intervals import OutputEvaluator
from sfumato.query.results.postprocess import NoisyValue, evaluate
from sfumato.query.sql.parse import parse_query

LOW, HIGH = -20, 80
POINTS = 400
LETTERS = [chr(ord("a") + place) for place in range(20)]
GROUPED = Catalog(dataset="d", private={"t": PrivateTable(name="t", schema=Schema(columns={
    "g": Column(role=Role.PLAIN, kind=Kind.CATEGORY, domain=ValuesDomain(values=tuple(LETTERS))),
    "x": Column(role=Role.PLAIN, kind=Kind.NUMBER, domain=RangeDomain(low=LOW, high=HIGH)),
}))})  # fmt: skip


def plan(cost: PrivacyLoss) -> tuple[NoisePlan, Ratio]:
    columns = {"x": Column(role=Role.PLAIN, kind=Kind.NUMBER, domain=RangeDomain(low=LOW, high=HIGH))}
    table = PrivateTable(name="t", schema=Schema(columns=columns))
    strategy = plan_query(parse_query("SELECT AVG(x) FROM t", Catalog(dataset="d", private={"t": table})), cost)
    [ratio] = strategy.query.outputs[0][1].leaves()
    assert isinstance(ratio, Ratio)
    return strategy, ratio


def mean_of(strategy: NoisePlan, lower: float, upper: float) -> NoisyValue:
    released = NoisyTable(keys=((),), values={0: (lower,), 1: (upper,)})
    [found] = OutputEvaluator(strategy, released).column(strategy.query.outputs[0][1])
    return found


@pytest.mark.parametrize("cost", [pure(1), pure("1/20"), approximate(1, "1e-6")], ids=str)
def test_no_value_within_the_noise_is_left_out(cost: PrivacyLoss) -> None:
    """All values m with total - m·count within the exact noise of that number, on a fine grid, and little else."""
    strategy, ratio = plan(cost)
    draw, cut = random.Random(3), 0
    fine = [Fraction(LOW) + Fraction(HIGH - LOW) * i / POINTS for i in range(POINTS + 1)]
    noise = {float(m): strategy.error(ratio.beside(m), "0.95") for m in fine}
    for _ in range(40):
        rows = 10 ** draw.uniform(0, 4)
        share = draw.random()
        lower, upper = rows * (1 - share), rows * share
        found = mean_of(strategy, lower, upper)
        total, count = LOW * lower + HIGH * upper, lower + upper
        inside = [m for m, radius in noise.items() if abs(total - m * count) <= radius]
        assert found.low is not None
        assert found.high is not None
        assert found.low <= min([*inside, found.value])
        assert found.high >= max([*inside, found.value])
        if inside and min(inside) > LOW and max(inside) < HIGH:
            step = (HIGH - LOW) / 32
            assert found.low >= min(inside) - step
            assert found.high <= max(inside) + step
            cut += 1
    assert cut >= 5


def test_a_mean_without_rows_has_no_value() -> None:
    strategy, _ = plan(pure(1))
    assert mean_of(strategy, -3.0, 1.0).value is None


def test_a_mean_outside_its_range_stays_within() -> None:
    strategy, _ = plan(pure(1))
    found = mean_of(strategy, -10.0, 1000.0)
    assert found.value == HIGH
    assert found.low is not None
    assert LOW <= found.low <= HIGH == found.high


@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999999"])
@pytest.mark.parametrize("scales", [(1, 1), (1, 3), (1, 1, 1, 1), (1, 1000), (2, 5, 7)])
def test_the_quantile_of_a_sum_is_where_its_tail_says(scales: tuple[int, ...], confidence: str) -> None:
    parts = [(scale, Laplace(scale=1, grid="1/1000000000")) for scale in scales]
    found = combined_error(parts, confidence=confidence)
    apart: list[float] = []
    for scale in sorted(scales):  # the formula is for scales that differ
        apart.append(max(float(scale), apart[-1] * 1.004) if apart else float(scale))
    chance = 1 - float(confidence)
    assert laplace_tail(apart, found) <= chance * (1 + 1e-6)
    assert laplace_tail(apart, found * 0.98) > chance


CHOICES = [
    "CASE WHEN COUNT(*) > 7 THEN 1 ELSE 0 END",
    "CASE WHEN COUNT(*) > 7 THEN COUNT(*) ELSE -5 END",
    "CASE WHEN COUNT(*) = 7 THEN 1 WHEN COUNT(*) < 4 OR COUNT(*) >= 12 THEN 2 ELSE 3 END",
    "CASE WHEN NOT (COUNT(*) <= 7 AND COUNT(*) <> 5) THEN 10 ELSE 20 END",
    "CASE COUNT(*) WHEN 7 THEN 1 ELSE 0 END",
    "IF(COUNT(*) BETWEEN 5 AND 9, 100, 0)",
    "IF(COUNT(*) > 7 AND g = 'b', 1, 0)",
    "IF(COUNT(*) > 1000 OR g = 'a', 1, 0)",
    "IF(COUNT(*) IN (6, 7), COUNT(*) * 2, 1)",
    "COALESCE(NULLIF(COUNT(*), 7), 3)",
    "COALESCE(SQRT(COUNT(*) - 7), -1)",
    "IF(SQRT(COUNT(*) - 7) >= 0, 1, 0)",
    "IF(SQRT(COUNT(*) - 7) IS NULL, 1, 0)",
    "COALESCE(CASE WHEN COUNT(*) > 7 THEN 1 END, 0)",
    "SIGN(COUNT(*) - 7)",
    "IF(IF(COUNT(*) > 7, 1, 0) = 1, 5, 6)",
    "VAR_SAMP(x)",
]


def _constant(value: NoisyValue) -> Callable[[object], NoisyValue]:
    return lambda _: value


@pytest.mark.parametrize("sql", CHOICES)
def test_the_result_of_every_count_within_the_noise_is_within_the_interval(sql: str) -> None:
    """A condition holds for some of the counts and fails for others: no branch alone has the interval."""
    query = parse_query(f"SELECT g, {sql} AS y FROM t GROUP BY g", GROUPED)
    output = plan_query(query, pure(1)).query.outputs[1][1]
    for seen in range(15):
        for radius in (0, 1, 4, 9):
            within = NoisyValue(value=seen, low=seen - radius, high=seen + radius)
            found = evaluate(output, ("a",), _constant(within))
            for true in range(seen - radius, seen + radius + 1):
                exact = evaluate(output, ("a",), _constant(NoisyValue(value=true, low=true, high=true)))
                if found.low is not None and found.high is not None:
                    assert exact.value is not None
                    assert found.low <= exact.value <= found.high, (seen, radius, true)


def test_a_condition_that_is_certain_chooses_one_interval() -> None:
    query = parse_query("SELECT IF(COUNT(*) > 7 AND g = 'a', COUNT(*), 0) AS y FROM t GROUP BY g", GROUPED)
    output = plan_query(query, pure(1)).query.outputs[0][1]
    far, near = NoisyValue(value=20, low=8, high=32), NoisyValue(value=20, low=7, high=33)
    assert evaluate(output, ("a",), lambda _: far) == far
    assert evaluate(output, ("b",), lambda _: far) == NoisyValue(value=0, low=0, high=0)
    assert evaluate(output, ("a",), lambda _: near) == NoisyValue(value=20, low=0, high=33)


@pytest.mark.parametrize(
    ("end", "candidates"),
    [
        ("", 1),
        ("ORDER BY n DESC", 1),
        ("ORDER BY g LIMIT 3", 1),
        ("HAVING g > 'b'", 1),
        ("ORDER BY n DESC LIMIT 1", 20),
        ("ORDER BY n DESC LIMIT 19 OFFSET 1", 20),
        ("HAVING n > -1000", 20),
        ("QUALIFY RANK() OVER (ORDER BY n DESC) <= 3", 20),
    ],
)
def test_intervals_of_rows_that_noise_chose_hold_for_all_groups_at_once(end: str, candidates: int) -> None:
    query = parse_query(f"SELECT g, COUNT(*) AS n FROM t GROUP BY g {end}", GROUPED)
    strategy = plan_query(query, pure("1/2"))
    table = NoisyTable(keys=tuple((g,) for g in LETTERS), values={0: tuple(range(20))})
    radius = strategy.error(0, 1 - Fraction(1, 20) / candidates)
    rows = answer_rows(strategy, table)
    assert rows
    assert all((row[1].low, row[1].high) == (row[1].value - radius, row[1].value + radius) for row in rows)
    assert any("Bonferroni" in note for note in explain(strategy).notes) == (candidates > 1)


def test_a_cut_of_several_parts_by_noise_has_no_intervals() -> None:
    frame = pl.DataFrame({"g": LETTERS, "x": [1] * 20})
    columns = {"g": {"kind": "category", "domain": {"values": LETTERS}}, "x": {"kind": "integer"}}
    declared = {"dataset": "d", "person": "row", "tables": {"t": {"columns": columns}}}
    parts = "SELECT g, COUNT(*) AS n FROM t GROUP BY g UNION ALL SELECT 'all' AS g, COUNT(*) AS n FROM t"
    asked = sfumato.session(declared, {"t": frame}, epsilon=100)
    assert "n_low" in asked.ask(f"{parts} ORDER BY n", epsilon=1).intervals.columns
    assert "n_low" in asked.ask(f"{parts} ORDER BY g LIMIT 3", epsilon=1).intervals.columns
    cut = asked.ask(f"{parts} ORDER BY n LIMIT 3", epsilon=1)
    assert cut.intervals.columns == ["g", "n"]
    assert any("no intervals" in note for note in cut.notes)


def test_an_error_that_is_reached_by_trying_has_the_interval_of_all_tries() -> None:
    query = parse_query("SELECT COUNT(*) AS n FROM t ERROR 5%", GROUPED)
    [first, *_] = doubling_plans(query, Fraction(1), Fraction(0), {})
    [[cell]] = answer_rows(first, NoisyTable(keys=((),), values={0: (1000,)}))
    assert cell.high == 1000 + first.error(0, 1 - Fraction(1, 20) / 7)


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("IF(COUNT(*) > 7, 1, 0.5)", float),
        ("IF(COUNT(*) > 7, 1, 0)", int),
        ("CASE WHEN COUNT(*) > 7 THEN COUNT(*) WHEN COUNT(*) > 4 THEN 1 ELSE COUNT(*) / 2 END", float),
        ("COALESCE(NULLIF(COUNT(*), 7), 0.5)", float),
        ("COALESCE(NULLIF(COUNT(*), 7), SQRT(COUNT(*)))", float),
        ("GREATEST(COUNT(*), 6.5)", float),
        ("LEAST(COUNT(*), 6)", int),
        ("CLIP(COUNT(*), 2, 9)", int),
        ("CLIP(COUNT(*), 2.5, 9)", float),
        ("IF(COUNT(*) > 7, 0, SUM(x))", float),
        ("MIN(x)", float),
        ("MAX(x)", float),
        ("MEDIAN(x)", float),
    ],
)
def test_the_type_of_a_value_follows_from_the_query(sql: str, kind: type) -> None:
    """Whatever number is released: the type of a column must not depend on it."""
    query = parse_query(f"SELECT {sql} AS y FROM t", GROUPED)
    strategy = plan_query(query, pure(1))
    for seen in (0, 3, 5, 6, 7, 8, 20):
        for number in (seen, float(seen)):
            whole = not any(isinstance(one, BinCounts | BernsteinSum) for one in strategy.query.aggregates)
            cells: tuple[int | float, ...] = (seen if whole else number,)
            values = dict.fromkeys(range(len(strategy.query.aggregates)), cells)
            [[cell]] = answer_rows(strategy, NoisyTable(keys=((),), values=values))
            assert type(cell.value) is kind, (seen, cell)
