"""What the language says of casts, remainders and rounding before any engine is asked."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sfumato.dataset import Column, Kind, RangeDomain, Role, Schema
from sfumato.errors import QueryRefused
from sfumato.query import Catalog, PrivateTable
from sfumato.query.sql.bind import Binder
from sfumato.query.sql.parse import parse_query
from sfumato.query.sql.statement import parse_statement

COLUMNS = {
    "n": Column(role=Role.PLAIN, kind=Kind.INTEGER, domain=RangeDomain(low=0, high=50)),
    "m": Column(role=Role.PLAIN, kind=Kind.INTEGER, domain=RangeDomain(low=-9, high=50)),
    "x": Column(role=Role.PLAIN, kind=Kind.NUMBER, domain=RangeDomain(low=-0.25, high=1.25)),
    "code": Column(role=Role.PLAIN, kind=Kind.CATEGORY),
    "day": Column(role=Role.PLAIN, kind=Kind.DATE),
    "seen": Column(role=Role.PLAIN, kind=Kind.DATETIME),
}
CATALOG = Catalog(dataset="d", private={"t": PrivateTable(name="t", schema=Schema(columns=COLUMNS))})


@pytest.mark.parametrize(
    ("key", "values"),
    [("n % 4", (0, 1, 2, 3)), ("m % 3", (-2, -1, 0, 1, 2)), ("m % -3", (-2, -1, 0, 1, 2)), ("n % 1", (0,))],
)
def test_remainders_of_whole_numbers_are_public_keys(key: str, values: tuple[int, ...]) -> None:
    question = parse_query(f"SELECT {key}, COUNT(*) FROM t GROUP BY {key}", CATALOG)
    assert question.public_keys
    assert question.keys[0].values == values


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("CAST('a' AS INTEGER) = 1", "no number"),
        ("CAST('1e400' AS DOUBLE) = 1", "no number"),
        ("CAST('2023-02-29' AS DATE) = day", "no date"),
        ("CAST('maybe' AS BOOLEAN)", "`true` or `false`"),
        ("day = '2024-W01-1'", "cannot be compared"),
        ("seen > '2024-01-01T00:00+02:00'", "cannot be compared"),
        ("FLOOR(x, 2) = 1", "not supported"),
        ("ROUND(x, 12) = 1", "0 to 9"),
        ("ROUND(x, n) = 1", "0 to 9"),
        ("CAST('4611686018427387904' AS INTEGER) = n", "too large"),
    ],
)
def test_what_no_engine_can_read_alike_is_refused(condition: str, words: str) -> None:
    with pytest.raises(QueryRefused, match=words):
        parse_query(f"SELECT COUNT(*) FROM t WHERE {condition}", CATALOG)


@pytest.mark.parametrize(
    "condition",
    ["CAST('12' AS INTEGER) = n", "CAST(' 2.5 ' AS INTEGER) = 3", "CAST('-1.5e2' AS DOUBLE) < x",
     "CAST('2024-02-29' AS DATE) = day", "CAST('2024-02-29 05:06' AS TIMESTAMP) < seen", "CAST('T' AS BOOLEAN)",
     "seen > '2024-01-01T00:00:00.25'", "CAST(code AS INTEGER) % 2 = 1"],
)  # fmt: skip
def test_what_all_read_alike_is_taken(condition: str) -> None:
    assert parse_query(f"SELECT COUNT(*) FROM t WHERE {condition}", CATALOG).aggregates


@pytest.mark.parametrize(
    ("sql", "low", "high"),
    [("ROUND(x, 1)", "-3/10", "13/10"), ("m % 7", "-6", "6"), ("n % 7", "0", "6"), ("x % 0.5", "-1/2", "1/2")],
)
def test_bounds_of_results_are_known(sql: str, low: str, high: str) -> None:
    text, tree, _ = parse_statement(f"SELECT {sql} AS v FROM t")
    [(_, _, found)] = Binder(CATALOG, text).subquery(tree, {}).columns.items
    assert (found.low, found.high) == (Fraction(low), Fraction(high))
