"""Sizes of expressions, known from their form, hold for whatever the columns contain."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
import sqlglot

from sfumato.engines.backends.postgres.dialect import PostgresWriter
from sfumato.engines.backends.spark.dialect import SparkWriter
from sfumato.engines.interval_analysis import Sized, fits, size

KINDS = {"x": "float", "n": "int", "word": "text"}
ENDS = [math.nan, math.inf, -math.inf, 1.7976931348623157e308, 5e-324, -5e-324, 2.2e-308, -0.0, 0.5, -2.5, 3.7, None]
WHOLE = [2**63 - 1, -(2**63), 0, 1, -1, 7, None, 2**53 + 1, 3, 4, 5, 6]
CLIPPED = "greatest(least(x, CAST(9.5 AS DOUBLE)), CAST(-4.0 AS DOUBLE))"
KNOWN = [
    CLIPPED, f"{CLIPPED} / CAST(0.001 AS DOUBLE)", f"floor({CLIPPED} / CAST(0.001 AS DOUBLE))", f"{CLIPPED} * 1000.0",
    f"CAST(round({CLIPPED}) AS BIGINT)", f"(CAST({CLIPPED} AS BIGINT) - 3)", "CAST(n AS DOUBLE)", "-n",
    "sqrt(CAST(7.5 AS DOUBLE) / CAST(NULLIF(1, 0) AS DOUBLE)) * 2.0", f"CASE WHEN n > 0 THEN {CLIPPED} ELSE 0 END",
    f"abs({CLIPPED}) + {CLIPPED}", f"ceil({CLIPPED} / CAST(0.5 AS DOUBLE)) * CAST(n AS DOUBLE)",
]  # fmt: skip
UNKNOWN = [
    "x", "x * 2.0", "greatest(x, 1.0)", "least(x, 1.0)", "greatest(least(x, CAST(n AS DOUBLE)), 0.0)", "floor(x)",
    f"{CLIPPED} / x", f"{CLIPPED} / CAST(1e300 AS DOUBLE)", f"{CLIPPED} / CAST(1e-300 AS DOUBLE)",
    "CAST(word AS BIGINT)", f"CASE WHEN n > 0 THEN {CLIPPED} ELSE x END", f"coalesce({CLIPPED}, x)",
]  # fmt: skip


def sized(sql: str) -> tuple[float, float] | None:
    return size(sqlglot.parse_one(sql, read="duckdb"), lambda column: KINDS.get(column.name))


@pytest.mark.parametrize("sql", [item for item in KNOWN if "NULLIF" not in item])
def test_no_value_leaves_its_size(sql: str) -> None:
    import duckdb

    found = sized(sql)
    assert found is not None
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


@pytest.mark.parametrize("sql", UNKNOWN)
def test_what_the_form_does_not_tell_is_not_guessed(sql: str) -> None:
    assert sized(sql) is None


def test_operations_that_may_leave_the_floats_do_not_fit() -> None:
    assert fits("Div", (100.0, 5e-324), (0.5, 0.5))
    assert not fits("Div", (100.0, 5e-324), (2.0, 2.0)), "the least float, divided by 2, is zero"
    assert not fits("Mul", (1e200, 1.0), (1e200, 1.0))
    assert not fits("Mul", (1.0, 1e-200), (0.5, 1e-200))
    assert fits("Mul", (1.0, 5e-324), (7.0, 7.0))
    assert not fits("Add", (1e300, 1.0), (1e300, 1.0))


def test_columns_of_queries_know_their_size_and_others_do_not_take_it_over() -> None:
    writer: Any = PostgresWriter({"t": {"x": "float", "n": "int"}})
    inner = f"SELECT CAST({CLIPPED} AS BIGINT) AS a, n AS b FROM t"
    written = writer.write(f"SELECT SUM(CAST(a AS HUGEINT) * a) AS s, SUM(CAST(b AS HUGEINT) * b) AS q FROM ({inner})")
    assert 'SUM(("a" * "a"))' in written
    assert 'SUM((CAST("b" AS numeric) * "b"))' in written
    both = f"SELECT a FROM (SELECT CAST({CLIPPED} AS BIGINT) AS a FROM t UNION ALL SELECT n AS a FROM t)"
    assert "numeric" in writer.write(f"SELECT SUM(CAST(a AS HUGEINT) * a) AS s FROM ({both})")
    assert not isinstance(writer.merged([Sized.of("int", (2.0, 1.0)), "int"]), Sized)


def test_spark_sums_in_64_bits_only_what_surely_fits() -> None:
    writer = SparkWriter({"t": {"x": "float", "n": "int"}})
    assert "CAST(SUM(" in writer.write(f"SELECT SUM(CAST({CLIPPED} AS BIGINT)) AS s FROM t")
    assert "SUM(CAST(" in writer.write("SELECT SUM(n) AS s FROM t")
