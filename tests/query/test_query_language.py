"""Questions of two steps, cohorts, anti-joins and years beside each other: without noise they are what DuckDB says."""

from __future__ import annotations

import polars as pl
import pytest

from sfumato.dp.loss import pure
from sfumato.errors import QueryRefused
from sfumato.query import Session
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query
from sfumato.testing.installation import sql_session, sql_system
from sfumato.testing.sql import (
    QUESTIONS,
    YEARS,
    Ask,
    check_sql,
    check_sql_answer,
    check_sql_neighbours,
    sql_tables,
    true_rows,
)

TABLES = sql_tables()
CATALOG = sql_session(TABLES).catalog


@pytest.fixture(scope="module")
def session() -> Session:
    return sql_session(TABLES)


@pytest.fixture(scope="module")
def ask() -> Ask:
    return sql_system(TABLES)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_without_noise_it_is_what_duckdb_says(sql: str, ask: Ask) -> None:
    assert check_sql_answer(ask, sql, TABLES)


def test_one_person_moves_numbers_within_the_limits() -> None:
    assert check_sql_neighbours(sql_system) == []


def test_systems_that_are_wrong_or_not_bounded_are_caught() -> None:
    with pytest.raises(AssertionError, match="more than 40"):
        check_sql_neighbours(lambda tables: lambda sql: true_rows(sql, tables))

    def wrong(tables: dict[str, pl.DataFrame]) -> Ask:
        return lambda sql: [[*row[:-1], 0] for row in true_rows(sql, tables)]

    with pytest.raises(AssertionError, match="not that of plain SQL"):
        check_sql(wrong)
    refusing = check_sql(lambda tables: lambda sql: None)
    assert set(QUESTIONS) < set(refusing)

    def by_data(tables: dict[str, pl.DataFrame]) -> Ask:
        return lambda sql: None if len(tables["v"]) > 1000 else true_rows(sql, tables)

    with pytest.raises(AssertionError, match="depends on the data"):
        check_sql_neighbours(by_data)


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
        ("SELECT QUANTILE_CONT(cost, [0.25, 0.5]) FROM v", "each rank"),
        (f"{YEARS} SELECT a.n FROM y a JOIN y b ON a.n = b.n", "each group key"),
        (f"{YEARS} SELECT a.n FROM y a JOIN y b ON a.y > b.y", "equalities"),
        (f"{YEARS} SELECT a.n FROM y a FULL JOIN y b ON a.y = b.y", "JOIN or LEFT JOIN"),
        ("SELECT COUNT(*) FROM v FULL JOIN p ON v.u = p.u", "Only JOIN"),
        ("SELECT COUNT(*) FROM v RIGHT JOIN w ON v.ward = w.ward", "private table comes first"),
        (f"{YEARS} SELECT a.n FROM y a JOIN v ON a.y = v.n", "JOIN"),
        (f"{YEARS} SELECT n FROM y a JOIN y b ON a.y = b.y", "More than one column"),
        ("SELECT COUNT(*) FROM (SELECT u AS person FROM v GROUP BY u HAVING MEDIAN(cost) > 3)", "MEDIAN"),
    ],
)
def test_what_is_not_about_units_or_noisy_rows_is_refused(sql: str, words: str) -> None:
    with pytest.raises(QueryRefused, match=words):
        parse_query(sql, CATALOG)
