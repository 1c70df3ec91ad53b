"""What an outsider tried against private answers and got through with once: each way is closed and stays closed."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.dataset import Column, Domain, Kind, RangeDomain, Role, Schema
from sfumato.dataset.document import Dataset
from sfumato.dp.loss import approximate, pure
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.errors import BadParameter, EmptyTable, MetadataMissing, QueryRefused, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.profiling import propose, to_yaml
from sfumato.query import Catalog, PrivateTable, PublicTable, Session
from sfumato.query.execute.executor import additive_totals
from sfumato.query.execute.sqlgen import additive_sql
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query
from sfumato.secret import Permit


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


def session(
    data: Any, columns: dict[str, Column], *, public: Any = None, unit: str | None = None, **more: Any
) -> Session:
    """One private table ``t``; ``more`` are further ones as (data, columns), about the same units."""
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10**8, "0.9"), dataset="d")
    sources = {"t": (data, columns), **more}
    limit = None if unit is None else 1
    private = {
        name: PrivateTable(name=name, schema=Schema(columns=own, unit=unit), rows=limit, groups=limit)
        for name, (_, own) in sources.items()
    }
    tables = {} if public is None else {"p": PublicTable(name="p", frame=public, key=("id",))}
    catalog = Catalog(dataset="d", private=private, public=tables)
    return Session(catalog, {name: source for name, (source, _) in sources.items()}, ledger=book, analyst="ana")


def exact(asked: Session, sql: str) -> list[tuple[Any, ...]]:
    """The numbers before noise."""
    strategy = plan_query(parse_query(sql, asked.catalog), pure(1))
    found: list[tuple[Any, ...]] = asked._engine.run(additive_sql(strategy, 1)).open(Permit("a test"))
    return found


# --- sums ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("high", [1, 7, 524_289, 1_000_000, 2**20, 2**21, 10**9])
@pytest.mark.parametrize("item", ["SUM(x)", "AVG(x)", "VARIANCE(x)"])
def test_sums_of_fractions_are_whole_whatever_the_bounds(high: int, item: str) -> None:
    """Bounds between 2**19 and 2**20 once gave a step of 1, and the fractions were then summed as floats."""
    rng = np.random.default_rng(3)
    values = (rng.random(400) * high).tolist()
    found = set()
    for _ in range(3):
        rng.shuffle(values)
        [row] = exact(
            session(pl.DataFrame({"x": values}), {"x": column("number", low=0, high=high)}), f"SELECT {item} FROM t"
        )
        assert all(isinstance(number, int) for number in row)
        found.add(row)
    assert len(found) == 1


@pytest.mark.parametrize("item", ["SUM", "AVG", "VARIANCE", "STDDEV_POP", "MEDIAN"])
@pytest.mark.parametrize(
    "value", ["CLIP(x, 0, 1e-200) * 1e-120", "CLIP(x, 0, 1e-299) * 1e-299", "1 + CLIP(x, 0, 1e-200) * 1e-120"]
)
def test_bounds_too_narrow_for_floats_are_refused(item: str, value: str) -> None:
    """A step of width 0 made the question fail whenever a single row met its condition, and succeed otherwise."""
    asked = session(
        pl.DataFrame({"x": [1.0], "name": ["ann"]}), {"x": column("number", low=0, high=9), "name": column("category")}
    )
    for name in ("ann", "nobody"):
        with pytest.raises(QueryRefused, match="narrow"):
            asked.ask(f"SELECT {item}({value}) FROM t WHERE name = '{name}'", epsilon=1)
    assert asked.ledger.balance(dataset="d").spent.size == 0


def test_bounds_of_sums_per_unit_are_checked_too() -> None:
    asked = session(
        pl.DataFrame({"person": [1], "x": [1.0]}), {"person": column("integer"), "x": column("number")}, unit="person"
    )
    for value in ("CLIP(x, 0, 1e-200) * 1e-120", "CLIP(x, 0, 1e299) * 1e299"):
        with pytest.raises(QueryRefused, match=r"too (narrow|wide)"):
            asked.ask(f"SELECT COUNT(*) FROM (SELECT person, SUM({value}) AS s FROM t GROUP BY person) AS q", epsilon=1)


# --- how often a row counts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition", ["t.id = p.id", "CAST(t.id AS DOUBLE) = p.id", "t.id * 1 = p.id", "p.id = t.id + 0"]
)
@pytest.mark.parametrize("how", ["JOIN", "LEFT JOIN"])
def test_a_row_meets_one_row_of_a_public_table(condition: str, how: str) -> None:
    """As floats, whole numbers above 2**53 are equal to their neighbours: one row once met 64."""
    public = pl.DataFrame({"id": [2**60 + i for i in range(64)]})
    asked = session(pl.DataFrame({"id": [2**60 + 3]}), {"id": column("integer")}, public=public)
    assert exact(asked, f"SELECT COUNT(*) FROM t {how} p ON {condition}")[0][0] == 1


def test_a_float_is_looked_up_among_whole_numbers_as_it_is() -> None:
    public = pl.DataFrame({"id": [1, 2, 3]})
    frame = pl.DataFrame({"x": [1.0, 1.5, 2.0, float("nan"), float("inf"), 1e300, None]})
    asked = session(frame, {"x": column("number", low=0, high=9)}, public=public)
    assert exact(asked, "SELECT COUNT(*) FROM t JOIN p ON t.x = p.id")[0][0] == 2


@pytest.mark.parametrize(
    "keys",
    [
        pl.Series([10**18, 10**18 + 1]).cast(pl.Datetime("ns")),
        pl.Series([Decimal("0.10000000000000000001"), Decimal("0.10000000000000000002")]),
        pl.Series([0.0, -0.0]),
        pl.Series([float("nan"), float("nan")]),
    ],
)
def test_a_public_key_is_unique_as_engines_compare_it(keys: pl.Series) -> None:
    with pytest.raises(BadParameter, match="unique"):
        PublicTable(name="p", frame=pl.DataFrame({"id": keys}), key=("id",))


def test_public_columns_that_cannot_be_compared_are_refused() -> None:
    for wrong in (pl.Series([[1]]), pl.Series([2**63], dtype=pl.UInt64)):
        with pytest.raises(BadParameter, match="public column"):
            PublicTable(name="p", frame=pl.DataFrame({"id": [1], "x": wrong}), key=("id",))


@pytest.mark.parametrize(
    ("kind", "values", "row"),
    [
        ("number", (2**53, 2**53 + 1), float(2**53)),
        ("number", ("1", "1.0", 1), 1.0),
        ("integer", (1, "1", 1.0), 1),
        ("date", ("2024-01-01", date(2024, 1, 1)), date(2024, 1, 1)),
        ("datetime", ("2024-01-01", "2024-01-01T00:00:00", date(2024, 1, 1)), datetime(2024, 1, 1)),
        ("category", ("a", "a"), "a"),
    ],
)
def test_a_row_is_in_one_group_however_often_its_key_is_declared(kind: str, values: Any, row: Any) -> None:
    asked = session(pl.DataFrame({"k": [row]}), {"k": column(kind, values=values)})
    assert sum(found[1] for found in exact(asked, "SELECT k, COUNT(*) FROM t GROUP BY k")) == 1


@pytest.mark.parametrize(
    ("kind", "value"),
    [("integer", "x"), ("integer", 1.5), ("boolean", "true"), ("date", "2024-1-1"), ("number", "nan")],
)
def test_declared_values_are_of_their_kind(kind: str, value: Any) -> None:
    with pytest.raises(MetadataMissing, match="`k`") as refusal:
        PrivateTable(name="t", schema=Schema(columns={"k": column(kind, values=(value,))}))
    assert str(value) not in str(refusal.value)


@pytest.mark.parametrize("limit", [1.5, 2.5, True, "2", 0, -1, 10**7, float("nan")])
@pytest.mark.parametrize("which", ["rows", "groups"])
def test_limits_are_whole_numbers(limit: Any, which: str) -> None:
    """With 1.5 rows, contributions were cut at 2 (the engine rounds) and hidden as if at 1.5."""
    frame = pl.DataFrame({"person": [1] * 5, "k": ["a"] * 5})
    asked = session(frame, {"person": column("integer"), "k": column("category", values=("a", "b"))}, unit="person")
    for call in (asked.ask, asked.explain):
        with pytest.raises(BadParameter, match="whole numbers"):
            call("SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=1, **{which: limit})
    with pytest.raises(BadParameter, match="whole numbers"):
        asked.workload(["SELECT COUNT(*) FROM t WHERE k = 'a'"], epsilon=1, **{which: limit})


# --- what one unit's row does to others ---------------------------------------------------------------------------


def test_dates_outside_the_calendar_leave_the_other_groups_alone(tmp_path: Path) -> None:
    """An infinite date is told as 9999-12-31 and once took that group's place."""
    counts = set()
    for odd in ("2024-01-02", "infinity", "-infinity", "20000-01-01"):
        place = tmp_path / f"{odd}.parquet"
        days = f"SELECT DATE '9999-12-31' AS d FROM range(40) UNION ALL SELECT DATE '{odd}'"
        duckdb.connect().execute(
            f"COPY (SELECT d, CAST(d AS TIMESTAMP) AS at FROM ({days})) TO '{place}' (FORMAT parquet)"
        )
        asked = session(place, {"d": column("date"), "at": column("datetime")})
        for key in ("d", "at"):
            rows = asked.ask(f"SELECT {key}, COUNT(*) FROM t GROUP BY {key}", epsilon=10**4, delta="1e-9").rows
            counts.add(tuple((str(day.value)[:10], n.value) for day, n in rows))
    assert counts == {(("9999-12-31", 40),)}


