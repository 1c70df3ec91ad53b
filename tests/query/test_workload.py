"""Workloads and the builder: the same plans, and fewer errors for many counts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.demos.private_hospital import flu, patients
from sfumato.dp.loss import approximate, pure
from sfumato.errors import BadParameter, OverBudget, QueryRefused
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.results.workload import plan_workload

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
    column = Column(role=Role.PLAIN, kind=Kind.INTEGER, domain=Domain(low=0, high=999))
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
    column = Column(role=Role.PLAIN, kind=Kind.INTEGER, domain=Domain(low=0, high=9))
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
