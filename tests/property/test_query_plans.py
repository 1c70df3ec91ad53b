"""Generated questions: the loss by two routes, neighbouring tables, and SQL that was never meant to be.

The neighbour tests compare exact, un-noised numbers: they need no statistics. Each takes one unit out of a table and
asks whether any number moved farther than the noise was made for. Mutants (bounds left out, no clipping before the sum,
a sensitivity that forgets a row) must be caught by the same test.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import PrivacyLoss, approximate, concentrated, pure, sequential
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.mechanisms.quantile import Quantile
from sfumato.dp.mechanisms.quantiles import Quantiles
from sfumato.dp.mechanisms.thresholded_gaussian import ThresholdedGaussian
from sfumato.dp.mechanisms.thresholded_laplace import ThresholdedLaplace
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.expressions import Arithmetic, Case, Constant, Expression, Extreme
from sfumato.engines.expressions import ColumnRef as Named
from sfumato.errors import AnswerFailed, QueryRefused, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, PublicTable, Session
from sfumato.query.execute.executor import additive_totals
from sfumato.query.execute.grouped_rows import group_columns
from sfumato.query.execute.row_sampling import bin_counts_sql, distinct_count_sql
from sfumato.query.plan import planner as choosing
from sfumato.query.plan.aggregates import BernsteinSum, BinCounts, Count, DistinctCount, Sum
from sfumato.query.plan.noise import NoisePlan, grid_of
from sfumato.query.plan.planner import plan_query
from sfumato.query.plan.query import Query
from sfumato.query.sql.parse import parse_query
from sfumato.secret import Permit

CANARY = "zanzibar"
MANY = int(os.environ.get("SFUMATO_GENERATED", "1000"))
"""How many questions the slow tests generate; 10,000 take some minutes."""
PERMIT = Permit("a test of exact numbers")


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


COLUMNS = {
    "person": column("integer"),
    "city": column("category", values=("a", "b", "c", "d")),
    "n": column("integer", low=-3, high=9),
    "x": column("number", low=-1.5, high=4),
    "flag": column("boolean"),
    "word": column("category"),
}
REGIONS = pl.DataFrame({"city": ["a", "b", "c"], "region": ["r", "s", "s"], "rate": [1, 2, 5]})


def catalog(unit: str | None, rows: int = 2, groups: int = 2) -> Catalog:
    table = PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit=unit), rows=rows, groups=groups)
    public = PublicTable(name="regions", frame=REGIONS, key=("city",))
    return Catalog(dataset="d", private={"t": table}, public={"regions": public})


CONDITIONS = [
    "",
    "WHERE flag",
    "WHERE n > 2",
    "WHERE city <> 'a' OR n IS NULL",
    "WHERE x BETWEEN 0 AND 2",
    "WHERE NOT flag AND city IN ('a', 'b')",
    "WHERE word LIKE 'z%'",
]
ITEMS = [
    "COUNT(*)",
    "COUNT(n)",
    "SUM(n)",
    "SUM(x)",
    "AVG(n)",
    "AVG(x)",
    "STDDEV(x)",
    "VARIANCE(n)",
    "MEDIAN(n)",
    "QUANTILE_CONT(x, 0.3)",
    "QUANTILE_CONT(x, 0.1), QUANTILE_CONT(x, 0.8), MIN(x)",
    "MAX(n)",
    "COUNT(DISTINCT word)",
    "COUNT(DISTINCT n)",
    "SUM(n * n - 1)",
    "SUM(CASE WHEN flag THEN n ELSE -n END)",
    "SUM(CLIP(x * n, -2, 2))",
    "COUNT(*) FILTER (WHERE flag)",
]
KEYS = [
    ("", ""),
    ("city", "city"),
    ("flag", "flag"),
    ("n", "n"),
    ("FLOOR(n / 4)", "FLOOR(n / 4)"),
    ("city, flag", "city, flag"),
    ("CASE WHEN n > 3 THEN 'big' ELSE 'small' END",) * 2,
]
SOURCES = [
    "t",
    "(SELECT * FROM t WHERE n < 8) AS t",
    "t JOIN regions USING (city)",
    "t LEFT JOIN regions USING (city)",
    "(SELECT * FROM t UNION ALL SELECT * FROM t WHERE flag) AS t",
]
UNIT_SOURCES = [
    "(SELECT a.city, b.n, b.x, a.flag, b.word, a.person FROM t AS a JOIN t AS b ON a.person = b.person) AS t",
    "(SELECT person, city, flag, MAX(n) AS n, AVG(CLIP(x, -1, 1)) AS x, COUNT(*) AS m, MIN(n) AS word "
    "FROM t GROUP BY person, city, flag) AS t",
]


def query(draw: random.Random, unit: bool) -> str:
    source = draw.choice(SOURCES + (UNIT_SOURCES if unit else []))
    items = draw.sample(ITEMS + (["COUNT(DISTINCT person)"] if unit else []), draw.randint(1, 3))
    condition, (shown, by) = draw.choice(CONDITIONS), draw.choice(KEYS)
    if "MIN(n) AS word" in source:
        condition = "" if "word" in condition else condition
        items = [item for item in items if "word" not in item] or ["COUNT(*)"]
    select = ", ".join(([shown] if shown else []) + items)
    return f"SELECT {select} FROM {source} {condition}" + (f" GROUP BY {by}" if by else "")


def cost(draw: random.Random) -> PrivacyLoss:
    size = Fraction(draw.randint(1, 400), 100)
    return draw.choice([pure(size), approximate(size, Fraction(1, 10**6)), concentrated(size, Fraction(1, 10**6))])


def rows(draw: random.Random, people: int) -> list[dict[str, Any]]:
    return [
        {
            "person": draw.randrange(people),
            "city": draw.choice(["a", "b", "c", "d", "e", None]),
            "n": draw.choice([None, -(10**6), -3, 0, 1, 5, 9, 10**6]),
            "x": draw.choice([None, float("nan"), float("inf"), float("-inf"), -1.5, 0.1, 3.99, 1e300, 2.5]),
            "flag": draw.choice([True, False, None]),
            "word": draw.choice([CANARY, "y", "z", None]),
        }
        for _ in range(draw.randint(1, 30))
    ]


TYPES = {"person": pl.Int64, "city": pl.String, "n": pl.Int64, "x": pl.Float64, "flag": pl.Boolean, "word": pl.String}


def start(data: list[dict[str, Any]], compiled: int) -> Any:
    frame = pl.DataFrame(data, schema=TYPES)
    return Duckdb(threads=1, compiled=compiled).start({"t": frame.to_arrow(), "regions": REGIONS.to_arrow()})


def exact(strategy: NoisePlan, engine: Any) -> dict[int | None, dict[Any, int]]:
    """The un-noised numbers of every draw, by group (and cell)."""
    question, width = strategy.query, len(group_columns(strategy.query))
    found: dict[int | None, dict[Any, int]] = {}
    added = [i for i, m in enumerate(question.aggregates) if isinstance(m, Count | Sum)]
    if added or strategy.partition_selection is not None:
        table = additive_totals(strategy, engine, 7).open(PERMIT)
        for place, i in enumerate(added):
            found[i] = {row[:width]: int(row[width + place]) for row in table}
        if strategy.partition_selection is not None:
            found[None] = {row[:width]: int(row[-1]) for row in table}
    for i, measurement in enumerate(question.aggregates):
        if isinstance(measurement, DistinctCount):
            found[i] = {
                row[:width]: row[width] for row in engine.run(distinct_count_sql(strategy, measurement, 7)).open(PERMIT)
            }
        elif isinstance(measurement, BinCounts):
            table = engine.run(bin_counts_sql(strategy, measurement, 7)).open(PERMIT)
            found[i] = {row[: width + 1]: row[width + 1] for row in table}
    return found


def too_far(strategy: NoisePlan, one: dict[int | None, dict[Any, int]], two: dict[int | None, dict[Any, int]]) -> str:
    """What moved farther than the noise was made for; empty if nothing did."""
    width = len(group_columns(strategy.query))
    for draw in strategy.measurements:
        moved: dict[Any, int] = {}
        chosen = isinstance(draw.mechanism, Quantile | Quantiles)
        for index in draw.covers[:1] if chosen else draw.covers or (None,):  # the shares of a number move together
            a, b = one[index], two[index]
            moved |= {(*key, index)[: None if draw.parts > 1 and not chosen else -1]: abs(a.get(key, 0) - b.get(key, 0))
                      for key in {*a, *b}}  # fmt: skip
        if draw.aggregate is None:
            if sum(moved.values()) > strategy.groups or max(moved.values(), default=0) > 1:
                return "keys"
            continue
        measurement = strategy.query.aggregates[draw.aggregate]
        if isinstance(measurement, BinCounts):
            by_group: dict[Any, int] = {}
            for key, change in moved.items():
                by_group[key[:width]] = by_group.get(key[:width], 0) + change
            touched = [change for change in by_group.values() if change]
            spread = len(touched) > strategy.groups or max(touched, default=0) > draw.sensitivity
            if strategy.bounding == "row":  # copies of one row may lie in different groups
                spread = sum(touched) > draw.sensitivity
            if spread:
                return f"cells of {measurement}"
            continue
        grid = grid_of(measurement, strategy.bounding)
        if isinstance(draw.mechanism, ThresholdedLaplace | ThresholdedGaussian):
            by_key: dict[Any, int] = {}
            for key, change in moved.items():
                by_key[key[:width]] = by_key.get(key[:width], 0) + change
            touched = [change for change in by_key.values() if change]
            if len(touched) > draw.mechanism.keys or max(touched, default=0) * grid > draw.mechanism.max_contribution:
                return f"keys named by {measurement}"
        if isinstance(draw.mechanism, Gaussian):
            if sum((change * grid) ** 2 for change in moved.values()) > draw.sensitivity:
                return f"L2 of {measurement}"
        elif sum(moved.values()) * grid > draw.sensitivity:
            return f"L1 of {measurement}"
    return ""


def pairs(count: int, seed: int) -> Iterator[tuple[NoisePlan, list[dict[str, Any]], list[dict[str, Any]], str]]:
    """Strategies with two neighbouring tables each: the second lacks one unit."""
    draw = random.Random(seed)
    while count > 0:
        unit = draw.random() < 0.7
        known = catalog("person" if unit else None, draw.randint(1, 3), draw.randint(1, 5))
        data = rows(draw, draw.randint(1, 6))
        gone = draw.randrange(len(data))
        less = [r for r in data if r["person"] != data[gone]["person"]] if unit else data[:gone] + data[gone + 1 :]
        for _ in range(min(count, 25)):
            sql = query(draw, unit)
            try:
                plan = plan_query(parse_query(sql, known), cost(draw))
            except SfumatoError:
                continue
            count -= 1
            yield plan, data, less, sql


def check_pairs(count: int, seed: int, change: Any = None) -> tuple[int, list[str]]:
    """How many pairs were tried, and the queries of those that moved too far. ``change`` makes a mutant's statement.

    Every other table is bounded by compiled code instead of SQL where that is possible.
    """
    tried, tables, caught, last = 0, 0, [], None
    engines: list[Any] = []
    for plan, data, less, sql in pairs(count, seed):
        if data is not last:
            for engine in engines:
                engine.close()
            tables += 1
            engines, last = [start(data, tables % 2 * 10**6), start(less, tables % 2 * 10**6)], data
        tried += 1
        run = change(plan) if change else plan
        try:
            one, two = exact(run, engines[0]), exact(run, engines[1])
        except AnswerFailed:
            if change is None:
                raise
            continue  # a mutant may overflow; that alone does not count as caught
        if too_far(plan, one, two):
            caught.append(sql)
    return tried, caught


def test_neighbours_stay_within_the_sensitivity() -> None:
    tried, caught = check_pairs(150, seed=1)
    assert tried == 150
    assert caught == []


@pytest.mark.slow
def test_hundreds_of_neighbours_stay_within_the_sensitivity() -> None:
    """A quarter of the questions: test_query_realized tries every neighbour of others, with their realized loss."""
    tried, caught = check_pairs(MANY // 4, seed=2)
    assert tried == MANY // 4
    assert caught == []


def no_bounding(plan: NoisePlan) -> NoisePlan:
    return replace(plan, rows=10**5, groups=10**5)


def one_row_more(plan: NoisePlan) -> NoisePlan:
    return replace(plan, rows=plan.rows + 1)


def one_group_more(plan: NoisePlan) -> NoisePlan:
    return replace(plan, groups=plan.groups + 1)


def clip_after_sum(plan: NoisePlan) -> NoisePlan:
    def unbounded_joins(measurement: Any) -> Any:
        if not isinstance(measurement, Sum):
            return measurement
        if isinstance(measurement, BernsteinSum):
            column = measurement.column
            return measurement if column is None else replace(measurement, column=(column[0], unclipped(column[1])))
        return replace(measurement, steps=unclipped(measurement.steps))

    def unclipped(node: Expression) -> Expression:
        match node:
            case Extreme((Extreme((Named() as value, Constant()), True), Constant()), False):
                return value
            case Case(branches, default):
                return Case(tuple((test, unclipped(result)) for test, result in branches), unclipped(default))
            case Arithmetic(sign, a, b):
                return Arithmetic(sign, unclipped(a), unclipped(b))
            case _:
                return node

    measurements = tuple(unbounded_joins(m) for m in plan.query.aggregates)
    return replace(plan, query=replace(plan.query, aggregates=measurements))


@pytest.mark.parametrize(
    ("mutant", "seed"), [(no_bounding, 3), (one_row_more, 3), (one_group_more, 3), (clip_after_sum, 9)]
)
def test_mutants_are_caught(mutant: Any, seed: int) -> None:
    assert check_pairs(80, seed=seed, change=mutant)[1]


def both_routes(count: int, seed: int) -> int:
    """The loss of the plan against a sum over the mechanisms' own losses; choose() also runs its own second route."""
    draw, done = random.Random(seed), 0
    while done < count:
        unit = draw.random() < 0.6
        known = catalog("person" if unit else None, draw.randint(1, 4), draw.randint(1, 6))
        wanted = cost(draw)
        try:
            plan = plan_query(parse_query(query(draw, unit), known), wanted)
        except QueryRefused:  # private keys without a delta, and the like
            continue
        total = sequential(plan.parts)
        assert total <= wanted
        for item in plan.measurements:
            measurement = None if item.aggregate is None else plan.query.aggregates[item.aggregate]
            times = plan.groups if isinstance(measurement, BinCounts) else 1
            if isinstance(item.mechanism, Gaussian):
                assert item.loss == item.mechanism.loss_at(item.sensitivity)
            else:
                assert item.loss == item.mechanism.loss(item.sensitivity).times(times)
        spent = sum(
            (
                item.loss.to(wanted.measure).size
                for item in plan.measurements
                if item.loss.measure is wanted.measure or wanted.measure.value == "rho"
            ),
            Fraction(0),
        )
        assert spent <= wanted.size
        assert spent >= wanted.size * Fraction(999, 1000) or any(
            isinstance(item.mechanism, Gaussian) for item in plan.measurements
        )
        done += 1
    return done


