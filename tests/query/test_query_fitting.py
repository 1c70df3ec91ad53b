"""Contribution limits that cut: the answer says so, and has no interval that would miss the truth."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

from sfumato.dataset import Column, Kind, RangeDomain, Role, Schema, ValuesDomain
from sfumato.dp.loss import approximate, concentrated, pure, sequential
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.errors import AnswerFailed, BadParameter
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.plan.aggregates import FittingUnits
from sfumato.query.plan.loss_check import check_loss
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query
from sfumato.server.postgres.notices import answer_notice, last_answer_rows

COLUMNS = {
    "who": Column(role=Role.PLAIN, kind=Kind.INTEGER),
    "city": Column(role=Role.PLAIN, kind=Kind.CATEGORY, domain=ValuesDomain(values=tuple("abcd"))),
    "x": Column(role=Role.PLAIN, kind=Kind.NUMBER, domain=RangeDomain(low=0, high=10)),
}


def catalog(unit: str | None = "who", rows: int = 1, groups: int = 1) -> Catalog:
    limits = {"rows": rows, "groups": groups} if unit else {}
    return Catalog(
        dataset="d", private={"t": PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit=unit), **limits)}
    )


def session(own: int, people: int = 3000, **options: Any) -> Session:
    """People with so many rows each, in as many cities as there are."""
    size = own * people
    frame = pl.DataFrame({"who": [i // own for i in range(size)], "city": ["abcd"[i % 4] for i in range(size)],
                          "x": [float(i % 7) for i in range(size)]})  # fmt: skip
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10**6, "0.1"), dataset="d")
    engine = options.pop("engine", None)
    return Session(catalog(**options), {"t": frame}, ledger=book, analyst="a", engine=engine)


@pytest.mark.parametrize("sql", ["SELECT COUNT(*) FROM t", "SELECT city, COUNT(*) FROM t GROUP BY city",
                                 "SELECT AVG(x) FROM t", "SELECT MAX(x) FROM t"])  # fmt: skip
def test_an_answer_without_what_was_cut_has_no_interval_and_says_why(sql: str) -> None:
    answer = session(own=4, rows=1).ask(sql, epsilon=5)
    assert answer.kept is not None
    assert answer.kept.high < 0.1
    assert all(cell.low is None and cell.high is None for row in answer.rows for cell in row)
    assert "have no intervals" in str(answer)
    assert answer.to_dict()["kept"]["high"] == answer.kept.high


def test_limits_that_cut_nothing_keep_the_intervals() -> None:
    asked = session(own=4, rows=4)
    answer = asked.ask("SELECT COUNT(*) FROM t", epsilon=5)
    assert answer.rows[0][0].low <= 12_000 <= answer.rows[0][0].high
    assert answer.kept is not None
    assert answer.kept.low > 0.9
    assert answer.kept.high == 1
    assert asked.ask("SELECT COUNT(*) FROM t", epsilon=5).kept == answer.kept  # stored with it


@pytest.mark.parametrize("engine", [Duckdb(compiled=0, threads=1), Duckdb(threads=1)])
@pytest.mark.parametrize(("rows", "groups", "delta", "fits"), [
    (1, 4, 0, True), (1, 3, 0, False), (1, 4, "1e-6", True), (2, 1, "1e-6", True), (1, 1, "1e-6", False),
])  # fmt: skip
def test_sampling_and_clipping_have_their_own_limits(
    engine: Duckdb, rows: int, groups: int, delta: Any, fits: bool
) -> None:
    """Four rows in four groups: within 1 x 4, and, scaled to a norm, within sqrt(1) x 2 as well."""
    asked = session(own=4, rows=rows, groups=groups, engine=engine)
    bounding = "clip" if delta and groups == 4 else None
    answer = asked.ask("SELECT city, COUNT(*) FROM t GROUP BY city", epsilon=20, delta=delta, bounding=bounding)
    sampled = "at random" in answer.explanation.bounding
    assert answer.kept is not None
    assert (answer.kept.value > 0.5) == (fits and not (sampled and groups < 4))


def test_nothing_is_measured_where_nothing_can_be_cut() -> None:
    for sql, known in (
        ("SELECT COUNT(*) FROM t", catalog(None)),
        ("SELECT COUNT(DISTINCT who) FROM t", catalog()),
        ("SELECT AVG(CLIP(n, 0, 9)) FROM (SELECT who, COUNT(*) AS n FROM t GROUP BY who) AS s", catalog()),
    ):
        plan = plan_query(parse_query(sql, known), pure(1), fit="1/20")
        assert not any(isinstance(m, FittingUnits) for m in plan.query.aggregates)
        assert plan == plan_query(parse_query(sql, known), pure(1))


@pytest.mark.parametrize("engine", [Duckdb(compiled=0, threads=1), Duckdb(threads=1)])
@pytest.mark.parametrize("by", ["", "WHERE city IN ('a', 'b') GROUP BY city", "GROUP BY city"])
def test_a_sum_of_a_person_beyond_the_declared_limits_is_cut(engine: Duckdb, by: str) -> None:
    """Such sums are clipped to what the limits add up to: a mean of 4 was 2.6, with an interval that missed it."""
    column = "city, " if by else ""
    inner = f"SELECT who, {column}COUNT(*) AS n FROM t GROUP BY {column}who"
    for what in ("AVG(n), SUM(n)", "MAX(n)"):
        for limit, says in ((3, "cut"), (7, "fit")):
            who = [person for person in range(4000) for _ in range(1 + person % 7)]
            frame = pl.DataFrame({"who": who, "city": ["abcd"[person % 4] for person in who], "x": 1.0})
            book = Ledger.open(":memory:")
            book.set_cap(approximate(10**6, "0.1"), dataset="d")
            asked = Session(catalog(rows=limit), {"t": frame}, ledger=book, analyst="a", engine=engine)
            answer = asked.ask(f"SELECT {column}{what} FROM ({inner}) AS s {by}", epsilon=40)
            assert answer.limits == says
            cell = answer.rows[0][1 if by else 0]
            if says == "cut":
                assert cell.low is None
            else:
                assert float(cell.value) == pytest.approx(7 if what == "MAX(n)" else 4, rel=0.05)


def test_a_person_without_a_value_and_one_at_the_limit_fit() -> None:
    """Rows are rounded to a grid: a sum of rows at the upper bound may lie above its own bound by a step."""
    frame = pl.DataFrame({"who": [i // 3 for i in range(9000)], "city": ["a"] * 9000, "x": [10.0, 10.0, None] * 3000})
    book = Ledger.open(":memory:")
    book.set_cap(pure(10**6), dataset="d")
    asked = Session(catalog(rows=2), {"t": frame}, ledger=book, analyst="a")
    inner = "SELECT who, SUM(x) AS s, SUM(CASE WHEN city = 'b' THEN x END) AS b FROM t GROUP BY who"
    for sql in ("AVG(s)", "SUM(b)", "CORR(s, s)"):
        assert asked.ask(f"SELECT {sql} FROM ({inner}) AS a", epsilon=20).limits == "fit"


@pytest.mark.parametrize("cost", [pure(1), approximate(1, "1e-6"), concentrated("0.1", "1e-6")])
def test_the_cost_includes_the_measurement(cost: Any) -> None:
    plan = plan_query(parse_query("SELECT city, COUNT(*) FROM t GROUP BY city", catalog()), cost, fit="1/5")
    [measurement] = [m for m in plan.measurements if m.aggregate == len(plan.query.aggregates) - 1]
    assert isinstance(measurement.mechanism, Laplace)
    assert sequential(plan.parts) <= plan.cost <= replace(cost, curve=plan.cost.curve)
    mutant = replace(measurement, mechanism=Laplace.for_epsilon(2, sensitivity=1, grid=1))
    rest = tuple(m for m in plan.measurements if m is not measurement)
    with pytest.raises(AnswerFailed, match="disagree"):
        check_loss(replace(plan, measurements=(*rest, mutant)))


def test_a_share_must_leave_something() -> None:
    query = parse_query("SELECT COUNT(*) FROM t", catalog())
    for fit in (1, -1, Fraction(3, 2)):
        with pytest.raises(BadParameter, match="fit"):
            plan_query(query, pure(1), fit=fit)


def people_with(numbers: list[int], **limits: int) -> Session:
    """One person for each number of rows."""
    who = [person for person, own in enumerate(numbers) for _ in range(own)]
    frame = pl.DataFrame({"who": who, "city": ["a"] * len(who), "x": [1.0] * len(who)})
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10**6, "0.1"), dataset="d")
    return Session(catalog(**limits), {"t": frame}, ledger=book, analyst="a")


def test_an_interval_that_would_miss_is_not_shown() -> None:
    """300 people with 3 to 21 rows of which 3 count: 40 of 60 answers had an interval, and all of these missed."""
    asked = people_with([3 + i % 19 for i in range(300)], rows=3)
    for i in range(20):
        [[cell]] = asked.ask(f"SELECT COUNT(*) FROM t WHERE {i} = {i}", epsilon=1).rows
        assert (cell.low, cell.high) == (None, None)


@pytest.mark.parametrize("epsilon", ["0.5", 1, 3, 100, 10_000])
def test_a_few_people_with_most_of_the_rows_leave_no_interval(epsilon: Any) -> None:
    """25 of 3,000 people have 89 % of the rows; the answer said 3,000 (2,997 to 3,003).

    What is known of the limits is noisy: at epsilon 0.5 one of 100 answers has an interval.
    """
    asked = people_with([1000] * 25 + [1] * 2975, rows=1)
    answers = [asked.ask(f"SELECT COUNT(*) FROM t WHERE {i} = {i}", epsilon=epsilon) for i in range(10)]
    hidden = [answer for answer in answers if answer.rows[0][0].low is None]
    assert len(hidden) >= 9
    assert all(answer.limits in ("cut", "not shown") for answer in hidden)


def test_fewer_than_one_in_a_hundred_may_hold_most_of_a_sum() -> None:
    """300 of 60,000 people have half of the rows, and that fewer than 1 % are cut is shown."""
    answer = people_with([200] * 300 + [1] * 59_700, rows=1).ask("SELECT COUNT(*) FROM t", epsilon=1)
    assert answer.kept is not None
    assert answer.kept.low > 0.99
    assert (answer.rows[0][0].low, answer.limits) == (None, "cut")


def test_what_was_not_measured_was_not_shown() -> None:
    answer = session(own=1, rows=1).ask("SELECT COUNT(*) FROM t", epsilon=5, fit=0)
    assert answer.limits == "not shown"
    assert answer.rows[0][0].low is None
    assert "no intervals" in str(answer.explanation)
    assert "no intervals" in str(answer)
    assert "no intervals" in answer._repr_html_()
    assert "no intervals" in answer_notice(answer)
    assert {row["limits"] for row in last_answer_rows(answer)} == {"not shown"}
    assert answer.intervals.columns == ["COUNT(*)", "limits"]


def test_every_door_says_whether_the_limits_fit() -> None:
    for own, state in ((1, "fit"), (4, "cut")):
        asked = session(own=own, rows=1)
        answer = asked.ask("SELECT COUNT(*) AS n FROM t", epsilon=5)
        assert answer.limits == answer.to_dict()["limits"] == state
        assert answer.to_frame()["limits"].to_list() == answer.to_pandas()["limits"].tolist() == [state]
        cursor = asked.connect(epsilon=5).cursor().execute("SELECT COUNT(*) AS n FROM t")
        assert [name for name, *_ in cursor.description or ()] == ["n", "limits"]
        assert (cursor.fetchone() or ())[1] == state
    [[value, state]] = session(own=1).ask("SELECT COUNT(*) AS limits FROM t", epsilon=5).to_frame().select(
        "limits", "limits_"
    ).rows()  # fmt: skip
    assert (round(value / 100), state) == (30, "fit")
    assert "limits" not in session(own=1, unit=None).ask("SELECT COUNT(*) FROM t", epsilon=5).to_frame().columns


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(("item", "truth"), [
    ("AVG(CASE WHEN x < 7 THEN 1 ELSE 0 END)", 0.85),
    ("SUM(CASE WHEN x < 7 THEN 1 ELSE 0 END) / COUNT(*)", 0.85),
    ("AVG(CAST(x AS INTEGER))", 3.65),
    ("SUM(CAST(x AS INTEGER)) / COUNT(CAST(x AS INTEGER))", 3.65),
    ("VAR_POP(CAST(x AS INTEGER))", 6.4275),
])  # fmt: skip
def test_a_person_who_is_cut_keeps_the_mean(item: str, truth: float, rows: int) -> None:
    """Of 20 rows one counts, of which 17/20 have a value below 7: this is not rounded to 0 or 1."""
    own = [8.0, 8.0, 9.0] + [1.0] * 6 + [2.0] * 3 + [4.0] * 6 + [6.0] * 2
    frame = pl.DataFrame({"who": [i // 20 for i in range(10_000)], "city": ["a"] * 10_000, "x": own * 500})
    book = Ledger.open(":memory:")
    book.set_cap(pure(10**9), dataset="d")
    asked = Session(catalog(rows=rows), {"t": frame}, ledger=book, analyst="a")
    [[cell]] = asked.ask(f"SELECT {item} FROM t", epsilon=10**6).rows
    assert abs(cell.value - truth) < 0.002 * truth
