"""Statements are as short as they can be, and say the same: no column that is not needed, no list written out twice."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import approximate, pure
from sfumato.engines.backends.duckdb.dialect import DuckdbGenerator
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.engine import Running
from sfumato.engines.expressions import Arithmetic, Expression, constant
from sfumato.errors import AnswerFailed, QueryRefused
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, PublicTable, Session
from sfumato.query.execute.executor import statements
from sfumato.query.execute.sqlgen import additive_sql
from sfumato.query.plan.aggregates import Aggregate, Count
from sfumato.query.plan.loss_check import check_loss
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query
from sfumato.secret import Permit

PERMIT = Permit("a test of exact numbers")
MANY = tuple(f"it's {i}" for i in range(40))


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


def catalog(groups: int = 2, unit: str | None = "person") -> Catalog:
    columns = {
        "person": column("integer"),
        "city": column("category", values=("a", "b", "c")),
        "place": column("category", values=MANY),
        "n": column("integer", low=0, high=29),
        "x": column("number", low=0, high=10),
        **{f"more{i}": column("number", low=0, high=1) for i in range(20)},
    }
    limits: dict[str, Any] = {"rows": 2, "groups": groups} if unit else {}
    table = PrivateTable(name="t", schema=Schema(columns=columns, unit=unit), **limits)
    sides = pl.DataFrame({"city": ["a", "b", "c"], "side": ["l", "r", "l"], "rain": [1.5, 2.5, 3.5]})
    return Catalog(
        dataset="d", private={"t": table}, public={"sides": PublicTable(name="sides", frame=sides, key=("city",))}
    )


def rows(size: int = 900) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "person": [i * 7 % 97 for i in range(size)],
            "city": [("a", "b", "c", None, "elsewhere")[i * 13 // 7 % 5] for i in range(size)],
            "place": [MANY[i * 31 % 40] if i % 9 else "nowhere" for i in range(size)],
            "n": [i * 17 % 35 for i in range(size)],
            "x": [float("nan") if i % 50 == 3 else i * 0.7 % 12 for i in range(size)],
            **{f"more{i}": [0.5] * size for i in range(20)},
        }
    )


WRITE = DuckdbGenerator().write


def plan(sql: str, known: Catalog, delta: Any = 0, **limits: Any) -> NoisePlan:
    return plan_query(parse_query(sql, known), approximate(1, delta) if delta else pure(1), **limits)


def running(frame: pl.DataFrame, known: Catalog, **setup: Any) -> Running:
    tables = {"t": frame.to_arrow(), **{name: table.frame.to_arrow() for name, table in known.public.items()}}
    return Duckdb(threads=1, **setup).start(tables)


@pytest.mark.parametrize("unit", ["person", None])
@pytest.mark.parametrize(
    ("sql", "needed"),
    [
        ("SELECT COUNT(*) FROM t WHERE x > 2", {"x"}),
        ("SELECT city, AVG(x) FROM t GROUP BY city", {"city", "x"}),
        ("SELECT city, COUNT(*) FILTER (WHERE n > 3) FROM t WHERE more3 < 1 GROUP BY city", {"city", "n", "more3"}),
        ("SELECT side, SUM(x) FROM t JOIN sides USING (city) GROUP BY side", {"city", "side", "x"}),
        ("SELECT city, MEDIAN(more7) FROM t GROUP BY city", {"city", "more7"}),
    ],
)
def test_only_the_columns_that_are_needed_are_read(sql: str, needed: set[str], unit: str | None) -> None:
    made = plan(sql, catalog(unit=unit))
    for statement in statements(made, 7):
        assert {name for name in re.findall(r'CAST\("(\w+)" AS', WRITE(statement)) if name != "person"} == needed


def test_a_question_that_needs_no_column_still_reads_rows() -> None:
    for unit, people in ((None, 900), ("person", 194)):
        known = catalog(unit=unit)
        made = plan("SELECT COUNT(*) FROM t", known)
        [[count, _]] = running(rows(), known).run(additive_sql(made, 7)).open(PERMIT)
        assert count == people  # two rows of each person


@pytest.mark.parametrize("items", ["COUNT(*)", "AVG(x)", "COUNT(*), SUM(x)", "VARIANCE(x)"])
def test_nobody_is_sampled_where_all_groups_count(items: str) -> None:
    """Where a person may be in as many groups as there are, no order is needed and everybody counts in each."""
    every = plan(f"SELECT city, {items} FROM t GROUP BY city", catalog(groups=3))
    some = plan(f"SELECT city, {items} FROM t GROUP BY city", catalog(groups=2))
    assert "hash(" not in WRITE(additive_sql(every, 7))
    assert "hash(" in WRITE(additive_sql(some, 7))
    for wanted, limit in ((True, 2), (False, 3)):
        made = plan("SELECT city, MEDIAN(x), COUNT(DISTINCT n) FROM t GROUP BY city", catalog(groups=limit))
        assert [('hash("g"' in WRITE(statement)) for statement in statements(made, 7)] == [wanted, wanted]
    engine = running(rows(), catalog())
    people = {city: rows().filter(pl.col("city") == city)["person"].n_unique() for city in "abc"}
    assert {"abc"[row[0]]: row[-1] for row in engine.run(additive_sql(every, 7)).open(PERMIT)} == people
    assert sum(row[-1] for row in engine.run(additive_sql(some, 7)).open(PERMIT)) < sum(people.values())


LISTED = [
    "SELECT place, COUNT(*), AVG(x) FROM t GROUP BY place",
    "SELECT n, SUM(x) FROM t GROUP BY n",
    "SELECT place, n, COUNT(*) FROM t GROUP BY place, n",
    "SELECT place, MEDIAN(x), COUNT(DISTINCT n) FROM t GROUP BY place",
]


@pytest.mark.parametrize("unit", ["person", None])
@pytest.mark.parametrize("sql", LISTED)
def test_a_kept_list_gives_the_numbers_of_one_written_out(sql: str, unit: str | None) -> None:
    known = catalog(unit=unit)
    engine = running(rows(), known)
    made = plan(sql, known)
    for short, long in zip(statements(made, 7, engine.listed), statements(made, 7), strict=True):
        assert "VALUES" in WRITE(long)
        assert "VALUES" not in WRITE(short)
        found = sorted(engine.run(short).open(PERMIT))
        assert found == sorted(engine.run(long).open(PERMIT))
        assert found


def test_lists_are_kept_once_and_only_where_they_pay() -> None:
    engine = running(rows(10), catalog())
    assert engine.listed(MANY) == engine.listed(tuple(MANY))
    assert engine.listed(MANY) != engine.listed(MANY[:-1])
    assert engine.listed(("a", "b", "c")) is None
    assert engine.listed(tuple(range(2**63 - 20, 2**63 + 20))) is None
    assert engine.listed(tuple(i / 2 for i in range(50))) is None
    assert engine.listed((*range(50), "x")) is None
    assert engine.listed((*MANY, "half a letter: \ud800")) is None
    assert engine.listed((*MANY, "nothing \0 ends here", "")) is not None
    assert engine.listed((*range(50), True)) is None
    assert running(rows(10), catalog(), order="sha256").listed(MANY) is None


def test_lists_do_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.engines.backends.duckdb.engine._MANY", 100)
    engine = running(rows(10), catalog())
    assert engine.listed(MANY) is not None
    assert engine.listed(MANY[1:]) is not None
    assert engine.listed(MANY[2:]) is None
    assert engine.listed(MANY) is not None


def test_no_question_can_name_a_list() -> None:
    book = Ledger.open(":memory:")
    book.set_cap(pure(9), dataset="d")
    known = catalog()
    session = Session(known, {"t": rows()}, ledger=book, analyst="a")
    session.ask(LISTED[0], epsilon=1)
    for name in ("sfumato_lists.k0", "k0", "sfumato_lists"):
        with pytest.raises(QueryRefused):
            session.ask(f"SELECT COUNT(*) FROM {name}", epsilon=1)
    assert book.balance(dataset="d").spent == pure(1)


@dataclass(frozen=True, kw_only=True)
class CountedTwice(Count):
    """An aggregate that only this file knows: each row counts twice."""

    title = "Rows, twice"  # type: ignore[assignment]

    def sensitivity(self, rows: int) -> int:
        return 2 * rows

    def worst(self, rows: int) -> int:
        return 2 * rows

    @property
    def every(self) -> bool:
        return False

    def ends(self, rows: int) -> tuple[int, int]:
        return 0, 2 * rows

    def total(self, name: str) -> Expression:
        return Arithmetic("*", super().total(name), constant(2))


class Unheard(Aggregate):
    """An aggregate for which nothing says how its exact number is computed."""

    title = "Unheard of"

    def sensitivity(self, rows: int) -> int:
        return rows

    worst = sensitivity

    def described(self, written: object) -> str:
        return self.title


def test_a_new_aggregate_is_one_class() -> None:
    """Nothing else is told of it: it is planned, its loss computed twice, and its numbers added up and bounded."""
    known = catalog()
    asked = parse_query("SELECT city, COUNT(*) FROM t GROUP BY city", known)
    new = replace(asked, aggregates=(CountedTwice(),))
    for bounding in ("sample", "clip"):
        check_loss(plan_query(new, approximate(1, "1e-6"), bounding=bounding))
    made, plain = plan_query(new, pure(1)), plan_query(asked, pure(1))
    assert made.of(0).sensitivity == 2 * plain.of(0).sensitivity
    engine = running(rows(), known)
    twice, once = ({row[0]: row[1] for row in engine.run(additive_sql(one, 7)).open(PERMIT)} for one in (made, plain))
    assert once
    assert twice == {group: 2 * number for group, number in once.items()}


def test_an_aggregate_without_a_statement_is_refused() -> None:
    """It is never answered as something else, and no statement reads data for it."""
    known = catalog()
    asked = replace(parse_query("SELECT COUNT(*) FROM t", known), aggregates=(Unheard(),))
    with pytest.raises(AnswerFailed, match="without a statement"):
        list(statements(plan_query(asked, pure(1)), 7))
