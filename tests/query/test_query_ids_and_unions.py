"""What a second outsider got through with: ids of several tables, values of unions, zeros, odd times, bare objects."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from sfumato.cli.query import _print_table
from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp.loss import approximate, pure
from sfumato.engines.backends.postgres.engine import Postgres
from sfumato.engines.backends.spark.dialect import SparkGenerator
from sfumato.engines.backends.spark.engine import Spark
from sfumato.engines.engine import Engine
from sfumato.engines.expressions import Read
from sfumato.engines.functions import Like
from sfumato.errors import BadParameter, DatabaseFailed, DuplicateColumns, MetadataMissing, QueryRefused
from sfumato.ledger.ledger import Ledger
from sfumato.query import Catalog, PrivateTable, PublicTable, Session
from sfumato.query.execute.sqlgen import additive_sql
from sfumato.query.plan.planner import plan_query
from sfumato.query.plan.relational import Scan
from sfumato.query.sql.parse import parse_query
from sfumato.secret import Permit


def column(kind: str, **domain: Any) -> Column:
    return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)


def session(
    tables: dict[str, tuple[Any, dict[str, Column]]], *, unit: str | None = None, engine: Engine | None = None
) -> Session:
    book = Ledger.open(":memory:")
    book.set_cap(approximate(10**8, "0.9"), dataset="d")
    limit = None if unit is None else 1
    private = {
        name: PrivateTable(name=name, schema=Schema(columns=own, unit=unit), rows=limit, groups=limit)
        for name, (_, own) in tables.items()
    }
    catalog = Catalog(dataset="d", private=private)
    data = {name: data for name, (data, _) in tables.items()}
    return Session(catalog, data, ledger=book, analyst="ana", engine=engine)


def one(data: Any, **columns: Column) -> Session:
    return session({"t": (data, columns)})


def exact(asked: Session, sql: str) -> list[tuple[Any, ...]]:
    """The numbers before noise."""
    strategy = plan_query(parse_query(sql, asked.catalog), pure(1))
    found: list[tuple[Any, ...]] = asked._engine.run(additive_sql(strategy, 1)).open(Permit("a test"))
    return found


# --- whose row it is --------------------------------------------------------------------------------------------------


def test_people_of_a_union_stay_apart_however_their_ids_are_stored() -> None:
    """Whole numbers and fractions became floats: neighbours above 2**53 were bounded as one person, who then moved two
    groups where one was paid for."""
    key = column("category", values=("a", "b", "c"))
    ints = pl.DataFrame({"id": [2**53, 2**53 + 1], "k": ["a", "b"]}), {"id": column("integer"), "k": key}
    floats = pl.DataFrame({"id": [0.5], "k": ["c"]}), {"id": column("number"), "k": key}
    sql = "SELECT k, COUNT(*) FROM (SELECT k FROM t UNION ALL SELECT k FROM b) AS q GROUP BY k"
    found = exact(session({"t": ints, "b": floats}, unit="id"), sql)
    assert sorted(found) == [(0, 1, 1), (1, 1, 1), (2, 1, 1)]


@pytest.mark.parametrize("place", ["frame", "t.parquet", "t.csv"])
def test_the_unit_is_the_column_of_that_name_and_no_other(place: str, tmp_path: Path) -> None:
    """Beside a column ID, the unit `id` was that one: one person with three rows was taken for three."""
    frame = pl.DataFrame({"ID": [10, 11, 12], "id": [1, 1, 1]})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_csv(tmp_path / "t.csv")
    source = frame if place == "frame" else tmp_path / place
    with pytest.raises((MetadataMissing, DuplicateColumns), match=r"upper and lower case|only by capitals"):
        session({"t": (source, {"id": column("integer")})}, unit="id")


@pytest.mark.parametrize("sql", [
    "SELECT COUNT(*) FROM (SELECT id FROM t UNION ALL SELECT id FROM b) AS x "
    "JOIN (SELECT b.id AS id FROM b JOIN t ON t.id = b.id) AS y ON x.id = y.id",
    "SELECT COUNT(*) FROM (SELECT t.id AS id, b.k AS k FROM t JOIN b ON t.id = b.id) AS x JOIN b ON x.id = b.id",
    "SELECT COUNT(*) FROM (SELECT id FROM t UNION ALL SELECT id FROM b UNION ALL SELECT id FROM t) AS x "
    "JOIN t ON t.id = x.id",
])  # fmt: skip
def test_joins_of_joins_fail_for_no_id(sql: str) -> None:
    """Ids of the same tables in another order were compared as they are stored, and text was converted to numbers."""
    columns = {"id": column("category"), "k": column("category")}
    numbers = pl.DataFrame({"id": [1, 2], "k": ["c", "d"]}), columns
    for odd in ("2", "x", "", "2.5", "9" * 30):
        texts = pl.DataFrame({"id": ["1", odd], "k": ["a", "b"]}), columns
        assert exact(session({"t": texts, "b": numbers}, unit="id"), sql)[0][0] >= 1


def test_a_row_of_a_union_is_in_one_group_though_its_values_are_declared_as_different() -> None:
    """Written-out whole numbers beside a column of floats: each of them matched all that are equal as floats."""
    asked = one(pl.DataFrame({"x": [0.5]}), x=column("number", values=(0.5, 1.5)))
    parts = " UNION ALL ".join(f"SELECT {2**60 + i} AS k FROM t" for i in range(9))
    sql = f"SELECT k, COUNT(*) FROM (SELECT x AS k FROM t UNION ALL {parts}) AS q GROUP BY k"
    [draw] = plan_query(parse_query(sql, asked.catalog), pure(1)).measurements
    assert sum(row[1] for row in exact(asked, sql)) <= draw.sensitivity == 10


# --- what a key shows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["x", "x * 1", "ABS(x) * x"])
def test_a_zero_is_shown_without_a_sign(key: str) -> None:
    """Of equal keys an engine shows one: a single -0.0 could show that it is there."""
    for rows in ([-0.0] + [0.0] * 60, [0.0] * 60 + [-0.0], [-0.0] * 61):
        asked = one(pl.DataFrame({"x": rows}), x=column("number", low=-1, high=1))
        shown = asked.ask(f"SELECT {key} AS k, COUNT(*) FROM t GROUP BY {key}", epsilon=100, delta="1e-9")
        assert [str(row[0].value) for row in shown.rows] == ["0.0"]


def test_a_key_that_is_no_number_is_shown_without_its_bits() -> None:
    (odd,) = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))
    bits = set()
    for rows in ([odd] + [float("nan")] * 60, [float("nan")] * 61):
        asked = one(pl.DataFrame({"x": np.array(rows)}), x=column("number", low=-1, high=1))
        [[key, _]] = asked.ask("SELECT x, COUNT(*) FROM t GROUP BY x", epsilon=100, delta="1e-9").rows
        bits.add(struct.pack("<d", key.value))
    assert len(bits) == 1


def test_the_extreme_of_a_unit_is_a_zero_without_a_sign() -> None:
    columns = {"id": column("integer"), "x": column("number", low=-1, high=1)}
    for rows in ([0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]):
        asked = session({"t": (pl.DataFrame({"id": [1, 1], "x": rows}), columns)}, unit="id")
        for function in ("MIN", "MAX"):
            inner = f"SELECT id, {function}(x) AS m FROM t GROUP BY id"
            sql = f"SELECT COUNT(*) FROM ({inner}) AS q WHERE CAST(m AS VARCHAR) = '0.0'"
            assert exact(asked, sql)[0][0] == 1


# --- times that cannot be read ----------------------------------------------------------------------------------------

TIMES = {
    "s": ("TIMESTAMP_S", (2**63 - 1, -(2**63) + 1, 10**13)),
    "ms": ("TIMESTAMP_MS", (2**63 - 1, -(2**63) + 1, 10**16)),
    "us": ("TIMESTAMP", (2**63 - 1, -(2**63), -(2**63) + 1, -9223372022400000001)),
    "ns": ("TIMESTAMP_NS", (2**63 - 1, -(2**63), -(2**63) + 1)),
}
TIME_QUESTIONS = [
    *(f"SELECT COUNT(*) FROM t WHERE EXTRACT({part} FROM c) >= 0" for part in ("YEAR", "WEEK", "DOW", "HOUR")),
    "SELECT COUNT(*) FROM t WHERE CAST(c AS VARCHAR) LIKE '%a%'",
    "SELECT COUNT(DISTINCT CAST(c AS VARCHAR)) FROM t",
    "SELECT COUNT(*) FROM t WHERE CAST(c AS DATE) > '2020-01-01'",
    "SELECT COUNT(DISTINCT c) FROM t",
]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", TIMES)
def test_no_stored_time_makes_a_question_fail(unit: str, zone: str | None, tmp_path: Path) -> None:
    """A time beyond what microseconds hold made every question that looked at it fail."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    numbers = pa.array([0, *TIMES[unit][1]], pa.int64())
    table = pa.table({"c": numbers.view(pa.timestamp(unit, tz=zone))})
    sources: list[Any] = [table]
    if unit in ("us", "ns"):  # DuckDB itself cannot open files with milliseconds beyond its own years
        pq.write_table(table, tmp_path / "t.parquet")
        sources.append(tmp_path / "t.parquet")
    for source in sources:
        for kind in ("datetime", "date"):
            asked = one(source, c=column(kind))
            assert all(isinstance(asked.ask(sql, epsilon=1).value, int) for sql in TIME_QUESTIONS)
        asked = one(source, c=column("category"))
        for sql in ("SELECT COUNT(*) FROM t WHERE c LIKE '%a%'", "SELECT COUNT(DISTINCT c) FROM t"):
            assert isinstance(asked.ask(sql, epsilon=1).value, int)