UNIT_QUESTIONS = [
    "SELECT COUNT(*) FROM t WHERE person = 1",
    "SELECT COUNT(*) FROM t WHERE person IN (1, 2) OR n = 7",
    "SELECT SUM(CLIP(person, 0, 10)) FROM t",
    "SELECT COUNT(DISTINCT person) FROM t WHERE person + 1 > 2",
    "SELECT COUNT(*) FROM (SELECT person AS p, MAX(n) AS m FROM t GROUP BY person) AS q WHERE p > 0",
    "SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.person = b.person WHERE a.person < 5",
    "SELECT COUNT(*) FROM t JOIN other ON t.person = other.person WHERE other.person < 5",
    "SELECT COUNT(*) FROM t JOIN other USING (person) WHERE person < 5",
]


@pytest.mark.parametrize("sql", UNIT_QUESTIONS)
def test_an_odd_id_makes_no_question_fail(sql: str, tmp_path: Path) -> None:
    """Ids in CSV files are text. Compared with a number they were converted; one that is none broke the question."""
    columns = {"person": column("integer"), "n": column("integer", low=0, high=9)}
    answers = []
    for odd in ("3", "three", "", "3.5", "99999999999999999999"):
        (tmp_path / "t.csv").write_text(f"person,n\n1,5\n2,6\n{odd},7\n")
        other = pl.DataFrame({"person": [1, 2, 3], "m": [1, 2, 3]})
        asked = session(
            tmp_path / "t.csv",
            columns,
            unit="person",
            other=(other, {"person": column("integer"), "m": column("integer")}),
        )
        answers.append(asked.ask(sql, epsilon=10**5).value)
    assert len(answers) == 5


