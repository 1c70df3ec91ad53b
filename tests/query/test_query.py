"""The query language against plain Python: at an epsilon so large that noise vanishes, answers are exact."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import approximate, concentrated, pure
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.errors import BadParameter, OverBudget, QueryRefused
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, PublicTable, Session
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query

HUGE = 10**6


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


COLUMNS = {
    "person": column("integer"),
    "city": column("category", values=("ankara", "berlin", "cairo")),
    "age": column("integer", low=0, high=100),
    "amount": column("number", low=0, high=50),
    "flu": column("boolean"),
    "day": column("date"),
    "note": column("category"),
}
ROWS: list[dict[str, Any]] = [
    {
        "person": i // 2,
        "city": ["ankara", "berlin", "cairo", "atlantis", None][i % 5],
        "age": None if i % 7 == 0 else (i * 13) % 101,
        "amount": [1.5, 49.25, -3.0, 700.0, float("nan"), None, 10.0, float("inf")][i % 8],
        "flu": i % 3 == 0,
        "day": date(2024, 1 + i % 12, 1 + i % 28),
        "note": f"note {i % 4}",
    }
    for i in range(120)
]
REGIONS = pl.DataFrame({"city": ["ankara", "berlin", "cairo"], "region": ["east", "north", "south"], "rate": [1, 2, 3]})


def session(
    unit: str | None = None,
    *,
    rows: int = 4,
    groups: int = 3,
    budget: Any = None,
) -> Session:
    book = Ledger.open(":memory:")
    book.set_cap(budget or approximate(10**9, "0.5"), dataset="d")
    table = PrivateTable(
        name="visits",
        schema=Schema(columns=COLUMNS, unit=unit),
        rows=rows if unit else None,
        groups=groups if unit else None,
    )
    public = {"regions": PublicTable(name="regions", frame=REGIONS, key=("city",))}
    catalog = Catalog(dataset="d", private={"visits": table}, public=public)
    return Session(catalog, {"visits": pl.DataFrame(ROWS)}, ledger=book, analyst="ana")


def clipped(value: Any) -> float:
    return min(50.0, max(0.0, value))


def has(value: Any) -> bool:
    return value is not None and not math.isnan(value)


def of_city(city: str) -> list[dict[str, Any]]:
    return [row for row in ROWS if row["city"] == city]


AMOUNTS = [clipped(row["amount"]) for row in ROWS if has(row["amount"])]
AGES = sorted(row["age"] for row in ROWS if row["age"] is not None)
TOTALS = [sum(clipped(r["amount"]) for r in ROWS if r["person"] == p and has(r["amount"])) for p in range(60)]

SINGLE: list[tuple[str, Callable[[], Any]]] = [
    ("COUNT(*)", lambda: 120),
    ("COUNT(age)", lambda: len(AGES)),
    ("COUNT(amount)", lambda: len(AMOUNTS)),
    ("COUNT(DISTINCT age)", lambda: len(set(AGES))),
    ("COUNT(DISTINCT note)", lambda: 4),
    ("SUM(age)", lambda: sum(AGES)),
    ("SUM(amount)", lambda: sum(AMOUNTS)),
    ("SUM(CLIP(amount, 0, 10))", lambda: sum(min(10, max(0, r["amount"])) for r in ROWS if has(r["amount"]))),
    ("AVG(age)", lambda: sum(AGES) / len(AGES)),
    ("AVG(amount)", lambda: sum(AMOUNTS) / len(AMOUNTS)),
    ("VAR_POP(age)", lambda: pl.Series(AGES).var(ddof=0)),
    ("VARIANCE(age)", lambda: pl.Series(AGES).var()),
    ("STDDEV(age)", lambda: pl.Series(AGES).std()),
    ("STDDEV(amount)", lambda: pl.Series(AMOUNTS).std()),
    ("MIN(age)", lambda: AGES[0]),
    ("MAX(age)", lambda: AGES[-1]),
    ("COUNT(*) FILTER (WHERE flu)", lambda: sum(r["flu"] for r in ROWS)),
    ("SUM(CASE WHEN flu THEN 1 ELSE 0 END)", lambda: sum(r["flu"] for r in ROWS)),
    ("SUM(CASE WHEN flu THEN age END)", lambda: sum(r["age"] for r in ROWS if r["flu"] and r["age"] is not None)),
    ("SUM(age * 2 + 1)", lambda: sum(2 * age + 1 for age in AGES)),
    ("SUM(ABS(age - 50))", lambda: sum(abs(age - 50) for age in AGES)),
    ("SUM(LEAST(age, 30))", lambda: sum(min(age, 30) for age in AGES) + 30 * (120 - len(AGES))),
    ("SUM(COALESCE(age, 0))", lambda: sum(AGES)),
    ("SUM(COALESCE(age, 7))", lambda: sum(AGES) + 7 * (120 - len(AGES))),
    ("SUM(-age)", lambda: -sum(AGES)),
    ("SUM(age / 4)", lambda: sum(AGES) / 4),
    ("SUM(MONTH(day))", lambda: sum(r["day"].month for r in ROWS)),
    ("SUM(EXTRACT(day FROM day))", lambda: sum(r["day"].day for r in ROWS)),
    ("SUM(FLOOR(age / 10))", lambda: sum(age // 10 for age in AGES)),
    ("COUNT(*) + SUM(age) * 2 - 1", lambda: 120 + 2 * sum(AGES) - 1),
    ("SUM(age) / COUNT(*)", lambda: sum(AGES) / 120),
    ("SUM(age) / (COUNT(*) - COUNT(*))", lambda: None),
    ("ROUND(SUM(age), 1)", lambda: sum(AGES)),
    ("CASE WHEN COUNT(*) > 100 THEN 1 ELSE 0 END", lambda: 1),
]

WHERE: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
    ("flu", lambda r: r["flu"]),
    ("NOT flu AND age > 30", lambda r: not r["flu"] and (r["age"] or 0) > 30),
    ("age BETWEEN 20 AND 40", lambda r: r["age"] is not None and 20 <= r["age"] <= 40),
    ("city IN ('berlin', 'cairo')", lambda r: r["city"] in ("berlin", "cairo")),
    ("city LIKE '%r%'", lambda r: r["city"] in ("ankara", "berlin", "cairo")),
    ("city IS NULL", lambda r: r["city"] is None),
    ("age IS NOT NULL OR flu", lambda r: r["age"] is not None or r["flu"]),
    ("day >= '2024-06-01'", lambda r: r["day"] >= date(2024, 6, 1)),
    ("day < DATE '2024-06-01'", lambda r: r["day"] < date(2024, 6, 1)),
    ("MONTH(day) = 2", lambda r: r["day"].month == 2),
    ("CAST(note AS INTEGER) = 1", lambda _r: False),
    ("age / 0 > 1", lambda _r: False),
    ("amount > 600", lambda r: (has(r["amount"]) and r["amount"] > 600) or r["amount"] != r["amount"]),
    ("UPPER(note) = 'NOTE 1'", lambda r: r["note"] == "note 1"),
    ("SUBSTRING(note, 6, 1) = '2'", lambda r: r["note"] == "note 2"),
    ("LENGTH(note) = 6", lambda _r: True),
    ("age % 2 = 1", lambda r: (r["age"] or 0) % 2 == 1),
    ("CASE city WHEN 'cairo' THEN TRUE ELSE FALSE END", lambda r: r["city"] == "cairo"),
    ("IF(flu, age > 50, age < 50)", lambda r: r["age"] is not None and (r["age"] > 50 if r["flu"] else r["age"] < 50)),
]


@pytest.fixture(scope="module")
def by_row() -> Session:
    return session()


@pytest.fixture(scope="module")
def by_person() -> Session:
    return session("person")


@pytest.mark.parametrize("unit", ["by_row", "by_person"])
@pytest.mark.parametrize(("item", "expected"), SINGLE, ids=[item for item, _ in SINGLE])
def test_single_numbers(item: str, expected: Callable[[], Any], unit: str, request: pytest.FixtureRequest) -> None:
    answer = request.getfixturevalue(unit).ask(f"SELECT {item} FROM visits", epsilon=HUGE)
    wanted = expected()
    assert answer.value == (None if wanted is None else pytest.approx(wanted, rel=1e-5))


@pytest.mark.parametrize(("condition", "expected"), WHERE, ids=[item for item, _ in WHERE])
def test_conditions(condition: str, expected: Callable[[dict[str, Any]], Any], by_row: Session) -> None:
    answer = by_row.ask(f"SELECT COUNT(*) FROM visits WHERE {condition}", epsilon=HUGE)
    assert answer.value == sum(bool(expected(row)) for row in ROWS)


@pytest.mark.parametrize("unit", ["by_row", "by_person"])
def test_groups_are_the_declared_ones_in_order(unit: str, request: pytest.FixtureRequest) -> None:
    ask = request.getfixturevalue(unit).ask
    answer = ask("SELECT city, COUNT(*) AS n, SUM(amount) AS s, MEDIAN(age) FROM visits GROUP BY city", epsilon=HUGE)
    assert answer.frame["city"].to_list() == ["ankara", "berlin", "cairo"]
    assert answer.frame["n"].to_list() == [len(of_city(city)) for city in answer.frame["city"]]
    wanted = [sum(clipped(r["amount"]) for r in of_city(c) if has(r["amount"])) for c in answer.frame["city"]]
    assert answer.frame["s"].to_list() == pytest.approx(wanted, rel=1e-3)


def test_empty_groups_are_shown(by_row: Session) -> None:
    answer = by_row.ask("SELECT age, COUNT(*) AS n FROM visits WHERE amount < -1000000 GROUP BY age", epsilon=HUGE)
    assert len(answer.frame) == 101
    assert answer.frame["n"][50] == 0


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT flu, COUNT(*) FROM visits GROUP BY flu", [False, True]),
        ("SELECT MONTH(day) AS m, COUNT(*) FROM visits GROUP BY m", list(range(1, 13))),
        ("SELECT FLOOR(age / 50) AS b, COUNT(*) FROM visits GROUP BY 1", [0, 1, 2]),
        ("SELECT CASE WHEN age < 18 THEN 'child' ELSE 'adult' END AS who, COUNT(*) FROM visits GROUP BY who",
         ["adult", "child"]),
        ("SELECT region, COUNT(*) FROM visits JOIN regions USING (city) GROUP BY region", ["east", "north", "south"]),
        ("SELECT COALESCE(city, 'none') AS c, COUNT(*) FROM visits GROUP BY c", ["ankara", "berlin", "cairo", "none"]),
    ],
)  # fmt: skip
def test_public_keys(sql: str, keys: list[Any], by_row: Session) -> None:
    assert by_row.ask(sql, epsilon=HUGE).rows[0][0].value == keys[0]
    assert [row[0].value for row in by_row.ask(sql, epsilon=HUGE).rows] == keys


def test_private_keys_are_named_only_when_many_share_them() -> None:
    asked = session()
    sql = "SELECT note, COUNT(*) AS n FROM visits GROUP BY note"
    with pytest.raises(QueryRefused, match="delta"):
        asked.ask(sql, epsilon=HUGE)
    many = asked.ask(sql, epsilon=100, delta="0.01")
    assert many.frame["note"].to_list() == ["note 0", "note 1", "note 2", "note 3"]
    alone = asked.ask("SELECT CAST(person AS VARCHAR) AS p, COUNT(*) FROM visits GROUP BY p", epsilon=1, delta="1e-9")
    assert len(alone.frame) == 0


def test_post_processing(by_row: Session) -> None:
    sql = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING n > 0 ORDER BY n DESC, city DESC LIMIT 2"
    assert by_row.ask(sql, epsilon=HUGE).frame["city"].to_list() == ["cairo", "berlin"]
    none = by_row.ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING COUNT(*) > 1000", epsilon=HUGE)
    assert none.rows == ()


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT COUNT(*) FROM (SELECT age FROM visits WHERE flu) AS x", 40),
        ("WITH a AS (SELECT age AS y FROM visits), b AS (SELECT y FROM a WHERE y < 50) SELECT COUNT(y) FROM b",
         sum(age < 50 for age in AGES)),
        ("SELECT SUM(rate) FROM visits JOIN regions USING (city)", 24 * (1 + 2 + 3)),
        ("SELECT SUM(rate) FROM regions AS r JOIN visits AS v ON v.city = r.city", 24 * (1 + 2 + 3)),
        ("SELECT COUNT(*) FROM visits LEFT JOIN regions USING (city)", 120),
        ("SELECT COUNT(*) FROM (SELECT age FROM visits UNION ALL SELECT age FROM visits) AS x", 240),
        ("SELECT COUNT(*) FROM (SELECT * FROM visits) AS v", 120),
    ],
)  # fmt: skip
@pytest.mark.parametrize("unit", ["by_row", "by_person"])
def test_subqueries_and_joins(sql: str, wanted: int, unit: str, request: pytest.FixtureRequest) -> None:
    value = request.getfixturevalue(unit).ask(sql, epsilon=HUGE).value
    assert value == pytest.approx(wanted, abs=1e-3 if "SUM" in sql and unit == "by_person" else 0)


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT COUNT(DISTINCT person) FROM visits", 60),
        ("SELECT COUNT(DISTINCT person) FROM visits WHERE flu", len({r["person"] for r in ROWS if r["flu"]})),
        ("SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.person = b.person", 240),
        ("SELECT COUNT(*) FROM visits AS a JOIN visits AS b USING (person) WHERE a.flu AND NOT b.flu",
         sum(a["flu"] and not b["flu"] for a in ROWS for b in ROWS if a["person"] == b["person"])),
        ("SELECT SUM(CLIP(total, 0, 60)) FROM (SELECT person, SUM(CLIP(amount, 0, 50)) AS total FROM visits "
         "GROUP BY person) AS t", sum(min(60, total) for total in TOTALS)),
        ("SELECT COUNT(*) FROM (SELECT person, COUNT(*) AS n FROM visits WHERE flu GROUP BY person) AS t WHERE n >= 1",
         len({r["person"] for r in ROWS if r["flu"]})),
    ],
)  # fmt: skip
def test_questions_about_people(sql: str, wanted: float, by_person: Session) -> None:
    assert by_person.ask(sql, epsilon=HUGE).value == pytest.approx(wanted, rel=1e-5)


def test_contributions_are_bounded() -> None:
    """Two rows per person: one counts; three groups: one counts."""
    asked = session("person", rows=1, groups=1)
    assert asked.ask("SELECT COUNT(*) FROM visits", epsilon=HUGE).value == 60
    counted = asked.ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=HUGE).frame["n"].sum()
    assert counted == len({row["person"] for row in ROWS if row["city"] in COLUMNS["city"].domain.values})  # type: ignore
    wider = asked.ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=HUGE, groups=2)
    assert wider.frame["n"].sum() > counted


def test_clipping_in_norm_keeps_more_than_sampling() -> None:
    asked = session("person", rows=1, groups=2)
    sql = "SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits GROUP BY m"
    kept = asked.ask(sql, epsilon=HUGE, delta="0.01", bounding="clip")
    assert kept.explanation.bounding.startswith("Each unit counts in all its groups")
    assert kept.frame["n"].sum() == pytest.approx(120, abs=0.5)
    tight = session("person", rows=1, groups=1)
    with pytest.raises(BadParameter):
        tight.ask(sql, epsilon=1, delta="0.01", bounding="clip")


def test_smaller_noise_is_chosen_and_told() -> None:
    asked = session("person", rows=1, groups=12)
    sql = "SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits GROUP BY m"
    plain, wide = (asked.explain(sql, epsilon=1, delta=delta, fit=0) for delta in (0, "1e-6"))
    assert [n.mechanism for n in plain.noises] == ["laplace"]
    assert [n.mechanism for n in wide.noises] == ["rounded-gaussian"]
    assert wide.noises[0].error < plain.noises[0].error == math.ceil(12 * math.log(20))


def test_nobody_is_in_more_groups_than_there_are() -> None:
    asked = session("person", rows=1, groups=50)
    told = asked.explain("SELECT flu, COUNT(*) FROM visits GROUP BY flu", epsilon=1, fit=0)
    assert told.noises[0].error == math.ceil(2 * math.log(20))


def test_other_frames() -> None:
    answer = session().ask("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=1)
    assert answer.to_arrow().column_names == ["city", "n", "n_low", "n_high"]
    assert list(answer.to_pandas().columns) == ["city", "n", "n_low", "n_high"]
    assert answer.to_dict()["rows"][0]["city"]["value"] == "ankara"
    with pytest.raises(BadParameter):
        _ = answer.value


def test_what_bounding_would_lose_is_weighed_where_it_is_declared() -> None:
    """Twelve groups are typical and two are kept: sampling would lose five sixths, scaling down half as much."""
    sql = "SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits GROUP BY m"
    asked = session("person", rows=1, groups=2)
    assert "at random" in asked.explain(sql, epsilon=1, delta="1e-6").bounding
    table = replace(asked.catalog.private["visits"], typical_groups=12)
    knowing = Session(replace(asked.catalog, private={"visits": table}), {"visits": pl.DataFrame(ROWS)},
                      ledger=asked.ledger, analyst="ana")  # fmt: skip
    assert "all its groups" in knowing.explain(sql, epsilon=1, delta="1e-6").bounding


def test_rho_budgets() -> None:
    asked = session(budget=concentrated(1, "0.01"))
    answer = asked.ask("SELECT COUNT(*), SUM(age), MEDIAN(age) FROM visits", rho="0.3")
    assert [n.mechanism for n in answer.explanation.noises] == ["quantile", "rounded-gaussian", "rounded-gaussian"]
    left = asked.remaining()
    assert left is not None
    assert (float(left.size), left.delta) == (pytest.approx(0.7, abs=1e-9), Fraction(1, 100))
    assert left.size >= Fraction(7, 10)  # what the noise needs, rounded to fractions, is a little less than asked


def test_explain_costs_nothing_and_matches_the_answer() -> None:
    asked = session(budget=approximate(1, "1e-6"))
    before = asked.remaining()
    told = asked.explain("SELECT COUNT(*) FROM visits", epsilon="0.01")
    assert told.noises[0].error == math.ceil(100 * math.log(20))
    assert asked.remaining() == before
    answer = asked.ask("SELECT COUNT(*) AS n FROM visits", epsilon="0.01")
    assert answer.rows[0][0].high - answer.rows[0][0].value == pytest.approx(told.noises[0].error)  # type: ignore
    assert asked.ledger.balance(dataset="d").spent.size == pytest.approx(0.01)


def test_accuracy_first() -> None:
    asked = session()
    answer = asked.ask("SELECT COUNT(*) FROM visits ERROR 50 CONFIDENCE 99%")
    assert float(answer.loss.size) == pytest.approx(math.log(100) / 50, rel=2e-3)
    [noise], [[cell]] = answer.explanation.noises, answer.rows
    assert noise.error <= 50 < noise.error * 1.05
    assert cell.high - cell.value == cell.value - cell.low == pytest.approx(noise.error)
    assert "(99 %)" in str(answer.explanation)
    assert answer.to_dict()["explanation"]["confidence"] == 0.99
    assert asked.explain("SELECT COUNT(*) FROM visits ERROR 10% CONFIDENCE 99%", epsilon=1).confidence == Fraction(
        99, 100
    )
    assert asked.explain("SELECT SUM(age) FROM visits ERROR ±10").noises[0].error <= 10
    with pytest.raises(BadParameter, match="at most"):
        asked.ask("SELECT COUNT(*) FROM visits ERROR 5%")
    with pytest.raises(QueryRefused, match="single number"):
        asked.ask("SELECT city, COUNT(*) FROM visits GROUP BY city ERROR 5%", epsilon=1)
    with pytest.raises(QueryRefused):
        asked.ask("SELECT AVG(age) FROM visits ERROR 1")


def test_relative_error_is_approached_and_all_of_it_paid() -> None:
    asked = session(budget=approximate(40, "1e-6"))
    answer = asked.ask("SELECT COUNT(*) AS n FROM visits ERROR 10% CONFIDENCE 90%", epsilon=20)
    steps = [entry for entry in asked.ledger.entries() if entry.kind == "spend"]
    assert abs(answer.value - 120) < 12 + 12
    assert 1 < len(steps) <= 7
    assert float(answer.loss.size) == pytest.approx(20 * (2 ** len(steps) - 1) / 127)
    assert asked.ledger.balance(dataset="d").spent.size == pytest.approx(float(answer.loss.size), rel=1e-6)
    again = asked.ask("SELECT COUNT(*) AS n FROM visits ERROR 10% CONFIDENCE 90%", epsilon=20)
    assert again.cached
    assert again.value == answer.value
    hopeless = asked.ask("SELECT COUNT(*) FROM visits WHERE age > 99 ERROR 1%", epsilon=1)
    assert "not reached" in hopeless.explanation.notes[-1]
    assert hopeless.loss.size == 1


def test_the_same_question_is_answered_once() -> None:
    asked = session()
    sql = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    first = asked.ask(sql, epsilon=1)
    again = [
        asked.ask(sql, epsilon=1),
        asked.ask("select  city as town, count(*) from visits as v group by v.city order by 2", epsilon=1),
        asked.ask("SELECT city, COUNT(*) + 0 AS n FROM visits GROUP BY 1 HAVING n > -1000", epsilon=1),
    ]
    assert all(answer.cached for answer in again)
    assert again[0].frame.equals(first.frame)
    assert sorted(row[1].value for row in again[1].rows) == sorted(first.frame["n"].to_list())
    assert asked.ledger.balance(dataset="d").spent.size == 1
    assert not asked.ask(sql, epsilon=2).cached


def test_the_budget_runs_out_and_says_so() -> None:
    asked = session(budget=approximate(1, "1e-6"))
    asked.ask("SELECT COUNT(*) FROM visits", epsilon="0.9")
    with pytest.raises(OverBudget) as refusal:
        asked.ask("SELECT SUM(age) FROM visits", epsilon="0.2")
    assert float(refusal.value.facts["remaining"].size) == pytest.approx(0.1)
    asked.ask("SELECT COUNT(*) FROM visits", epsilon="0.9")


_VICTIM = """
import sys
from sfumato.demos.private_hospital import flu
from sfumato.ledger.ledger import Ledger
session = flu(people=50, budget=1000, ledger=Ledger.open(sys.argv[1]))
for i in range(10_000):
    answer = session.ask(f"SELECT COUNT(*) FROM patients WHERE age > {i % 90} AND bill < {i}", epsilon="0.01")
    print(answer.value, flush=True)