@pytest.mark.parametrize("place", ["frame", "parquet", "csv"])
def test_no_date_makes_a_question_fail(place: str, tmp_path: Path) -> None:
    """The first year that a date can be has no weeks."""
    for odd in ("'5877642-06-25 (BC)'", "'5881580-07-10'", "'infinity'", "'-infinity'"):
        rows = f"SELECT DATE '2024-01-31' AS c UNION ALL SELECT CAST({odd} AS DATE)"
        source: Any = tmp_path / f"t.{place}"
        if place == "frame":
            source = duckdb.sql(rows).to_arrow_table()
        else:
            duckdb.sql(f"COPY ({rows}) TO '{source}' (FORMAT {place})")
        asked = one(source, c=column("date"))
        for sql in TIME_QUESTIONS:
            asked.ask(sql.replace("HOUR", "MONTH"), epsilon=1)
        assert exact(asked, "SELECT COUNT(*) FROM t WHERE EXTRACT(WEEK FROM c) = 5")[0][0] == 1


def test_dates_within_the_calendar_are_read_as_they_are(tmp_path: Path) -> None:
    days = "(DATE '0001-01-01'), (DATE '9999-12-31'), (DATE '2024-02-29'), (NULL)"
    rows = f"SELECT d, CAST(d AS TIMESTAMP) + INTERVAL 86399999999 MICROSECOND AS at FROM (VALUES {days}) AS v(d)"
    duckdb.sql(f"COPY ({rows}) TO '{tmp_path / 't.parquet'}' (FORMAT parquet)")
    asked = one(tmp_path / "t.parquet", d=column("date"), at=column("datetime"))
    assert exact(asked, "SELECT COUNT(d), COUNT(at), COUNT(*) FROM t") == [(3, 3, 4, 4)]
    assert exact(asked, "SELECT COUNT(*) FROM t WHERE at >= '9999-12-31 23:59:59.999999'")[0][0] == 1


