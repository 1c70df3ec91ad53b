"""Top-k: ``ORDER BY count DESC LIMIT k`` selects groups by the exponential mechanism, over public and private keys.

The probability of every output is computed from exact counts and the rate alone, on a table and on all its neighbours.
"""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp, log
from typing import Any

import polars as pl
import pytest

from bounding_reference import groups_of_totals
from sfumato.dataset import Column, Kind, Role, Schema, ValuesDomain
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, approximate, concentrated, pure
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.mechanisms.top_keys import TopKeys
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.errors import AnswerFailed, BadParameter
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, Session
from sfumato.query.plan.loss_check import check_loss
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query

COLUMNS = {
    "who": Column(role=Role.PLAIN, kind=Kind.INTEGER),
    "city": Column(role=Role.PLAIN, kind=Kind.CATEGORY, domain=ValuesDomain(values=tuple("abcdef"))),
    "drug": Column(role=Role.PLAIN, kind=Kind.CATEGORY),
    "n": Column(role=Role.PLAIN, kind=Kind.INTEGER),
}


def catalog(rows: int = 2, groups: int = 6) -> Catalog:
    table = PrivateTable(name="t", schema=Schema(columns=COLUMNS, unit="who"), rows=rows, groups=groups)
    return Catalog(dataset="d", private={"t": table})


def plan(sql: str, cost: PrivacyLoss, *, rows: int = 2, groups: int = 6) -> NoisePlan:
    return plan_query(parse_query(sql, catalog(rows, groups)), cost)


def outputs(top: TopKeys, counts: dict[Any, int]) -> dict[tuple[Any, ...], float]:
    """The probability of each output, by the formula."""
    found: dict[tuple[Any, ...], float] = {}

    def select(chosen: tuple[Any, ...], chance: float) -> None:
        left = {key: exp(float(top.rate) * count) for key, count in counts.items() if key not in chosen}
        stop = 0.0 if top.limit is None else exp(float(top.rate) * top.limit)
        total = sum(left.values()) + stop
        if len(chosen) == top.count or not total:
            found[chosen] = found.get(chosen, 0.0) + chance
            return
        if stop:
            found[(*chosen, "end")] = chance * stop / total
        for key, weight in left.items():
            select((*chosen, key), chance * weight / total)

    select((), 1.0)
    return found


def told_apart(loss: PrivacyLoss, one: dict[Any, float], two: dict[Any, float]) -> bool:
    """Whether some set of outputs breaks (epsilon, delta)."""
    grown = exp(float(loss.size))
    pairs = [(one.get(key, 0.0), two.get(key, 0.0)) for key in {*one, *two}]
    return any(
        sum(max(0.0, a - grown * b) for a, b in side) > float(loss.delta) * (1 + 1e-9) + 1e-12
        for side in (pairs, [(b, a) for a, b in pairs])
    )


def broken(plan: NoisePlan, change: Any) -> int:
    """How many neighbours are told apart by more than the plan says, with a mechanism that was changed."""
    draw, caught = random.Random(5), 0
    stated = plan.partition_selection
    assert stated is not None
    for _ in range(4):
        # Two people make four cities and a drug frequent. A third has two rows of each of six drugs of their own.
        rows = [(who, city, "x") for who in (1, 2) for city in "abcd" * 2]
        rows += [(0, draw.choice("abef"), f"own{i % 6}") for i in range(draw.choice([12, 12, 3]))]
        frame = pl.DataFrame(rows, schema=["who", "city", "drug"], orient="row").with_columns(n=1)
        tables = []
        for gone in (None, 0, 1, 2):
            running = Duckdb(threads=1).start({"t": frame.filter(pl.col("who") != (9 if gone is None else gone))})
            rows = {row[0]: int(row[1]) for row in groups_of_totals(plan, running, 7)}
            known = range(6) if plan.query.public_keys else rows
            changed = change(stated.mechanism)
            sign = -1 if changed.smallest else 1
            tables.append(outputs(changed, {key: sign * rows.get(key, 0) for key in known}))
            running.close()
        caught += sum(told_apart(stated.loss, tables[0], other) for other in tables[1:])
    return caught