def test_loss_by_two_routes() -> None:
    assert both_routes(400, seed=4) == 400


@pytest.mark.slow
def test_loss_by_two_routes_on_thousands_of_queries() -> None:
    assert both_routes(MANY, seed=5) == MANY


@pytest.mark.parametrize("wrong", ["rows", "groups"])
def test_a_route_that_forgets_something_is_refused(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = choosing._pure_measurement

    def forgetful(measurement: Any, index: int, epsilon: Fraction, r: int, g: int, *more: Any) -> Any:
        return honest(measurement, index, epsilon, r - (wrong == "rows"), g - (wrong == "groups"), *more)

    monkeypatch.setattr(choosing, "_pure_measurement", forgetful)
    known = catalog("person", 3, 3)
    for item in ("COUNT(*)", "COUNT(*), SUM(n)", "AVG(x)", "VARIANCE(x)", "MODE(city)"):
        with pytest.raises(AnswerFailed, match="disagree"):
            plan_query(parse_query(f"SELECT city, {item} FROM t GROUP BY city", known), pure(1))
    with pytest.raises(AnswerFailed, match="disagree"):
        plan_query(parse_query("SELECT word, COUNT(*) FROM t GROUP BY word", known), approximate(1, "1e-6"))


# --- fuzzing ------------------------------------------------------------------------------------------------------

DRAW = random.Random(6)
CORPUS = [query(DRAW, unit=bool(i % 2)) for i in range(40)]
WORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "t",
    "city",
    "n",
    "COUNT(*)",
    "(",
    ")",
    ",",
    "*",
    "'",
    '"',
    ";",
    "--",
    "/*",
    "1",
    "-1e9",
    "0",
    "NULL",
    "AND",
    "NOT",
    "CASE",
    "WHEN",
    "END",
    "JOIN",
    "ON",
    "USING",
    "UNION ALL",
    "WITH",
    "AS",
    "read_csv('x')",
    "person",
    "OVER ()",
    "DISTINCT",
    "LIMIT",
    "HAVING",
    "ORDER BY",
    "::int",
    "[1]",
    "{",
    "$1",
    "?",
    "\x00",
    "é",
    "😀",
    "ERROR 5",
    "CONFIDENCE 95%",
    "SUM(",
    "AVG(x",
    "EXISTS",
    "ANY",
    "LATERAL",
    "t.t.t.t",
    "@",
    "`",
]


