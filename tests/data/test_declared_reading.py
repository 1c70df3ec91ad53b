"""Declared reading: types, order and success follow from the declaration; a row changes at most itself."""

from __future__ import annotations

import gzip
import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sfumato.cli import main
from sfumato.data import Table, read, write
from sfumato.data.declared import as_kind, column_names, read_declared
from sfumato.dataset import Data, Schema
from sfumato.errors import BadParameter, EmptyTable, NotThatFormat, UndecidedColumns, UnknownColumn

KINDS = {"job": "category", "age": "integer", "pay": "number"}
TYPES = {"job": pl.String, "age": pl.Int64, "pay": pl.Float64}
PEOPLE = pl.DataFrame({"age": [40, 41, None], "job": ["a, b", 'the "c"', "NA"], "pay": [1.5, 2.0, 3.25], "more": 1})
LINES = [b"age,job,pay", b'40,"a, b",1.5', b'41, "the ""c""" ,2', b',"NA",3.25']
ODD = {
    b"x,d,y": (None, "d", None),
    b'4"0,5" pipe,1': (None, '5" pipe', 1.0),
    b'"42"x,d,1': (42, "d", 1.0),
    b"42,d,1,,": (42, "d", 1.0),
    b"42,d": "no row",
    b"42,d,1,2": "no row",
    b'"42,d,1': "no row",
    b"42,\xff,1": "no row",
    b"": "no row",
    b"42," + b"x" * 17_000_000 + b",1": "no row",
    b"42," + b"x" * 1_000_000 + b",1": (42, "x" * 1_000_000, 1.0),
    b"1e300,1.0,nan": (None, "1.0", None),
    b"NA,NA,?": (None, None, None),
}


@pytest.mark.parametrize("line", ODD, ids=lambda line: line[:12].decode("latin-1") or "blank")
@pytest.mark.parametrize("place", [1, 3, 4])
def test_a_line_changes_at_most_its_own_row(line: bytes, place: int, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b"\r\n".join([*LINES[:place], line, *LINES[place:]]))
    found = read_declared(path, KINDS).frame
    own = [(40, "a, b", 1.5), (41, 'the "c"', 2.0), (None, "NA", 3.25)]
    expected = ODD[line]
    if expected != "no row":
        own.insert(place - 1, expected)  # type: ignore[arg-type]
    assert found.schema == TYPES
    # After a line beyond the limit, DuckDB may give the rows in another order.
    assert sorted(found.select("age", "job", "pay").rows(), key=str) == sorted(own, key=str)


def test_an_open_quotation_mark_would_join_the_rows_of_others_in_the_ordinary_reading(tmp_path: Path) -> None:
    """What the rule that a record is a line is for. The other half of the pair is a legal file."""
    path = tmp_path / "people.csv"
    path.write_text('age,job\n40,"a\n41,b\n42,c"\n43,d\n')
    assert read(path).rows == 2
    assert read_declared(path, {"age": "integer"}).frame["age"].to_list() == [41, 43]


FORMATS = (".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".jsonl", ".xlsx", ".duckdb", ".sav")


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_gives_the_declared_table(suffix: str, tmp_path: Path) -> None:
    if suffix == ".sav":
        pytest.importorskip("pyreadstat")
    path = tmp_path / f"people{suffix}"
    write(Table(frame=PEOPLE.with_columns(job=pl.Series(["a, b", 'the "c"', "d"]))), path)
    found = read_declared(path, KINDS).frame
    assert found.schema == TYPES
    assert found.rows() == [("a, b", 40, 1.5), ('the "c"', 41, 2.0), ("d", None, 3.25)]


def test_a_row_of_json_or_of_a_sheet_or_of_objects_changes_no_other(tmp_path: Path) -> None:
    lines = ['{"age": 40, "job": "a"}', '[{"age": 1}]', "nonsense", '{"age": [1], "job": {"b": 1}, "new": 1}', ""]
    (tmp_path / "people.jsonl").write_text("\n".join([*lines, '{"job": "c", "age": 41}']))
    found = read_declared(tmp_path / "people.jsonl", {"age": "integer", "job": "category"}).frame
    assert found.rows() == [(40, "a"), (None, None), (None, None), (None, None), (41, "c")]
    import xlsxwriter

    with xlsxwriter.Workbook(tmp_path / "people.xlsx") as book:
        page = book.add_worksheet()
        for row, cells in enumerate([["age", "job"], [40, "a"], ["old", 7], [41.5, "b", "beyond"], [42, None]]):
            page.write_row(row, 0, cells)
    found = read_declared(tmp_path / "people.xlsx", {"age": "integer", "job": "category"}).frame
    assert found.rows() == [(40, "a"), (None, "7"), (None, "b"), (42, None)]
    pandas = pytest.importorskip("pandas")
    mixed = pandas.DataFrame({"age": [40, "old", 41.5, None]})
    assert read_declared(mixed, {"age": "number"}).frame["age"].to_list() == [40.0, None, 41.5, None]
    mixed = pl.DataFrame({"age": pl.Series([40, "old", 41.5, None], dtype=pl.Object)})
    assert read_declared(mixed, {"age": "number"}).frame["age"].to_list() == [40.0, None, 41.5, None]


def test_the_dialect_is_declared_and_never_found(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes("Name;pay\nZoë;1,5\nBo;-9\n".encode("latin-1"))
    with pytest.raises(UnknownColumn, match="pay"):
        read_declared(path, {"pay": "number"})
    source = f"{path}?delimiter=;&encoding=latin-1&decimal=,&missing=-9"
    assert read_declared(source, {"pay": "number", "Name": "category"}).frame.rows() == [(1.5, "Zoë"), (None, "Bo")]
    with pytest.raises(NotThatFormat, match="line by line"):
        read_declared(f"{path}?encoding=utf-16", {"pay": "number"})
    with pytest.raises(BadParameter, match="name the columns"):
        read_declared(f"{path}?header=false", {"pay": "number"})
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(EmptyTable):
        read_declared(tmp_path / "empty.csv", KINDS)


def test_no_rows_are_a_table_and_kinds_of_a_text_file_are_required(tmp_path: Path) -> None:
    path = tmp_path / "people.csv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfage,job,pay,\n"))
    assert column_names(path) == ("age", "job", "pay")
    assert read_declared(path, {**KINDS, "age": "date"}).frame.schema == {**TYPES, "age": pl.Date}
    with pytest.raises(BadParameter, match="not declared"):
        read_declared(path, {"age": None})
    assert read_declared(PEOPLE, {"age": None}).frame["age"].dtype == pl.Int64
    path.write_bytes(gzip.compress(b"age\n1\n"))
    guessed = read(path)
    with pytest.raises(BadParameter, match="looking at its rows"):
        read_declared(guessed, {"age": "integer"})


