"""Fuzzing of the query language: no crash, no unpaid answer, no data value in an error, every refusal free.

``SFUMATO_GENERATED=200000`` generates as many statements. Every statement is parsed and planned, and asked as well
where it can be: each time at a new cost, so that no earlier answer is returned.
"""

from __future__ import annotations

import os
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from sqlglot import parse_one

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import approximate
from sfumato.engines.aggregation import Largest
from sfumato.engines.choice import choose_engine
from sfumato.engines.expressions import MOST_TEXT, STORED_TEXT
from sfumato.engines.functions import Function
from sfumato.engines.statements import Select, Subquery
from sfumato.errors import AnswerFailed, QueryRefused, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.plan.catalog import PublicTable
from sfumato.query.sql.bind import Binder
from sfumato.secret import Permit
from sql_fuzzer import SqlFuzzer

MANY = int(os.environ.get("SFUMATO_GENERATED", "1000"))
ASKED_OF = 8
"""One in so many statements that can be answered is asked."""
CANARY = "zyxwv8675309"


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


PERSON = {"id": column("integer"), "age": column("integer", low=0, high=100),
          "sex": column("category", values=("f", "m")), "note": column("category")}  # fmt: skip
VISIT = {
    "id": column("integer"), "day": column("date", first="2024-01-01", last="2024-03-31"), "moment": column("datetime"),
    "ward": column("category", values=("a", "b", "c")), "bill": column("number", low=0, high=100),
}  # fmt: skip
WARDS = pl.DataFrame({"ward": ["a", "b", "c"], "floor": [1, 2, 2]})


@pytest.fixture(scope="module")
def session() -> Session:
    private = {
        name: PrivateTable(name=name, schema=Schema(columns=columns, unit="id"), rows=3, groups=2)
        for name, columns in (("person", PERSON), ("visit", VISIT))
    }
    public = {"wards": PublicTable(name="wards", frame=WARDS, key=("ward",))}
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10**9, "0.9"), dataset="d")
    days = [None, date(1, 1, 1), date(9999, 12, 31), *(date(2024, 1, 1) + timedelta(days=i * 7) for i in range(9))]
    moments = [None, datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59), datetime(2024, 2, 29, 12)]
    odd = [None, float("nan"), float("inf"), -1.0, 0.0, -0.0, 1e300, 5.5]
    tables = {
        "person": pl.DataFrame({"id": range(12), "age": [i * 9 for i in range(12)], "sex": list("fm") * 6,
                                "note": [CANARY] * 12}),
        "visit": pl.DataFrame({"id": [i % 11 for i in range(40)], "day": [days[i % 12] for i in range(40)],
                               "moment": [moments[i % 4] for i in range(40)],
                               "ward": [("a", "b", "c", "d", None)[i % 5] for i in range(40)],
                               "bill": [odd[i % 8] for i in range(40)]}),
    }  # fmt: skip
    return Session(Catalog(dataset="d", private=private, public=public), tables, ledger=book, analyst="fuzz")


def check(session: Session, sql: str, place: int) -> str:
    """What became of a statement: refused or answered. AssertionError for everything that must not happen."""
    before = session.ledger.head()
    try:
        session.explain(sql, epsilon=1, delta="1e-9")
        if place % ASKED_OF:
            return "explained"
        spent = session.ledger.balance(dataset="d").spent
        answer = session.ask(sql, epsilon=1 + Fraction(place, 10**6), delta="1e-12")
    except AnswerFailed:
        raise AssertionError(f"the engine failed on: {sql}") from None
    except SfumatoError as refusal:
        told = f"{refusal} {refusal!r}"
        assert CANARY not in told, sql
        assert session.ledger.head() == before, sql
        return "refused"
    except RecursionError:
        raise AssertionError(f"recursion in: {sql}") from None
    paid = session.ledger.balance(dataset="d").spent != spent
    assert paid or answer.cached or answer.loss is None, sql
    return "answered"


def test_statements_are_refused_at_no_cost_or_answered_and_paid(session: Session) -> None:
    fuzzer = SqlFuzzer(int(os.environ.get("SFUMATO_SEED", "11")))
    counts = {"refused": 0, "explained": 0, "answered": 0}
    for place in range(MANY):
        sql = fuzzer.statement()
        try:
            counts[check(session, sql, place)] += 1
        except SfumatoError:
            raise
        except Exception as failure:
            raise AssertionError(f"{type(failure).__name__} on: {sql!r}") from failure
    assert counts["answered"] >= MANY // 100, counts
    assert counts["refused"] >= MANY // 10, counts


LETTERS = "aßŉﬃɐ\U0001f600"
"""Their upper case is one letter, two or three of them, and longer in bytes."""


def test_texts_are_never_longer_than_their_bound(session: Session) -> None:
    """On rows with stored texts of 0 to 3,000 characters; the bound of what is made of them is public."""
    person = pl.DataFrame(
        {"id": range(12), "age": [i * 9 for i in range(12)], "sex": [LETTERS * (i * 40) for i in range(12)],
         "note": [LETTERS[i % 6] * (i % 4 * 999) for i in range(12)]}
    )  # fmt: skip
    visit = pl.DataFrame(
        {"id": range(12), "day": [date(2024, 1, 1 + i) for i in range(12)], "moment": [datetime(2024, 1, 1)] * 12,
         "ward": list("abc") * 4, "bill": [10.0**i for i in range(-6, 6)]}
    )  # fmt: skip
    engine = choose_engine(None, [person]).start(
        {"person": person.to_arrow(), "visit": visit.to_arrow(), "wards": WARDS}
    )
    fuzzer = SqlFuzzer(int(os.environ.get("SFUMATO_SEED", "11")))
    seen, long = 0, 0
    for _ in range(MANY // 20):
        sql = fuzzer.texts()
        try:
            rows = Binder(session.catalog, sql).subquery(parse_one(sql, dialect="duckdb"), {})
        except QueryRefused:
            continue
        [text] = rows.columns.find("", "t")
        length = Select((("n", Largest(Function(text.node, "length"), False)),), Subquery(rows.rows.query()))
        [(longest,)] = engine.run(length).open(Permit("a test"))
        assert (longest or 0) <= text.node.width <= MOST_TEXT, sql
        seen, long = seen + 1, long + ((longest or 0) > STORED_TEXT)
    assert seen > MANY // 40, seen
    assert long > MANY // 200, "some texts are longer than any that is stored"