@pytest.mark.slow
def test_no_date_makes_a_question_fail_on_spark(java: str, tmp_path: Path) -> None:
    days = pl.Series([19_753, 2**31 - 1, -(2**31)], dtype=pl.Int32).cast(pl.Date)
    moments = pl.Series([0, 2**63 - 1, -(2**63)], dtype=pl.Int64).cast(pl.Datetime("us"))
    pl.DataFrame({"d": days, "at": moments}).write_parquet(tmp_path / "t.parquet")
    columns = {"d": column("date"), "at": column("datetime")}
    asked = session({"t": (tmp_path / "t.parquet", columns)}, engine=Spark(threads=1))
    for name in columns:
        for sql in TIME_QUESTIONS:
            if name == "at" or "HOUR" not in sql:
                assert isinstance(
                    asked.ask(sql.replace("c)", f"{name})").replace("(c ", f"({name} "), epsilon=1).value, int
                )
    assert exact(asked, "SELECT COUNT(d), COUNT(at) FROM t") == [(1, 1, 3)]


@pytest.mark.slow
def test_bytes_that_are_no_text_take_no_keys_place_on_spark(java: str, tmp_path: Path) -> None:
    """Python shows them as the sign for what cannot be read, which may be a key of its own, of many people."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parts = [b"\xef\xbf\xbd"] * 3 + [b"\xff", b"\xfe", b"a"]
    ends = np.cumsum([0, *map(len, parts)]).astype(np.int32)
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(parts))]
    pq.write_table(pa.table({"k": pa.Array.from_buffers(pa.string(), len(parts), buffers)}), tmp_path / "t.parquet")
    asked = session({"t": (tmp_path / "t.parquet", {"k": column("category")})}, engine=Spark(threads=1))
    plan = plan_query(parse_query("SELECT k, COUNT(*) FROM t GROUP BY k", asked.catalog), approximate(1, "1e-6"))
    found: list[tuple[Any, ...]] = asked._engine.run(additive_sql(plan, 1)).open(Permit("a test"))
    assert sorted(row[:2] for row in found) == [("a", 1), ("\ufffd", 3)]
    assert exact(asked, "SELECT COUNT(*) FROM t WHERE k IS NULL")[0][0] == 2


@pytest.mark.slow
def test_a_text_is_not_what_spark_finds_under_that_name(java: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark puts the variables of its process into a statement's text: a question could spell them out."""
    monkeypatch.setenv("SFUMATO_TEST_SECRET", "hunter")
    frame = pl.DataFrame({"c": ["a"] * 50})
    asked = session({"t": (frame, {"c": column("category")})}, engine=Spark(threads=1))
    for text in ("${env:SFUMATO_TEST_SECRET}", "${env:PATH}", "${system:user.home}", "${spark.app.name}", "${x}"):
        assert exact(asked, f"SELECT COUNT(*) FROM t WHERE LENGTH('{text}') = {len(text)}")[0][0] == 50
        assert exact(asked, f"SELECT COUNT(*) FROM t WHERE '{text}' LIKE '_%{{%}}'")[0][0] == 50