@pytest.mark.parametrize(
    ("stored", "kind", "read_as"),
    [
        (pl.Series(["1990-01-31", "31.01.1990", "01/02/1990", "1990-01-31 10:00"]), "date", [date(1990, 1, 31)] * 2),
        (pl.Series(["1990-01-31T10:00:00Z", "10:00"]), "datetime", [datetime(1990, 1, 31, 10)]),
        (pl.Series(["yes", "0", "TRUE", "maybe"]), "boolean", [True, False, True, None]),
        (pl.Series([1.0, 2.5, None, float("nan")]), "category", ["1", "2.5", None, None]),
        (pl.Series([datetime(2020, 1, 1)]), "category", ["2020-01-01"]),
        (pl.Series([2.0, 2.5, 1e300]), "integer", [2, None, None]),
        (pl.Series([True, False]), "number", [1.0, 0.0]),
        (pl.Series([datetime(2020, 1, 1), datetime(2020, 1, 1, 5)]), "date", [date(2020, 1, 1), None]),
    ],
)  # fmt: skip
def test_every_cell_is_read_by_itself(stored: pl.Series, kind: str, read_as: list[Any]) -> None:
    whole = as_kind(stored, kind).to_list()
    assert whole == read_as + [None] * (len(stored) - len(read_as))
    assert [as_kind(stored[[place]], kind)[0] for place in range(len(stored))] == whole


def test_a_recipe_with_a_guarantee_refuses_what_it_does_not_declare(tmp_path: Path) -> None:
    from sfumato.recipe import Recipe

    (tmp_path / "people.csv").write_text("age,job\n40,a\n41.5,b\n")
    document = {
        "sfumato": 1, "data": str(tmp_path / "people.csv"), "columns": {"age": "quasi"},
        "steps": [{"private-synthesis": {"epsilon": 1, "delta": 1e-6, "domains": {"age": {"low": 0, "high": 99}}}}],
    }  # fmt: skip
    (tmp_path / "recipe.yaml").write_text(json.dumps(document))
    recipe = Recipe.load(tmp_path / "recipe.yaml")
    with pytest.raises(UndecidedColumns, match="`job`"):
        recipe.open(tmp_path / "people.csv")
    document["columns"] = {"age": "quasi", "job": "drop"}
    (tmp_path / "recipe.yaml").write_text(json.dumps(document))
    with pytest.raises(BadParameter, match="kind of column `age`"):
        Recipe.load(tmp_path / "recipe.yaml").open(tmp_path / "people.csv")
    document["columns"] = {"age": {"role": "quasi", "kind": "integer", "missing_codes": [40]}, "job": "drop"}
    (tmp_path / "recipe.yaml").write_text(json.dumps(document))
    data = Recipe.load(tmp_path / "recipe.yaml").open(tmp_path / "people.csv")
    assert (data.table.frame["age"].dtype, data.table.frame["age"].to_list()) == (pl.Int64(), [None, None])
    assert Data.declared(PEOPLE, Schema(columns={})).table.columns == tuple(PEOPLE.columns)


SYNTHESIS = """\
sfumato: 1
columns:
  age: {role: quasi, kind: integer, domain: {low: 0, high: 110}}
  job: {role: quasi, kind: category, domain: {values: [cook, clerk]}}
  ill: {role: sensitive, kind: category, domain: {values: ["no", "yes"]}}
steps:
  - private-synthesis: {epsilon: 1, delta: 1e-6, target: ill, mechanism: mst}
"""
LEARNING = """\
sfumato: 1
dataset: people
unit: row
columns:
  age: {role: quasi, domain: {low: 0, high: 110}}
  job: {role: quasi, domain: {values: [cook, clerk]}}
  ill: {role: quasi, domain: {values: ["no", "yes"]}}
learn: logistic-regression
features: [age, job]
target: ill
epsilon: 2
delta: 1e-6
"""


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows_or_none_are_no_failure(rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether there is anybody is what one row decides: a release, a model and their exit codes must not tell."""
    (tmp_path / "people.csv").write_text("age,job,ill\n" + "40,cook,no\n" * rows)
    (tmp_path / "synthesis.yaml").write_text(f"{SYNTHESIS}data: people.csv\n")
    (tmp_path / "learning.yaml").write_text(f"{LEARNING}data: people.csv\n")
    assert (
        main(["protect", str(tmp_path / "synthesis.yaml"), "--out", str(tmp_path / "release"), "--targets", "5"]) == 0
    )
    assert (tmp_path / "release" / "data.csv").is_file()
    assert main(["learn", str(tmp_path / "learning.yaml"), "--out", str(tmp_path / "model.skops")]) == 0
    capsys.readouterr()
