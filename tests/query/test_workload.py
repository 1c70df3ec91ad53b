"""Workloads and the builder: the same plans, and fewer errors for many counts."""

from __future__ import annotations

from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from sfumato.dataset import Column, Kind, PeriodDomain, RangeDomain, Role, Schema, ValuesDomain
from sfumato.demos.private_hospital import flu, patients
from sfumato.dp.loss import approximate, pure
from sfumato.errors import BadParameter, OverBudget, QueryRefused
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.workload import plan_workload

PREFIXES = [f"SELECT COUNT(*) FROM patients WHERE age <= {age}" for age in range(100)]
CELLS = [f"SELECT COUNT(*) FROM patients WHERE age = {age}" for age in range(0, 100, 10)]


def test_answers_are_right_when_noise_vanishes() -> None:
    session, table = flu(people=500, budget=10**9), patients(500)
    queries = [
        *PREFIXES[::9],
        "SELECT COUNT(*) FROM patients WHERE ward = 'east' OR ward = 'west'",
        "SELECT COUNT(*) FROM patients WHERE flu AND NOT ward = 'north'",
    ]
    ages = session.workload(queries[:-2], epsilon=10**6)
    wanted = [int((table["age"] <= age).sum()) for age in range(0, 100, 9)]
    assert [round(cell.value) for cell in ages.values] == wanted
    rest = session.workload(queries[-2:], epsilon=10**6)
    both = [
        int(table["ward"].is_in(["east", "west"]).sum()),
        int((table["flu"] & (table["ward"] != "north")).sum()),
    ]
    assert [round(cell.value) for cell in rest.values] == both


def long_domain() -> Session:
    """One column with 1,000 declared values."""
    column = Column(role=Role.PLAIN, kind=Kind.INTEGER, domain=RangeDomain(low=0, high=999))
    table = PrivateTable(name="patients", schema=Schema(columns={"age": column}))
    book = Ledger.open(":memory:")
    book.set_cap(pure(10), dataset="d")
    frame = pl.DataFrame({"age": range(1000)})
    return Session(Catalog(dataset="d", private={"patients": table}), {"patients": frame}, ledger=book, analyst="a")


def test_the_best_measurement_is_chosen_and_told() -> None:
    prefixes = [f"SELECT COUNT(*) FROM patients WHERE age <= {age}" for age in range(0, 1000, 5)]
    ranges = plan_workload(long_domain(), prefixes, pure(1))
    assert ranges.name == "tree of ranges, 16 to 1"
    assert ranges.error() < ranges.errors["cells"] / 1.3 < ranges.errors["questions"]
    session = flu(people=200, budget=10)
    assert plan_workload(session, CELLS, pure(1)).errors["questions"] == pytest.approx(np.sqrt(2), rel=0.05)
    alone = plan_workload(session, PREFIXES[50:51], pure(1))  # two cells, and the query is one of them
    assert alone.errors["cells"] == alone.errors["questions"] == alone.error()


def test_expected_error_is_the_error_seen() -> None:
    """15 runs of 100 prefix counts: the root mean square error within 30 % of the promise."""
    table, errors = patients(300), []
    wanted = np.array([int((table["age"] <= age).sum()) for age in range(100)])
    for _ in range(15):
        answer = flu(people=300, budget=1).workload(PREFIXES, epsilon=1)
        errors.append(np.sqrt(np.mean((np.array([cell.value for cell in answer.values]) - wanted) ** 2)))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(answer.error, rel=0.3)


def test_the_loss_is_that_of_the_measured_sums() -> None:
    session = flu(people=100, budget=10, delta="1e-5")
    for cost in (pure("1/2"), approximate("1/2", "1e-6")):
        plan = plan_workload(session, PREFIXES, cost)
        columns = np.abs(plan.measured).sum(axis=0).max()
        if plan.mechanism.part_name() == "laplace":
            assert plan.mechanism.loss(int(columns)) == pure(Fraction(1, 2))
        else:
            assert plan.mechanism.loss_at(int((plan.measured**2).sum(axis=0).max())) <= cost  # type: ignore


def test_a_workload_is_paid_once_and_repeated_for_free() -> None:
    session = flu(people=100, budget=1)
    first = session.workload(PREFIXES, epsilon="0.6")
    again = session.workload(PREFIXES, epsilon="0.6")
    assert again.cached
    assert not first.cached
    assert again.values == first.values
    with pytest.raises(OverBudget):
        session.workload(CELLS, epsilon="0.6")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT SUM(age) FROM patients",
        "SELECT ward, COUNT(*) FROM patients GROUP BY ward",
        "SELECT COUNT(*) FROM patients WHERE name = 'x'",
        "SELECT COUNT(*) FROM patients WHERE bill > 3",
        "SELECT COUNT(*) FROM (SELECT age FROM patients) AS p WHERE age > 3",
    ],
)
def test_what_is_no_workload_is_refused(query: str) -> None:
    session = flu(people=100, budget=1)
    with pytest.raises(QueryRefused):
        session.workload([query], epsilon="0.1")
    assert session.remaining() == pure(1)


def test_the_builder_compiles_to_the_same_plan() -> None:
    session = flu(people=100, budget=10)
    built = session.table("patients").where("age > 20").where("flu").by("ward").count("n").mean("age")
    first = built.ask(epsilon=1)
    written = session.ask(
        "SELECT ward, COUNT(*), AVG(age) FROM patients WHERE (age > 20) AND (flu) GROUP BY ward", epsilon=1
    )
    assert first.columns == ("ward", "n", "mean_age")
    assert written.cached
    more = session.table("patients").count_distinct("age").sum("bill").variance("age").quantile("age", 0.9)
    assert len(more.explain(epsilon=1).noises) == 6
    with pytest.raises(BadParameter):
        session.table("patients").ask(epsilon=1)


