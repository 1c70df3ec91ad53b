"""Questions that analysts ask about people, their visits and their diagnoses, each with the verdict it gets."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import approximate
from sfumato.errors import QueryRefused
from sfumato.query import Catalog, PrivateTable
from sfumato.query.plan.catalog import PublicTable
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.compound import parse_compound
from sfumato.query.sql.parse import parse_query


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


@cache
def catalog() -> Catalog:
    person = {
        "person_id": column("integer"), "born": column("integer", low=1900, high=2025),
        "income": column("number", low=0, high=200_000),
        "sex": column("category", values=("f", "m", "x")), "city": column("category", values=("Bonn", "Ely", "Pau")),
        "smoker": column("boolean"), "name": column("category"),
    }  # fmt: skip
    visit = {
        "person_id": column("integer"), "admitted": column("date"), "discharged": column("date"),
        "at": column("datetime"), "ward": column("category", values=("east", "north", "south", "west")),
        "cost": column("number", low=0, high=50_000),
        "kind": column("category", values=("inpatient", "outpatient", "emergency")), "remark": column("category"),
    }  # fmt: skip
    diagnosis = {
        "person_id": column("integer"), "code": column("category"), "day": column("date"),
        "severity": column("integer", low=1, high=5),
    }  # fmt: skip
    private = {
        name: PrivateTable(name=name, schema=Schema(columns=columns, unit="person_id"), rows=rows, groups=3)
        for name, columns, rows in (("person", person, 1), ("visit", visit, 5), ("diagnosis", diagnosis, 5))
    }
    codes = pl.DataFrame({"code": ["E11", "I10", "J45"], "chapter": ["E", "I", "J"]})
    wards = pl.DataFrame({"ward": ["east", "north", "south", "west"], "floor": [1, 1, 2, 3]})
    public = {
        "codes": PublicTable(name="codes", frame=codes, key=("code",)),
        "wards": PublicTable(name="wards", frame=wards, key=("ward",)),
    }
    return Catalog(dataset="clinic", private=private, public=public)


YEAR = "admitted >= '2024-01-01' AND admitted < '2025-01-01'"
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(cost) AS mean FROM visit GROUP BY ward"
ANSWERED = [
    # counts and simple statistics
    "SELECT COUNT(*) FROM person",
    "SELECT COUNT(DISTINCT person_id) FROM visit",
    "SELECT COUNT(1) FROM person WHERE smoker",
    "SELECT COUNT(*) FROM person WHERE NOT smoker AND sex = 'f'",
    "SELECT COUNT(*) FROM person WHERE smoker IS NULL",
    "SELECT sex, COUNT(*) FROM person GROUP BY sex",
    "SELECT city, sex, COUNT(*) FROM person GROUP BY city, sex",
    "SELECT AVG(income) FROM person",
    "SELECT city, AVG(income), STDDEV(income) FROM person GROUP BY city",
    "SELECT SUM(cost) FROM visit",
    "SELECT MEDIAN(income), QUANTILE_CONT(income, 0.9) FROM person",
    "SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY income) FROM person",
    "SELECT MIN(income), MAX(income) FROM person",
    "SELECT VAR_POP(income), VARIANCE(income) FROM person",
    "SELECT MODE(city) FROM person",
    "SELECT COUNT(DISTINCT code) FROM diagnosis",
    "SELECT APPROX_COUNT_DISTINCT(code) FROM diagnosis",
    "SELECT COUNT_IF(severity >= 4) FROM diagnosis",
    "SELECT COUNT(*) FILTER (WHERE severity = 5), COUNT(*) FROM diagnosis",
    "SELECT SUM(CASE WHEN kind = 'emergency' THEN cost ELSE 0 END) FROM visit",
    "SELECT APPROX_QUANTILE(cost, 0.95) FROM visit",
    "SELECT ward, AVG(cost) FROM visit WHERE kind <> 'outpatient' GROUP BY 1",
    # relations between numbers
    "SELECT CORR(income, born) FROM person",
    "SELECT COVAR_POP(income, born), COVAR_SAMP(income, born) FROM person",
    "SELECT REGR_SLOPE(income, born), REGR_INTERCEPT(income, born) FROM person",
    "SELECT city, REGR_R2(income, born) FROM person GROUP BY city",
    # ages, bands and buckets
    "SELECT TRUNC((2025 - born) / 10) AS decade, COUNT(*) FROM person GROUP BY decade",
    "SELECT FLOOR((2025 - born) / 10) AS decade, COUNT(*) FROM person GROUP BY decade",
    "SELECT CASE WHEN 2025 - born < 18 THEN 'minor' WHEN 2025 - born < 65 THEN 'adult' ELSE 'senior' END AS"
    " band, COUNT(*)"
    " FROM person GROUP BY band",
    "SELECT WIDTH_BUCKET(income, 0, 200000, 20) AS bucket, COUNT(*) FROM person GROUP BY bucket",
    "SELECT ROUND(income / 10000) AS tens, COUNT(*) FROM person GROUP BY tens",
    "SELECT COUNT(*) FROM person WHERE 2025 - born BETWEEN 18 AND 64",
    "SELECT AVG(SQRT(income)) FROM person",
    "SELECT AVG(POWER(2025 - born, 2)) FROM person",
    # dates
    f"SELECT date_trunc('month', admitted) AS m, COUNT(*) FROM visit WHERE {YEAR} GROUP BY m ORDER BY m",
    f"SELECT strftime(admitted, '%Y-%m') AS m, COUNT(*) FROM visit WHERE {YEAR} GROUP BY m",
    f"SELECT date_trunc('week', admitted) AS w, SUM(cost) FROM visit WHERE {YEAR} GROUP BY w",
    f"SELECT admitted, COUNT(*) FROM visit WHERE {YEAR} GROUP BY admitted",
    "SELECT EXTRACT(MONTH FROM admitted) AS m, COUNT(*) FROM visit GROUP BY m",
    "SELECT dayname(admitted) AS d, COUNT(*) FROM visit GROUP BY d",
    "SELECT EXTRACT(HOUR FROM \"at\") AS h, COUNT(*) FROM visit GROUP BY h",
    "SELECT AVG(CLIP(date_diff('day', admitted, discharged), 0, 60)) FROM visit",
    "SELECT COUNT(*) FROM visit WHERE discharged - admitted > 7",
    "SELECT COUNT(*) FROM visit WHERE admitted >= DATE '2024-12-31' - INTERVAL 30 DAY",
    "SELECT COUNT(*) FROM visit WHERE admitted + INTERVAL 1 MONTH < discharged",
    "SELECT YEAR(admitted) AS y, COUNT(*) FROM visit WHERE admitted BETWEEN '2015-01-01' AND '2024-12-31' GROUP BY y",
    "SELECT COUNT(*) FROM visit WHERE EXTRACT(ISODOW FROM admitted) >= 6",
    "SELECT COUNT(*) FROM visit WHERE last_day(admitted) = admitted",
    # text
    "SELECT COUNT(*) FROM diagnosis WHERE code LIKE 'E1%'",
    "SELECT LEFT(code, 1) AS chapter, COUNT(*) FROM diagnosis GROUP BY chapter",
    "SELECT COUNT(*) FROM diagnosis WHERE starts_with(code, 'J')",
    "SELECT sex || '/' || city AS both, COUNT(*) FROM person GROUP BY both",
    "SELECT COUNT(*) FROM visit WHERE LOWER(remark) LIKE '%urgent%' OR remark IS NULL",
    "SELECT code, COUNT(*) FROM diagnosis GROUP BY code",
    # joins
    "SELECT sex, AVG(cost) FROM visit JOIN person USING (person_id) GROUP BY sex",
    "SELECT floor, COUNT(*) FROM visit JOIN wards USING (ward) GROUP BY floor",
    "SELECT chapter, COUNT(DISTINCT person_id) FROM diagnosis JOIN codes USING (code) GROUP BY chapter",
    "SELECT COUNT(*) FROM diagnosis LEFT JOIN codes USING (code) WHERE chapter IS NULL",
    "SELECT ward, COUNT(*) FROM visit v JOIN diagnosis d ON v.person_id = d.person_id WHERE d.code = 'I10'"
    " GROUP BY ward",
    "SELECT COUNT(*) FROM person LEFT JOIN visit ON person.person_id = visit.person_id WHERE visit.person_id IS NULL",
    "SELECT city, COUNT(visit.person_id) FROM person LEFT JOIN visit ON person.person_id = visit.person_id"
    " GROUP BY city",
    "SELECT COUNT(*) FROM visit WHERE ward IN (SELECT ward FROM wards WHERE floor = 1)",
    # sets of people
    "SELECT COUNT(*) FROM person WHERE person_id IN (SELECT person_id FROM diagnosis WHERE code = 'E11')",
    "SELECT COUNT(*) FROM person WHERE person_id NOT IN (SELECT person_id FROM visit)",
    "SELECT COUNT(*) FROM person p WHERE EXISTS (SELECT 1 FROM visit v WHERE v.person_id = p.person_id AND"
    " v.cost > 1000)",
    "SELECT sex, COUNT(*) FROM person p WHERE NOT EXISTS (SELECT 1 FROM diagnosis d WHERE d.person_id = p.person_id)"
    " GROUP BY sex",
    "SELECT COUNT(*) FROM (SELECT person_id FROM diagnosis WHERE code = 'E11' INTERSECT SELECT person_id FROM diagnosis"
    " WHERE code = 'I10')",
    "SELECT COUNT(*) FROM (SELECT person_id FROM visit EXCEPT SELECT person_id FROM diagnosis)",
    "SELECT COUNT(*) FROM (SELECT person_id FROM visit UNION SELECT person_id FROM diagnosis)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT person_id FROM visit WHERE ward = 'east')",
    "SELECT ward, COUNT(*) FROM (SELECT DISTINCT person_id, ward FROM visit) GROUP BY ward",
    "SELECT AVG(income) FROM person WHERE person_id IN (SELECT person_id FROM visit GROUP BY person_id)",
    # per person
    "SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visit GROUP BY person_id)",
    "SELECT AVG(total) FROM (SELECT person_id, SUM(cost) AS total FROM visit GROUP BY person_id)",
    "SELECT COUNT(*) FROM (SELECT person_id, COUNT(*) AS n FROM visit GROUP BY person_id) WHERE n >= 3",
    "SELECT MEDIAN(total) FROM (SELECT person_id, SUM(cost) AS total FROM visit GROUP BY person_id)",
    "SELECT sex, AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visit GROUP BY person_id) JOIN person"
    " USING (person_id)"
    " GROUP BY sex",
    "SELECT AVG(CLIP(longest, 0, 90)) FROM (SELECT person_id, MAX(date_diff('day', admitted, discharged)) AS longest"
    " FROM visit GROUP BY person_id)",
    "SELECT n, COUNT(*) FROM (SELECT person_id, COUNT(*) AS n FROM visit GROUP BY person_id) GROUP BY n",
    "SELECT ward, COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY admitted) AS r"
    " FROM visit)"
    " WHERE r = 1 GROUP BY ward",
    "SELECT COUNT(*) FROM (SELECT person_id, admitted, LAG(discharged) OVER (PARTITION BY person_id ORDER BY"
    " admitted) AS"
    " before FROM visit) WHERE admitted - before <= 30",
    "SELECT COUNT(*) FROM visit v JOIN (SELECT person_id, COUNT(*) AS n FROM diagnosis GROUP BY person_id) d"
    " ON v.person_id = d.person_id WHERE d.n > 2",
    # noisy rows
    "SELECT ward, COUNT(*) AS n FROM visit GROUP BY ward HAVING COUNT(*) > 100 ORDER BY n DESC LIMIT 3",
    "SELECT ward, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM visit GROUP BY ward",
    "SELECT ward, RANK() OVER (ORDER BY SUM(cost) DESC) AS place FROM visit GROUP BY ward",
    f"SELECT * FROM ({BY_WARD}) WHERE n > 1000",
    f"SELECT MAX(n) - MIN(n) FROM ({BY_WARD})",
    f"WITH w AS ({BY_WARD}) SELECT ward, mean / AVG(mean) OVER () FROM w",
    f"SELECT m, SUM(n) OVER (ORDER BY m) AS running FROM (SELECT date_trunc('month', admitted) AS m, COUNT(*) AS n"
    f" FROM visit WHERE {YEAR} GROUP BY m)",
    f"SELECT m, n - LAG(n) OVER (ORDER BY m) AS change FROM (SELECT date_trunc('month', admitted) AS m, COUNT(*) AS n"
    f" FROM visit WHERE {YEAR} GROUP BY m)",
    "SELECT ward, kind, COUNT(*) AS n FROM visit GROUP BY ward, kind QUALIFY ROW_NUMBER() OVER (PARTITION BY"
    " ward ORDER BY n"
    " DESC) = 1",
    "SELECT SQRT(VARIANCE(income)), LN(AVG(income)), EXP(AVG(severity)) FROM person JOIN diagnosis USING (person_id)",
    "SELECT ROUND(100.0 * COUNT_IF(smoker) / COUNT(*), 1) AS percent FROM person",
    "SELECT CASE WHEN COUNT(*) > 500 THEN 'many' ELSE 'few' END FROM visit",
    "SELECT ward FROM visit GROUP BY ward ORDER BY COUNT(*) DESC LIMIT 1",
    # several parts
    "SELECT 'visits' AS what, COUNT(*) FROM visit UNION ALL SELECT 'people', COUNT(*) FROM person",
    "SELECT (2025 - born) // 10 AS decade, COUNT(*) FROM person GROUP BY decade",
    "SELECT HISTOGRAM(income, 20) AS people FROM person",
    "SELECT COUNT(*) FROM person WHERE regexp_matches(name, '^A.*')",
    "SELECT COUNT(DISTINCT person_id) FROM diagnosis WHERE regexp_full_match(code, 'E1[0-4]([.][0-9])?')",
    "SELECT ward FROM visit GROUP BY ward ORDER BY SUM(cost) LIMIT 2",
    "SELECT ward, kind, COUNT(*) FROM visit GROUP BY ROLLUP (ward, kind)",
    "SELECT ward, kind, SUM(cost) FROM visit GROUP BY CUBE (ward, kind)",
    "SELECT sex, city, COUNT(*) FROM person GROUP BY GROUPING SETS ((sex), (city), ())",
    "WITH w AS (SELECT * FROM visit WHERE kind = 'inpatient') SELECT ward, COUNT(*) FROM w GROUP BY ward",
    "SELECT COUNT(*) FROM (SELECT cost FROM visit WHERE ward = 'east' UNION ALL SELECT cost FROM visit WHERE"
    " ward = 'west')",
    # other spellings
    "SELECT floor, SUM(cost) FROM visit, wards WHERE visit.ward = wards.ward GROUP BY floor",
    "SELECT p.sex, AVG(v.cost) FROM person p, visit v WHERE p.person_id = v.person_id AND v.kind = 'inpatient'"
    " GROUP BY p.sex",
    "SELECT sex, COUNT(*) FROM visit RIGHT JOIN person USING (person_id) GROUP BY sex",
    "SELECT p.city, COUNT(v.person_id) FROM person p LEFT JOIN visit v ON p.person_id = v.person_id AND v.kind ="
    " 'emergency' GROUP BY p.city",
    "SELECT a.code AS x, b.code AS y, COUNT(DISTINCT a.person_id) FROM diagnosis a JOIN diagnosis b"
    " ON a.person_id = b.person_id AND a.code < b.code GROUP BY x, y",
    "SELECT COUNT(*) FROM person p WHERE (SELECT COUNT(*) FROM visit v WHERE v.person_id = p.person_id) >= 3",
    "SELECT sex, AVG((SELECT COUNT(*) FROM visit v WHERE v.person_id = p.person_id)) FROM person p GROUP BY sex",
    "SELECT COUNT(*) FROM visit v WHERE cost > (SELECT AVG(cost) FROM visit x WHERE x.person_id = v.person_id)",
    "SELECT kind, COUNT(*) FROM (SELECT DISTINCT ON (person_id) * FROM visit ORDER BY person_id, admitted)"
    " GROUP BY kind",
    "SELECT kind, COUNT(*) FROM (SELECT * FROM visit QUALIFY ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY"
    " admitted DESC) = 1) GROUP BY kind",
    "SELECT COUNT(*) FROM (SELECT person_id, BOOL_OR(severity = 5) AS severe FROM diagnosis GROUP BY person_id)"
    " WHERE severe",
    "SELECT COUNT(*) FROM person WHERE (city, sex) IN (('Bonn', 'f'), ('Ely', 'm'))",
    "SELECT SUM(cost) FROM visit WHERE ward <> ALL (SELECT ward FROM wards WHERE floor = 1)",
    "SELECT sex, AVG(smoker::INT) AS share FROM person GROUP BY sex",
    f"SELECT TO_CHAR(admitted, 'YYYY-MM') AS m, COUNT(*) FROM visit WHERE {YEAR} GROUP BY m",
    "SELECT DATE(at) AS d, COUNT(*) FROM visit WHERE at >= '2024-01-01' AND at < '2024-02-01' GROUP BY d",
    "SELECT IFF(severity >= 4, 'severe', 'mild') AS s, COUNT(*) FROM diagnosis GROUP BY s",
    "SELECT ward, COUNT(*) AS n FROM visit GROUP BY ward ORDER BY n DESC FETCH FIRST 3 ROWS ONLY",
    "SELECT city, sex, COUNT(*) FROM person GROUP BY ALL ORDER BY ALL",
    "SELECT AVG(COALESCE(n, 0)) FROM person LEFT JOIN (SELECT person_id, COUNT(*) AS n FROM visit GROUP BY person_id) v"
    " USING (person_id)",
    "WITH m AS (SELECT DATE_TRUNC('month', admitted) AS m, COUNT(*) AS n FROM visit WHERE admitted >= '2023-01-01'"
    " AND admitted < '2025-01-01' GROUP BY m)"
    " SELECT a.m, a.n / b.n - 1 AS growth FROM m a JOIN m b ON a.m = b.m + INTERVAL 1 YEAR",
]  # fmt: skip
REFUSED = [
    ("SELECT * FROM person", "aggregates"),
    ("SELECT name, income FROM person LIMIT 10", "GROUP BY"),
    ("SELECT person_id, COUNT(*) FROM visit GROUP BY person_id", "one person"),
    ("SELECT COUNT(*) FROM person WHERE income > (SELECT AVG(income) FROM person)", "row expressions"),
    ("SELECT income // 1000 AS k, COUNT(*) FROM person GROUP BY k", "FLOOR"),
    ("SELECT HISTOGRAM(income) FROM person", "HISTOGRAM(x, 10)"),
    ("SELECT COUNT(*) FROM visit WHERE admitted > CURRENT_DATE - INTERVAL 7 DAY", "constant"),
    ("SELECT STRING_AGG(name, ',') FROM person", "COUNT"),
    ("SELECT COUNT(*) FROM person WHERE regexp_matches(name, '(a+)+b')", "LIKE"),
    ("SELECT regexp_extract(code, '^[A-Z]'), COUNT(*) FROM diagnosis GROUP BY 1", "SUBSTRING"),
    ("SELECT AVG(severity * cost) FROM diagnosis JOIN visit ON diagnosis.day = visit.admitted", "privacy unit"),
    ("SELECT AVG(LENGTH(remark)) FROM visit", "CLIP"),
    ("SELECT COUNT(*) FROM visit WHERE ward IN (SELECT ward FROM visit WHERE cost > 9000)", "privacy unit"),
    ("SELECT COUNT(*) FROM person WHERE (city, sex) NOT IN (('Bonn', 'f'), ('Ely', 'm'))", "row expressions"),
    ("SELECT SUM(cost) FROM visit, wards WHERE floor = 1", "ON key columns"),
    ("SELECT DISTINCT ON (person_id) kind FROM visit ORDER BY person_id, admitted", "aggregate"),
    (
        "WITH d AS (SELECT admitted AS d, COUNT(*) AS n FROM visit WHERE admitted >= '2024-01-01' AND admitted <"
        " '2024-04-01' GROUP BY d) SELECT a.d, a.n - b.n FROM d a JOIN d b ON a.d = b.d + INTERVAL 1 MONTH",
        "DATE_TRUNC",
    ),
    ("SELECT BOOL_OR(severity = 5) FROM diagnosis", "COUNT_IF"),
]


def plans(sql: str) -> int:
    """How many parts a question is answered in; it is parsed and planned without any data."""
    known = catalog()
    several = parse_compound(sql, known)
    queries = [parse_query(sql, known)] if several is None else several.parts
    return len([plan_query(query, approximate(1, "1e-6")) for query in queries])


@pytest.mark.parametrize("sql", ANSWERED)
def test_answered(sql: str) -> None:
    assert plans(sql) >= 1


@pytest.mark.parametrize(("sql", "nearest"), REFUSED)
def test_refused_with_the_nearest_thing_that_is_answered(sql: str, nearest: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        plans(sql)
    assert nearest in str(refusal.value)


def test_the_documentation_counts_them() -> None:
    assert len(set(ANSWERED)) == len(ANSWERED) >= 100
    page = (Path(__file__).parents[2] / "docs" / "query-language.md").read_text(encoding="utf-8")
    assert f"{len(ANSWERED)} of {len(ANSWERED) + len(REFUSED)} questions" in page
