"""UNION ALL of aggregates, ROLLUP, CUBE, GROUPING SETS; CORR, COVAR and REGR; sums per person."""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import approximate, pure
from sfumato.errors import OverBudget, QueryRefused
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.sql.parse import parse_query


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


COLUMNS = {
    "id": column("integer"),
    "ward": column("category", values=("a", "b", "c")),
    "sex": column("category", values=("f", "m")),
    "age": column("integer", low=0, high=100),
    "bill": column("number", low=-10, high=30),
}
ROWS = pl.DataFrame(
    [
        {"id": i // 3, "ward": "abc"[i * 7 % 3], "sex": "fm"[i // 3 % 2], "age": i * 31 % 97,
         "bill": None if i % 11 == 0 else i * 31 % 97 / 5 + i % 7}
        for i in range(600)
    ]
)  # fmt: skip


def session(budget: float, rows: int = 3) -> Session:
    table = PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit="id"), rows=rows, groups=6)
    book = Ledger.open(":memory:")
    book.set_cap(pure(budget), dataset="d")
    return Session(Catalog(dataset="d", private={"t": table}), {"t": ROWS}, ledger=book, analyst="a")


SAME = [
    "SELECT 'all' AS what, COUNT(*) AS n FROM t UNION ALL SELECT 'women', COUNT(*) FROM t WHERE sex = 'f'",
    "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward UNION ALL SELECT 'all', COUNT(*) FROM t"
    " ORDER BY n DESC, ward LIMIT 3",
    "WITH w AS (SELECT * FROM t WHERE age > 30) SELECT AVG(age) FROM w UNION ALL SELECT AVG(bill) FROM w",
    "SELECT ward, sex, COUNT(*) AS n FROM t GROUP BY ROLLUP (ward, sex) ORDER BY ward, sex",
    "SELECT ward, sex, SUM(age) AS s FROM t GROUP BY CUBE (ward, sex) ORDER BY ward, sex",
    "SELECT ward AS w, GROUPING(ward) AS g, COUNT(*) FROM t GROUP BY GROUPING SETS ((ward), ()) ORDER BY w, g",
    "SELECT sex, ward, COUNT(*) FROM t GROUP BY sex, GROUPING SETS ((ward), ()) HAVING COUNT(*) > 120"
    " ORDER BY sex, ward",
    "SELECT CORR(bill, age) FROM t",
    "SELECT COVAR_POP(bill, age), COVAR_SAMP(age, bill) FROM t WHERE ward <> 'b'",
    "SELECT REGR_SLOPE(bill, age), REGR_INTERCEPT(bill, age), REGR_R2(bill, age) FROM t",
    "SELECT sex, CORR(age, bill) FROM t GROUP BY sex ORDER BY sex",
    "SELECT COUNT_IF(age > 50), APPROX_QUANTILE(age, 0.5) > 3 FROM t",
    "SELECT AVG(s), AVG(n), MAX(n) > 1 FROM (SELECT id, SUM(bill) AS s, COUNT(*) AS n FROM t GROUP BY id)",
    "SELECT COUNT(*) FROM (SELECT id, SUM(age) AS s FROM t GROUP BY id) WHERE s > 150",
]  # fmt: skip


def near(value: Any) -> Any:
    number = isinstance(value, float | int) and not isinstance(value, bool)
    return pytest.approx(float(value), rel=2e-3, abs=2e-3) if number else value


@pytest.mark.parametrize("sql", SAME)
def test_without_noise_it_is_what_sql_says(sql: str) -> None:
    answer = session(10**9).ask(sql, epsilon=10**7, rows=100)
    with duckdb.connect() as connection:
        connection.register("t", ROWS.to_arrow())
        expected = connection.execute(sql).fetchall()
    assert [tuple(cell.value for cell in row) for row in answer.rows] == [tuple(map(near, row)) for row in expected]