@pytest.fixture(scope="module")
def asked() -> Session:
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10**9, "0.9"), dataset="d")
    frame = pl.DataFrame(rows(random.Random(7), 5), schema=TYPES).with_columns(word=pl.lit(CANARY))
    return Session(catalog("person"), {"t": frame}, ledger=book, analyst="fuzz")


@st.composite
def broken_sql(draw: Any) -> str:
    tokens = draw(st.sampled_from(CORPUS)).split(" ")
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(tokens)))
        change = draw(st.sampled_from(["insert", "delete", "swap", "repeat"]))
        if change == "insert":
            tokens.insert(place, draw(st.sampled_from(WORDS)))
        elif change == "delete" and place < len(tokens):
            del tokens[place]
        elif change == "swap" and place + 1 < len(tokens):
            tokens[place], tokens[place + 1] = tokens[place + 1], tokens[place]
        elif place < len(tokens):
            tokens.insert(place, tokens[place])
    return " ".join(tokens)


def survives(asked: Session, sql: str) -> bool:
    """Answered and paid for, or refused at no cost and without a value of the data."""
    before = sum(1 for _ in asked.ledger.entries())
    try:
        answer = asked.ask(sql, epsilon=1, delta="1e-9")
    except AnswerFailed:
        raise AssertionError(f"the engine failed on: {sql}") from None
    except SfumatoError as refusal:
        told, answer = str(refusal), None
    after = sum(1 for _ in asked.ledger.entries())
    if answer is None:
        return after == before and (CANARY not in told or CANARY in sql)
    return answer.cached or after == before + 1


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sql=broken_sql())
def test_broken_sql_is_refused_or_answered_and_paid(sql: str, asked: Session) -> None:
    assert survives(asked, sql)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sql=st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join)))
def test_noise_is_refused(sql: str, asked: Session) -> None:
    assert survives(asked, sql)


def test_the_plan_is_the_same_for_the_same_question() -> None:
    known = catalog("person")
    prints: dict[str, Query] = {}
    for sql in CORPUS:
        a, b = parse_query(sql, known), parse_query(sql.lower(), known)
        assert a.fingerprint == b.fingerprint or "'" in sql
        prints[a.fingerprint] = a
    assert len(prints) > 25
