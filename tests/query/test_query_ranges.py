"""Public ranges of expressions contain every value, and their ends are reached where the rule is exact.

The range decides how a sum is clipped and which groups are listed: too narrow a range biases answers, too wide a one
adds noise.
"""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from itertools import product
from typing import Any

import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.statements import Select, Subquery
from sfumato.query import Catalog, PrivateTable
from sfumato.query.sql.bind import Binder
from sfumato.query.sql.statement import parse_statement
from sfumato.secret import Permit


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


COLUMNS = {
    "n": column("integer", low=-4, high=9), "m": column("integer", low=2, high=5),
    "x": column("number", low=-1.5, high=2.5),
    "day": column("date", first="2024-01-30", last="2024-12-31"),
    "at": column("datetime", first="2024-01-30", last="2024-12-31"),
}  # fmt: skip
TABLE = PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit=None))
ROWS = [(n, m, x, day, at) for n, m, x, day, at in product(
    (-4, -3, -2, 0, 1, 8, 9), (2, 3, 5), (-1.5, -0.5, 0.0, 1.0, 2.5), (date(2024, 1, 30), date(2024, 12, 31)),
    (datetime(2024, 1, 30), datetime(2024, 12, 31, 23, 59, 59, 999999)))]  # fmt: skip
REACHED = [
    "n + m", "n - m", "n * m", "n * x", "m * x", "n / 4", "n / -4", "-n", "-x", "abs(n)", "abs(x)", "abs(m)", "n % 3",
    "m % 3",
    "n % -5", "n // 4", "n // -4", "(n + m) // 3", "power(x, 2)", "power(n, 3)", "power(m, 2)", "sign(n)", "floor(x)",
    "ceil(x)", "round(x)", "trunc(x)", "least(m, 3)", "coalesce(n, m)",
    "CASE WHEN n > 0 THEN m END", "CLIP(n, 0, 3)",
    "CAST(n AS DOUBLE)", "date_diff('day', DATE '2024-02-01', day)", "day - DATE '2024-02-01'",
    "date_diff('month', day, at)", "date_diff('hour', day, at)", "date_diff('week', DATE '2024-06-01', day)",
    "YEAR(day)",
    "WIDTH_BUCKET(n, -3, 9, 4)", "n + 1", "2.5 - x",
]  # fmt: skip
WIDER = ["least(n, x)", "greatest(n, m)",
         "sqrt(m)", "sqrt(n)", "round(x, 1)", "MONTH(day)", "nullif(n, 3)", "n * n", "n - n",
         "CASE WHEN n > 0 THEN n ELSE x END",
         "IF(n > 0, m, n)", "CLIP(x, -9, 9)", "CAST(x AS INTEGER)"]  # fmt: skip


def bound(sql: str) -> Any:
    text, tree, _ = parse_statement(f"SELECT COUNT(*) FROM t WHERE {sql} IS NULL")
    binder = Binder(Catalog(dataset="d", private={"t": TABLE}), text)
    relation = binder.select_rows(tree, {}, last=True)
    return binder.reader(relation).read(tree.args["where"].this.this), relation.rows.child  # type: ignore[attr-defined]


def values(sql: str) -> tuple[list[Fraction], Any]:
    scalar, rows = bound(sql)
    running = Duckdb(threads=1).start({"t": pl.DataFrame(ROWS, schema=list(COLUMNS), orient="row")})
    found = running.run(Select((("v", scalar.node),), Subquery(rows.query()))).open(Permit("a test"))
    running.close()
    return [Fraction(value) for (value,) in found if value is not None], scalar


@pytest.mark.parametrize("sql", [*REACHED, *WIDER])
def test_every_value_is_in_the_range_and_both_ends_are_values(sql: str) -> None:
    found, scalar = values(sql)
    assert scalar.low is not None
    assert scalar.high is not None
    assert scalar.low <= min(found)
    assert max(found) <= scalar.high
    if sql in REACHED:
        assert (min(found), max(found)) == (scalar.low, scalar.high)


def test_an_open_end_is_no_end() -> None:
    assert bound("n / m")[0].low is None
    # A missing value is passed over, so only a constant bounds the result by itself.
    assert (bound("least(n, n / m)")[0].low, bound("least(n, n / m)")[0].high) == (None, None)
    assert (bound("least(n / m, 3)")[0].low, bound("least(n / m, 3)")[0].high) == (None, 3)
    assert (bound("greatest(n / m, 3)")[0].low, bound("greatest(n / m, 3)")[0].high) == (3, None)


@pytest.mark.parametrize(
    ("where", "first", "last"),
    [
        ("day >= '2024-03-01' AND day < '2024-04-01'", date(2024, 3, 1), date(2024, 3, 31)),
        ("day > '2024-03-01' AND day <= '2024-04-01'", date(2024, 3, 2), date(2024, 4, 1)),
        ("day BETWEEN '2020-01-01' AND '2024-02-01'", date(2024, 1, 30), date(2024, 2, 1)),
        ("day = '2024-05-05'", date(2024, 5, 5), date(2024, 5, 5)),
        ("n > 3", date(2024, 1, 30), date(2024, 12, 31)),
    ],
)
def test_conditions_narrow_a_range_of_days(where: str, first: date, last: date) -> None:
    text, tree, _ = parse_statement(f"SELECT COUNT(*) FROM t WHERE {where}")
    relation = Binder(Catalog(dataset="d", private={"t": TABLE}), text).select_rows(tree, {}, last=True)
    [day] = relation.columns.find("", "day")
    assert (day.first, day.last) == (first, last)
