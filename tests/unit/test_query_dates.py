"""Dates in queries: public ranges from WHERE, keys without a delta, and the answers of plain SQL."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pytest

from sfumato.dp.ledger import Ledger
from sfumato.dp.loss import approximate
from sfumato.errors import QueryRefused
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.sql.parse import parse_query
from sfumato.schema import Column, Kind, Role, Schema

COLUMNS = {name: Column(role=Role.PLAIN, kind=Kind(kind)) for name, kind in
           {"day": "date", "left_on": "date", "moment": "datetime", "word": "category"}.items()}  # fmt: skip
CATALOG = Catalog(dataset="d", private={"t": PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit=None))})
ROWS = pl.DataFrame(
    {
        "day": [date(2023, 11, 3) + timedelta(days=i * 7 % 500) for i in range(300)],
        "left_on": [date(2023, 11, 3) + timedelta(days=i * 7 % 500 + i % 9) for i in range(300)],
        "moment": [datetime(2024, 2, 27, 5, 30) + timedelta(hours=i * 5) for i in range(300)],
        "word": ["x"] * 300,
    }
)
YEAR = "day >= '2024-01-01' AND day < '2025-01-01'"
SAME = [
    f"SELECT date_trunc('month', day) AS m, COUNT(*) FROM t WHERE {YEAR} GROUP BY m ORDER BY m",
    f"SELECT date_trunc('quarter', day), COUNT(*) FROM t WHERE {YEAR} GROUP BY 1 ORDER BY 1",
    f"SELECT strftime(day, '%Y-%m') AS m, COUNT(*) FROM t WHERE {YEAR} GROUP BY m ORDER BY m",
    f"SELECT YEAR(day + INTERVAL 1 MONTH) AS y, COUNT(*) FROM t WHERE {YEAR} GROUP BY y ORDER BY y",
    "SELECT dayname(day) AS d, COUNT(*) FROM t GROUP BY d ORDER BY d",
    "SELECT date_trunc('day', moment) AS d, COUNT(*) FROM t"
    " WHERE moment BETWEEN '2024-02-28' AND '2024-03-02' GROUP BY d ORDER BY d",
    "SELECT COUNT(*) FROM t WHERE date_diff('day', day, left_on) >= 3",
    "SELECT COUNT(*) FROM t WHERE left_on - day >= 3",
    "SELECT COUNT(*) FROM t WHERE day > DATE '2024-06-30' - INTERVAL 90 DAY AND day <= DATE '2024-06-30'",
    "SELECT SUM(CLIP(date_diff('week', day, left_on), 0, 5)) FROM t",
    "SELECT date_part('month', day) AS m, COUNT(*) FROM t GROUP BY m ORDER BY m",
    "SELECT COUNT(*) FROM t WHERE last_day(day) = day OR isodow(day) = 7",
    f"SELECT m, n - LAG(n) OVER (ORDER BY m) FROM (SELECT date_trunc('month', day) AS m, COUNT(*) AS n FROM t"
    f" WHERE {YEAR} GROUP BY m) ORDER BY m",
]


@pytest.fixture(scope="module")
def session() -> Session:
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10**12, "0.5"), dataset="d")
    return Session(CATALOG, {"t": ROWS}, ledger=book, analyst="a")


def plain(value: Any) -> Any:
    if isinstance(value, date):
        return str(value).removesuffix(" 00:00:00")
    return float(value) if isinstance(value, int) else value


@pytest.mark.parametrize("sql", SAME)
def test_without_noise_it_is_what_sql_says(sql: str, session: Session) -> None:
    answer = session.ask(sql, epsilon=10**7)
    with duckdb.connect() as connection:
        connection.register("t", ROWS.to_arrow())
        plain_sql = sql.replace("CLIP(", "GREATEST(").replace(", 0, 5)", ", 0)")
        expected = connection.execute(plain_sql).fetchall()
    found = [[plain(cell.value) for cell in row] for row in answer.rows if row[-1].value != 0]
    assert found == [[plain(value) for value in row] for row in expected if row[-1] != 0]


def test_the_keys_are_all_months_of_the_range_whatever_the_data(session: Session) -> None:
    where = "day BETWEEN '1990-01-15' AND '1990-12-15'"
    sql = f"SELECT date_trunc('month', day) AS m, COUNT(*) FROM t WHERE {where} GROUP BY m"
    assert [row[0].value for row in session.ask(sql, epsilon=1).rows] == [date(1990, m, 1) for m in range(1, 13)]


def test_a_range_with_one_end_makes_no_keys() -> None:
    for where in (
        "day >= '2024-01-01'",
        "day >= '2024-01-01' OR day < '2025-01-01'",
        "NOT (day < '2024-01-01')",
        "TRUE",
    ):
        query = parse_query(f"SELECT day, COUNT(*) FROM t WHERE {where} GROUP BY day", CATALOG)
        assert query.keys[0].values is None
    query = parse_query(
        "SELECT day, COUNT(*) FROM (SELECT day FROM t WHERE day BETWEEN '2024-01-01' AND '2024-01-03' UNION ALL"
        " SELECT day FROM t WHERE day BETWEEN '2024-01-02' AND '2024-01-04') GROUP BY day",
        CATALOG,
    )
    assert query.keys[0].values == tuple(date(2024, 1, n) for n in range(1, 5))


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(*) FROM t WHERE day > CURRENT_DATE", "constant"),
        ("SELECT COUNT(*) FROM t WHERE date_trunc('century', day) = day", "YEAR, QUARTER"),
        ("SELECT COUNT(*) FROM t WHERE strftime(day, '%A') = 'x'", "%Y, %m"),
        ("SELECT COUNT(*) FROM t WHERE day + INTERVAL 999999 YEAR > day", "too long"),
        ("SELECT COUNT(*) FROM t WHERE word + INTERVAL 1 DAY > day", "A date is required"),
        ("SELECT COUNT(*) FROM t WHERE DATE '9999-12-31' + INTERVAL 1 DAY > day", "9999"),
        ("SELECT COUNT(*) FROM t WHERE date_part('century', day) = 1", "YEAR"),
    ],
)
def test_refusals_name_what_is_answered(sql: str, words: str) -> None:
    with pytest.raises(QueryRefused, match=words):
        parse_query(sql, CATALOG)