"""


@pytest.mark.slow
def test_killed_while_asking_no_answer_is_free(tmp_path: Path) -> None:
    """Killed at three moments: every answer that came out is paid for, and the chain holds."""
    path, given = tmp_path / "ledger.db", 0
    for trial in range(3):
        victim = subprocess.Popen(
            [sys.executable, "-c", _VICTIM, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert victim.stdout is not None
        victim.stdout.readline()
        time.sleep(0.05 * trial)
        victim.kill()
        given += 1 + victim.communicate()[0].count("\n")
    ledger = Ledger.open(path)
    paid = sum(entry.kind == "spend" for entry in ledger.entries())
    assert paid >= given >= 3
    ledger.verify()


def test_intervals_cover_the_truth() -> None:
    """200 noisy answers, 95 % each: fewer than 180 covered has chance below 1e-4."""
    asked = session()
    covered = 0
    for i in range(200):
        cell = asked.ask(f"SELECT AVG(age) FROM visits WHERE {i} = {i}", epsilon="0.5").rows[0][0]
        covered += cell.low is None or cell.low <= sum(AGES) / len(AGES) <= cell.high
    assert covered >= 180


REFUSED = [
    ("SELECT * FROM visits", 1, 8, "returns rows"),
    ("SELECT note FROM visits", 1, 8, "neither an aggregate"),
    ("SELECT COUNT(*)\nFROM visits\nWHERE agee > 3", 3, 7, "no column `agee`"),
    ("SELECT COUNT(*) FROM visit", 1, 22, "no table `visit`"),
    ("SELECT SUM(age * amount / age) FROM visits", 1, 12, "no public bounds"),
    ("SELECT SUM(person) FROM visits", 1, 12, "no public bounds"),
    ("SELECT SUM(age * 1e300 * 1e300) FROM visits", 1, 12, "too wide"),
    ("SELECT MEDIAN(age * 1e200) FROM visits", 1, 15, "too wide"),
    ("SELECT COUNT(*) FROM visits WHERE age = 'x'", 1, 35, "cannot be compared"),
    ("SELECT SUM(cbrt(age)) FROM visits", 1, 12, "not supported"),
    ("SELECT SUM(random()) FROM visits", None, None, ""),
    ("SELECT COUNT(*) FROM visits WHERE getenv('HOME') = 'x'", 1, 35, "`GETENV`"),
    ("SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.age = b.age", 1, 39, "joined with itself"),
    ("SELECT COUNT(*) FROM visits, regions", None, None, "ON or USING"),
    ("SELECT COUNT(*) FROM visits JOIN regions ON visits.age = regions.rate", 1, 34, "joined on its key"),
    ("SELECT COUNT(*) FROM regions", 1, 22, "public table"),
    ("SELECT COUNT(*) FROM read_csv('/etc/passwd')", None, None, "functions or files"),
    ("SELECT COUNT(*) FROM '/etc/passwd'", None, None, ""),
    ("SELECT COUNT(*) FROM information_schema.tables", None, None, ""),
    ("SELECT COUNT(*) OVER () FROM visits", None, None, ""),
    ("SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits)", None, None, ""),
    ("SELECT COUNT(*) FROM visits WHERE age IN (SELECT age FROM visits)", None, None, "privacy unit"),
    ("SELECT DISTINCT city FROM visits", None, None, "GROUP BY"),
    ("SELECT COUNT(*) FROM visits TABLESAMPLE 10%", None, None, ""),
    ("SELECT COUNT(*) FROM (SELECT age FROM visits LIMIT 5) AS x", None, None, "LIMIT"),
    ("SELECT COUNT(*) FROM (SELECT age FROM visits UNION SELECT age FROM visits) AS x", None, None, "privacy unit"),
    ("SELECT SUM(DISTINCT age) FROM visits", None, None, "DISTINCT"),
    ("SELECT QUANTILE_CONT(age, 1.5) FROM visits", None, None, "rank"),
    ("DROP TABLE visits", None, None, "Only SELECT"),
    ("INSERT INTO visits VALUES (1)", None, None, "Only SELECT"),
    ("COPY visits TO 'x'", None, None, "Only SELECT"),
    ("ATTACH 'x'", None, None, "Only SELECT"),
    ("PRAGMA database_list", None, None, "Only SELECT"),
    ("SET threads = 1", None, None, "Only SELECT"),
    ("SELECT 1; SELECT 2", None, None, "exactly one SELECT"),
    ("SELECT COUNT(*", 1, None, "cannot be parsed"),
    ("SELECT COUNT(*) FROM visits WHERE age > 1e999999999", 1, None, "too large"),
    ("SELECT COUNT(*) FROM visits WHERE age > 1e-999999999", None, None, "too small"),
    ("SELECT COUNT(*) FROM visits WHERE age > " + "9" * 400, None, None, "too large"),
    ("", None, None, "exactly one SELECT"),
    ("SELECT " + "(" * 3000 + "1" + ")" * 3000 + " FROM visits", None, None, ""),
]


@pytest.mark.parametrize(("sql", "line", "place", "words"), REFUSED, ids=[sql[:50] for sql, *_ in REFUSED])
def test_refusals(sql: str, line: int | None, place: int | None, words: str, by_row: Session) -> None:
    before = len(list(by_row.ledger.entries()))
    with pytest.raises(QueryRefused) as refusal:
        by_row.ask(sql, epsilon=1)
    assert words in str(refusal.value)
    if line is not None:
        assert refusal.value.facts["line"] == line
    if place is not None:
        assert refusal.value.facts["column"] == place
    assert len(list(by_row.ledger.entries())) == before
    assert set(refusal.value.to_dict()["error"]) >= {"code", "message", "fix", "line", "column", "reason"}  # type: ignore


def test_grouping_by_the_unit_is_refused(by_person: Session) -> None:
    with pytest.raises(QueryRefused, match="would be one person"):
        by_person.ask("SELECT person, COUNT(*) FROM visits GROUP BY person", epsilon=1, delta="1e-6")
    with pytest.raises(QueryRefused, match="privacy unit"):
        by_person.ask("SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.age = b.age", epsilon=1)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), None, "1e999999999", "much"])
def test_no_epsilon_no_answer(bad: Any, by_row: Session) -> None:
    with pytest.raises(BadParameter):
        by_row.ask("SELECT COUNT(*) FROM visits", epsilon=bad)


def test_mode_over_public_values() -> None:
    asked = session("person")
    answer = asked.ask("SELECT MODE(city) AS home, COUNT(*) FROM visits WHERE city <> 'berlin'", epsilon=HUGE)
    assert answer.rows[0][0].value in ("ankara", "cairo")
    assert (answer.rows[0][0].low, answer.rows[0][0].high) == (None, None)
    by_flu = asked.ask("SELECT flu, MODE(city) FILTER (WHERE city = 'cairo') FROM visits GROUP BY flu", epsilon=HUGE)
    assert [row[1].value for row in by_flu.rows] == ["cairo", "cairo"]
    assert asked.ask("SELECT MODE(flu) FROM visits", epsilon=HUGE).value is False
    few = "CASE WHEN age < 30 THEN 'young' ELSE 'old' END"
    assert asked.ask(f"SELECT MODE({few}) FROM visits", epsilon=HUGE).value == "old"
    again = asked.ask(f"SELECT MODE({few}) FROM visits", epsilon=HUGE)
    assert (again.cached, again.value) == (True, "old")
    shown = asked.ask(
        "SELECT CASE WHEN MODE(city) = 'cairo' THEN 1 ELSE 0 END FROM visits WHERE city = 'cairo'", epsilon=HUGE
    )
    assert shown.value == 1


def test_mode_is_explained_and_refused_without_public_values() -> None:
    asked = session("person")
    told = asked.explain("SELECT MODE(city) FROM visits", epsilon=1, fit=0)
    [noise] = told.noises
    assert noise.mechanism == "exponential"
    assert noise.error == pytest.approx(4 * math.log(3 / 0.05), rel=1e-6)  # 4 rows of a person, 3 cities
    assert any("even where there are no rows" in line for line in told.notes)
    for sql, reason in (
        ("SELECT MODE(note) FROM visits", "publicly known"),
        ("SELECT MODE(amount) FROM visits", "publicly known"),
        ("SELECT MODE(DISTINCT city) FROM visits", "DISTINCT"),
        ("SELECT MODE(city) + 1 FROM visits", "different kinds"),
        ("SELECT MODE(city) FROM visits ERROR 5", "COUNT and SUM"),
    ):
        with pytest.raises(QueryRefused, match=reason):
            asked.explain(sql, epsilon=None if "ERROR" in sql else 1)


PHRASINGS = [
    "SELECT COUNT(*) FROM visits WHERE city = 'bonn' AND age >= 18",
    "SELECT COUNT(1) AS n FROM visits AS v WHERE 18 <= v.age AND 'bonn' = v.city",
    "WITH adults AS (SELECT * FROM visits WHERE age >= 18) SELECT COUNT(*) FROM adults WHERE city = 'bonn'",
    "SELECT COUNT(*) FROM (SELECT age AS a, city AS c FROM visits) AS x WHERE c = 'bonn' AND a >= 18",
    "SELECT COUNT(*) FROM visits WHERE city = 'bonn' AND age >= 18 AND TRUE AND age >= 18",
    "SELECT COUNT(*) FROM visits WHERE city = 'bonn' AND age > 17",
    "SELECT COUNT(*) FROM visits WHERE city = 'bonn' AND 17.5 < age",
    "SELECT COUNT(*) FROM visits WHERE NOT (age < 18 OR city <> 'bonn')",
    "SELECT COUNT(*) FROM visits WHERE NOT NOT (city = 'bonn' AND NOT (age <= 17))",
]
OTHERS = [
    "SELECT COUNT(*) FROM visits WHERE city = 'bonn' OR age >= 18",
    "SELECT COUNT(*) FROM visits WHERE city = 'bonn' AND age > 18",
    "SELECT COUNT(*) FROM (SELECT age + 1 AS age, city FROM visits) AS x WHERE city = 'bonn' AND age >= 18",
    "SELECT COUNT(*) FROM visits WHERE city = 'bonn'",
    "SELECT COUNT(*) FROM visits WHERE NOT (city = 'bonn' AND age >= 18)",
    "SELECT COUNT(*) FROM visits WHERE city = 'bonn' AND NOT age >= 18",
]


def test_phrasings_of_one_query_are_paid_once() -> None:
    asked = session()
    assert [asked.ask(sql, epsilon=1).cached for sql in PHRASINGS] == [False, *[True] * (len(PHRASINGS) - 1)]
    assert not any(asked.ask(sql, epsilon=1).cached for sql in OTHERS)


def test_keys_in_another_order_are_the_same_query() -> None:
    """The stored numbers are those of the first question, each beside its own keys, and rows are sorted anew."""
    asked = session()
    first = asked.ask("SELECT city, age > 30 AS old, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY 1, 2", epsilon=1)
    again = asked.ask("SELECT age > 30 AS old, city, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY 1, 2", epsilon=1)
    assert (first.cached, again.cached) == (False, True)
    assert again.frame.select(first.frame.columns).sort("city", "old").equals(first.frame)
    assert again.frame.equals(again.frame.sort("old", "city"))
    assert not again.frame.select(first.frame.columns).equals(first.frame)


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_a_row_that_a_union_repeats_is_a_unit_with_as_many_rows(copies: int) -> None:
    """Where each row is a unit, the copies of a row move a count together: the noise grows with them."""
    parts = " UNION ALL ".join(["SELECT age FROM visits"] * copies)
    sql, asked = f"SELECT COUNT(*) FROM ({parts}) AS x", session()
    counts = [one.mechanism for one in plan_query(parse_query(sql, asked.catalog), pure(1)).measurements]
    assert [count.scale for count in counts if isinstance(count, Laplace)] == [copies]
    assert f"copies of a row <= {copies}" in asked.analyze(sql, epsilon=1)


def test_columns_of_a_union_are_told_apart() -> None:
    """The second table's columns are matched by place: exchanging them is another query."""
    asked = session("person")
    parts = ("SELECT age AS a, MONTH(day) AS b FROM visits", "SELECT MONTH(day) AS b, age AS a FROM visits")
    sql = "SELECT COUNT(*) FROM ({} UNION ALL {}) AS x WHERE a > 5"
    assert not asked.ask(sql.format(parts[0], parts[0]), epsilon=1).cached
    assert not asked.ask(sql.format(parts[0], parts[1]), epsilon=1).cached
    joined = "SELECT COUNT(*) FROM visits AS v JOIN visits AS w ON v.person = w.person WHERE {} > 5 AND {} < 40"
    assert not asked.ask(joined.format("v.age", "w.age"), epsilon=1).cached
    assert not asked.ask(joined.format("v.age", "v.age"), epsilon=1).cached


