"""Conformance of a private SQL system: questions, their true answers, and people with far too many rows.

Any system takes part: it opens tables and answers at a cost at which noise is negligible. Its answers must then be
those of plain SQL, and one more person must move them by no more than the declared limits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from math import isclose
from typing import Any, TypeAlias

import polars as pl

from sfumato.data.in_process import open_duckdb

Tables: TypeAlias = dict[str, pl.DataFrame]
Ask: TypeAlias = Callable[[str], Sequence[Sequence[Any]] | None]
"""The rows of an answer in any order; None if the question is refused."""
System: TypeAlias = Callable[[Tables], Ask]
"""Opens the private tables ``p`` and ``v`` (unit ``u``) and the public table ``w`` (key ``ward``)."""
DECLARED: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "p": {
        "u": {"kind": "integer"},
        "sex": {"kind": "category", "domain": {"values": ["f", "m"]}},
        "born": {"kind": "integer", "domain": {"low": 1940, "high": 2005}},
        "city": {"kind": "category", "domain": {"values": ["Bonn", "Ely"]}},
    },
    "v": {
        "u": {"kind": "integer"},
        "day": {"kind": "date", "domain": {"first": date(2022, 1, 1), "last": date(2024, 12, 31)}},
        "ward": {"kind": "category", "domain": {"values": ["east", "north", "west"]}},
        "code": {"kind": "category"},
        "cost": {"kind": "integer", "domain": {"low": 0, "high": 100}},
        "n": {"kind": "integer", "domain": {"low": 0, "high": 9}},
    },
}
"""What is public about the private tables. ``code`` has no declared values: its keys are private."""
LIMITS = {"p": {"rows": 1, "groups": 1}, "v": {"rows": 40, "groups": 40}}
"""How many rows of a person count in one group, and in how many groups. Nobody in :func:`sql_tables` has more."""
WARDS = pl.DataFrame({"ward": ["east", "north", "south"], "floor": [1, 2, 2], "label": ["E", "N", "S"]})
_HEAVY = 500


def sql_tables() -> Tables:
    """300 people and their visits, always the same, with the public table."""
    draw, day = random.Random(4), date(2022, 1, 1)
    people = [
        {"u": u, "sex": draw.choice("fm"), "born": draw.randint(1940, 2005), "city": draw.choice(["Bonn", "Ely", None])}
        for u in range(300)
    ]
    visits = [
        {"u": u, "day": day + timedelta(days=draw.randint(0, 1090)),
         "ward": draw.choice(["east", "north", "west", None]), "code": draw.choice(["A", "B", "C", None]),
         "cost": draw.randint(0, 90), "n": draw.randint(0, 5)}
        for u in range(260) for _ in range(draw.randint(0, 5))
    ]  # fmt: skip
    return {"p": pl.DataFrame(people), "v": pl.DataFrame(visits), "w": WARDS}


YEARS = "WITH y AS (SELECT YEAR(day) AS y, COUNT(*) AS n FROM v GROUP BY y)"
FIRST = "WITH f AS (SELECT u, MIN(day) AS first, MAX(day) AS last FROM v GROUP BY u)"
QUESTIONS: tuple[str, ...] = (
    # domains that the analyst names
    "SELECT code, COUNT(*) FROM v WHERE code IN ('A', 'B') GROUP BY code",
    "SELECT code, COUNT(*) FROM v WHERE code = 'A' OR code = 'C' GROUP BY code",
    "SELECT code, ward, SUM(cost) FROM v WHERE code IN ('A', 'B') AND ward IN ('east', 'north') GROUP BY code, ward",
    "SELECT n, COUNT(*) FROM v WHERE n IN (1, 3, 4) GROUP BY n",
    "SELECT x, COUNT(*) FROM (SELECT u, code AS x FROM v) WHERE x IN ('A', 'C') GROUP BY x",
    "SELECT COALESCE(code, 'none') AS code, COUNT(*) FROM v WHERE code = 'A' OR code IS NULL GROUP BY code",
    "SELECT n, COUNT(*) FROM (SELECT u, n FROM v WHERE n IN (1, 2) UNION ALL SELECT u, n FROM v WHERE n IN (2, 3))"
    " GROUP BY n",
    "SELECT q.code, COUNT(*) FROM p LEFT JOIN (SELECT u, code FROM v WHERE code IN ('A', 'B')) q ON p.u = q.u"
    " WHERE q.code IS NOT NULL GROUP BY q.code",
    "SELECT LEFT(code, 1) AS k, COUNT(*) FROM v WHERE LEFT(code, 1) IN ('A', 'B') GROUP BY k",
    "SELECT k, COUNT(*) FROM (SELECT u, UPPER(code) AS k FROM v WHERE UPPER(code) = 'A' OR UPPER(code) = 'C')"
    " GROUP BY k",
    "SELECT c, COUNT(*) FROM (SELECT u, COUNT(*) AS c FROM v GROUP BY u) WHERE c BETWEEN 1 AND 5 GROUP BY c",
    "SELECT c, COUNT(*), SUM(c) FROM (SELECT u, COUNT(*) AS c FROM v GROUP BY u) WHERE c <= 3 GROUP BY c",
    # constants are exact, conditions are those of SQL
    "SELECT COUNT(*), SUM(cost * 0.07) FROM v WHERE cost BETWEEN 100 * (0.3 - 0.1) AND 100 * (0.06 + 0.01) + 50",
    "SELECT COUNT(*) FROM v, w WHERE (v.ward = w.ward AND floor = 1 AND cost > 5) OR (v.ward = w.ward AND floor = 2"
    " AND cost > 50)",
    "SELECT COUNT(*) FROM v WHERE (code = 'A' AND n > 2) OR code = 'A'",
    "SELECT k, COUNT(*) FROM (SELECT p.u, COUNT(code) AS k FROM p LEFT JOIN v ON p.u = v.u AND n <> 2 GROUP BY p.u)"
    " WHERE k BETWEEN 0 AND 4 GROUP BY k",
    # keys
    "SELECT COALESCE(ward, 'none') AS ward, COUNT(*) FROM v GROUP BY ward",
    "SELECT ward AS ward, COUNT(*) FROM v WHERE ward IS NOT NULL GROUP BY ward HAVING COUNT(*) > 0",
    "SELECT ward, COUNT(*), SUM(cost) FROM v WHERE ward IS NOT NULL GROUP BY ALL",
    "SELECT COUNT(*) FROM v GROUP BY ALL",
    "SELECT code, MEDIAN(n) FROM v WHERE code IS NOT NULL GROUP BY code",
    "SELECT v.ward, label, COUNT(*) FROM v LEFT JOIN w ON v.ward = w.ward WHERE label IS NOT NULL GROUP BY"
    " v.ward, label",
    "SELECT floor, sex, COUNT(*) FROM v JOIN p USING (u) LEFT JOIN w USING (ward) WHERE floor IS NOT NULL"
    " GROUP BY floor, sex",
    # HAVING by person
    "SELECT COUNT(*) FROM (SELECT u FROM v GROUP BY u HAVING COUNT(*) >= 3)",
    "SELECT COUNT(*) FROM p WHERE u IN (SELECT u FROM v GROUP BY u HAVING SUM(cost) > 100 AND COUNT(*) < 5)",
    "SELECT sex, COUNT(*) FROM p JOIN (SELECT u, COUNT(*) AS n FROM v GROUP BY u HAVING n > 2) q USING (u)"
    " GROUP BY sex",
    "SELECT COUNT(*) FROM (SELECT u, n AS cost, cost AS n FROM v GROUP BY u, n, cost HAVING n = 2)",
    "SELECT COUNT(*) FROM (SELECT u FROM v x GROUP BY u, ward HAVING x.ward = 'east' AND MAX(cost) > 20)",
    "SELECT COUNT(*) FROM (SELECT u FROM v GROUP BY u HAVING COUNT_IF(code = 'A') > COUNT(*) FILTER (WHERE code"
    " = 'B'))",
    # expressions of aggregates by person
    "SELECT AVG(CLIP(m, 0, 100)) FROM (SELECT u, SUM(cost) / COUNT(*) AS m FROM v GROUP BY u)",
    "SELECT AVG(m) FROM (SELECT u, MAX(cost) - MIN(cost) AS m FROM v GROUP BY u)",
    "SELECT g, COUNT(*) FROM (SELECT u, CASE WHEN COUNT(*) > 2 THEN 'many' ELSE 'few' END AS g FROM v GROUP BY u)"
    " GROUP BY g",
    "SELECT AVG(m) FROM (SELECT u, COALESCE(SUM(cost), 0) AS m FROM v WHERE code = 'A' GROUP BY u)",
    "SELECT COUNT(*) FROM (SELECT u, DATE_DIFF('day', MIN(day), MAX(day)) AS span FROM v GROUP BY u) WHERE span > 100",
    "SELECT y, AVG(CLIP(c, 0, 9)) FROM (SELECT u, YEAR(day) AS y, YEAR(day) - 2020 + COUNT(*) AS c FROM v"
    " GROUP BY u, YEAR(day)) GROUP BY y",
    "SELECT COUNT(*) FROM (SELECT u, MAX(cost) > 50 AND ward = 'east' AS g FROM v GROUP BY u, ward) WHERE g",
    "SELECT COUNT(*) FROM (SELECT u, MAX(cost) * 2 AS z, COUNT(*) AS k FROM v GROUP BY u HAVING COUNT(*) > 1)"
    " WHERE z > k",
    # funnels, cohorts
    "SELECT COUNT(*) FILTER (WHERE a > 0), COUNT(*) FILTER (WHERE a > 0 AND b > 0), AVG(CLIP(s, 0, 200)),"
    " AVG(CLIP(d, 0, 5))"
    " FROM (SELECT u, COUNT(*) FILTER (WHERE code = 'A') AS a, COUNT_IF(code = 'B') AS b,"
    " SUM(cost) FILTER (WHERE code = 'A') AS s, COUNT(DISTINCT ward) FILTER (WHERE cost > 20) AS d FROM v GROUP BY u)",
    f"{FIRST} SELECT YEAR(first) AS y, COUNT(*) FROM f GROUP BY y",
    f"{FIRST} SELECT COUNT(*) FROM f WHERE DATE_DIFF('day', first, last) > 365",
    f"{FIRST} SELECT YEAR(first) AS cohort, CLIP(YEAR(v.day) - YEAR(first), 0, 2) AS later, COUNT(DISTINCT v.u)"
    " AS people"
    " FROM v JOIN f ON v.u = f.u GROUP BY cohort, later HAVING COUNT(DISTINCT v.u) > 0.5",
    "WITH a AS (SELECT u, SUM(cost) AS s FROM v GROUP BY u), b AS (SELECT u, CASE WHEN s > 100 THEN 'high' ELSE"
    " 'low' END"
    " AS g FROM a) SELECT g, sex, COUNT(*) FROM b JOIN p USING (u) GROUP BY g, sex",
    # anti-joins
    "SELECT sex, COUNT(*) FROM p SEMI JOIN v ON p.u = v.u GROUP BY sex",
    "SELECT sex, COUNT(*) FROM p ANTI JOIN v USING (u) GROUP BY sex",
    "SELECT sex, COUNT(*) FROM p LEFT JOIN v USING (u) WHERE v.u IS NULL GROUP BY sex",
    "SELECT sex, COUNT(*) FROM p LEFT JOIN v ON p.u = v.u WHERE v.u IS NULL GROUP BY sex",
    "SELECT COUNT(DISTINCT p.u), COUNT(DISTINCT v.u) FROM p LEFT JOIN v USING (u) WHERE v.u IS NOT NULL AND u > 5",
    "SELECT COUNT(*) FROM v LEFT JOIN w USING (ward) WHERE w.ward IS NULL AND ward IS NOT NULL",
    "SELECT COUNT(*) FROM p ANTI JOIN (SELECT u FROM v WHERE code = 'A') q ON p.u = q.u",
    "SELECT ward, COUNT(*), SUM(cost) FROM v a WHERE ward IS NOT NULL AND EXISTS (SELECT 1 FROM v b WHERE b.u = a.u"
    " AND b.day = a.day AND b.n <> 2) GROUP BY ward",
    "SELECT COUNT(*) FROM v a WHERE cost > 3 AND NOT EXISTS (SELECT 1 FROM v b WHERE a.u = b.u AND a.ward = b.ward"
    " AND b.n = 1) AND EXISTS (SELECT 1 FROM v c WHERE c.u = a.u AND c.n = a.n AND c.cost > 2)",
    "SELECT COUNT(*) FROM p WHERE EXISTS (SELECT * FROM (SELECT u AS who, cost, YEAR(day) - 30 AS y FROM v)"
    " WHERE who = u AND y = born)",
    # noisy rows beside each other
    f"{YEARS} SELECT a.y, a.n, b.n AS before, a.n - b.n AS more FROM y a JOIN y b ON a.y = b.y + 1",
    f"{YEARS} SELECT a.y, a.n, b.n AS before FROM y a LEFT JOIN y b ON a.y - 1 = b.y",
    f"{YEARS} SELECT a.y, b.n AS b, c.n AS c FROM y a JOIN y b ON a.y = b.y + 1 LEFT JOIN y c ON a.y = c.y + 2",
    f"{YEARS} SELECT a.*, b.n AS m FROM y a JOIN y b ON a.y = b.y + 1 WHERE a.n > 3",
    "WITH y AS (SELECT YEAR(day) AS y, ward, COUNT(*) AS n FROM v WHERE ward IN ('east', 'west') GROUP BY y, ward)"
    " SELECT a.y, a.ward, a.n / b.n AS ratio FROM y a JOIN y b ON a.y = b.y + 1 AND a.ward = b.ward",
    f"{YEARS}, t AS (SELECT SUM(n) AS total FROM y) SELECT y.y, n / total AS share FROM y CROSS JOIN t",
    f"{YEARS}, t AS (SELECT SUM(n) AS total FROM y) SELECT a.y, b.n / total AS share FROM y a JOIN y b ON a.y = b.y + 1"
    " CROSS JOIN t",
    f"{YEARS} SELECT y, n / (SELECT SUM(n) FROM y) AS share FROM y",
    f"{YEARS} SELECT y, n FROM y WHERE n > (SELECT AVG(n) FROM y)",
    f"{YEARS} SELECT * FROM y WHERE n = (SELECT MAX(n) FROM y)",
    "WITH m AS (SELECT CAST(DATE_TRUNC('month', day) AS DATE) AS m, COUNT(*) AS n FROM v GROUP BY m)"
    " SELECT a.m, a.n, b.n AS before FROM m a LEFT JOIN m b ON a.m = b.m + INTERVAL 1 YEAR",
    "WITH m AS (SELECT CAST(DATE_TRUNC('month', day) AS DATE) AS m, COUNT(*) AS n FROM v GROUP BY m)"
    " SELECT a.m, a.n, b.n AS after FROM m a JOIN m b ON b.m - INTERVAL 1 MONTH = a.m",
    # other spellings
    "SELECT floor, COUNT(*) FROM v, w WHERE v.ward = w.ward AND cost > 20 GROUP BY floor",
    "SELECT sex, SUM(cost) FROM p, v, w WHERE p.u = v.u AND v.ward = w.ward AND floor = 2 GROUP BY sex",
    "SELECT COUNT(*) FROM v, w WHERE v.ward = w.ward AND n = floor",
    "SELECT sex, COUNT(*) FROM p WHERE NOT EXISTS (SELECT * FROM (SELECT u AS who, cost FROM v) WHERE who = u"
    " AND cost > 30) GROUP BY sex",
    "SELECT sex, COUNT(v.u) FROM v RIGHT JOIN p USING (u) GROUP BY sex",
    "SELECT COUNT(*), COUNT(v.u) FROM v RIGHT JOIN p ON v.u = p.u AND v.code = 'A'",
    "SELECT sex, COUNT(*), COUNT(v.u) FROM p LEFT JOIN v ON p.u = v.u AND v.code = 'A' AND v.cost > 30 GROUP BY sex",
    "SELECT sex, COUNT(*) FROM p JOIN v ON p.u = v.u AND cost > 30 AND (code = 'A' OR sex = 'f') GROUP BY sex",
    "SELECT COUNT(*) FROM v a JOIN v b ON a.u = b.u AND a.day < b.day AND a.code = 'A'",
    "SELECT COUNT(*) FROM v JOIN w ON v.ward = w.ward AND w.floor = 2",
    "SELECT COUNT(*) FROM p WHERE (SELECT COUNT(*) FROM v WHERE v.u = p.u AND v.cost > 20) >= 2",
    "SELECT sex, AVG((SELECT COUNT(*) FROM v WHERE v.u = p.u)) FROM p GROUP BY sex",
    "SELECT COUNT(*) FROM p WHERE (SELECT MAX(cost) FROM v WHERE p.u = v.u) < 50",
    "SELECT COUNT(*) FROM v x WHERE cost > (SELECT AVG(cost) FROM v y WHERE y.u = x.u)",
    "SELECT ward, COUNT(*) FROM (SELECT DISTINCT ON (u) u, ward FROM v ORDER BY u, day DESC, cost, n, ward, code)"
    " WHERE ward IS NOT NULL GROUP BY ward",
    "SELECT ward, COUNT(*) FROM (SELECT * FROM v WHERE n > 0 QUALIFY ROW_NUMBER() OVER (PARTITION BY u ORDER BY day,"
    " cost, n, ward, code) <= 2) WHERE ward IS NOT NULL GROUP BY ward",
    "SELECT COUNT(*) FILTER (WHERE a), COUNT(*) FILTER (WHERE NOT b), COUNT(*) FILTER (WHERE b IS NULL)"
    " FROM (SELECT u, BOOL_OR(cost > 80) AS a, BOOL_AND(ward = 'east') AS b FROM v GROUP BY u)",
    "SELECT COUNT(*) FROM v WHERE (code, n) IN (('A', 1), ('B', 2))",
    "SELECT COUNT(*), COUNT(*) FILTER (WHERE NOT code IS DISTINCT FROM 'A') FROM v WHERE ward IS DISTINCT FROM 'east'",
    "SELECT COUNT(*) FROM v JOIN p USING (u) WHERE NOT (ward IS NOT DISTINCT FROM city OR n IS NOT DISTINCT FROM 2)",
    "SELECT COUNT(*) FROM v WHERE ward = ANY (SELECT ward FROM w WHERE floor = 2)",
    "SELECT COUNT(*) FROM v WHERE ward <> ALL (SELECT ward FROM w WHERE floor = 2)",
    "SELECT ward, COUNT(*) FROM v WHERE ward IS NOT NULL GROUP BY ALL ORDER BY ALL",
    "SELECT sex, AVG((born > 1980)::INTEGER), SUM(CAST(born > 1980 AS INTEGER)) / COUNT(*) FROM p GROUP BY sex",
    "SELECT AVG(COALESCE(n, 0)), SUM(CASE WHEN n > 2 THEN n ELSE 0 END)"
    " FROM p LEFT JOIN (SELECT u, COUNT(*) AS n FROM v GROUP BY u) q USING (u)",
)  # fmt: skip


BOUNDED: Mapping[str, int] = {
    "SELECT COUNT(*) FROM v": 40,
    "SELECT ward, COUNT(*) FROM v GROUP BY ward": 40,
    "SELECT SUM(cost) FROM v": 40 * 100,
    "SELECT ward, SUM(cost) FROM v GROUP BY ward": 40 * 100,
    "SELECT COUNT(DISTINCT u) FROM v": 1,
    "SELECT COUNT(*) FROM p SEMI JOIN v ON p.u = v.u": 1,
    "SELECT COUNT(*) FROM (SELECT u FROM v GROUP BY u HAVING COUNT(*) >= 3)": 1,
}
"""Questions, and how far one person may move the last number of a row."""


def true_rows(sql: str, tables: Mapping[str, pl.DataFrame]) -> list[tuple[object, ...]]:
    """The rows of a question without noise and limits, by DuckDB."""
    with open_duckdb() as connection:
        connection.execute("CREATE MACRO clip(x, a, b) AS CASE WHEN x IS NOT NULL THEN least(greatest(x, a), b) END")
        for name, frame in tables.items():
            connection.register(name, frame.to_arrow())
        return sorted(connection.execute(sql).fetchall(), key=_order)


def check_sql(system: System) -> list[str]:
    """Raise AssertionError unless a system answers what it does not refuse; returns the refused questions."""
    tables = sql_tables()
    ask = system(tables)
    refused = [sql for sql in QUESTIONS if not check_sql_answer(ask, sql, tables)]
    return refused + check_sql_neighbours(system)


def check_sql_answer(ask: Ask, sql: str, tables: Mapping[str, pl.DataFrame]) -> bool:
    """Raise AssertionError if an answer is not that of plain SQL up to 2 %; returns whether there was one."""
    given = ask(sql)
    if given is None:
        return False
    found, expected = sorted(map(tuple, given), key=_order), true_rows(sql, tables)
    same = len(found) == len(expected) and all(map(_alike, found, expected))
    assert same, f"the answer is not that of plain SQL: {sql}"
    return True


def check_sql_neighbours(system: System) -> list[str]:
    """Raise AssertionError if one person with 500 rows moves a number by more than the limits allow.

    Returns the questions that are refused, which must be the same for both tables: refusals depend on no data.
    """
    one = sql_tables()
    row = {"u": 999, "day": date(2023, 5, 5), "ward": "east", "code": "A", "cost": 10_000, "n": 3}
    person = {"u": 999, "sex": "f", "born": 1950, "city": "Ely"}
    heavy = {"v": [row] * _HEAVY, "p": [person]}
    other = {n: pl.concat([f, pl.DataFrame(heavy[n], schema=f.schema)]) if n in heavy else f for n, f in one.items()}
    asks, refused = (system(one), system(other)), []
    for sql, most in BOUNDED.items():
        first, second = (ask(sql) for ask in asks)
        assert (first is None) == (second is None), f"whether it is refused depends on the data: {sql}"
        if first is None or second is None:
            refused.append(sql)
            continue
        numbers = [{tuple(line[:-1]): line[-1] for line in rows} for rows in (first, second)]
        assert set(numbers[0]) == set(numbers[1]), f"public groups depend on the data: {sql}"
        for key, number in numbers[0].items():
            moved = abs(float(numbers[1][key]) - float(number))
            assert moved <= most * 1.01 + 0.5, f"one person moves a number by more than {most}: {sql}"
    return refused


def _order(row: Sequence[object]) -> str:
    return repr([str(round(value)) if isinstance(value, int | float | Decimal) else str(value) for value in row])


def _alike(found: Sequence[object], expected: Sequence[object]) -> bool:
    return len(found) == len(expected) and all(
        isclose(float(one), float(two), rel_tol=0.02, abs_tol=0.02)
        if isinstance(one, int | float) and isinstance(two, int | float | Decimal)
        else one == two
        for one, two in zip(found, expected, strict=True)
    )