def test_the_parts_together_cost_what_was_said() -> None:
    asked = session(10)
    sql = "SELECT ward, sex, COUNT(*) AS n FROM t GROUP BY CUBE (ward, sex)"
    assert "4 grouping sets" in str(asked.explain(sql, epsilon=1))
    answer = asked.ask(sql, epsilon=1)
    assert answer.loss == pure(1)
    assert float(asked.ledger.balance(dataset="d").spent.size) == pytest.approx(1)
    assert asked.ask(sql, epsilon=1).cached
    assert float(asked.ledger.balance(dataset="d").spent.size) == pytest.approx(1)


def test_parts_beyond_the_budget_are_refused_before_the_first_is_paid() -> None:
    asked = session(1)
    with pytest.raises(OverBudget):
        asked.ask("SELECT COUNT(*) FROM t UNION ALL SELECT SUM(age) FROM t", epsilon="1.5")
    assert float(asked.ledger.balance(dataset="d").spent.size) == 0


@pytest.mark.parametrize("repeats", ["cached", "charged"])
def test_parts_beyond_the_delta_are_refused_before_the_first_is_paid(repeats: Any) -> None:
    """Each part by itself would fit what is left."""
    asked = session(1)
    asked.repeated_queries = repeats
    asked.ledger.set_cap(approximate(5, "1e-6"), dataset="d")
    key = "CAST(bill * 1000000 AS INTEGER)"  # private: too many values to list
    sql = f"SELECT {key}, COUNT(*) FROM t GROUP BY 1 UNION ALL SELECT {key}, SUM(age) FROM t GROUP BY 1"
    with pytest.raises(OverBudget):
        asked.ask(sql, epsilon=1, delta="1.5e-6")
    spent = asked.ledger.balance(dataset="d").spent
    assert (spent.size, spent.delta) == (0, 0)
    answer = asked.ask(sql, epsilon=1, delta="1e-6")
    spent = asked.ledger.balance(dataset="d").spent
    assert asked.ask(sql, epsilon=1, delta="1e-6").rows == answer.rows
    assert asked.ledger.balance(dataset="d").spent == spent
    assert spent <= approximate("1.001", "1e-6")


def test_sums_of_a_person_are_clipped_where_they_are_measured() -> None:
    """rows 3, groups 6: a person's sum counts up to 18 rows, and conditions on it see all of it."""
    catalog = session(1).catalog
    plan = parse_query("SELECT AVG(s) FROM (SELECT id, SUM(bill) AS s FROM t GROUP BY id)", catalog)
    [moments] = plan.aggregates
    assert (moments.of.low * moments.of.grid, moments.of.high * moments.of.grid) == (-180, 540)
    plan = parse_query("SELECT n, COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM t GROUP BY id) GROUP BY n", catalog)
    assert plan.keys[0].values is None


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM t", "UNION ALL"),
        ("SELECT COUNT(*) FROM t UNION ALL SELECT ward, COUNT(*) FROM t GROUP BY ward", "same number of columns"),
        ("SELECT ward, COUNT(*) FROM t GROUP BY ward UNION ALL SELECT 3, COUNT(*) FROM t", "one kind"),
        ("SELECT ward, RANK() OVER (ORDER BY COUNT(*)) FROM t GROUP BY ROLLUP (ward)", "Window functions"),
        ("SELECT COUNT(*) FROM t UNION ALL SELECT COUNT(*) FROM t ORDER BY ward", "names and places"),
        ("SELECT COUNT(*) FROM t UNION ALL SELECT SUM(age) FROM t ERROR 5", "ERROR"),
        ("SELECT * FROM (SELECT ward, COUNT(*) AS n FROM t GROUP BY ROLLUP (ward))", "outermost"),
        ("SELECT CORR(age, ward) FROM t", "number"),
    ],
)
def test_refusals_are_free(sql: str, words: str) -> None:
    asked = session(10)
    with pytest.raises(QueryRefused, match=words):
        asked.ask(sql, epsilon=1)
    assert float(asked.ledger.balance(dataset="d").spent.size) == 0