@pytest.mark.parametrize("repeats", ["cached", "charged"])
def test_repeats_are_free_or_cost_what_a_new_query_costs(repeats: Any, tmp_path: Path) -> None:
    first, path = session(budget=pure(4)), tmp_path / "visits.parquet"
    times = 1 if repeats == "cached" else 2
    pl.DataFrame(ROWS).write_parquet(path)
    second = Session(first.catalog, {"visits": path}, ledger=first.ledger, analyst="bob", repeated_queries=repeats)
    third = Session(first.catalog, {"visits": path}, ledger=first.ledger, analyst="eve", repeated_queries=repeats)
    answers = [one.ask(PHRASINGS[0], epsilon=1) for one in (second, third, third)]
    assert len({answer.value for answer in answers}) == 1
    assert [answer.cached for answer in answers] == [False, repeats == "cached", True]
    assert first.ledger.balance(dataset="d").spent == pure(times)
    assert first.ledger.balance(dataset="d", analyst="eve").spent == (pure(0) if repeats == "cached" else pure(1))
    assert second.workload(PHRASINGS[:1], epsilon=1).values == third.workload(PHRASINGS[:1], epsilon=1).values
    assert first.ledger.balance(dataset="d").spent == pure(2 * times)
    first.ledger.verify()


def test_a_query_costs_at_least_what_the_owner_says() -> None:
    base = session(budget=pure(3))
    asked = Session(base.catalog, {"visits": pl.DataFrame(ROWS)}, ledger=base.ledger, analyst="ana", min_epsilon="0.01")
    for options in ({"epsilon": "0.009"}, {"rho": "4e-5"}, {"share": "1/1000"}):
        with pytest.raises(QueryRefused, match=r"at least ε = 0.01"):
            asked.ask("SELECT COUNT(*) FROM visits", **options)  # type: ignore[misc]
    with pytest.raises(QueryRefused, match=r"at least ε = 0.01"):
        asked.workload(["SELECT COUNT(*) FROM visits"], epsilon="1e-9")
    assert asked.remaining() == pure(3)
    asked.ask("SELECT COUNT(*) FROM visits", epsilon="0.01")
