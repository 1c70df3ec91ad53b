"""Generated questions: every engine computes the same exact numbers, or refuses before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.dataset import Column, Kind, RangeDomain, Role, Schema, ValuesDomain
from sfumato.dp.loss import approximate
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.backends.postgres.engine import Postgres
from sfumato.engines.backends.spark.engine import Spark
from sfumato.engines.engine import Running
from sfumato.query import Catalog, PrivateTable
from sfumato.query.execute.executor import statements
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query
from sfumato.secret import Permit

COLUMNS = {
    "person": Column(role=Role.PLAIN, kind=Kind.INTEGER),
    "city": Column(role=Role.PLAIN, kind=Kind.CATEGORY, domain=ValuesDomain(values=("a", "b", "c"))),
    "word": Column(role=Role.PLAIN, kind=Kind.CATEGORY),
    "x": Column(role=Role.PLAIN, kind=Kind.NUMBER, domain=RangeDomain(low=-10, high=10)),
    "y": Column(role=Role.PLAIN, kind=Kind.NUMBER, domain=RangeDomain(low=0, high=1e6)),
    "n": Column(role=Role.PLAIN, kind=Kind.INTEGER, domain=RangeDomain(low=0, high=50)),
    "flag": Column(role=Role.PLAIN, kind=Kind.BOOLEAN),
}
WORDS = ["'a'", "'B'", "'%'", "'a\\'"]
ENDS = [math.nan, math.inf, -math.inf, 1.7976931348623157e308, -1e308, 5e-324, 2.2e-308, -0.0, 0.5, -2.5, None]


def rows() -> pl.DataFrame:
    size = 240
    data: dict[str, Any] = {
        "person": [i * i % 41 for i in range(size)],
        "city": [("a", "b", "c", "d", None)[i * 13 // 7 % 5] for i in range(size)],
        "word": [("", "a", "B", "ab", "Ä", None, "a%", "\\")[i % 8] for i in range(size)],
        "x": [ENDS[i // 3 % len(ENDS)] if i % 3 == 0 else math.sin(i) * 12 for i in range(size)],
        "y": [ENDS[i // 4 % len(ENDS)] if i % 4 == 0 else math.exp(i % 40 - 20) for i in range(size)],
        "n": [None if i % 13 == 0 else i * 7 % 90 - 10 for i in range(size)],
        "flag": [(True, False, None)[i % 3] for i in range(size)],
    }
    return pl.DataFrame(data, schema_overrides={"x": pl.Float64, "y": pl.Float64}, strict=False)


numbers = st.recursive(
    st.sampled_from(["x", "y", "n", "0.5", "3", "1e300", "1e-300", "length(word)"]),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("{}({})".format, st.sampled_from(["abs", "floor", "ceil", "round"]), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["least", "greatest", "coalesce", "nullif"]), inner, inner),
        st.builds("CASE WHEN flag THEN {} ELSE {} END".format, inner, inner),
        st.builds("CAST({} AS {})".format, inner, st.sampled_from(["DOUBLE", "INTEGER"])),
        st.builds("CLIP({}, -1, 1)".format, inner),
    ),
    max_leaves=5,
)
conditions = st.recursive(
    st.one_of(
        st.builds("({} {} {})".format, numbers, st.sampled_from(["<", "<=", "=", "<>", ">"]), numbers),
        st.builds("(word {} {})".format, st.sampled_from(["<", ">=", "=", "LIKE"]), st.sampled_from(WORDS)),
        st.sampled_from(["flag", "flag IS NULL", "word IS NULL", "city IN ('a', 'd')"]),
    ),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=3,
)  # fmt: skip
items = st.one_of(
    st.just("COUNT(*)"),
    st.builds("COUNT({})".format, numbers),
    st.builds("{}(CLIP({}, -4, 9))".format, st.sampled_from(["SUM", "AVG", "VARIANCE", "MEDIAN"]), numbers),
    st.builds("COUNT(DISTINCT {})".format, st.sampled_from(["word", "n", "city"])),
)
questions = st.builds("SELECT {} FROM t WHERE {}".format, items, conditions) | st.builds(
    "SELECT city, {} FROM t WHERE {} GROUP BY city".format, items, conditions
)


@pytest.fixture(scope="module")
def reference() -> Running:
    return Duckdb(order="sha256", threads=1).start({"t": rows()})


@pytest.fixture(scope="module")
def postgres(postgresql: str) -> Iterator[Running]:
    running = Postgres(url=postgresql, order="sha256").start({"t": rows()})
    yield running
    running.close()


@pytest.fixture(scope="module")
def spark(java: str) -> Iterator[Running]:
    running = Spark(threads=2, order="sha256").start({"t": rows()})
    yield running
    running.close()


def exact(running: Running, sql: str, unit: str | None) -> list[Any]:
    table = PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit=unit), rows=2, groups=2)
    question = parse_query(sql, Catalog(dataset="d", private={"t": table}))
    strategy = plan_query(question, approximate(1, "1e-6"), rows=None, groups=None, bounding=None)
    found = []
    for statement in statements(strategy, 99):
        running.check(statement)
        found.append(sorted(running.run(statement).open(Permit("a test")), key=repr))
    return found


@given(sql=questions, by_person=st.booleans())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_generated_questions_on_postgresql(sql: str, by_person: bool, postgres: Running, reference: Running) -> None:
    unit = "person" if by_person else None
    assert exact(postgres, sql, unit) == exact(reference, sql, unit)


@pytest.mark.slow
@given(sql=questions, by_person=st.booleans())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_generated_questions_on_spark(sql: str, by_person: bool, spark: Running, reference: Running) -> None:
    unit = "person" if by_person else None
    assert exact(spark, sql, unit) == exact(reference, sql, unit)