def test_either_side_of_a_union_keeps_its_own_values() -> None:
    """The unit's column on one side alone: both sides once read the unit."""
    frame = pl.DataFrame({"person": [1, 2, 3], "n": [10, 20, 30]})
    asked = session(frame, {"person": column("integer"), "n": column("integer", low=0, high=100)}, unit="person")
    for one, two in (("person", "n"), ("n", "person"), ("person", "person"), ("n", "n")):
        both = f"SELECT person, {one} AS v FROM t UNION ALL SELECT person, {two} AS v FROM t"
        sql = f"SELECT SUM(CLIP(v, 0, 100)) FROM ({both}) AS q"
        total = sum(frame[one].to_list() + frame[two].to_list())
        assert asked.ask(sql, epsilon=10**6, rows=2).value == pytest.approx(total, abs=0.1)


ODD_FILES = {
    "a line break in a value": b'person,n\n1,5\n"2\n2",6\n3,7\n',
    "a lone carriage return": b"person,n\r\n1,5\r\n2,6\n3,7\r\n",
    "a quotation mark inside": b'person,n\n1,5\n"2"x,6\n3,7\n',
    "bytes that are no text": b"person,n\n1,5\n\xff\xfe,6\n3,7\n",
    "too many values": b"person,n\n1,5\n2,6,7,8,9\n3,7\n",
    "too few values": b"person,n\n1,5\n2\n3,7\n",
    "a zero byte": b"person,n\n1,5\nx\x00y,6\n3,7\n",
    "a very long value": b"person,n\n1,5\n" + b"x" * 3_000_000 + b",6\n3,7\n",
}


