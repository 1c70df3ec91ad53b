"""Sizes of expressions, known from their form, hold for whatever the columns contain."""

from __future__ import annotations

import math

import polars as pl
import pytest

from sfumato.engines.aggregation import Total
from sfumato.engines.backends.duckdb.dialect import DuckdbGenerator
from sfumato.engines.backends.postgres.dialect import PostgresGenerator
from sfumato.engines.backends.spark.dialect import SparkGenerator
from sfumato.engines.expressions import (
    Arithmetic,
    Cast,
    Coalesce,
    ColumnRef,
    Compare,
    Expression,
    Extreme,
    Negative,
    constant,
    when,
)
from sfumato.engines.functions import Function
from sfumato.engines.interval_analysis import fits, size
from sfumato.query.plan.aggregates import clipped

ENDS = [math.nan, math.inf, -math.inf, 1.7976931348623157e308, 5e-324, -5e-324, 2.2e-308, -0.0, 0.5, -2.5, 3.7, None]
WHOLE = [2**63 - 1, -(2**63), 0, 1, -1, 7, None, 2**53 + 1, 3, 4, 5, 6]
X, N, WORD = ColumnRef("x", "float"), ColumnRef("n", "int"), ColumnRef("word", "text")


def const(value: float) -> Expression:
    return constant(value)


CLIPPED = clipped(X, const(-4.0), const(9.5))
POSITIVE = Compare(">", N, constant(0))
KNOWN: dict[str, Expression] = {
    "clipped": CLIPPED,
    "divided": Arithmetic("/", CLIPPED, const(0.001)),
    "floor": Function(Arithmetic("/", CLIPPED, const(0.001)), "floor"),
    "multiplied": Arithmetic("*", CLIPPED, const(1000.0)),
    "rounded": Cast(Function(CLIPPED, "round"), "int"),
    "less": Arithmetic("-", Cast(CLIPPED, "int"), constant(3)),
    "float": Cast(N, "float"),
    "negative": Negative(N),
    "root": Arithmetic("*", Function(const(7.5), "sqrt"), const(2.0)),
    "case": when(POSITIVE, CLIPPED, const(0.0)),
    "sum": Arithmetic("+", Function(CLIPPED, "abs"), CLIPPED),
    "ceil": Arithmetic("*", Function(Arithmetic("/", CLIPPED, const(0.5)), "ceil"), Cast(N, "float")),
}
UNKNOWN: dict[str, Expression] = {
    "column": X,
    "product": Arithmetic("*", X, const(2.0)),
    "greatest": Extreme((X, const(1.0)), False),
    "least": Extreme((X, const(1.0)), True),
    "clipped by a column": Extreme((Extreme((X, Cast(N, "float")), True), const(0.0)), False),
    "floor": Function(X, "floor"),
    "divided by a column": Arithmetic("/", CLIPPED, X),
    "divided by much": Arithmetic("/", CLIPPED, const(1e300)),
    "divided by little": Arithmetic("/", CLIPPED, const(1e-300)),
    "text": Cast(WORD, "int"),
    "case": when(POSITIVE, CLIPPED, X),
    "coalesce": Coalesce((CLIPPED, X)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_no_value_leaves_its_size(name: str) -> None:
    import duckdb

    found = size(KNOWN[name])
    assert found is not None
    sql = DuckdbGenerator().expression(KNOWN[name])
    with duckdb.connect() as connection:
        connection.register("t", pl.DataFrame({"x": ENDS, "n": WHOLE}, schema={"x": pl.Float64, "n": pl.Int64}))
        pairs = "(SELECT a.x, b.n FROM t AS a, t AS b WHERE b.n <> -9223372036854775808)"
        values = [row[0] for row in connection.execute(f"SELECT {sql} FROM {pairs}").fetchall() if row[0] is not None]
    assert values
    largest, least = found
    for value in values:
        assert math.isfinite(value)
        assert abs(value) <= largest
        assert value == 0 or abs(value) >= least


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_the_form_does_not_tell_is_not_guessed(name: str) -> None:
    assert size(UNKNOWN[name]) is None


def test_operations_that_may_leave_the_floats_do_not_fit() -> None:
    assert fits("/", (100.0, 5e-324), (0.5, 0.5))
    assert not fits("/", (100.0, 5e-324), (2.0, 2.0)), "the least float, divided by 2, is zero"
    assert not fits("*", (1e200, 1.0), (1e200, 1.0))
    assert not fits("*", (1.0, 1e-200), (0.5, 1e-200))
    assert fits("*", (1.0, 5e-324), (7.0, 7.0))
    assert not fits("+", (1e300, 1.0), (1e300, 1.0))


def test_products_that_surely_fit_64_bits_are_not_made_wide() -> None:
    generator = PostgresGenerator({"t": {"x": "float", "n": "int"}})
    small, wide = ColumnRef("a", "int", size=size(Cast(CLIPPED, "int"))), ColumnRef("b", "int")
    squares = [generator.expression(Total(Arithmetic("*", Cast(one, "huge"), one))) for one in (small, wide)]
    assert squares[0] == 'SUM(CAST(("a" * "a") AS integer))', "at most 9.5 squared: 32 bits, summed in 64"
    assert squares[1] == 'SUM((CAST(CAST("b" AS numeric) AS numeric) * "b"))'


def test_spark_sums_in_64_bits_only_what_surely_fits() -> None:
    generator = SparkGenerator({"t": {"x": "float", "n": "int"}})
    assert generator.expression(Total(Cast(CLIPPED, "int"))).startswith("CAST(SUM(")
    assert generator.expression(Total(N)).startswith("SUM(CAST(")
