"""Joins of private tables: the rows of one person are truncated before they are combined."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

from sfumato.dataset import Column, Kind, RangeDomain, Role, Schema
from sfumato.dp.loss import pure
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.backends.postgres.engine import Postgres
from sfumato.errors import QueryRefused
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.plan.first_rows import MOST_JOINED_ROWS, FirstRows
from sfumato.query.plan.relational import walk
from sfumato.query.sql.parse import parse_query
from sfumato.secret import Permit

PERMIT = Permit("a test of exact rows")
COLUMNS = {
    "who": Column(role=Role.PLAIN, kind=Kind.INTEGER),
    "n": Column(role=Role.PLAIN, kind=Kind.INTEGER, domain=RangeDomain(low=0, high=999)),
    "x": Column(role=Role.PLAIN, kind=Kind.NUMBER, domain=RangeDomain(low=0, high=10)),
}
CATALOG = Catalog(
    dataset="d",
    private={"t": PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit="who"), rows=10**6, groups=1)},
)
TRIPLE = "SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.who = b.who JOIN t AS c ON b.who = c.who"


def frame(own: int, *, seed: int = 1) -> pl.DataFrame:
    """One person with so many rows, and two with three each."""
    rows: list[dict[str, Any]] = [{"who": 1, "n": i % 700, "x": random.Random(i).choice([0.0, -0.0, 1.5])}
                                  for i in range(own)]  # fmt: skip
    rows += [{"who": who, "n": i, "x": 2.5} for who in (2, 3) for i in range(3)]
    random.Random(seed).shuffle(rows)
    return pl.DataFrame(rows)


def rows_of(sql: str, data: pl.DataFrame, engine: Any = None) -> list[tuple[Any, ...]]:
    running = (engine or Duckdb(threads=1)).start({"t": data.to_arrow()})
    try:
        query = parse_query(sql, CATALOG)
        return sorted(running.run(query.rows.query()).open(PERMIT), key=repr)
    finally:
        running.close()


def test_one_person_with_many_rows_makes_a_bounded_number_of_pairs() -> None:
    """900 rows joined three times would be 729 million."""
    rows = rows_of(TRIPLE, frame(900))
    own = sum(row[0] == 1 for row in rows)
    assert own == MOST_JOINED_ROWS**2
    assert len(rows) - own == 2 * 27  # others lose nothing


@pytest.mark.parametrize("own", [MOST_JOINED_ROWS, MOST_JOINED_ROWS + 1, 400])
def test_what_stays_depends_on_the_persons_own_rows_alone(own: int) -> None:
    sql = "SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.who = b.who AND a.n = b.n"
    rows = rows_of(sql, frame(own))
    assert rows == rows_of(sql, frame(own, seed=2))  # in any order
    less = rows_of(sql, frame(own).filter(pl.col("who") != 2))
    assert less == [row for row in rows if row[0] != 2]
    assert sum(row[0] == 1 for row in rows) == min(own, MOST_JOINED_ROWS)  # partners stay together


def test_postgresql_keeps_the_same_rows(postgresql: str) -> None:
    sql = "SELECT SUM(a.n), SUM(b.x) FROM t AS a LEFT JOIN t AS b ON a.who = b.who AND a.n = b.n"
    data = frame(300)
    assert rows_of(sql, data, Postgres(url=postgresql)) == rows_of(sql, data)


def test_one_row_a_person_is_joined_without_truncation() -> None:
    one = "(SELECT who, COUNT(*) AS m FROM t GROUP BY who) AS s"
    query = parse_query(f"SELECT COUNT(*) FROM {one} JOIN t ON s.who = t.who", CATALOG)
    assert sum(isinstance(node, FirstRows) for node in walk(query.rows)) == 1


def test_a_question_says_so_and_has_a_least_price() -> None:
    book = Ledger.open(":memory:")
    book.set_cap(pure(1), dataset="d")
    asked = Session(CATALOG, {"t": frame(3)}, ledger=book, analyst="a", min_epsilon="0.01")
    assert f"At most {MOST_JOINED_ROWS} rows" in str(asked.explain(TRIPLE, epsilon="0.1"))
    assert f"FirstRows: at most {MOST_JOINED_ROWS}" in asked.analyze(TRIPLE, epsilon="0.1")
    with pytest.raises(QueryRefused, match="at least"):
        asked.ask(TRIPLE, epsilon="1e-9")
    assert book.balance(dataset="d").spent.size == 0