@pytest.mark.parametrize("odd", ODD_FILES)
def test_an_odd_row_of_a_csv_file_hides_at_most_itself(odd: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(ODD_FILES[odd])
    asked = session(tmp_path / "t.csv", {"person": column("category"), "n": column("integer", low=0, high=9)})
    assert exact(asked, "SELECT COUNT(*) FROM t WHERE n IN (5, 7)")[0][0] == 2
    assert exact(asked, "SELECT COUNT(*) FROM t")[0][0] in (2, 3)


def test_declared_columns_that_are_not_there_are_told_before_they_cost(tmp_path: Path) -> None:
    """Every question failed and was charged, until the budget was gone."""
    (tmp_path / "t.csv").write_text("n\n1\n")
    for data in (tmp_path / "t.csv", pl.DataFrame({"n": [1]})):
        with pytest.raises(MetadataMissing, match="declared columns"):
            session(data, {"n": column("integer"), "m": column("integer")})


def test_a_file_without_a_header_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"")
    with pytest.raises(EmptyTable, match="header"):
        session(tmp_path / "t.csv", {"n": column("integer")})


# --- what is done with answers ------------------------------------------------------------------------------------

CLASHES = [
    "SELECT k, COUNT(*) FROM t GROUP BY k HAVING k > 5",
    "SELECT k + COUNT(*) FROM t GROUP BY k",
    "SELECT k * 1000000000000, COUNT(*) FROM t GROUP BY k",
    "SELECT ABS(k), COUNT(*) FROM t GROUP BY k",
    "SELECT -k, COUNT(*) FROM t GROUP BY k",
    "SELECT CLIP(k, 0, 1), COUNT(*) FROM t GROUP BY k",
    "SELECT CASE WHEN k = 'a' THEN 'x' ELSE COUNT(*) END FROM t GROUP BY k",
    "SELECT COUNT(*) FROM t GROUP BY k ORDER BY CASE WHEN COUNT(*) > 0 THEN 'x' ELSE 1 END",
    "SELECT COALESCE(COUNT(*), 'none') FROM t",
    "SELECT COUNT(*) > 'a' FROM t",
    "SELECT (COUNT(*) > 1) + 1 FROM t",
    "SELECT k, COUNT(*) FROM t GROUP BY k HAVING COUNT(*)",
    "SELECT NOT COUNT(*) FROM t",
]


@pytest.mark.parametrize("sql", CLASHES)
def test_values_of_different_kinds_are_refused_before_they_cost(sql: str) -> None:
    asked = session(pl.DataFrame({"k": ["a"]}), {"k": column("category", values=("a", "b"))})
    with pytest.raises(QueryRefused):
        asked.ask(sql, epsilon=1)
    assert asked.ledger.balance(dataset="d").spent.size == 0


@pytest.mark.parametrize(
    "item",
    [
        "COUNT(*) * 1e299 * 1e299 / 3",
        "ROUND(COUNT(*) * 1e200 * 1e200)",
        "COUNT(*)" + " * 9007199254740991" * 80 + " / 7",
    ],
)
def test_numbers_too_large_to_show_are_missing(item: str) -> None:
    asked = session(pl.DataFrame({"k": ["a"] * 50}), {"k": column("category")})
    assert asked.ask(f"SELECT {item} FROM t", epsilon=100).frame.item() is None


def test_whole_numbers_and_others_may_stand_in_one_column() -> None:
    frame = pl.DataFrame({"k": [1.0, 2.5], "x": [1.5, 1.5]})
    asked = session(frame, {"k": column("number", values=(1, 2.5)), "x": column("number", low=0, high=2)})
    sql = "SELECT k, CASE WHEN k > 2 THEN 7 ELSE AVG(x) END AS m FROM t GROUP BY k"
    shown = asked.ask(sql, epsilon=10**5)
    assert shown.frame["k"].to_list() == [1.0, 2.5]
    assert shown.intervals["m"].to_list() == pytest.approx([1.5, 7], abs=0.01)


