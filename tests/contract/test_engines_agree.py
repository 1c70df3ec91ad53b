"""One list of questions over all engines: exact numbers are the same to the last bit, or the question is refused."""

from __future__ import annotations

import hashlib
import math
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl
import pytest

from bounding_reference import disagreements
from regex_samples import pattern, texts
from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import approximate, pure
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.backends.postgres.engine import Postgres
from sfumato.engines.backends.spark.engine import Spark
from sfumato.engines.dialect import largest_for
from sfumato.engines.engine import Engine, Running
from sfumato.engines.expressions import Arithmetic, Cast, Expression, Modulo, NullIf, Read, constant
from sfumato.engines.functions import Function, Hash, Matches, RoundTo
from sfumato.engines.regular_expressions import PatternRefused, parse_pattern, written_pattern
from sfumato.engines.statements import Select, Stored
from sfumato.errors import QueryRefused
from sfumato.query import Catalog, PrivateTable
from sfumato.query.execute.executor import statements
from sfumato.query.execute.sqlgen import additive_sql
from sfumato.query.plan.catalog import PublicTable
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query
from sfumato.secret import Permit

SECRET = 4711


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


COLUMNS = {
    "person": column("integer"),
    "name": column("category"),
    "city": column("category", values=("a", "b", "ü")),
    "x": column("number", low=-3, high=10),
    "y": column("number", low=0, high=1e9),
    "n": column("integer", low=-5, high=1000),
    "big": column("integer", low=0, high=2**45),
    "flag": column("boolean"),
    "day": column("date"),
    "at": column("datetime"),
}
TRICKY = [
    float("nan"), float("inf"), float("-inf"), 1.7976931348623157e308, -1e308, 5e-324, -5e-324, 2.2e-308, -0.0, 0.5,
    1.5,
    2.5, -2.5, 0.49999999999999994, None, 1e154, 1.3407807929942597e154, 1e-162, 9.2233720368547758e18, 0.1, 3.3,
]  # fmt: skip


