"""Dates in queries: public ranges from WHERE, keys without a delta, and the answers of plain SQL."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pytest
from pydantic import ValidationError

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import approximate
from sfumato.errors import MetadataMissing, QueryRefused
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.sql.parse import parse_query

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
    book.set_cap(approximate(10**9, "0.5"), dataset="d")
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


def bounded(**domain: Any) -> Catalog:
    """The same table with a declared range of days."""
    columns = {name: column.model_copy(update={"domain": Domain.of(domain)}) if name in ("day", "moment") else column
               for name, column in COLUMNS.items()}  # fmt: skip
    return Catalog(dataset="d", private={"t": PrivateTable(name="t", schema=Schema(columns=columns, unit=None))})


def test_a_declared_range_of_days_makes_groups_and_bounds_public() -> None:
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10**9, "0.5"), dataset="d")
    asked = Session(bounded(first="2024-01-01", last="2024-12-31"), {"t": ROWS}, ledger=book, analyst="a")
    for key, groups in (("date_trunc('month', {})", 12), ("strftime({}, '%Y-%m')", 12), ("YEAR({})", 1),
                        ("CAST({} AS DATE)", 366), ("date_trunc('quarter', {})", 4)):  # fmt: skip
        for name in ("day", "moment"):
            sql = f"SELECT {key.format(name)} AS k, COUNT(*) AS n FROM t GROUP BY k ORDER BY k"
            answer = asked.ask(sql, epsilon=10**7)
            assert len(answer.rows) == groups, sql
            inside = f"{name} >= '2024-01-01' AND {name} < '2025-01-01'"
            with duckdb.connect() as connection:
                connection.register("t", ROWS.to_arrow())
                true = connection.execute(sql.replace("GROUP", f"WHERE {inside} GROUP")).fetchall()
            assert {plain(row[0].value): row[1].value for row in answer.rows if row[1].value} == {
                plain(k): n for k, n in true
            }, sql


@pytest.mark.parametrize(
    ("difference", "low", "high"),
    [
        ("date_diff('day', DATE '2024-01-01', day)", 0, 365),
        ("date_diff('month', DATE '2023-12-31', day)", 1, 12),
        ("date_diff('year', day, DATE '2020-06-01')", -4, -4),
        ("date_diff('quarter', day, moment)", -3, 3),
        ("date_diff('hour', moment, day)", -(366 * 24 - 1), 365 * 24),
        ("date_diff('minute', DATE '2024-01-01', moment)", 0, 366 * 1440 - 1),
        ("date_diff('week', DATE '2024-01-10', day)", -1, 50),
        ("day - DATE '2024-12-31'", -365, 0),
    ],
)
def test_differences_of_bounded_days_are_bounded(difference: str, low: int, high: int) -> None:
    """The declared range gives the range of the difference; DuckDB finds its ends, and nothing beyond them."""
    query = parse_query(f"SELECT MAX({difference}) FROM t", bounded(first="2024-01-01", last="2024-12-31"))
    [cells] = query.aggregates
    assert (cells.low, cells.low + (cells.cells - 1) * cells.grid) == (low, high)
    days = "SELECT d::DATE AS day FROM (VALUES ('2024-01-01'), ('2024-07-03'), ('2024-12-31')) AS v(d)"
    times = "SELECT m::TIMESTAMP AS moment FROM (VALUES ('2024-01-01'), ('2024-12-31 23:59:59.999999')) AS v(m)"
    number = difference if "week" not in difference else "trunc((day - DATE '2024-01-10') / 7)"
    found = duckdb.connect().execute(f"SELECT MIN({number}), MAX({number}) FROM ({days}), ({times})").fetchone()
    assert found == (low, high)


@pytest.mark.parametrize(
    "domain", [{"first": "2024-01-02", "last": "2024-01-01"}, {"first": "2024-01-01"}, {"last": "2024-01-01"},
               {"low": 0, "high": 1, "first": "2024-01-01", "last": "2024-01-02"},
               {"first": "2024-01-01T10:00:00Z", "last": "2024-01-02T10:00:00+01:00"}],
)  # fmt: skip
def test_a_range_of_days_has_two_ends(domain: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Domain.of(domain)


def test_a_range_of_days_is_for_dates_alone() -> None:
    for kind, domain in (("integer", {"first": "2024-01-01", "last": "2024-01-02"}), ("date", {"low": 0, "high": 9})):
        column = Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain))
        with pytest.raises(MetadataMissing, match="first"):
            PrivateTable(name="t", schema=Schema(columns={"x": column}, unit=None))
