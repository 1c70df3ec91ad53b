"""Sets of people: semi- and anti-joins, DISTINCT, INTERSECT, LEFT JOIN and window functions by person.

Without noise each is what SQL says, on every engine; and no question moves by more than one person may move it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import duckdb
import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import pure
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.backends.postgres.engine import Postgres
from sfumato.engines.backends.spark.engine import Spark
from sfumato.engines.engine import Running
from sfumato.errors import QueryRefused
from sfumato.query import Catalog, PrivateTable
from sfumato.query.execute.executor import statements
from sfumato.query.plan.catalog import PublicTable
from sfumato.query.plan.noise import NoisePlan, grid_of
from sfumato.query.plan.outputs import LinearCombination
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query
from sfumato.secret import Permit


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


PERSON = {
    "id": column("integer"),
    "age": column("integer", low=0, high=100),
    "sex": column("category", values=("f", "m")),
}
VISIT = {
    "id": column("integer"),
    "day": column("date"),
    "ward": column("category", values=("a", "b", "c")),
    "bill": column("number", low=0, high=100),
}
WARDS = pl.DataFrame({"ward": ["a", "b", "c", "d"], "floor": [1, 2, 2, None]})


def tables(seed: int, people: int = 30) -> dict[str, pl.DataFrame]:
    draw = random.Random(seed)
    visits = [
        {
            "id": draw.randrange(people + 3),
            "day": date(2024, 1, 1) + timedelta(days=draw.randrange(4)),
            "ward": draw.choice(["a", "b", "c", None]),
            "bill": draw.choice([0.0, -0.0, 1.5, 99.0, None]),
        }
        for _ in range(people * 2)
    ]
    return {
        "person": pl.DataFrame({"id": range(people), "age": [draw.randrange(90) for _ in range(people)],
                                "sex": [draw.choice("fm") for _ in range(people)]}),
        "visit": pl.DataFrame(visits, schema={"id": pl.Int64, "day": pl.Date, "ward": pl.String, "bill": pl.Float64}),
    }  # fmt: skip


def catalog(limit: int) -> Catalog:
    private = {
        name: PrivateTable(name=name, schema=Schema(columns=columns, unit="id"), rows=limit, groups=3)
        for name, columns in (("person", PERSON), ("visit", VISIT))
    }
    return Catalog(
        dataset="d", private=private, public={"wards": PublicTable(name="wards", frame=WARDS, key=("ward",))}
    )


QUESTIONS = [
    "SELECT COUNT(*) FROM person WHERE id IN (SELECT id FROM visit WHERE ward = 'a')",
    "SELECT COUNT(*) FROM person WHERE id NOT IN (SELECT id FROM visit) AND age > 20",
    "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM visit v WHERE v.id = p.id AND v.bill > 1)",
    "SELECT sex, COUNT(*) FROM person p WHERE NOT EXISTS (SELECT * FROM visit v WHERE p.id = v.id) GROUP BY sex"
    " ORDER BY sex",
    "SELECT COUNT(*) FROM visit WHERE id IN (SELECT id FROM person WHERE sex = 'f') AND ward IN ('a', 'b')",
    "SELECT COUNT(*) FROM (SELECT id FROM visit WHERE ward = 'a' INTERSECT SELECT id FROM visit WHERE ward = 'b')",
    "SELECT COUNT(*) FROM (SELECT id FROM visit WHERE ward = 'a' EXCEPT SELECT id FROM visit WHERE ward = 'b')",
    "SELECT COUNT(*) FROM (SELECT id FROM visit WHERE ward = 'a' UNION SELECT id FROM person WHERE age > 50)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT id FROM visit)",
    "SELECT ward, COUNT(*) FROM (SELECT DISTINCT ward, id FROM visit) WHERE ward IS NOT NULL GROUP BY ward"
    " ORDER BY ward",
    "SELECT COUNT(*) FROM person WHERE id IN (SELECT id FROM visit WHERE ward = 'a' INTERSECT SELECT id FROM visit"
    " WHERE bill > 1)",
    "SELECT COUNT(*) FROM person LEFT JOIN visit ON person.id = visit.id",
    "SELECT COUNT(*) FROM person LEFT JOIN visit ON person.id = visit.id AND visit.ward = 'a'",
    "SELECT COUNT(visit.id) FROM person LEFT JOIN visit ON person.id = visit.id AND visit.ward = 'a'",
    "SELECT COUNT(*) FROM person p LEFT JOIN visit v ON p.id = v.id WHERE v.id IS NULL",
    "SELECT COUNT(*) FROM visit WHERE ward IN (SELECT ward FROM wards WHERE floor = 2)",
    "SELECT COUNT(*) FROM visit WHERE ward NOT IN (SELECT ward FROM wards WHERE floor = 2)",
    "SELECT COUNT(*) FROM visit WHERE CAST(bill AS INTEGER) NOT IN (SELECT floor FROM wards)",
    "SELECT ward, COUNT(*) FROM (SELECT id, ward, ROW_NUMBER() OVER (PARTITION BY id ORDER BY day, ward, bill) AS r"
    " FROM visit) WHERE r = 1 AND ward IS NOT NULL GROUP BY ward ORDER BY ward",
    "SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id, ward ORDER BY day DESC, bill) AS r FROM visit)"
    " WHERE r <= 2 AND ward = 'b'",
    "SELECT COUNT(*) FROM (SELECT id, day, LAG(day) OVER (PARTITION BY id ORDER BY day) AS before FROM visit)"
    " WHERE day - before <= 1",
    "SELECT COUNT(*) FROM (SELECT id, day, LEAD(day, 2) OVER (PARTITION BY id ORDER BY day) AS later FROM visit)"
    " WHERE later IS NULL",
]


def asked(sql: str, limit: int) -> NoisePlan:
    return plan_query(parse_query(sql, catalog(limit)), pure(1), bounding=None)


def value(plan: NoisePlan, number: int | LinearCombination, row: Sequence[Any]) -> Fraction:
    """A number of the answer from the measured ones, which are whole steps of a grid."""
    terms = number.terms if isinstance(number, LinearCombination) else ((number, Fraction(1)),)
    parts = (weight * int(row[index]) * grid_of(plan.query.aggregates[index], plan.bounding) for index, weight in terms)
    return sum(parts, Fraction(0))


def exact(running: Running, sql: str, limit: int) -> list[Any]:
    found: list[Any] = []
    for statement in statements(asked(sql, limit), 5):
        running.check(statement)
        found.append(sorted(running.run(statement).open(Permit("a test"))))
    return found


def start(seed: int, **options: Any) -> Running:
    return Duckdb(threads=1, **options).start({**tables(seed), "wards": WARDS.to_arrow()})


@pytest.mark.parametrize("sql", QUESTIONS)
def test_without_bounds_it_is_what_sql_says(sql: str) -> None:
    """With limits that cut nothing, the numbers before noise are those of DuckDB itself."""
    with duckdb.connect() as connection:
        for name, frame in {**tables(1), "wards": WARDS}.items():
            connection.register(name, frame.to_arrow())
        expected = connection.execute(sql).fetchall()
    [rows] = exact(start(1), sql, 1000)
    measured = [row[1:-1] if "GROUP BY" in sql else row[:-1] for row in rows]
    plan = asked(sql, 1000)
    numbers = [tuple(value(plan, number, row) for number in plan.reported()) for row in measured]
    wanted = [tuple(row[-len(numbers[0]) :]) for row in expected]
    assert [number for number in numbers if any(number)] == [number for number in wanted if any(number)]


@pytest.mark.parametrize("sql", QUESTIONS)
def test_removing_a_person_moves_nobody_else(sql: str) -> None:
    """The rows of a question without one person are the rows with them, minus those of that person."""
    query = parse_query(sql, catalog(1000))
    every = tables(2, people=6)
    for gone in (0, 2, 5):
        fewer = {name: frame.filter(pl.col("id") != gone) for name, frame in every.items()}
        rows = []
        for data in (every, fewer):
            running = Duckdb(threads=1).start({**data, "wards": WARDS.to_arrow()})
            found = running.run(query.rows.query()).open(Permit("a test"))
            running.close()
            rows.append(sorted((tuple(row) for row in found if str(row[0]) != str(gone)), key=repr))
        assert rows[0] == rows[1]


@pytest.mark.parametrize("mutant", ["other people's rows decide", "window over everybody"])
def test_a_node_that_looks_at_other_people_is_noticed(mutant: str) -> None:
    """Power of the test above: plain SQL whose rows depend on other people fails the same comparison."""
    sql = {
        "other people's rows decide": "SELECT * FROM person WHERE age IN (SELECT MAX(age) FROM person)",
        "window over everybody": "SELECT id, ROW_NUMBER() OVER (ORDER BY age, id) FROM person",
    }[mutant]
    every = pl.DataFrame({"id": [1, 2, 3], "age": [5, 5, 9], "sex": ["f", "f", "m"]})
    different = 0
    for gone in (1, 2, 3):
        rows = []
        for frame in (every, every.filter(pl.col("id") != gone)):
            with duckdb.connect() as connection:
                connection.register("person", frame.to_arrow())
                rows.append(sorted(row for row in connection.execute(sql).fetchall() if row[0] != gone))
        different += rows[0] != rows[1]
    assert different


@pytest.fixture(scope="module")
def postgres(postgresql: str) -> Iterator[Running]:
    running = Postgres(url=postgresql, order="sha256").start({**tables(1), "wards": WARDS})
    yield running
    running.close()


@pytest.fixture(scope="module")
def spark(java: str) -> Iterator[Running]:
    running = Spark(threads=2, order="sha256").start({**tables(1), "wards": WARDS})
    yield running
    running.close()


def test_postgresql_agrees(postgres: Running) -> None:
    reference = start(1, order="sha256")
    for sql in QUESTIONS:
        assert exact(postgres, sql, 2) == exact(reference, sql, 2), sql


@pytest.mark.slow
def test_spark_agrees(spark: Running) -> None:
    reference = start(1, order="sha256")
    for sql in QUESTIONS:
        assert exact(spark, sql, 2) == exact(reference, sql, 2), sql


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(*) FROM visit WHERE ward IN (SELECT ward FROM visit WHERE bill > 3)", "privacy unit"),
        ("SELECT COUNT(*) FROM person WHERE age > 3 OR id IN (SELECT id FROM visit)", "joined by AND"),
        ("SELECT COUNT(*) FROM person WHERE EXISTS (SELECT 1 FROM visit)", "compares its unit"),
        ("SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM visit v WHERE v.id = p.id AND day = p.age)",
         "cannot be compared"),
        ("SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM visit v WHERE v.id = p.id AND day > p.age)", "age"),
        ("SELECT COUNT(*) FROM person WHERE id IN (SELECT id + 1 AS id FROM visit)", "unit's column alone"),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT ward FROM visit)", "include the privacy unit"),
        ("SELECT COUNT(*) FROM (SELECT ward FROM visit INTERSECT SELECT ward FROM visit)", "privacy unit"),
        ("SELECT COUNT(*) FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY day) AS r FROM visit)", "PARTITION BY unit"),
        ("SELECT COUNT(*) FROM (SELECT id, RANK() OVER (PARTITION BY id ORDER BY day) AS r FROM visit)", "ROW_NUMBER"),
        ("SELECT COUNT(*) FROM visit WHERE ROW_NUMBER() OVER (PARTITION BY id ORDER BY day) = 1", "of a subquery"),
    ],
)  # fmt: skip
def test_refusals(sql: str, words: str) -> None:
    with pytest.raises(QueryRefused, match=words):
        parse_query(sql, catalog(3))
