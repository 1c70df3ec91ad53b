"""HISTOGRAM(x, n): counts in equally wide bins between public bounds."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import pure
from sfumato.errors import QueryRefused
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


COLUMNS = {"x": column("number", low=-3, high=7), "n": column("integer", low=0, high=9), "free": column("number"),
           "ward": column("category", values=("a", "b"))}  # fmt: skip
VALUES = [-3.0, -1.0, -0.5, 6.999, 7.0, 7.5, -99.0, float("inf"), float("nan"), None, 2.0, 1.9]


@pytest.fixture(scope="module")
def session() -> Session:
    rows = pl.DataFrame({"x": VALUES, "n": [i % 12 for i in range(12)], "free": VALUES, "ward": list("ab") * 6})
    book = Ledger.open(":memory:")
    book.set_cap(pure(10**9), dataset="d")
    table = PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit=None))
    return Session(Catalog(dataset="d", private={"t": table}), {"t": rows}, ledger=book, analyst="a")


def answered(session: Session, sql: str) -> list[Any]:
    return session.ask(sql, epsilon=10**6).frame.rows()


def test_every_value_is_in_one_bin_and_missing_ones_in_none(session: Session) -> None:
    assert answered(session, "SELECT HISTOGRAM(x, 5) AS h FROM t") == [
        (-3, -1, 2), (-1, 1, 2), (1, 3, 2), (3, 5, 0), (5, 7, 4)
    ]  # fmt: skip
    assert sum(row[2] for row in answered(session, "SELECT HISTOGRAM(n, 3) FROM t")) == 12


def test_keys_conditions_and_outer_queries(session: Session) -> None:
    by_ward = answered(session, "SELECT ward, HISTOGRAM(n, 2) AS h FROM t WHERE n < 8 GROUP BY ward")
    assert [(row[0], row[3]) for row in by_ward] == [("a", 3), ("a", 1), ("b", 2), ("b", 2)]
    outer = "SELECT bin_low FROM (SELECT HISTOGRAM(x, 5) AS h FROM t) WHERE h > 3"
    assert answered(session, outer) == [(5,)]
    assert session.ask("SELECT HISTOGRAM(x, 5) AS h FROM t", epsilon=1).columns == ("bin_low", "bin_high", "h")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT HISTOGRAM(free, 5) FROM t", "CLIP"),
        ("SELECT HISTOGRAM(ward, 5) FROM t", "number"),
        ("SELECT HISTOGRAM(x) FROM t", "GROUP BY x"),
        ("SELECT HISTOGRAM(x, 5) FROM t GROUP BY 1", "by its own bins"),
        ("SELECT HISTOGRAM(x, [0, 1]) FROM t", "not supported|constant"),
        ("SELECT HISTOGRAM(x, 0) FROM t", "1 to 1,000"),
        ("SELECT HISTOGRAM(x, n) FROM t", "1 to 1,000"),
        ("SELECT HISTOGRAM(CLIP(x, 1, 1), 5) FROM t", "one point"),
        ("SELECT HISTOGRAM(x, 2), HISTOGRAM(n, 2) FROM t", "one HISTOGRAM"),
        ("SELECT 1 + HISTOGRAM(x, 2) FROM t", "item of SELECT"),
    ],
)
def test_refusals_are_free(session: Session, sql: str, words: str) -> None:
    before = session.ledger.balance(dataset="d").spent
    with pytest.raises(QueryRefused, match=words):
        session.ask(sql, epsilon=1)
    assert session.ledger.balance(dataset="d").spent == before