@pytest.mark.parametrize(("rows", "intervals"), [(9, True), (2, False)])
def test_a_workload_says_whom_the_limits_cut(rows: int, intervals: bool) -> None:
    """A hundred people of nine rows each, of whom one in ten has only one: the limits fit all, or a tenth."""
    column = Column(role=Role.PLAIN, kind=Kind.INTEGER, domain=RangeDomain(low=0, high=9))
    schema = Schema(columns={"id": Column(role=Role.PLAIN, kind=Kind.INTEGER), "age": column}, unit="id")
    book = Ledger.open(":memory:")
    book.set_cap(pure(10**6), dataset="d")
    frame = pl.DataFrame(
        [(i, i % 10) for i in range(100) for _ in range(9 if i % 10 else 1)], schema=["id", "age"], orient="row"
    )
    table = PrivateTable(name="t", schema=schema, rows=rows, groups=1)
    asked = Session(Catalog(dataset="d", private={"t": table}), {"t": frame}, ledger=book, analyst="a")
    queries = [f"SELECT COUNT(*) FROM t WHERE age <= {age}" for age in range(9)]
    answer = asked.workload(queries, epsilon=10**4)
    assert answer.loss == pure(10**4) == asked.ledger.balance(dataset="d").spent
    assert answer.kept is not None
    assert answer.kept.value == pytest.approx(1 if intervals else 0.1, abs=0.05)
    assert all((cell.low is not None) is intervals for cell in answer.values)
    again = asked.workload(queries, epsilon=10**4)
    assert (again.cached, again.values, again.kept) == (True, answer.values, answer.kept)
    assert asked.workload(queries, epsilon=10**4, fit=0).kept is None
    with pytest.raises(BadParameter, match="fit"):
        asked.workload(queries, epsilon=1, fit=1)


WIDE_COLUMNS = {
    "age": Column(role=Role.PLAIN, kind=Kind.INTEGER, domain=RangeDomain(low=0, high=110)),
    "k": Column(role=Role.PLAIN, kind=Kind.CATEGORY, domain=ValuesDomain(values=("a", "b", "c"))),
    "d": Column(role=Role.PLAIN, kind=Kind.DATE, domain=PeriodDomain(first=date(2024, 1, 1), last=date(2024, 12, 31))),
    "w": Column(role=Role.PLAIN, kind=Kind.NUMBER, domain=ValuesDomain(values=(1.5, 2.5, 3.5))),
}
CONDITIONS = {
    "age": ["2 * age - 3 > 281", "COALESCE(age, 120) > 115", "age > 140", "age = 111",
            "age < 0", "age IN (150, 3)", "age BETWEEN 100 AND 149.5", "age <> 150",
            "age IS NULL", "NOT (age > 50)", "age >= 111.5"],
    "k": ["k = 'zoo'", "k <> 'a'", "k IN ('a', 'zoo', 'q')", "k > 'b'", "k < 'a'", "k IS NOT NULL"],
    "d": ["d > DATE '2025-01-10'", "d < DATE '2024-01-01'", "d = DATE '2025-01-03'",
          "d BETWEEN DATE '2024-03-01' AND DATE '2025-01-15'"],
    "w": ["w > 3", "w = 7", "w < 2", "w >= 100"],
}  # fmt: skip


def undeclared() -> Session:
    """Values beyond what the owner declared, in every kind of column."""
    draw = np.random.default_rng(5)
    ages = [*draw.integers(0, 111, 800).tolist(), *[150] * 200, *[111] * 30, *[-5] * 7, *[None] * 11]
    days = [date(2024, 1, 1) + timedelta(days=int(i)) for i in draw.integers(-30, 400, len(ages))]
    words = [["a", "b", "c", "zoo", None, ""][i] for i in draw.integers(0, 6, len(ages))]
    numbers = draw.choice([1.5, 2.5, 7.0, 100.0], len(ages))
    book = Ledger.open(":memory:")
    book.set_cap(pure(10**9), dataset="d")
    table = PrivateTable(name="t", schema=Schema(columns=WIDE_COLUMNS))
    frame = pl.DataFrame({"age": ages, "k": words, "d": days, "w": numbers})
    return Session(Catalog(dataset="d", private={"t": table}), {"t": frame}, ledger=book, analyst="a")


@pytest.mark.parametrize("name", CONDITIONS)
def test_undeclared_values_count_as_in_a_single_query(name: str) -> None:
    asked = undeclared()
    queries = [f"SELECT COUNT(*) FROM t WHERE {condition}" for condition in CONDITIONS[name]]
    truth = [asked.ask(sql, epsilon=10**6).value for sql in queries]
    assert len(set(truth)) > 2
    assert [round(cell.value) for cell in asked.workload(queries, epsilon=10**6).values] == truth
    alone = [asked.workload([sql], epsilon=10**6).values[0].value for sql in queries]
    assert [round(value) for value in alone] == truth


@pytest.mark.parametrize("condition", ["age % 7 = 3", "k LIKE 'z%'", "age > w", "age * age > 30"])
def test_conditions_that_no_few_values_decide_are_refused(condition: str) -> None:
    asked = undeclared()
    with pytest.raises(QueryRefused, match="undeclared values"):
        asked.workload([f"SELECT COUNT(*) FROM t WHERE {condition}"], epsilon=1)
    assert asked.ledger.balance(dataset="d").spent.size == 0
