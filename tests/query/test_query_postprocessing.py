"""Post-processing of noisy rows: without noise it is what SQL says, it costs nothing, and it reads no private row."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import approximate
from sfumato.errors import QueryRefused
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.plan.row_steps import Compute, Keep
from sfumato.query.sql.parse import parse_query


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


COLUMNS = {
    "ward": column("category", values=("east", "north", "south", "west")),
    "sex": column("category", values=("f", "m")),
    "age": column("integer", low=0, high=100),
    "word": column("category"),
}
CATALOG = Catalog(dataset="d", private={"t": PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit=None))})
ROWS = pl.DataFrame(
    [
        {
            "ward": ("east", "north", "south", "west")[i * 5 % 11 % 4],
            "sex": "fm"[i % 3 % 2],
            "age": i * 37 % 90,
            "word": "x",
        }
        for i in range(400)
    ]
)
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(age) AS m FROM t GROUP BY ward"
BOTH = "SELECT ward, sex, COUNT(*) AS n FROM t GROUP BY ward, sex"
SAME = [
    f"SELECT * FROM ({BY_WARD}) WHERE n > 60 ORDER BY ward",
    f"SELECT ward, n / 2 AS half FROM ({BY_WARD}) AS w WHERE w.n > 60 AND ward <> 'east' ORDER BY w.n DESC, ward",
    f"WITH a AS ({BY_WARD}), b AS (SELECT ward, n FROM a WHERE n > 40) SELECT ward, n + 1 AS n FROM b ORDER BY n, ward",
    f"SELECT SUM(n), COUNT(*), MIN(n), MAX(ward), AVG(n) FROM ({BY_WARD})",
    f"SELECT SUM(n), COUNT(*), MEDIAN(n) + 1 FROM ({BY_WARD}) WHERE n > 1000000",
    f"SELECT COUNT(*) FROM (SELECT * FROM ({BY_WARD}) WHERE n > 1000000)",
    f"SELECT sex, SUM(n) AS s, COUNT(n) FROM ({BOTH}) GROUP BY sex HAVING SUM(n) > 3 ORDER BY sex",
    f"SELECT n > 50, COUNT(*) FROM ({BOTH}) GROUP BY n > 50 ORDER BY 1",
    f"SELECT CASE WHEN n > 50 THEN 'many' ELSE 'few' END AS size, COUNT(*) FROM ({BOTH}) GROUP BY size ORDER BY size",
    f"SELECT DISTINCT sex FROM ({BOTH}) ORDER BY sex",
    f"SELECT ward, n FROM ({BY_WARD}) ORDER BY n DESC, ward LIMIT 2 OFFSET 1",
    f"SELECT COUNT(*) FROM (SELECT ward FROM ({BY_WARD}) ORDER BY n LIMIT 3)",
    "SELECT ward, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM t GROUP BY ward ORDER BY ward",
    "SELECT ward, sex, 1.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY ward) FROM t GROUP BY ward, sex ORDER BY 1, 2",
    "SELECT ward, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM t GROUP BY ward ORDER BY ward",
    "SELECT ward, ROW_NUMBER() OVER (ORDER BY COUNT(*), ward) AS r FROM t GROUP BY ward ORDER BY r",
    "SELECT ward, sex, COUNT(*) AS n FROM t GROUP BY ward, sex"
    " QUALIFY ROW_NUMBER() OVER (PARTITION BY ward ORDER BY n DESC, sex) = 1 ORDER BY ward",
    f"SELECT * FROM (SELECT ward, n, DENSE_RANK() OVER (ORDER BY n) AS r FROM ({BY_WARD})) WHERE r <= 2 ORDER BY ward",
    f"SELECT ward, sex, SUM(n) OVER (PARTITION BY sex ORDER BY ward) AS running FROM ({BOTH}) ORDER BY sex, ward",
    f"SELECT ward, sex, SUM(n) OVER (ORDER BY ward) AS peers FROM ({BOTH}) ORDER BY ward, sex",
    f"SELECT ward, sex, AVG(n) OVER (ORDER BY ward, sex ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) FROM ({BOTH})"
    " ORDER BY 1, 2",
    f"SELECT ward, sex, MIN(n) OVER (ORDER BY ward, sex ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) FROM ({BOTH})"
    " ORDER BY 1, 2",
    f"SELECT ward, n - LAG(n) OVER (ORDER BY ward) AS more, LEAD(n, 2, 0) OVER (ORDER BY ward) FROM ({BY_WARD})"
    " ORDER BY ward",
    f"SELECT ward, sex, NTILE(3) OVER (ORDER BY ward, sex), PERCENT_RANK() OVER (ORDER BY ward),"
    f" CUME_DIST() OVER (ORDER BY ward) FROM ({BOTH}) ORDER BY 1, 2",
    f"SELECT ward, FIRST_VALUE(n) OVER (ORDER BY ward), LAST_VALUE(n) OVER (ORDER BY ward) FROM ({BY_WARD})"
    " ORDER BY ward",
    f"SELECT ward, COUNT(*) OVER () FROM ({BY_WARD}) ORDER BY ward",
    "SELECT ward, SQRT(COUNT(*)), EXP(COUNT(*) / 100.0), LN(COUNT(*)), ROUND(AVG(age), 1), ABS(COUNT(*) - 90),"
    " POWER(COUNT(*), 2), SIGN(COUNT(*) - 90), LEAST(COUNT(*), 60), GREATEST(COUNT(*), 60), COUNT(*) % 7,"
    " IF(COUNT(*) > 60, 'a', 'b'), CAST(COUNT(*) / 3.0 AS INTEGER), ward || '!' FROM t GROUP BY ward ORDER BY ward",
    "SELECT ward FROM t GROUP BY ward HAVING COUNT(*) > 60 ORDER BY COUNT(*) DESC, ward LIMIT 3",
]  # fmt: skip


@pytest.fixture(scope="module")
def session() -> Session:
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10**9, "0.5"), dataset="d")
    return Session(CATALOG, {"t": ROWS}, ledger=book, analyst="a")


def plain(value: Any) -> Any:
    return (
        pytest.approx(float(value), rel=1e-3, abs=1e-3)
        if isinstance(value, float | int) and not isinstance(value, bool)
        else value
    )


@pytest.mark.parametrize("sql", SAME)
def test_without_noise_it_is_what_sql_says(sql: str, session: Session) -> None:
    answer = session.ask(sql, epsilon=10**7)
    with duckdb.connect() as connection:
        connection.register("t", ROWS.to_arrow())
        expected = connection.execute(sql).fetchall()
    assert [tuple(cell.value for cell in row) for row in answer.rows] == [tuple(map(plain, row)) for row in expected]


def test_an_outer_query_costs_nothing(session: Session) -> None:
    session.ask(BY_WARD, epsilon=1)
    before = sum(1 for _ in session.ledger.entries())
    assert session.ask(f"SELECT ward FROM ({BY_WARD}) WHERE n > 3 ORDER BY n LIMIT 2", epsilon=1).cached
    assert session.ask(f"SELECT ward, RANK() OVER (ORDER BY n) FROM ({BY_WARD})", epsilon=1).cached
    assert sum(1 for _ in session.ledger.entries()) == before


def test_intervals_stay_where_the_function_is_monotone(session: Session) -> None:
    inner = session.ask(BY_WARD, epsilon=1).intervals
    outer = session.ask(f"SELECT SQRT(n) AS root, n - m AS both FROM ({BY_WARD})", epsilon=1).intervals
    assert outer["root_low"].to_list() == pytest.approx([math.sqrt(max(low, 0)) for low in inner["n_low"]])
    # Two noisy numbers share the 5 % error, so that the interval is wider than the difference of the two.
    assert all(
        high - low > n_high - n_low + m_high - m_low
        for high, low, n_high, n_low, m_high, m_low in zip(
            outer["both_high"], outer["both_low"], inner["n_high"], inner["n_low"], inner["m_high"], inner["m_low"],
            strict=True,
        )
    )  # fmt: skip
    shares = session.ask(f"SELECT n / SUM(n) OVER () AS share FROM ({BY_WARD})", epsilon=1)
    assert shares.intervals.columns == ["share"]
    assert any("Window functions have no interval" in note for note in shares.notes)


def test_steps_read_noisy_numbers_only() -> None:
    """An outer WHERE is a condition on released values: the rows that are measured are those without it."""
    bare = parse_query(BY_WARD, CATALOG)
    wrapped = parse_query(f"SELECT ward, SUM(n) OVER () FROM ({BY_WARD}) WHERE n > 9 AND ward = 'east'", CATALOG)
    assert (wrapped.rows, wrapped.aggregates, wrapped.possible) == (bare.rows, bare.aggregates, bare.possible)
    assert wrapped.fingerprint == bare.fingerprint
    assert [type(step) for step in wrapped.steps] == [Keep, Compute]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (f"SELECT * FROM ({BY_WARD}) JOIN t USING (ward)", "JOIN"),
        (f"SELECT COUNT(*) FROM t JOIN ({BY_WARD}) AS w USING (ward)", "Noisy rows cannot be joined"),
        (f"SELECT missing FROM ({BY_WARD})", "no column `missing`"),
        (f"SELECT ward, n FROM ({BY_WARD}) GROUP BY ward", "neither an aggregate nor in GROUP BY"),
        (f"SELECT SUM(ward) FROM ({BY_WARD})", "needs a number"),
        (f"SELECT n + ward FROM ({BY_WARD})", "different kinds"),
        (f"SELECT KURTOSIS(n) FROM ({BY_WARD})", "KURTOSIS"),
        (f"SELECT NTILE(n) OVER (ORDER BY n) FROM ({BY_WARD})", "whole number"),
        (f"SELECT RANK() OVER () FROM ({BY_WARD})", "order"),
        (f"SELECT SUM(n) OVER w FROM ({BY_WARD}) WINDOW w AS (ORDER BY n)", "WINDOW|Named"),
        (f"SELECT n FROM ({BY_WARD}) WHERE SUM(n) > 3", "aggregate"),
        ("SELECT ward, RANK() OVER (ORDER BY age) FROM t GROUP BY ward", "neither an aggregate nor in GROUP BY"),
        ("SELECT RANK() OVER (ORDER BY age) FROM t", "neither an aggregate nor in GROUP BY"),
        ("SELECT SUM(age) OVER () FROM t", "neither an aggregate nor in GROUP BY"),
        ("SELECT DISTINCT age FROM t", "neither an aggregate nor in GROUP BY"),
    ],
)
def test_what_cannot_be_answered_is_refused_at_no_cost(sql: str, words: str, session: Session) -> None:
    before = sum(1 for _ in session.ledger.entries())
    with pytest.raises(QueryRefused, match=words):
        session.ask(sql, epsilon=1)
    assert sum(1 for _ in session.ledger.entries()) == before