def test_large_sums_are_shown() -> None:
    frame = pl.DataFrame({"n": [2**40] * 100})
    asked = session(frame, {"n": column("integer", low=0, high=2**40)})
    shown = asked.ask("SELECT SUM(n) * 1000000 AS s, COUNT(*) > 1 AND TRUE AS c FROM t", epsilon=10**6).frame
    assert shown["s"].item() == pytest.approx(100 * 2**40 * 10**6, rel=1e-3)
    assert shown["c"].item()


@pytest.mark.parametrize("odd", ["COUNT(*) * 1000", "COUNT(*) + 0", "COUNT(*) > 5"])
def test_a_workload_answers_what_is_asked_or_nothing(odd: str) -> None:
    asked = session(pl.DataFrame({"k": ["a"]}), {"k": column("category", values=("a", "b"))})
    for sql in (
        f"SELECT {odd} FROM t",
        "SELECT COUNT(*) FROM t LIMIT 0",
        "SELECT COUNT(*) FROM t HAVING COUNT(*) > 5",
        "SELECT COUNT(*) FROM t ERROR 5",
    ):
        with pytest.raises(SfumatoError, match="plain counts"):
            asked.workload([sql], epsilon=1)


def test_the_same_key_twice_makes_the_same_groups() -> None:
    asked = session(pl.DataFrame({"k": ["a", "a", "b"]}), {"k": column("category", values=("a", "b"))})
    for by in ("k, k", "1, 2", "k, 1"):
        rows = asked.ask(f"SELECT k, k AS again, COUNT(*) FROM t GROUP BY {by}", epsilon=10**4).frame.rows()
        assert rows == [("a", "a", 2), ("b", "b", 1)]


# --- numbers that take too long to read -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon", ["1e-99999999", "1e99999999", Decimal("1e-99999999"), Decimal("1e99999999"), "0e99999999"]
)
def test_a_cost_that_would_fill_the_memory_is_refused(epsilon: Any) -> None:
    asked = session(pl.DataFrame({"k": ["a"]}), {"k": column("category")})
    with pytest.raises(BadParameter):
        asked.ask("SELECT COUNT(*) FROM t", epsilon=epsilon)


def test_a_zero_is_read_at_once_however_it_is_written() -> None:
    asked = session(pl.DataFrame({"x": [1.0]}), {"x": column("number", low=0, high=1)})
    assert exact(asked, "SELECT COUNT(*) FROM t WHERE x > 0e99999999")[0][0] == 1


