"""Generated expressions of every kind, row by row: all engines against plain Python, to the last bit.

Questions give sums, in which a wrong value may hide; here each row's own value is compared. Rows hold what engines
differ in: the ends of the floats, NaN, empty text beside missing text, text that only looks like numbers or dates, leap
days, the ends of the 64-bit numbers, letters outside ASCII.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import plain_values
from sfumato.dataset import Column, Kind, Role, Schema
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.backends.postgres.engine import Postgres
from sfumato.engines.backends.spark.engine import Spark
from sfumato.engines.engine import Running
from sfumato.errors import QueryRefused
from sfumato.query import Catalog, PrivateTable
from sfumato.query.sql.bind import Binder
from sfumato.query.sql.statement import parse_statement
from sfumato.secret import Permit

MANY = int(os.environ.get("SFUMATO_GENERATED", "1000")) // 8
"""How many lists of expressions each engine gets."""
KINDS = {"i": "integer", "x": "number", "y": "number", "n": "integer", "big": "integer", "flag": "boolean",
         "word": "category", "code": "category", "day": "date", "at": "datetime"}  # fmt: skip
ENDS = [math.nan, math.inf, -math.inf, 1.7976931348623157e308, -1e308, 5e-324, 2.2e-308, -0.0, 0.5, -2.5, 2.675, None]
WORDS = [
    "",
    None,
    "a",
    "B",
    " ab ",
    "Ä",
    "ß",
    "straße",
    "İI",
    "ΣΑΣ",
    "a%",
    "\\",
    "a_b",
    "\u00a0a\t",
    "😀x",
    "it's",
    "a\nb",
]
CODES = ["12", "-7", " 8 ", "+3", "2.5", "-2.5", "1e3", "0x10", "1_0", "", None, "9223372036854775807",
         "9223372036854775808", "-9223372036854775808", "9223372036854775807.5", "NaN", "inf", "1e400", "1e-99", ".5",
         "5.", "١٢", "12\n", "2020-02-29", "2019-02-29", "2020-2-9", "0000-01-01", "0001-01-01", "9999-12-31",
         "2020-02-29 23:59", "2020-02-29T05:06:07.5", "2020-02-29 24:00", "2020-02-29 05:06:07+02", "true", "T", "No",
         "on", "infinity", "epoch", "today", "12e5", "0.1", "1e23", "123456789012345678"]  # fmt: skip
DAYS = [date(1, 1, 1), date(9999, 12, 31), date(2020, 2, 29), date(2021, 1, 3), date(2016, 12, 31), None]
TIMES = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(2020, 2, 29, 22, 15, 30, 500), None]


def rows() -> pl.DataFrame:
    size = 88
    data: dict[str, Any] = {
        "i": range(size),
        "x": [ENDS[i % len(ENDS)] if i % 2 else math.sin(i) * 12 for i in range(size)],
        "y": [ENDS[i // 2 % len(ENDS)] if i % 3 else math.exp(i % 40 - 20) for i in range(size)],
        "n": [None if i % 13 == 0 else i * 7 % 90 - 40 for i in range(size)],
        "big": [(2**63 - 1, -(2**63), 2**53 + 1, 0, None, -(2**62))[i % 6] for i in range(size)],
        "flag": [(True, False, None)[i % 3] for i in range(size)],
        "word": [WORDS[i % len(WORDS)] for i in range(size)],
        "code": [CODES[i % len(CODES)] for i in range(size)],
        "day": [DAYS[i % len(DAYS)] for i in range(size)],
        "at": [TIMES[i % len(TIMES)] for i in range(size)],
    }
    return pl.DataFrame(data, schema_overrides={"x": pl.Float64, "y": pl.Float64, "big": pl.Int64}, strict=False)


def built(form: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(form.format, *parts)


dates = st.sampled_from(["day", "CAST(at AS DATE)", "CAST(code AS DATE)", "coalesce(day, DATE '2020-02-29')",
                         "CASE WHEN flag THEN day END"])  # fmt: skip
times = st.sampled_from(["at", "CAST(day AS TIMESTAMP)", "CAST(code AS TIMESTAMP)",
                         "coalesce(at, TIMESTAMP '2020-02-29 01:02:03')"])  # fmt: skip
signs = st.sampled_from(["<", "<=", "=", "<>", ">", ">="])


def expressions_of_depth(depth: int) -> tuple[st.SearchStrategy[str], ...]:
    """Texts, numbers and conditions made of those one less deep."""
    if depth == 0:
        return (
            st.sampled_from(["word", "word", "code", "'a'", "''", "'Ä'"]),
            st.sampled_from(["x", "y", "n", "big", "x", "0.5", "3", "-2", "1e300", "1e-300"]),
            st.sampled_from(["flag", "flag IS NULL", "word IS NULL", "flag IS NOT TRUE", "CAST(code AS BOOLEAN)",
                             "day BETWEEN '2016-12-31' AND '2020-02-29'", "at > '2020-02-29 22:15:30'", "day <= at"]),
        )  # fmt: skip
    texts, numbers, conditions = expressions_of_depth(depth - 1)
    types = st.sampled_from(["DOUBLE", "INTEGER"])
    return (
        st.one_of(
            texts,
            built("{}({})", st.sampled_from(["lower", "upper", "trim"]), texts),
            built("substring({}, {})", texts, st.sampled_from(["1", "2, 1", "2", "1, 4", "40"])),
            built("{}({}, {})", st.sampled_from(["coalesce", "nullif"]), texts, texts),
            built("CASE WHEN {} THEN {} ELSE {} END", conditions, texts, texts),
            built("CAST({} AS VARCHAR)", st.sampled_from(["n", "big", "flag", "day", "at", "floor(x)"])),
        ),
        st.one_of(
            numbers,
            built("({} {} {})", numbers, st.sampled_from("+-*/%"), numbers),
            built("({} % {})", numbers, st.sampled_from(["3", "-7", "0.1", "1e300", "4611686018427387903"])),
            built("(-{})", numbers),
            built("{}({})", st.sampled_from(["abs", "floor", "ceil", "round"]), numbers),
            built("round({}, {})", numbers, st.integers(0, 9).map(str)),
            built("{}({}, {})", st.sampled_from(["least", "greatest", "coalesce", "nullif"]), numbers, numbers),
            built("CASE WHEN {} THEN {} ELSE {} END", conditions, numbers, numbers),
            built("CASE n WHEN 2 THEN {} WHEN {} THEN 1 END", numbers, numbers),
            built("CAST({} AS {})", st.one_of(numbers, texts, conditions), types),
            built("CLIP({}, -1, 1)", numbers),
            built("length({})", texts),
            built("EXTRACT({} FROM {})", st.sampled_from(["year", "quarter", "month", "day", "dow", "week"]),
                  dates | times),
            built("EXTRACT({} FROM {})", st.sampled_from(["hour", "minute"]), times),
        ),
        st.one_of(
            conditions,
            built("({} {} {})", numbers, signs, numbers),
            built("({} {} {})", texts, signs, texts),
            built("({} {} {})", dates, signs, dates),
            built("({} {} {})", times, signs, times),
            built("({} BETWEEN {} AND {})", numbers, numbers, numbers),
            built("({} IN ({}, {}))", numbers, numbers, numbers),
            built("({} IN ({}, 'B'))", texts, texts),
            built("({} LIKE '{}')", texts, st.sampled_from(["%", "_", "a%", "%ß%", "\\", "%\\%", "a_b", "", "%b "])),
            built("({} ILIKE '{}')", texts, st.sampled_from(["A%", "ä", "%SS%", "İ%", "σας", "a\\_b", "%X"])),
            built("CAST({} AS BOOLEAN)", st.sampled_from(["n", "word", "floor(x)"])),
            built("({} {} {})", conditions, st.sampled_from(["AND", "OR"]), conditions),
            built("(NOT {})", conditions),
        ),
    )  # fmt: skip


expressions = st.one_of(*expressions_of_depth(3), dates, times).filter(lambda sql: readable(sql))


@pytest.fixture(scope="module")
def duckdb() -> Iterator[list[Running]]:
    running = [Duckdb(order=order, threads=1).start({"t": rows()}) for order in ("fast", "sha256")]
    yield running
    for one in running:
        one.close()


@pytest.fixture(scope="module")
def postgres(postgresql: str) -> Iterator[Running]:
    running = Postgres(url=postgresql).start({"t": rows()})
    yield running
    running.close()


@pytest.fixture(scope="module")
def spark(java: str) -> Iterator[Running]:
    running = Spark(threads=2).start({"t": rows()})
    yield running
    running.close()


def statement(written: list[str]) -> tuple[Any, list[Any]]:
    """The engines' statement for the values of some expressions, and the expressions' syntax trees."""
    columns = {name: Column(role=Role.PLAIN, kind=Kind(kind)) for name, kind in KINDS.items()}
    catalog = Catalog(dataset="d", private={"t": PrivateTable(name="t", schema=Schema(columns=columns))})
    items = ", ".join(f"{sql} AS v{place}" for place, sql in enumerate(written))
    sql, tree, _ = parse_statement(f"SELECT i, {items} FROM t")
    trees = [item.unalias() for item in tree.expressions[1:]]
    return Binder(catalog, sql).subquery(tree, {}).rows.query(), trees


def readable(sql: str) -> bool:
    """Whether an expression is of the language: CAST('a' AS DOUBLE) is not, on any engine."""
    try:
        statement([sql])
    except QueryRefused:
        return False
    return True


def differences(running: Running, written: list[str]) -> list[str]:
    """Values that are not those of plain Python."""
    sql, trees = statement(written)
    running.check(sql)
    found = {row[0]: row[1:] for row in running.run(sql).open(Permit("a test"))}
    return [
        f"{text}: {value!r} instead of {wanted!r} in {row}"
        for row in rows().iter_rows(named=True)
        for text, tree, value in zip(written, trees, found[row["i"]], strict=True)
        if not same(value, wanted := plain_values.value(tree, row))
    ]


def same(a: Any, b: Any) -> bool:
    """Equal as the language knows it: NaN is NaN, zero has no sign, and a flag is no number."""
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    return a == b and isinstance(a, bool) == isinstance(b, bool)


KINDS_OF_CAST = ("INTEGER", "DOUBLE", "DATE", "TIMESTAMP", "BOOLEAN")
LISTED = [f"CAST({text} AS {kind})" for text in ("code", "word", "trim(code)", "substring(code, 1, 4)")
          for kind in KINDS_OF_CAST]  # fmt: skip
LISTED += [
    "n % 7", "big % 1000", "big % -1", "x % 2", "x % y", "y % x", "n % 0", "n % n", "-n % 4", "round(x, 2)",
    "round(y, 9)", "round(n, 3)", "round(x % 1, 1)", "lower(word)", "upper(word)", "trim(word)", "word ILIKE '%Ä%'",
    "length(word)", "substring(word, 2)", "word = ''", "word < 'a'", "CAST(at AS VARCHAR)", "EXTRACT(week FROM day)",
    "big > x", "CAST(big AS DOUBLE)", "x = y", "CAST(round(x, 1) AS INTEGER)", "ceil(x)", "CAST(x AS INTEGER)",
    "round(x)",
]  # fmt: skip
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
DATED = [
    *(f"date_trunc('{unit}', {at})" for unit in UNITS
      for at in ("day", "at")),
    *(f"{at} {sign} INTERVAL {size}" for at in ("day", "at") for sign in "+-"
      for size in ("1 DAY", "1 MONTH", "3 YEAR", "2 WEEK", "26 HOUR", "90 MINUTE", "48000 MONTH")),
    *(f"date_diff('{unit}', day, CAST(at AS {kind}))" for unit in UNITS
      for kind in ("DATE", "TIMESTAMP")),
    *(f"EXTRACT({part} FROM {at})" for part in ("doy", "isodow") for at in ("day", "at")),
    "strftime(day, '%Y-%m')", "strftime(at, '%d.%m.%Y %H:%M:%S')", "strftime(day, 'all')", "dayname(day)",
    "monthname(at)", "last_day(day)", "date_trunc('month', day) = DATE '2020-02-01'", "word || '/' || code",
    "concat(word, 'x', code)", "left(word, 2)", "starts_with(word, 'a')", "contains(word, 'a')",
    "width_bucket(x, -3, 5, 7)", "width_bucket(n, 0, 40, 4)", "width_bucket(big, 0, 1, 1)", "sqrt(x)", "sqrt(y)",
    "power(x, 2)", "power(y, 3)", "sign(x)", "sign(n)", "trunc(x)",
]  # fmt: skip


def test_the_list_on_duckdb(duckdb: list[Running]) -> None:
    for running in duckdb:
        assert not differences(running, [*LISTED, *DATED])


def test_the_list_on_postgresql(postgres: Running) -> None:
    assert not differences(postgres, [*LISTED, *DATED])


@pytest.mark.slow
def test_the_list_on_spark(spark: Running) -> None:
    every = [*LISTED, *DATED]
    for place in range(0, len(every), 20):
        assert not differences(spark, every[place : place + 20])


RELAXED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@given(written=st.lists(expressions, min_size=1, max_size=4))
@settings(max_examples=MANY, deadline=None, suppress_health_check=RELAXED)
def test_generated_values_on_duckdb(written: list[str], duckdb: list[Running]) -> None:
    for running in duckdb:
        assert not differences(running, written)


@given(written=st.lists(expressions, min_size=1, max_size=4))
@settings(max_examples=MANY, deadline=None, suppress_health_check=RELAXED)
def test_generated_values_on_postgresql(written: list[str], postgres: Running) -> None:
    assert not differences(postgres, written)


@pytest.mark.slow
@given(written=st.lists(expressions, min_size=4, max_size=8))
@settings(max_examples=MANY // 5, deadline=None, suppress_health_check=RELAXED)
def test_generated_values_on_spark(written: list[str], spark: Running) -> None:
    assert not differences(spark, written)
