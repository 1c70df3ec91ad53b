"""Objects come in and go back as they came; addresses say what to read."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from sfumato.data import ColumnLabels, Table, read, to_native, write
from sfumato.data.formats.csv import Csv
from sfumato.data.url import parse_url
from sfumato.errors import (
    BadParameter,
    DatabaseFailed,
    DuplicateColumns,
    EmptyTable,
    ExtraMissing,
    FileMissing,
    UnknownFormat,
    WrongKind,
)

FRAME = pl.DataFrame({"zip": ["02141", None], "n": [1, 2], "born": [date(1990, 1, 31), None]})


def test_polars_comes_back_as_polars() -> None:
    assert to_native(read(FRAME)) is FRAME
    lazy = to_native(read(FRAME.lazy()))
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect().equals(FRAME)


def test_arrow_comes_back_as_arrow() -> None:
    again = to_native(read(FRAME.to_arrow()))
    assert isinstance(again, pa.Table)
    assert pl.DataFrame(again).equals(FRAME)
    with pytest.raises(DuplicateColumns):
        read(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]))


def test_anything_with_an_arrow_stream_comes_in() -> None:
    class Stream:
        def __arrow_c_stream__(self, requested: object = None) -> object:
            return FRAME.__arrow_c_stream__(requested)

    assert read(Stream()).frame.equals(FRAME)


def test_pandas_comes_back_as_pandas() -> None:
    pd = pytest.importorskip("pandas")
    given = pd.DataFrame(
        {"zip": ["02141", None], "n": [1, 2], "x": [0.5, float("nan")], "c": pd.Categorical(["u", "v"])}
    )
    table = read(given)
    assert table.frame["zip"].to_list() == ["02141", None]
    assert table.frame["x"].to_list() == [0.5, None]
    again = to_native(table)
    assert isinstance(again, pd.DataFrame)
    assert list(again.columns) == ["zip", "n", "x", "c"]
    assert again["n"].dtype == given["n"].dtype
    assert again["c"].dtype.name == "category"


def test_a_named_pandas_index_is_data_an_unnamed_one_is_not() -> None:
    pd = pytest.importorskip("pandas")
    assert read(pd.DataFrame({"n": [1]}, index=pd.Index(["Ann"], name="person"))).columns == ("person", "n")
    assert read(pd.DataFrame({"n": [1]}, index=["Ann"])).columns == ("n",)
    with pytest.raises(DuplicateColumns):
        read(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(WrongKind) as caught:
        read(pd.DataFrame({"m": [1, "Ann", object()]}))
    assert "Ann" not in str(caught.value)


def test_pandas_is_never_imported_for_the_caller(tmp_path: Path) -> None:
    write(Table(frame=FRAME), tmp_path / "t.csv")
    code = (
        f"import sys, polars, sfumato.data as d; t = d.read({str(tmp_path / 't.csv')!r}); "
        f"d.write(t, {str(tmp_path / 't.parquet')!r}); d.to_native(d.read(polars.DataFrame({{'a': [1]}}))); "
        "print([name for name in ('pandas', 'duckdb', 'psycopg', 'pyreadstat', 'fastexcel') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_other_objects_and_empty_tables_are_refused() -> None:
    with pytest.raises(UnknownFormat):
        read(42)
    with pytest.raises(EmptyTable):
        read(FRAME.clear())


def test_a_table_passes_through_and_files_come_as_polars(tmp_path: Path) -> None:
    table = Table(frame=FRAME)
    assert read(table) is table
    write(table, tmp_path / "t.parquet")
    assert isinstance(to_native(read(tmp_path / "t.parquet")), pl.DataFrame)


def test_the_format_can_be_named_against_the_suffix(tmp_path: Path) -> None:
    path = tmp_path / "t.dat"
    path.write_text("a;b\n1;2\n")
    with pytest.raises(UnknownFormat) as caught:
        read(path)
    assert ".parquet" in str(caught.value)
    assert read(path, format="csv").frame.rows() == [(1, 2)]
    assert read(path, format=Csv(header=False), delimiter=";").rows == 2
    with pytest.raises(BadParameter):
        read(path, format="csv", delimeter=";")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "people.csv").touch()
    with pytest.raises(FileMissing) as caught:
        read(tmp_path / "poeple.csv")
    assert "people.csv" in caught.value.fix
    with pytest.raises(FileMissing):
        read(tmp_path)


@pytest.mark.parametrize(
    ("suffix", "library", "extra"),
    [(".sav", "pyreadstat", "statistics"), (".dta", "pyreadstat", "statistics")],
)
def test_a_missing_library_is_named_with_its_extra(
    suffix: str, library: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"t{suffix}"
    write(Table(frame=FRAME), path)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ExtraMissing) as caught:
        read(path)
    assert f"[{extra}]'`" in caught.value.fix
    assert library in caught.value.message


def test_a_duckdb_file_by_url(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    write(Table(frame=FRAME), path)
    assert read(f"duckdb:///{path}?table=data").frame.equals(FRAME)
    assert read(f"duckdb:///{path}?query=SELECT sum(n) AS s FROM data").frame.rows() == [(3,)]
    assert read(path, query="SELECT zip FROM data WHERE n = 1").frame.rows() == [("02141",)]


@pytest.mark.parametrize(
    "ask",
    [
        "table=nowhere",
        "query=SELECT wrong FROM data",
        "query=DROP TABLE data",
        "query=SELECT 1; SELECT 2",
        "query=SELECT * FROM read_csv('/etc/hostname')",
        "query=COPY data TO 'x.csv'",
        "table=a&query=SELECT 1",
    ],
)
def test_duckdb_reads_tables_and_nothing_else(tmp_path: Path, ask: str) -> None:
    path = tmp_path / "people.duckdb"
    write(Table(frame=FRAME), path)
    with pytest.raises(DatabaseFailed):
        read(f"duckdb:///{path}?{ask}")


def test_urls_that_say_too_little() -> None:
    with pytest.raises(DatabaseFailed):
        parse_url("postgresql://db/census")
    with pytest.raises(DatabaseFailed):
        parse_url("mysql://db/census?table=t")
    assert "secret" not in repr(parse_url("postgresql://me:secret@db/census?table=t"))
    address = parse_url("postgresql://me@db/census?sslmode=require&table=t")
    assert address.location == "postgresql://me@db/census?sslmode=require"


def test_labels_of_a_column_that_changed_its_type_keep_only_the_title() -> None:
    labels = {name: ColumnLabels(label=name.upper(), value_labels={1: "one"}, missing=(9,)) for name in ("a", "b", "c")}
    table = Table(frame=pl.DataFrame({"a": [1, 9], "b": [1, 9], "c": [1, 9]}), labels=labels)
    after = table.with_frame(pl.DataFrame({"a": ["0-4", "*"], "b": [9, 9]}))
    assert after.labels["a"] == ColumnLabels(label="A")
    assert after.labels["b"] == labels["b"]
    assert "c" not in after.labels


@pytest.mark.parametrize(("made", "named"), [("s.people", "s.people"), ('"my.people"', None), ('s."a.b"', None)])
def test_a_single_table_is_found_in_any_schema_and_by_any_name(made: str, named: str | None, tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE SCHEMA s")
        connection.execute(f"CREATE TABLE {made} AS SELECT 1 AS a")
    assert read(path).frame["a"].to_list() == [1]
    if named is not None:
        assert read(path, table=named).frame["a"].to_list() == [1]
    with pytest.raises(DatabaseFailed, match="has no table `nobody`"):
        read(path, table="nobody")


def test_two_tables_of_one_name_are_told_apart_by_their_schema(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE SCHEMA s")
        connection.execute("CREATE TABLE people AS SELECT 1 AS a")
        connection.execute("CREATE TABLE s.people AS SELECT 2 AS a")
    assert read(path, table="people").frame["a"].to_list() == [1]
    assert read(path, table="main.people").frame["a"].to_list() == [1]
    assert read(path, table="s.people").frame["a"].to_list() == [2]
    with pytest.raises(DatabaseFailed, match="has 2 tables"):
        read(path)
