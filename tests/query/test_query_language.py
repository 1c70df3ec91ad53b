"""Questions of two steps, cohorts, anti-joins and years beside each other: without noise they are what DuckDB says."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Any

import duckdb
import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import approximate, pure
from sfumato.errors import QueryRefused
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.catalog import PublicTable
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


def tables() -> dict[str, pl.DataFrame]:
    draw, day = random.Random(4), date(2022, 1, 1)
    people = [
        {"u": u, "sex": draw.choice("fm"), "born": draw.randint(1940, 2005), "city": draw.choice(["Bonn", "Ely", None])}
        for u in range(300)
    ]
    visits = [
        {"u": u, "day": day + timedelta(days=draw.randint(0, 1090)),
         "ward": draw.choice(["east", "north", "west", None]),
         "code": draw.choice(["A", "B", "C", None]), "cost": draw.randint(0, 90), "n": draw.randint(0, 5)}
        for u in range(260) for _ in range(draw.randint(0, 5))
    ]  # fmt: skip
    return {"p": pl.DataFrame(people), "v": pl.DataFrame(visits)}


TABLES = tables()
WARDS = pl.DataFrame({"ward": ["east", "north", "south"], "floor": [1, 2, 2], "label": ["E", "N", "S"]})
PERSON = {
    "u": column("integer"), "sex": column("category", values=("f", "m")),
    "born": column("integer", low=1940, high=2005),
    "city": column("category", values=("Bonn", "Ely")),
}  # fmt: skip
VISIT = {
    "u": column("integer"), "day": column("date", first=date(2022, 1, 1), last=date(2024, 12, 31)),
    "ward": column("category", values=("east", "north", "west")), "code": column("category"),
    "cost": column("integer", low=0, high=100), "n": column("integer", low=0, high=9),
}  # fmt: skip
CATALOG = Catalog(
    dataset="d",
    private={
        "p": PrivateTable(name="p", schema=Schema(columns=PERSON, unit="u"), rows=1, groups=1),
        "v": PrivateTable(name="v", schema=Schema(columns=VISIT, unit="u"), rows=40, groups=40),
    },
    public={"w": PublicTable(name="w", frame=WARDS, key=("ward",))},
)
YEARS = "WITH y AS (SELECT YEAR(day) AS y, COUNT(*) AS n FROM v GROUP BY y)"
FIRST = "WITH f AS (SELECT u, MIN(day) AS first, MAX(day) AS last FROM v GROUP BY u)"
SAME = [
    # domains that the analyst names
    "SELECT code, COUNT(*) FROM v WHERE code IN ('A', 'B') GROUP BY code",
    "SELECT code, COUNT(*) FROM v WHERE code = 'A' OR code = 'C' GROUP BY code",
    "SELECT code, ward, SUM(cost) FROM v WHERE code IN ('A', 'B') AND ward IN ('east', 'north') GROUP BY code, ward",
    "SELECT n, COUNT(*) FROM v WHERE n IN (1, 3, 4) GROUP BY n",
    "SELECT x, COUNT(*) FROM (SELECT u, code AS x FROM v) WHERE x IN ('A', 'C') GROUP BY x",
    "SELECT COALESCE(code, 'none') AS code, COUNT(*) FROM v WHERE code = 'A' OR code IS NULL GROUP BY code",
    "SELECT n, COUNT(*) FROM (SELECT u, n FROM v WHERE n IN (1, 2) UNION ALL SELECT u, n FROM v WHERE n IN (2, 3))"
    " GROUP BY n",
    "SELECT q.code, COUNT(*) FROM p LEFT JOIN (SELECT u, code FROM v WHERE code IN ('A', 'B')) q ON p.u = q.u"
    " WHERE q.code IS NOT NULL GROUP BY q.code",
    # keys
    "SELECT COALESCE(ward, 'none') AS ward, COUNT(*) FROM v GROUP BY ward",
    "SELECT ward AS ward, COUNT(*) FROM v WHERE ward IS NOT NULL GROUP BY ward HAVING COUNT(*) > 0",
    "SELECT ward, COUNT(*), SUM(cost) FROM v WHERE ward IS NOT NULL GROUP BY ALL",
    "SELECT COUNT(*) FROM v GROUP BY ALL",
    "SELECT code, MEDIAN(cost) FROM v WHERE code IS NOT NULL GROUP BY code",
    "SELECT v.ward, label, COUNT(*) FROM v LEFT JOIN w ON v.ward = w.ward WHERE label IS NOT NULL GROUP BY"
    " v.ward, label",
    "SELECT floor, sex, COUNT(*) FROM v JOIN p USING (u) LEFT JOIN w USING (ward) WHERE floor IS NOT NULL"
    " GROUP BY floor, sex",
    # HAVING by person
    "SELECT COUNT(*) FROM (SELECT u FROM v GROUP BY u HAVING COUNT(*) >= 3)",
    "SELECT COUNT(*) FROM p WHERE u IN (SELECT u FROM v GROUP BY u HAVING SUM(cost) > 100 AND COUNT(*) < 5)",
    "SELECT sex, COUNT(*) FROM p JOIN (SELECT u, COUNT(*) AS n FROM v GROUP BY u HAVING n > 2) q USING (u)"
    " GROUP BY sex",
    "SELECT COUNT(*) FROM (SELECT u, n AS cost, cost AS n FROM v GROUP BY u, n, cost HAVING n = 2)",
    "SELECT COUNT(*) FROM (SELECT u FROM v x GROUP BY u, ward HAVING x.ward = 'east' AND MAX(cost) > 20)",
    "SELECT COUNT(*) FROM (SELECT u FROM v GROUP BY u HAVING COUNT_IF(code = 'A') > COUNT(*) FILTER (WHERE code"
    " = 'B'))",
    # funnels, cohorts
    "SELECT COUNT(*) FILTER (WHERE a > 0), COUNT(*) FILTER (WHERE a > 0 AND b > 0), AVG(CLIP(s, 0, 200)),"
    " AVG(CLIP(d, 0, 5))"
    " FROM (SELECT u, COUNT(*) FILTER (WHERE code = 'A') AS a, COUNT_IF(code = 'B') AS b,"
    " SUM(cost) FILTER (WHERE code = 'A') AS s, COUNT(DISTINCT ward) FILTER (WHERE cost > 20) AS d FROM v GROUP BY u)",
    f"{FIRST} SELECT YEAR(first) AS y, COUNT(*) FROM f GROUP BY y",
    f"{FIRST} SELECT COUNT(*) FROM f WHERE DATE_DIFF('day', first, last) > 365",
    f"{FIRST} SELECT YEAR(first) AS cohort, CLIP(YEAR(v.day) - YEAR(first), 0, 2) AS later, COUNT(DISTINCT v.u)"
    " AS people"
    " FROM v JOIN f ON v.u = f.u GROUP BY cohort, later HAVING COUNT(DISTINCT v.u) > 0.5",
    "WITH a AS (SELECT u, SUM(cost) AS s FROM v GROUP BY u), b AS (SELECT u, CASE WHEN s > 100 THEN 'high' ELSE"
    " 'low' END"
    " AS g FROM a) SELECT g, sex, COUNT(*) FROM b JOIN p USING (u) GROUP BY g, sex",
    # anti-joins
    "SELECT sex, COUNT(*) FROM p SEMI JOIN v ON p.u = v.u GROUP BY sex",
    "SELECT sex, COUNT(*) FROM p ANTI JOIN v USING (u) GROUP BY sex",
    "SELECT COUNT(*) FROM p ANTI JOIN (SELECT u FROM v WHERE code = 'A') q ON p.u = q.u",
    # noisy rows beside each other
    f"{YEARS} SELECT a.y, a.n, b.n AS before, a.n - b.n AS more FROM y a JOIN y b ON a.y = b.y + 1",
    f"{YEARS} SELECT a.y, a.n, b.n AS before FROM y a LEFT JOIN y b ON a.y - 1 = b.y",
    f"{YEARS} SELECT a.y, b.n AS b, c.n AS c FROM y a JOIN y b ON a.y = b.y + 1 LEFT JOIN y c ON a.y = c.y + 2",
    f"{YEARS} SELECT a.*, b.n AS m FROM y a JOIN y b ON a.y = b.y + 1 WHERE a.n > 3",
    "WITH y AS (SELECT YEAR(day) AS y, ward, COUNT(*) AS n FROM v WHERE ward IN ('east', 'west') GROUP BY y, ward)"
    " SELECT a.y, a.ward, a.n / b.n AS ratio FROM y a JOIN y b ON a.y = b.y + 1 AND a.ward = b.ward",
    f"{YEARS}, t AS (SELECT SUM(n) AS total FROM y) SELECT y.y, n / total AS share FROM y CROSS JOIN t",
    f"{YEARS}, t AS (SELECT SUM(n) AS total FROM y) SELECT a.y, b.n / total AS share FROM y a JOIN y b ON a.y = b.y + 1"
    " CROSS JOIN t",
    f"{YEARS} SELECT y, n / (SELECT SUM(n) FROM y) AS share FROM y",
    f"{YEARS} SELECT y, n FROM y WHERE n > (SELECT AVG(n) FROM y)",
    f"{YEARS} SELECT * FROM y WHERE n = (SELECT MAX(n) FROM y)",
]  # fmt: skip


@pytest.fixture(scope="module")
def session() -> Session:
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10**9, "0.5"), dataset="d")
    return Session(CATALOG, TABLES, ledger=book, analyst="a")


def order(row: tuple[Any, ...]) -> str:
    return repr([str(round(value)) if isinstance(value, int | float) else str(value) for value in row])


@pytest.mark.parametrize("sql", SAME)
def test_without_noise_it_is_what_duckdb_says(sql: str, session: Session) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO clip(x, a, b) AS CASE WHEN x IS NOT NULL THEN least(greatest(x, a), b) END")
        for name, frame in {**TABLES, "w": WARDS}.items():
            connection.register(name, frame.to_arrow())
        expected = sorted(connection.execute(sql).fetchall(), key=order)
    answer = session.ask(sql, epsilon=10**6, delta="1e-9")
    found = sorted((tuple(cell.value for cell in row) for row in answer.rows), key=order)
    assert len(found) == len(expected) > 0
    for row, true in zip(found, expected, strict=True):
        for value, exact in zip(row, true, strict=True):
            number = isinstance(exact, int | float)
            assert value == (pytest.approx(float(exact), rel=0.02, abs=0.02) if number else exact)


def test_named_values_are_public_keys_and_need_no_delta() -> None:
    query = parse_query("SELECT code, COUNT(*) FROM v WHERE code IN ('A', 'new') GROUP BY code", CATALOG)
    assert query.keys[0].values == ("A", "new")
    assert plan_query(query, pure(1)).partition_selection is None
    for condition in ("code <> 'A'", "code IN ('A') OR cost > 3", "NOT code IN ('A')", "code LIKE 'A'"):
        open_keys = parse_query(f"SELECT code, COUNT(*) FROM v WHERE {condition} GROUP BY code", CATALOG)
        assert open_keys.keys[0].values is None


def test_groups_without_a_partner_in_a_public_table_are_not_reported(session: Session) -> None:
    sql = "SELECT v.ward, label, COUNT(*) FROM v LEFT JOIN w ON v.ward = w.ward GROUP BY v.ward, label"
    assert {tuple(cell.value for cell in row)[:2] for row in session.ask(sql, epsilon=1).rows} == {
        ("east", "E"),
        ("north", "N"),
    }


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(*) FROM p SEMI JOIN v ON p.u = p.u", "privacy units of two tables"),
        ("SELECT COUNT(*) FROM p SEMI JOIN v ON p.u = v.u AND v.cost = p.born", "privacy units of two tables"),
        ("SELECT COUNT(*) FROM v SEMI JOIN w ON v.ward = w.ward", "privacy units of two tables"),
        ("SELECT COUNT(*) FROM p a JOIN p b ON a.u = b.u JOIN v ON a.u = b.u", "privacy unit"),
        ("SELECT COUNT(*) FROM v RIGHT JOIN p ON v.u = p.u", "LEFT JOIN"),
        ("SELECT QUANTILE_CONT(cost, [0.25, 0.5]) FROM v", "each rank"),
        (f"{YEARS} SELECT a.n FROM y a JOIN y b ON a.n = b.n", "each group key"),
        (f"{YEARS} SELECT a.n FROM y a JOIN y b ON a.y > b.y", "equalities"),
        (f"{YEARS} SELECT a.n FROM y a RIGHT JOIN y b ON a.y = b.y", "JOIN or LEFT JOIN"),
        (f"{YEARS} SELECT a.n FROM y a JOIN v ON a.y = v.n", "JOIN"),
        (f"{YEARS} SELECT n FROM y a JOIN y b ON a.y = b.y", "More than one column"),
        ("SELECT COUNT(*) FROM (SELECT u AS person FROM v GROUP BY u HAVING MEDIAN(cost) > 3)", "MEDIAN"),
    ],
)
def test_what_is_not_about_units_or_noisy_rows_is_refused(sql: str, words: str) -> None:
    with pytest.raises(QueryRefused, match=words):
        parse_query(sql, CATALOG)