PUBLIC = "SELECT city FROM t GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2"
PRIVATE = "SELECT drug FROM t GROUP BY drug ORDER BY COUNT(*) DESC LIMIT 2"


def test_no_neighbour_is_told_apart_and_mutants_are() -> None:
    public, private = plan(PUBLIC, pure(4)), plan(PRIVATE, approximate(2, "0.01"))
    for one in (public, private):
        assert one.top_keys is not None
        assert broken(one, lambda top: top) == 0
    assert broken(public, lambda top: top.model_copy(update={"rate": top.rate * Fraction(5, 4)})) > 0
    assert broken(private, lambda top: top.model_copy(update={"limit": top.limit - 2})) > 0


def test_small_counts_are_told_apart_by_no_more() -> None:
    found = plan("SELECT city FROM t GROUP BY city ORDER BY COUNT(*) LIMIT 2", pure(4))
    assert found.top_keys is not None
    assert broken(found, lambda top: top) == 0
    assert broken(found, lambda top: top.model_copy(update={"rate": top.rate * Fraction(5, 4)})) > 0


def test_a_selection_in_rho_is_of_bounded_range() -> None:
    """One selection: the Rényi divergences of all neighbours stay below rho·alpha; at twice the rate they do not."""
    found = plan(f"{PUBLIC.removesuffix('2')}1", concentrated("0.5"))
    assert found.top_keys is not None
    assert found.top_keys.loss(2).to(PrivacyMeasure.RHO).size <= Fraction(1, 2)

    def exceeded(top: TopKeys) -> bool:
        worst = 0.0
        for base in range(4):
            # one unit raises each of six counts by 0 or 2
            for raised in product((0, 2), repeat=6):
                one = outputs(top, {key: base * key for key in range(6)})
                two = outputs(top, {key: base * key + raised[key] for key in range(6)})
                for a in (1.5, 4.0, 16.0):
                    for p, q in ((one, two), (two, one)):
                        moment = sum(p[key] ** a * q[key] ** (1 - a) for key in p)
                        worst = max(worst, log(moment) / (a - 1) / a)
        return worst > 0.5 + 1e-9

    assert not exceeded(found.top_keys)
    assert exceeded(found.top_keys.model_copy(update={"rate": 2 * found.top_keys.rate}))


def test_sums_are_measured_in_all_groups_and_mean_the_same_with_a_limit() -> None:
    """A sum is bounded together with the number of its rows, which a selection by the sum alone would not do."""
    asked = session()
    asked.ledger.set_cap(pure(10**6), dataset="d")
    sql = "SELECT city, SUM(CLIP(n / 4.0, 0, 1.5)) AS s FROM t GROUP BY city"
    every = asked.ask(sql, epsilon=9000)
    truth = sorted((row[1].value, row[0].value) for row in every.rows)
    for order, expected in (("DESC", truth[::-1][:2]), ("ASC", truth[:2])):
        answer = asked.ask(f"{sql} ORDER BY s {order} LIMIT 2", epsilon=9000)
        assert [(row[1].value, row[0].value) for row in answer.rows] == expected


def test_a_selection_does_not_pay_for_every_group_of_a_person() -> None:
    sql = "SELECT city, COUNT(*) AS n FROM t GROUP BY city ORDER BY n DESC, city LIMIT 2"
    found = plan(sql, pure(1))
    [choice, count] = found.measurements
    assert isinstance(choice.mechanism, TopKeys)
    assert (choice.mechanism.rate, choice.mechanism.limit) == (Fraction(1, 2) / 2 / 2, None)
    assert count.sensitivity == 2 * 2  # two groups of two rows, not six of two
    assert found.groups == 6
    check_loss(found)
    with pytest.raises(AnswerFailed):
        check_loss(replace(found, measurements=(choice, replace(count, mechanism=Laplace(scale=4)))))
    louder = TopKeys(rate=Fraction(1, 4), count=2)
    with pytest.raises(AnswerFailed):
        check_loss(replace(found, measurements=(replace(choice, mechanism=louder), count)))