def test_a_workload_draws_its_own_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whose groups are kept must not follow from what an analyst knows."""
    secrets = []

    def noted(strategy: Any, engine: Any, secret: int) -> Any:
        secrets.append(secret)
        return additive_totals(strategy, engine, secret)

    monkeypatch.setattr("sfumato.query.workload.additive_totals", noted)
    pl.DataFrame({"person": [1, 1, 2], "k": ["a", "b", "a"]}).write_parquet(tmp_path / "t.parquet")
    columns = {"person": column("integer"), "k": column("category", values=("a", "b"))}
    for _ in range(2):
        session(tmp_path / "t.parquet", columns, unit="person").workload(
            ["SELECT COUNT(*) FROM t WHERE k = 'a'"], epsilon=1
        )
    assert len(set(secrets)) == 2


# --- what is written and not meant ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("condition", "count"), [
    ("k LIKE 'a%'", 2), ("k NOT LIKE 'a%'", 1), ("k NOT ILIKE 'A%'", 1), ("NOT k LIKE 'a%'", 1), ("k !~~ 'a%'", 1),
    ("NOT k NOT LIKE 'a%'", 2), ("n NOT BETWEEN 2 AND 9", 1), ("n NOT IN (1, 2)", 1), ("k IS NOT NULL", 3),
    ("k NOT LIKE 'a%' OR n = 1", 2),
])  # fmt: skip
def test_a_negation_is_not_passed_over(condition: str, count: int) -> None:
    """NOT LIKE was answered as LIKE."""
    frame = pl.DataFrame({"k": ["a", "ab", "b"], "n": [1, 2, 3]})
    asked = session(frame, {"k": column("category"), "n": column("integer", low=0, high=9)})
    assert exact(asked, f"SELECT COUNT(*) FROM t WHERE {condition}")[0][0] == count


@pytest.mark.parametrize("sql", [
    "WITH q(n, m) AS (SELECT m, n FROM t) SELECT SUM(n) FROM q",
    "SELECT SUM(n) FROM (SELECT m, n FROM t) AS q(n, m)",
    "SELECT SUM(n) FROM t AS q(m, n)",
    "SELECT COUNT(*) FROM t WHERE n BETWEEN SYMMETRIC 9 AND 1",
    "SELECT MAX(n, 2) FROM t",
    "SELECT COUNT(*) FROM t LIMIT 50%",
    "SELECT k, COUNT(*) FROM t GROUP BY k ORDER BY 2 NULLS FIRST",
    "SELECT SUM(n ORDER BY m) FROM t",
    "SELECT SUM(ROUND(n, 1, TRUE)) FROM t",
])  # fmt: skip
def test_forms_that_no_rule_looks_at_are_refused(sql: str) -> None:
    """Each of these was answered as if the odd part were not there."""
    columns = {"k": column("category", values=("a", "b")), "n": column("integer", low=0, high=9)}
    asked = session(pl.DataFrame({"k": ["a"], "n": [1], "m": [2]}), columns | {"m": column("integer", low=0, high=9)})
    with pytest.raises(QueryRefused):
        asked.ask(sql, epsilon=1)
    assert asked.ledger.balance(dataset="d").spent.size == 0


def test_missing_values_come_last_either_way() -> None:
    asked = session(pl.DataFrame({"k": ["a"] * 50}), {"k": column("category", values=("a", "b"))})
    for way in ("", "DESC"):
        sql = f"SELECT k, CASE WHEN COUNT(*) > 20 THEN 1 END AS m FROM t GROUP BY k ORDER BY m {way}"
        assert asked.ask(sql, epsilon=10).frame["m"].to_list() == [1, None]


def test_a_draft_of_the_metadata_can_be_read_whatever_the_columns_are_called(tmp_path: Path) -> None:
    names = ["plain", "a: b", "#c", "- d", "x'y", 'q"r', "{z}", "true", "1", "null", "two\nlines", "*s", "&t", "!u",
             "%v", "a,b", " lead", "trail ", "\u00e9"]  # fmt: skip
    table = Table(frame=pl.DataFrame({name: [1, 2] for name in names}))
    for file in ("people", "a: b", "1", "x #y"):
        text = to_yaml(propose(table), f"{file}.parquet", unit="row", k=2)
        (tmp_path / "m.yaml").write_text(text, encoding="utf-8")
        [declared] = Dataset.load(tmp_path / "m.yaml").tables.values()
        assert list(declared.columns) == names
        assert Path(declared.data.location).name == f"{file}.parquet"


@pytest.mark.parametrize("cost", [{"epsilon": "1e-30"}, {"epsilon": 1e-300}, {"epsilon": "1e-30", "delta": "1e-9"},
                                  {"epsilon": [1]}, {"epsilon": b"1"}])  # fmt: skip
def test_noise_too_large_to_be_drawn_costs_nothing(cost: dict[str, Any]) -> None:
    asked = session(pl.DataFrame({"k": ["a"]}), {"k": column("category")})
    with pytest.raises(BadParameter):
        asked.ask("SELECT COUNT(*) FROM t", **cost)
    assert asked.ledger.balance(dataset="d").spent.size == 0


def test_a_kept_answer_is_not_shown_with_the_interval_of_other_noise() -> None:
    asked = session(pl.DataFrame({"k": ["a"]}), {"k": column("category")})
    plan = plan_query(parse_query("SELECT COUNT(*) FROM t", asked.catalog), pure(1))
    [draw] = plan.measurements
    assert isinstance(draw.mechanism, Laplace)
    other = replace(plan, measurements=(replace(draw, mechanism=Laplace(scale=2 * draw.mechanism.scale)),))
    assert asked.key_of(plan) == asked.key_of(plan_query(parse_query("select count(*) from t", asked.catalog), pure(1)))
    assert asked.key_of(plan) != asked.key_of(other)


def test_missing_codes_are_not_read_as_values_in_silence() -> None:
    coded = Column(role=Role.PLAIN, kind=Kind.INTEGER, domain=RangeDomain(low=0, high=120), missing_codes=(99,))
    with pytest.raises(MetadataMissing, match="NULLIF"):
        PrivateTable(name="t", schema=Schema(columns={"age": coded}))