# --- columns without a type -------------------------------------------------------------------------------------------


def test_values_of_an_untyped_column_are_read_one_by_one() -> None:
    """A single 2.5 among whole numbers of Python made the others read as 1.0."""
    pd = pytest.importorskip("pandas")
    for odd in (1, 2.5, "x", None, float("nan"), True, b"y"):
        for rows in ([1, 1, 1, odd], [odd, 1, 1, 1]):
            asked = one(pd.DataFrame({"n": pd.Series(rows, dtype=object)}), n=column("category"))
            assert exact(asked, "SELECT COUNT(*) FROM t WHERE n = '1'")[0][0] == (
                4 if odd is not True and odd == 1 else 3
            )


def test_two_columns_of_one_name_are_refused() -> None:
    """Which of them is the unit would be anybody's guess."""
    pd = pytest.importorskip("pandas")
    for names in (["id", "id"], [1, "1"]):
        frame = pd.DataFrame([[1, 10], [1, 11]], columns=names)
        with pytest.raises(BadParameter, match="same name"):
            one(frame, **{str(names[0]): column("integer")})


def test_what_cannot_be_opened_is_told_without_values(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 Chandler has the flu PAR1")
    with pytest.raises(DatabaseFailed, match="cannot read table `t`") as told:
        one(tmp_path / "t.parquet", c=column("category"))
    assert "Chandler" not in str(told.value)


# --- questions that take for ever, for one person alone ---------------------------------------------------------------


def repeated(levels: int, joins: int, name: str) -> str:
    """One person's row, repeated by unions and joined with itself."""
    views = ["a0 AS (SELECT id, name, flu FROM t)"]
    views += [f"a{i + 1} AS (SELECT * FROM a{i} UNION ALL SELECT * FROM a{i})" for i in range(levels)]
    others = "".join(f" JOIN a{levels} AS x{j} ON x0.id = x{j}.id" for j in range(1, joins))
    return f"WITH {', '.join(views)} SELECT COUNT(*) FROM a{levels} AS x0{others} WHERE x0.name = '{name}' AND x0.flu"


def test_nobodys_row_can_be_repeated_until_a_question_runs_out_of_time() -> None:
    """A join of unions of one row with itself ran out of time if that one person had the flu, and was answered else."""
    columns = {"id": column("integer"), "name": column("category"), "flu": column("boolean")}
    frame = pl.DataFrame({"id": [1, 2], "name": ["ann", "bob"], "flu": [True, False]})
    asked = session({"t": (frame, columns)}, unit="id")
    for levels, joins in ((6, 7), (3, 3), (7, 1), (0, 4), (2, 3), (5, 2)):
        for name in ("ann", "bob"):
            with pytest.raises(QueryRefused):
                asked.ask(repeated(levels, joins, name), epsilon=1)
    assert asked.ledger.balance(dataset="d").spent.size == 0
    for levels, joins in ((4, 1), (1, 2), (2, 2), (0, 3)):
        assert exact(asked, repeated(levels, joins, "ann"))[0][0] == 1


def test_people_counted_in_many_subqueries_are_joined_freely() -> None:
    frame = pl.DataFrame({"id": [1, 1, 2], "n": [1, 2, 3]})
    asked = session({"t": (frame, {"id": column("integer"), "n": column("integer", low=0, high=9)})}, unit="id")
    one_row = "(SELECT id, COUNT(*) AS c FROM t GROUP BY id)"
    joins = "".join(f" JOIN {one_row} AS x{i} ON x{i}.id = t.id" for i in range(6))
    assert exact(asked, f"SELECT COUNT(DISTINCT t.id) FROM t{joins} WHERE x0.c = 2")[0][0] == 1


@pytest.mark.parametrize("sql", [
    "SELECT SUM(" + "CLIP(" * 20 + "n" + ", 0, 1)" * 20 + ") FROM t",
    "SELECT COUNT(*) FROM t WHERE " + "n = CASE n WHEN 1 THEN NULLIF(" * 30 + "n" + ", n) ELSE n END" * 30,
    "SELECT COUNT(*) AS a0, " + ", ".join(f"a{i} + a{i} AS a{i + 1}" for i in range(40)) + " FROM t",
    "WITH a0 AS (SELECT n FROM t), "
    + ", ".join(f"a{i + 1} AS (SELECT n FROM a{i} UNION ALL SELECT n FROM a{i})" for i in range(60))
    + " SELECT COUNT(*) FROM a60",
])  # fmt: skip
def test_questions_that_grow_as_they_are_read_are_refused_at_once(sql: str) -> None:
    asked = one(pl.DataFrame({"n": [1]}), n=column("integer", low=0, high=9))
    with pytest.raises(QueryRefused):
        asked.explain(sql, epsilon=1)


def test_spark_is_not_asked_to_try_all_ways_to_match() -> None:
    generator = SparkGenerator({"t": {"s": "text"}})
    text = Read(("t", "s"), "text")
    assert "LIKE" in generator.expression(Like(text, "%a%b%c%", False))
    for pattern in ("%_" * 20 + "z", "%a%b%c%d%"):
        with pytest.raises(QueryRefused, match="more than"):
            generator.expression(Like(text, pattern, False))


def test_a_column_of_lists_is_not_taken_for_one_of_numbers(postgresql: str) -> None:
    """Every question about it failed, at its full cost."""
    import psycopg

    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("CREATE TABLE public.listed (n int[])")
    columns = {"n": column("integer", low=0, high=9)}
    asked = session({"t": (f"{postgresql}#public.listed", columns)}, engine=Postgres())
    with pytest.raises(QueryRefused):
        asked.ask("SELECT SUM(n) FROM t", epsilon=1)
    assert asked.ledger.balance(dataset="d").spent.size == 0


def test_a_key_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """A key that looks like a mark of the terminal's own made the command fail, after the answer was paid for."""
    asked = one(pl.DataFrame({"k": ["[/x]"] * 90 + ["[red]y"] * 90}), k=column("category"))
    _print_table(asked.ask("SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=20, delta="1e-6"))
    shown = capsys.readouterr().out
    assert "[/x]" in shown
    assert "[red]y" in shown


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_odd_numbers_of_a_public_table_spoil_no_join(odd: float) -> None:
    public = PublicTable(name="p", frame=pl.DataFrame({"id": ["a", "b", "c"], "rate": [1.0, odd, 3.0]}), key=("id",))
    table = PrivateTable(name="t", schema=Schema(columns={"k": column("category")}))
    book = Ledger.open(":memory:")
    book.set_cap(pure(10**9), dataset="d")
    catalog = Catalog(dataset="d", private={"t": table}, public={"p": public})
    asked = Session(catalog, {"t": pl.DataFrame({"k": ["a", "b", "c"]})}, ledger=book, analyst="ana")
    assert exact(asked, "SELECT COUNT(*) FROM t JOIN p ON t.k = p.id WHERE rate > 2")[0][0] >= 1
    if odd != odd:
        assert asked.ask("SELECT SUM(rate) FROM t JOIN p ON t.k = p.id", epsilon=10**6).value == pytest.approx(
            4, abs=0.1
        )
    else:
        with pytest.raises(QueryRefused, match="no public bounds"):
            asked.explain("SELECT SUM(rate) FROM t JOIN p ON t.k = p.id", epsilon=1)


@pytest.mark.parametrize(
    "ids", [("interval", "'1 mon'", "'30 days'"), ("json", "'1'", "'2'"), ("int[]", "'{1}'", "'{2}'")]
)
def test_ids_of_any_type_are_told_apart_by_their_text(ids: tuple[str, str, str], postgresql: str) -> None:
    """Equal in one place of a statement and different in another, or not comparable at all."""
    import psycopg

    kind, first, second = ids
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS public.odd_ids")
        connection.execute(f"CREATE TABLE public.odd_ids (id {kind}, k text)".encode())
        rows = f"({first}, 'a'), ({first}, 'b'), ({second}, 'b')"
        connection.execute(f"INSERT INTO public.odd_ids VALUES {rows}".encode())
    columns = {"id": column("category"), "k": column("category", values=("a", "b"))}
    asked = session({"t": (f"{postgresql}#public.odd_ids", columns)}, unit="id", engine=Postgres())
    assert exact(asked, "SELECT COUNT(DISTINCT id) FROM t")[0][0] == 2
    assert sum(row[1] for row in exact(asked, "SELECT k, COUNT(*) FROM t GROUP BY k")) == 2
    assert exact(asked, "SELECT COUNT(*) FROM t AS x JOIN t AS y ON x.id = y.id")[0][0] == 2


@pytest.mark.parametrize("kind", ["text", "varchar(9)", "char(9)"])
def test_a_collation_makes_nobody_of_two_people(kind: str, postgresql: str) -> None:
    """Where a column's collation takes upper and lower case for equal, two people were one, and a row met two keys."""
    import psycopg

    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS public.same")
        connection.execute("DROP COLLATION IF EXISTS same")
        try:
            connection.execute(
                "CREATE COLLATION same (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
            )
        except psycopg.Error:
            pytest.skip("this server was built without ICU")
        connection.execute(f"CREATE TABLE public.same (id {kind} COLLATE same, k text COLLATE same)".encode())
        connection.execute("INSERT INTO public.same VALUES ('Bob', 'a'), ('bob', 'a'), ('eve', 'A')")
    place = f"{postgresql}#public.same"
    columns = {"id": column("category"), "k": column("category", values=("a", "A"))}
    asked = session({"t": (place, columns)}, unit="id", engine=Postgres())
    assert exact(asked, "SELECT COUNT(DISTINCT id) FROM t")[0][0] == 3
    asked = session({"t": (place, columns)}, engine=Postgres())
    assert sorted(row[1] for row in exact(asked, "SELECT k, COUNT(*) FROM t GROUP BY k")) == [1, 2]
    assert exact(asked, "SELECT COUNT(*) FROM t WHERE k = 'A'")[0][0] == 1
    assert exact(asked, "SELECT COUNT(*) FROM t WHERE id IN ('BOB', 'EVE')")[0][0] == 0


def test_a_collation_of_spark_makes_nobody_of_two_people() -> None:
    """Its type is then none that is known here, and the id goes by its text; a value of such a type is refused."""
    generator = SparkGenerator({"t": {"id": "other"}})
    scan = Scan(table="t", unit_column="id", names=())
    assert "CAST(`id` AS STRING) AS `u`" in generator.write(scan.query())
    with pytest.raises(QueryRefused):
        generator.expression(Read(("t", "id"), "text"))


def test_floats_come_from_the_server_with_all_their_digits(postgresql: str) -> None:
    """With a server's setting of fewer digits, two private keys looked alike, and one took the other's place."""
    import psycopg

    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("CREATE TABLE public.digits (x float8)")
        connection.execute("INSERT INTO public.digits VALUES (0.1), (0.10000000000000003)")
    place = f"{postgresql}?options=-c%20extra_float_digits%3D0#public.digits"
    asked = session({"t": (place, {"x": column("number")})}, engine=Postgres())
    plan = plan_query(parse_query("SELECT x, COUNT(*) FROM t GROUP BY x", asked.catalog), approximate(1, "1e-6"))
    found: list[tuple[Any, ...]] = asked._engine.run(additive_sql(plan, 1)).open(Permit("a test"))
    assert len({row[0] for row in found}) == 2