def rows() -> pl.DataFrame:
    size = 420
    x = [TRICKY[i % len(TRICKY)] if i % 3 == 0 else math.sin(i) * 11 for i in range(size)]
    return pl.DataFrame(
        {
            "person": [i * 7 % 60 if i % 31 else None for i in range(size)],
            "name": [(None, "Zoë", "abc", "Abc", " a_b ", "50%", "back\\slash", "it's")[i % 8] for i in range(size)],
            "city": [("a", "b", "ü", "elsewhere", None)[i * 13 // 7 % 5] for i in range(size)],
            "x": x,
            "y": [TRICKY[(i // 2) % len(TRICKY)] if i % 5 else i * 2.5e6 + 0.1 for i in range(size)],
            "n": [None if i % 11 == 0 else (2**63 - 1 if i % 50 == 1 else -(2**63) if i % 50 == 2 else i * 3 - 100)
                  for i in range(size)],
            "big": [2**63 - 1 - i if i % 4 else i**5 for i in range(size)],
            "flag": [(True, False, None)[i % 3] for i in range(size)],
            "day": [date(2019, 12, 28) + timedelta(days=i) if i % 9 else None for i in range(size)],
            "at": [datetime(2020, 2, 28, 22, 15, 30, 500) + timedelta(hours=7 * i) for i in range(size)],
        },
        schema_overrides={"person": pl.Int64, "x": pl.Float64, "y": pl.Float64, "n": pl.Int64, "big": pl.Int64},
    )  # fmt: skip


def cities() -> pl.DataFrame:
    return pl.DataFrame({"city": ["a", "b", "ü", "c"], "size": [10, 20, 30, 40], "coast": [True, False, None, True]})


def catalog(unit: str | None) -> Catalog:
    table = PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit=unit), rows=2, groups=2)
    return Catalog(
        dataset="d", private={"t": table}, public={"cities": PublicTable(name="cities", frame=cities(), key=("city",))}
    )


CONDITIONS = [
    "x * x * x > 5", "x * y < 0", "x / y > 0", "y / x >= 1e300", "x - y <= x + y", "x * 1e-300 * 1e-20 = 0",
    "x * 1e300 > 1e300", "x + y > 1e300",
    "x * 1e300 * 1e300 > 1e300", "-x < 0.1", "abs(x) = 2.5", "x / 0 > 1", "NULLIF(x, 0.5) > 0",
    "round(x) = 3", "round(x) = -3", "round(x) = 0", "floor(x) = -3", "ceil(y) > 5", "CAST(x AS INTEGER) = 2",
    "CAST(y AS INTEGER) > 0", "CAST(n AS DOUBLE) * 2 > 100", "CAST(n AS VARCHAR) LIKE '%7'", "n > big",
    "CAST(flag AS INTEGER) = 1", "CAST(n AS BOOLEAN)", "CAST(flag AS VARCHAR) = 'true'", "flag IS NOT TRUE",
    "CAST(day AS VARCHAR) < '2020-02-01'", "CAST(at AS VARCHAR) > '2020-03-01 05'",
    "CAST(at AS DATE) = DATE '2020-03-01'",
    "CAST(day AS TIMESTAMP) < at", "day < at", "day BETWEEN '2020-01-01' AND '2020-03-01'",
    "at > '2020-03-01 12:00:00'",
    "EXTRACT(dow FROM day) = 0", "EXTRACT(week FROM day) = 53", "EXTRACT(week FROM day) = 1", "year(day) = 2020",
    "quarter(at) = 2", "month(day) IN (2, 3)", "hour(at) < 12", "minute(at) = 15", "day(day) > 20",
    "name LIKE '%\\\\%'", "name LIKE 'back\\slash'", "name LIKE '_bc'", "name ILIKE 'A%'", "name LIKE '%\\'",
    "lower(name) = 'abc'", "upper(name) = 'ABC'", "trim(name) = 'a_b'", "length(name) = 3",
    "substring(name, 2, 1) = 'o'", "substring(name, 3) = 'ë'", "name < 'a'", "name >= 'Zo'", "name <> 'abc'",
    "city IN ('a', 'ü')", "COALESCE(name, 'none') = 'none'", "COALESCE(x, 0) = 0", "name = 'it''s'",
    "CASE WHEN x > 1 THEN n ELSE 0 END > 10", "least(x, y, 3) = 3", "greatest(x, n) > 100", "CLIP(x, 0, 1) = 1",
    "x = y", "x >= y", "NOT (x < y)", "x IS NULL", "x > 1e300 AND y < 1",
    "n % 3 = 0", "n % -3 = -1", "big % 10 = 7", "x % 2 > 1", "y % x < 0.1", "x % 0 = 1", "round(x, 2) = 0.1",
    "round(x * y, 1) > 3", "CAST(name AS INTEGER) IS NULL", "CAST(substring(CAST(n AS VARCHAR), 1, 2) AS INTEGER) = 20",
    "CAST(CAST(n AS VARCHAR) AS DOUBLE) > 3", "CAST(CAST(day AS VARCHAR) AS DATE) = day",
    "CAST(substring(CAST(at AS VARCHAR), 1, 10) AS DATE) > '2020-03-01'", "CAST(CAST(flag AS VARCHAR) AS BOOLEAN)",
    "name ILIKE '%Ë'", "upper(name) = 'ZOË'", "REGEXP_MATCHES(name, '^[A-Z]|[^a-z\\s]$')",
    "REGEXP_FULL_MATCH(name, '\\w{3}|.*[\\\\_\\-].*')", "REGEXP_MATCHES(name, 'o?ë|(b|t)c{1,2}$')",
]  # fmt: skip
ITEMS = [
    "COUNT(*)", "COUNT(x)", "SUM(x)", "SUM(y)", "SUM(n)", "SUM(big)", "AVG(x)", "VARIANCE(x)", "VARIANCE(y)",
    "STDDEV(big)", "SUM(CLIP(x * y, 0, 9))", "SUM(CLIP(x / y, -1, 1e-9))", "SUM(CLIP(x + y, 0, 1e12))", "MEDIAN(x)",
    "MEDIAN(n)", "MEDIAN(y)", "COUNT(DISTINCT name)", "COUNT(DISTINCT n)", "COUNT(DISTINCT x)", "COUNT(DISTINCT day)",
    "SUM(x) FILTER (WHERE flag)", "MAX(big)", "SUM(CASE WHEN flag THEN x ELSE y END)",
    "SUM(CLIP(length(name) * 0.1, 0, 3))", "COUNT(DISTINCT person)", "SUM(n % 7)", "AVG(round(x, 1))",
    "SUM(CLIP(CAST(CAST(n AS VARCHAR) AS DOUBLE), 0, 50))",
]  # fmt: skip
SHAPES = [
    "SELECT city, SUM(x), COUNT(*) FROM t GROUP BY city",
    "SELECT flag, AVG(y) FROM t GROUP BY flag",
    "SELECT n % 4, COUNT(*) FROM t GROUP BY n % 4",
    "SELECT month(day), COUNT(*), SUM(n) FROM t GROUP BY month(day)",
    "SELECT city, flag, COUNT(*), MEDIAN(x) FROM t GROUP BY city, flag",
    "SELECT city, COUNT(DISTINCT name), COUNT(DISTINCT x) FROM t GROUP BY city",
    "SELECT name, COUNT(*), SUM(x) FROM t GROUP BY name",
    "SELECT size, COUNT(*) FROM t JOIN cities USING (city) GROUP BY size",
    "SELECT COUNT(*) FROM t LEFT JOIN cities ON t.city = cities.city WHERE coast IS NULL",
    "SELECT SUM(z) FROM (SELECT CLIP(x * 2, 0, 5) AS z FROM t WHERE n > 3)",
    "SELECT SUM(x) FROM (SELECT x FROM t UNION ALL SELECT y FROM t)",
    "WITH w AS (SELECT city AS c, x + 1 AS v FROM t) SELECT c, SUM(CLIP(v, 0, 4)) FROM w GROUP BY c",
]
PEOPLE = [
    "SELECT COUNT(*) FROM (SELECT person, SUM(x) AS s, COUNT(*) AS c FROM t GROUP BY person) WHERE s > 3 AND c > 2",
    "SELECT AVG(CLIP(m, 0, 8)) FROM (SELECT person, AVG(y) AS m, MAX(x) AS h FROM t GROUP BY person) WHERE h > 1",
    "SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.person = b.person AND a.city = b.city",
    "SELECT big, n, COUNT(*) FROM (SELECT person, city AS big, flag AS n FROM t) GROUP BY big, n",
]
CLIPPED = [
    "SELECT city, SUM(x), COUNT(*) FROM t GROUP BY city",
    "SELECT city, AVG(y), SUM(n) FROM t GROUP BY city",
    "SELECT month(day), VARIANCE(y) FROM t GROUP BY month(day)",
    "SELECT city, flag, SUM(x) FROM t GROUP BY city, flag",
    "SELECT size, SUM(y) FROM t JOIN cities USING (city) GROUP BY size",
]
QUESTIONS = (
    [f"SELECT COUNT(*) FROM t WHERE {condition}" for condition in CONDITIONS]
    + [f"SELECT {item} FROM t" for item in ITEMS]
    + SHAPES
)
REFUSED = ["CAST(x AS VARCHAR) = '0.5'", "CAST(round(y, 2) AS VARCHAR) LIKE '%5'"]

Exact = list[list[tuple[Any, ...]]]


def exact(running: Running, sql: str, unit: str | None, bounding: str | None = None) -> Exact:
    """Un-noised numbers of every statement of a question, in the order of their keys."""
    strategy = plan_query(
        parse_query(sql, catalog(unit)), approximate(1, "1e-6"), rows=None, groups=None, bounding=bounding
    )
    found = []
    for statement in statements(strategy, SECRET):
        running.check(statement)
        found.append(sorted(running.run(statement).open(Permit("a test")), key=repr))
    return found


@pytest.fixture(scope="module")
def reference() -> Running:
    return Duckdb(order="sha256", threads=1).start({"t": rows(), "cities": cities()})


Expected = Callable[..., Exact]


@pytest.fixture(scope="module")
def definition(reference: Running) -> Expected:
    """What the reference says: computed once for all engines that are compared with it."""
    return cache(partial(exact, reference))


@pytest.fixture(scope="module")
def fast() -> Expected:
    """What the engine says that computes with compiled code, and chooses groups by its own hash."""
    return cache(partial(exact, Duckdb(threads=1).start({"t": rows(), "cities": cities()})))


@pytest.fixture(scope="module", params=["postgres", pytest.param("spark", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "spark":
        request.getfixturevalue("java")
        return Spark(threads=2, order="sha256")
    return Postgres(url=request.getfixturevalue("postgresql"), order="sha256")


@pytest.fixture(scope="module")
def other(engine: Engine) -> Iterator[Running]:
    running = engine.start({"t": rows(), "cities": cities()})
    yield running
    running.close()


@pytest.mark.parametrize("sql", QUESTIONS)
def test_rows_as_units(sql: str, other: Running, definition: Expected, fast: Expected) -> None:
    expected = fast(sql, None)
    assert definition(sql, None) == expected
    assert exact(other, sql, None) == expected


@pytest.mark.parametrize("sql", [f"SELECT {item} FROM t" for item in ITEMS] + SHAPES + PEOPLE)
def test_people_as_units(sql: str, other: Running, definition: Expected) -> None:
    expected = definition(sql, "person", "sample")
    assert any(table for table in expected)
    assert exact(other, sql, "person", "sample") == expected


@pytest.mark.parametrize("sql", CLIPPED)
def test_people_clipped_in_norm(sql: str, other: Running, definition: Expected, fast: Expected) -> None:
    expected = fast(sql, "person", "clip")
    assert any(table for table in expected)
    assert definition(sql, "person", "clip") == expected
    assert exact(other, sql, "person", "clip") == expected


@pytest.mark.parametrize("condition", REFUSED)
def test_what_cannot_be_the_same_is_refused(condition: str, other: Running) -> None:
    with pytest.raises(QueryRefused, match="cannot compute"):
        exact(other, f"SELECT COUNT(*) FROM t WHERE {condition}", None)


def floats() -> list[float]:
    """The ends of the floats, what lies next to them, and what multiplies or divides to them."""
    powers = [2.0**e for e in (-1074, -1073, -1022, -1021, -600, -538, -537, -512, -500, -499, -51, -1, 0, 1, 53, 498,
                               499,                                511, 512, 513, 1022, 1023)]  # fmt: skip
    near = [x for power in powers for x in (power, math.nextafter(power, 0), math.nextafter(power, math.inf))]
    plain = [0.0, 0.1, 3.0, 1e-150, 1e150, 8e307, 1.7976931348623157e308, math.inf, math.nan]
    return [sign * x for x in near + plain for sign in (1.0, -1.0)]


def test_regular_expressions_match_alike(engine: Engine) -> None:
    """Sixty patterns on two hundred texts, among them all signs of ASCII and line breaks of other scripts."""
    draw, branches = random.Random(4), []
    while len(branches) < 60:
        with suppress(PatternRefused):
            branches.append(parse_pattern(pattern(draw), whole=len(branches) % 3 == 0))
    lines = texts(draw)
    running = engine.start({"t": pl.DataFrame({"i": range(len(lines)), "a": lines})})
    found = running.run(numbered(*(Matches(Read(("t", "a"), "text"), one) for one in branches))).open(Permit("a test"))
    running.close()
    assert len(found) == len(lines)
    for place, one in enumerate(branches, start=1):
        plain = re.compile(written_pattern(one, end=r"\Z"))
        assert {row[0]: row[place] for row in found} == {i: plain.search(a) is not None for i, a in enumerate(lines)}


def numbered(*items: Expression) -> Select:
    """Expressions over the rows of the table, each row with its number."""
    return Select((("i", Read(("t", "i"), "int")), *((f"c{k}", item) for k, item in enumerate(items))), Stored("t"))


@pytest.mark.parametrize("sign", ["+", "-", "*", "/"])
def test_float_arithmetic_is_ieee_at_the_ends(sign: str, engine: Engine) -> None:
    """Every pair against NumPy. A product that lies within one part in 2**53 above half the least float may come out as
    zero instead of as that float; nothing else may differ."""
    values = np.array(floats())
    a, b = (grid.ravel() for grid in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[sign](a, b)
    running = engine.start({"t": pl.DataFrame({"i": range(len(a)), "a": a, "b": b})})
    first, second = (Read(("t", name), "float") for name in "ab")
    result = Arithmetic(sign, first, NullIf(second, constant(0.0)) if sign == "/" else second)
    found = running.run(numbered(result)).open(Permit("a test"))
    running.close()
    assert len(found) == len(a)
    for i, value in found:
        if sign == "/" and b[i] == 0:
            assert value is None
            continue
        wanted = expected[i]
        close = sign == "*" and abs(wanted) == 5e-324 and value == 0
        assert close or value == wanted or (math.isnan(value) and math.isnan(wanted)), (a[i], b[i], value, wanted)


def test_remainders_are_exact_at_the_ends(engine: Engine) -> None:
    values = np.array(floats())
    a, b = (grid.ravel() for grid in np.meshgrid(values, values))
    running = engine.start({"t": pl.DataFrame({"i": range(len(a)), "a": a, "b": b})})
    first, second = (Read(("t", name), "float") for name in "ab")
    found = dict(running.run(numbered(Modulo(first, NullIf(second, constant(0.0))))).open(Permit("a test")))
    running.close()
    assert len(found) == len(a)
    with np.errstate(all="ignore"):
        expected = np.fmod(a, b)
    for i, value in found.items():
        assert value is None if b[i] == 0 else np.array_equal(value, expected[i], equal_nan=True), (a[i], b[i], value)


@pytest.mark.parametrize("places", [1, 2, 9])
def test_rounding_to_decimals_is_that_of_duckdb(places: int, engine: Engine) -> None:
    ends = [largest_for(places), math.nextafter(largest_for(places), math.inf), 2.675, 1.005, -0.285, 1e22 + 2**21]
    frame = pl.DataFrame({"i": range(len(floats() + ends)), "a": floats() + ends})
    query = numbered(RoundTo(Read(("t", "a"), "float"), places))
    found = [sorted(part.start({"t": frame}).run(query).open(Permit("a test"))) for part in (Duckdb(), engine)]
    for (i, one), (_, two) in zip(*found, strict=True):
        assert np.array_equal(one, two, equal_nan=True), (frame["a"][i], one, two)


def test_letters_change_case_as_in_duckdb(engine: Engine) -> None:
    """All letters that have another case in Unicode, those that Java or a locale would turn into several among them."""
    known = [chr(i) for i in range(1, 0x1FFFF) if not 0xD800 <= i < 0xE000 and chr(i).swapcase() != chr(i)]
    frame = pl.DataFrame({"i": range(len(known) + 2), "a": [*known, "ΟΔΥΣΣΕΥΣ İstanbul", "straße"]})
    query = numbered(*(Function(Read(("t", "a"), "text"), name) for name in ("lower", "upper")))
    found = [sorted(part.start({"t": frame}).run(query).open(Permit("a test"))) for part in (Duckdb(), engine)]
    assert found[0] == found[1]
    assert sum(low != letter for letter, (_, low, _) in zip(known, found[0], strict=False)) > 1000


def test_decimals_and_unsigned_numbers_are_read_alike(engine: Engine) -> None:
    digits = np.random.default_rng(5).integers(-(10**18) + 1, 10**18, 2000)
    money = pl.Series([Decimal(int(n)).scaleb(-2) for n in digits], dtype=pl.Decimal(18, 2))
    frame = pl.DataFrame(
        {
            "i": range(2000),
            "d": money,
            "u": pl.Series([2 ** (i % 64) + i % 7 for i in range(2000)], dtype=pl.UInt64),
        }
    )
    read = [Read(("t", name), kind) for name, kind in (("d", "float"), ("d", "int"), ("d", "text"), ("u", "int"))]
    query = numbered(*read)
    found = [sorted(part.start({"t": frame}).run(query).open(Permit("a test"))) for part in (Duckdb(), engine)]
    assert found[0] == found[1]


def test_times_with_a_zone_are_those_of_utc(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine's own zone is."""
    frame = pl.DataFrame({"seen": [datetime(2020, 1, 1, 2)]}, schema={"seen": pl.Datetime("us", "UTC")})
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        for part in (Duckdb(), Duckdb(order="sha256"), engine):
            running = part.start({"t": frame})
            assert running.run(Select((("a", Read(("t", "seen"), "time")),), Stored("t"))).open(Permit("a test")) == [
                (datetime(2020, 1, 1, 2),)
            ]
            running.close()
    finally:
        monkeypatch.undo()
        time.tzset()


def test_wide_numbers_become_the_same_floats(engine: Engine) -> None:
    """DuckDB rounds the two halves of a 128-bit number by themselves: not always the nearest float."""
    draws = np.random.default_rng(3).integers(1 << 40, 1 << 62, size=(2, 4000))
    frame = pl.DataFrame({"i": range(4000), "n": draws[0], "m": draws[1]})
    product = Arithmetic("*", Cast(Read(("t", "n"), "int"), "huge"), Read(("t", "m"), "int"))
    query = numbered(Cast(product, "float"))
    found = [sorted(part.start({"t": frame}).run(query).open(Permit("a test"))) for part in (Duckdb(), engine)]
    assert found[0] == found[1]
    assert any(d != float(int(n) * int(m)) for (_, d), n, m in zip(found[0], *draws, strict=True))


def test_sampled_groups_are_those_of_the_hash(other: Running, reference: Running) -> None:
    """Against a plain-Python reference: each person's groups of smallest and largest SHA-256, two rows in each."""
    places = {"a": 0, "b": 1, "ü": 2}
    seen: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for person, city in rows().select("person", "city").iter_rows():
        if person is not None and city in places:
            seen[person][places[city]] += 1
    expected = [0, 0, 0]
    for person, groups in seen.items():

        def place(group: int, person: int = person) -> int:
            digest = hashlib.sha256(f"{group}|{person}|{SECRET}".encode()).hexdigest()
            return (int(digest[:15], 16) >> 21 << 20) + group

        ordered = sorted(groups, key=place)
        for group in {ordered[0], ordered[-1]}:
            expected[group] += min(groups[group], 2)
    sql = "SELECT city, COUNT(*) FROM t GROUP BY city"
    for running in (reference, other):
        [found] = exact(running, sql, "person", "sample")
        assert [row[1] for row in found] == expected


@pytest.mark.parametrize("unit", ["person", "name"])
def test_the_own_hash_of_an_engine_bounds_by_the_definition(unit: str, engine: Engine) -> None:
    """Sums, norms, quantiles and the units that limits fit, with groups chosen by the hash that is the default.

    Spark takes seconds for a statement and is asked one question.
    """
    own = type(engine).model_validate({**engine.model_dump(), "order": "fast"})
    running = own.start({"t": rows(), "cities": cities()})
    assert "sha" not in running._generator.write(Select((("h", Hash((constant(1),))),), Stored("t")))  # type: ignore[attr-defined]
    known, found, chosen = catalog(unit), [], set()
    few = 1 if isinstance(engine, Spark) else None
    for sql, cost in (
        ("SELECT city, SUM(x), COUNT(*) FROM t GROUP BY city", pure(1)),
        ("SELECT month(day), AVG(x), COUNT(*) FROM t GROUP BY month(day)", pure(1)),
        ("SELECT city, AVG(x), SUM(n % 7) FROM t GROUP BY city", approximate(1, "1e-6")),
        ("SELECT city, COUNT(DISTINCT person), MEDIAN(x) FROM t GROUP BY city", pure(1)),
    )[:few]:
        bounding = "clip" if cost.delta else "sample"
        plan = plan_query(parse_query(sql, known), cost, bounding=bounding, fit="1/20")
        found += disagreements(plan, running)
        if not cost.delta and "MEDIAN" not in sql:
            totals = [sorted(running.run(additive_sql(plan, secret)).open(Permit("a test"))) for secret in (1, 2)]
            chosen.add(str(totals[0]) != str(totals[1]))
    running.close()
    assert found == []
    assert chosen == {True}  # another secret keeps other groups