@pytest.mark.parametrize(
    ("sql", "cost"),
    [
        ("SELECT city, COUNT(*) AS n FROM t GROUP BY city ORDER BY n DESC LIMIT 3", pure(1)),  # no less noise
        ("SELECT drug FROM t GROUP BY drug ORDER BY COUNT(*) LIMIT 1", approximate(1, "1e-6")),  # no theorem
        ("SELECT drug FROM t GROUP BY drug ORDER BY COUNT(*) DESC LIMIT 1", concentrated(1, "1e-6")),
        ("SELECT city FROM t GROUP BY city ORDER BY SUM(CLIP(n, -1, 1)) DESC LIMIT 1", pure(1)),
        ("SELECT city FROM t GROUP BY city ORDER BY AVG(CLIP(n, 0, 1)) DESC LIMIT 1", pure(1)),
        ("SELECT city FROM t GROUP BY city ORDER BY COUNT(*) DESC LIMIT 1 OFFSET 1", pure(1)),
        ("SELECT city FROM t GROUP BY city HAVING COUNT(*) > 3 ORDER BY COUNT(*) DESC LIMIT 1", pure(1)),
        ("SELECT city, COUNT(*) / 2 FROM t GROUP BY city ORDER BY COUNT(*) DESC LIMIT 1", pure(1)),
        ("SELECT city, COUNT(*), COUNT(n) FROM t GROUP BY city ORDER BY COUNT(*) DESC LIMIT 1", pure(1)),
    ],
)
def test_other_queries_measure_all_groups(sql: str, cost: PrivacyLoss) -> None:
    assert plan(sql, cost).top_keys is None


def session(people: int = 400) -> Session:
    """Drugs d0, d1, ... in falling numbers; every person has all of some first ones, and one of their own."""
    rows = [{"who": i, "city": "abcdef"[k % 6], "drug": f"d{k}", "n": k} for i in range(people) for k in range(6)
            if i * 6 < people * (6 - k)]  # fmt: skip
    rows += [{"who": i, "city": "a", "drug": f"own{i}", "n": 1} for i in range(people)]
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10**4, "0.1"), dataset="d")
    return Session(catalog(1, 8), {"t": pl.DataFrame(rows)}, ledger=book, analyst="a")


def test_the_largest_are_found_and_keys_of_one_person_are_not() -> None:
    asked = session()
    sql = "SELECT drug, COUNT(*) AS n FROM t GROUP BY drug ORDER BY n DESC LIMIT 3"
    answer = asked.ask(sql, epsilon=60, delta="1e-9")
    assert [row[0].value for row in answer.rows] == ["d0", "d1", "d2"]
    assert all(row[1].low <= 400 - 400 * k / 6 + 1 <= row[1].high + 2 for k, row in enumerate(answer.rows))
    assert asked.ask(sql, epsilon=60, delta="1e-9").cached
    only = asked.ask("SELECT drug FROM t GROUP BY drug ORDER BY COUNT(*) DESC LIMIT 3", epsilon=60, delta="1e-9")
    assert only.values == ("d0", "d1", "d2")
    assert "selects 3 groups" in str(only.explanation)
    own = "SELECT drug FROM t WHERE drug LIKE 'own%' GROUP BY drug ORDER BY COUNT(*) DESC LIMIT 3"
    few = asked.ask(own, epsilon=1, delta="1e-9")
    assert few.rows == ()


def test_selected_keys_keep_their_order_when_the_answer_is_stored() -> None:
    asked = session()
    sql = "SELECT {} FROM t WHERE n > 1 OR drug = 'd1' GROUP BY {} ORDER BY COUNT(*) DESC LIMIT 3"
    first = asked.ask(sql.format("drug, city", "drug, city"), epsilon=60, delta="1e-9")
    again = asked.ask(sql.format("city, drug", "city, drug"), epsilon=60, delta="1e-9")
    assert again.cached
    assert [(row[1].value, row[0].value) for row in again.rows] == [(row[0].value, row[1].value) for row in first.rows]


def test_a_limit_that_one_person_reaches_is_refused() -> None:
    with pytest.raises(BadParameter, match="limit"):
        TopKeys(rate=1, count=1, limit=3).loss(3)
