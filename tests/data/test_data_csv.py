"""Delimited text as people really send it."""

from __future__ import annotations

import io
import sys
from datetime import date, datetime
from pathlib import Path

import polars as pl
import pytest

from sfumato.data import Table, read, write
from sfumato.data.formats.csv import Csv
from sfumato.errors import DuplicateColumns, EmptyTable, NotThatFormat, RaggedLine, WrongKind

SAMPLES = Path(__file__).parent.parent / "samples" / "formats"


def parse(content: str | bytes, **options: object) -> pl.DataFrame:
    data = content.encode() if isinstance(content, str) else content
    return Csv.build(options).parse(data, "f.csv").frame


def test_latin_1_with_semicolons_and_decimal_commas() -> None:
    frame = read(SAMPLES / "latin1_semicolon.csv").frame
    assert frame.schema == {
        "Name": pl.String,
        "Größe": pl.Float64,
        "Gewicht": pl.Float64,
        "PLZ": pl.String,
        "Geburt": pl.Date,
        "Einkommen": pl.Float64,
    }
    assert frame.rows() == [
        ("Müller", 1.78, 80.5, "01067", date(1990, 1, 31), 1234.56),
        ("Grün", 1.62, None, "80331", date(1985, 12, 1), 987.1),
        ("Weiß; Anna", 1.7, 61.0, "10115", None, None),
    ]


def test_windows_1252() -> None:
    assert read(SAMPLES / "windows_1252.csv").frame["text"].to_list() == ["„gut“ – 10 €", "…"]


def test_utf_16_with_tabs() -> None:
    assert read(SAMPLES / "utf16.txt").frame.rows() == [(1, "Łukasz"), (2, "Zoë")]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8-sig", "utf-16"])
def test_encodings_with_and_without_a_mark(encoding: str) -> None:
    assert parse("name,n\nZoë,1\nAnn,2\n".encode(encoding)).rows() == [("Zoë", 1), ("Ann", 2)]


def test_a_byte_order_mark_is_no_part_of_the_first_name() -> None:
    assert read(SAMPLES / "bom.csv").frame.to_dict(as_series=False) == {"zip": ["02141", "00501"], "sex": ["f", "m"]}


def test_the_line_that_excel_puts_first() -> None:
    assert read(SAMPLES / "excel_export.csv").frame.rows() == [("02141", 1.5), ("00501", 20.0)]


def test_no_header() -> None:
    frame = read(SAMPLES / "no_header.csv").frame
    assert frame.columns == ["column_1", "column_2", "column_3"]
    assert frame.row(2) == ("Cy", 29, None)
    assert parse("1,2\n3,4\n").columns == ["column_1", "column_2"]
    assert parse("1,2\n3,4\n", header=True).columns == ["1", "2"]


def test_years_as_column_names_are_a_header_under_words() -> None:
    assert parse("land,2019,2020\nx,1,2\ny,3,4\n").columns == ["land", "2019", "2020"]


def test_numbered_columns_are_a_header() -> None:
    assert parse("1,2,3\n7,8,9\n").columns == ["1", "2", "3"]
    assert parse("0,1,2\n7,8,9\n").columns == ["0", "1", "2"]
    assert parse("1,2,4\n7,8,9\n").rows() == [(1, 2, 4), (7, 8, 9)]


def test_decimal_commas_in_every_line_do_not_make_the_names_a_title(tmp_path: Path) -> None:
    """Two decimal commas in each line cut it into three fields, and the line of names into one."""
    path = tmp_path / "customers.csv"
    lines = "".join(f"{i};{150 + i},5;{i},25;K\xf6ln\n" for i in range(9))
    path.write_bytes(("Nr;Gr\xf6\xdfe (cm);Umsatz;Ort\n" + lines).encode("latin-1"))
    table = read(path)
    assert table.columns == ("Nr", "Gr\xf6\xdfe (cm)", "Umsatz", "Ort")
    assert table.column("Umsatz").to_list()[8] == 8.25


def test_spaces_after_the_delimiter_do_not_hide_numbers_or_gaps() -> None:
    frame = read(SAMPLES / "uci_style.data.csv").frame
    assert frame.columns == ["age", "workclass", "hours"]
    assert frame["age"].to_list() == [39, None, 38]
    assert frame["workclass"].to_list() == ["State-gov", None, "Private"]
    assert frame["hours"].to_list() == [40, 13, None]


@pytest.mark.parametrize(
    "codes",
    [
        ["02141", "90210"],
        ["+4930123", "+4930124"],
        ["0049 30", "1"],
        ["12345678901234567890", "1"],
        ["a@example.org", "b@example.org"],
        ["1E5", "2E7"],
        ["2020-13-01", "2020-01-01"],
        ["1990-1-5", "1990-01-05"],
        ["2020-02-30", "2020-01-01"],
        ["1_000", "2"],
        ["1,234", "5"],
        ["0x10", "1"],
        ["true", "yes"],
        ["12.03.1990", "1.2.1991"],
        ["-00", "1"],
        ["٣", "1"],
    ],
)
def test_codes_stay_text_to_the_letter(codes: list[str]) -> None:
    assert parse("code\tn\n" + "".join(f"{code}\t1\n" for code in codes))["code"].to_list() == codes


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", "-20", "0"], [1, -20, 0]),
        (["999999999999999999", "-1"], [999999999999999999, -1]),
        (["1.5", ".5", "2", "-0.25", "1e-3", "1.5E+3"], [1.5, 0.5, 2.0, -0.25, 0.001, 1500.0]),
        (["1990-01-31"], [date(1990, 1, 31)]),
        (["1990-01-31 08:30"], [datetime(1990, 1, 31, 8, 30)]),
        (["1990-01-31T08:30:01.25"], [datetime(1990, 1, 31, 8, 30, 1, 250000)]),
        (["TRUE", "FALSE"], [True, False]),
        (["true", "False"], [True, False]),
    ],
)
def test_kinds(texts: list[str], values: list[object]) -> None:
    assert parse("x,n\n" + "".join(f"{text},1\n" for text in texts))["x"].to_list() == values


def test_one_code_in_the_last_row_keeps_the_column_text() -> None:
    frame = parse("zip,n\n" + "".join(f"{10000 + i},{i}\n" for i in range(5000)) + "00501,1\n")
    assert frame.schema == {"zip": pl.String, "n": pl.Int64}
    assert frame["zip"][0] == "10000"


def test_thousands_are_not_guessed() -> None:
    assert parse("a;b\n1,234;x\n2,345;y\n").schema["a"] == pl.String
    assert parse("a;b\n1.234,56;x\n2.345,10;y\n").schema["a"] == pl.String
    both = parse("a;b\n1,5;1.234\n2,25;3.456\n")
    assert both["a"].to_list() == [1.5, 2.25]
    assert both["b"].to_list() == ["1.234", "3.456"]
    assert parse("a;b\n1,234;x\n2,345;y\n", decimal=",")["a"].to_list() == [1.234, 2.345]
    assert parse("a;b\n1.234;x\n2.345;y\n")["a"].to_list() == [1.234, 2.345]


def test_missing_words_count_unquoted_only() -> None:
    frame = parse('land,n\nNA,1\n"NA",2\n,3\n"",4\nDE,NA\n')
    assert frame["land"].to_list() == [None, "NA", None, "", "DE"]
    assert frame["n"].to_list() == [1, 2, 3, 4, None]


def test_missing_words_can_be_chosen() -> None:
    assert parse("x,y\n-9,a\n5,NA\n", missing=["", "-9"]).rows() == [(None, "a"), (5, "NA")]


def test_columns_can_be_kept_as_text() -> None:
    assert parse("icd,n\n250.00,1\n250.0,2\n", text=["icd"])["icd"].to_list() == ["250.00", "250.0"]


def test_quoted_fields_hold_anything() -> None:
    frame = parse('a,b\n"x, ""y""\nz",1\n"5"" pipe",2\n')
    assert frame["a"].to_list() == ['x, "y"\nz', '5" pipe']


def test_bare_quotes_inside_a_field() -> None:
    assert parse('size,n\n5" pipe,1\n6" pipe,2\n')["size"].to_list() == ['5" pipe', '6" pipe']


def test_bare_quotes_that_pair_up_across_lines() -> None:
    """Polars would take the text between two bare quotes for one field."""
    text = 'h0,h1,h2,h3\n"",5" p,?,1\n"x,y",1,a,1\n1,1,5" p,a\ns,6",,""\n'
    assert parse(text).rows() == [
        ("", '5" p', None, "1"),
        ("x,y", "1", "a", "1"),
        ("1", "1", '5" p', "a"),
        ("s", '6"', None, ""),
    ]


def test_old_line_ends_and_blank_lines() -> None:
    assert parse("a,b\r1,2\r3,4\r").rows() == [(1, 2), (3, 4)]
    assert parse("a,b\r\n\r\n1,2\r\n\r\n3,4\r\n\r\n").rows() == [(1, 2), (3, 4)]


def test_an_all_missing_column_is_text_without_values() -> None:
    frame = parse("a,b\n1,\n2,NA\n")
    assert frame.schema["b"] == pl.String
    assert frame["b"].null_count() == 2


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,b\n1,2\n3\n", 3),
        ("a,b\n1,2\n3,4,5\n", 3),
        ('a,b\n"x\ny",2\n3\n', 4),
        ('a,b\n1,2\n3,"4\n', 3),
        ('a,b\n1,2\n3,"4"5"6\n', 3),
        ("a,b\n" + "1,2\n" * 30000 + "1\n", 30002),
        ("a,b\n" + "1,2\n" * 30000 + "1,2,3\n", 30002),
        ("sep=;\na;b\n1;2\n3\n", 4),
    ],
)
def test_ragged_lines_are_named_by_their_number(text: str, line: int) -> None:
    with pytest.raises(RaggedLine) as caught:
        parse(text)
    assert caught.value.facts["line"] == line


def test_a_very_wide_file() -> None:
    names = [f"column number {number} of many" for number in range(1500)]
    frame = parse(",".join(names) + "\n" + "\n".join(",".join([str(row)] * 1500) for row in range(3)) + "\n")
    assert frame.columns == names
    assert frame.row(2) == (2,) * 1500


def test_a_very_long_field(tmp_path: Path) -> None:
    """Longer than the 131,072 characters that Python's own reader takes unless it is told."""
    path = tmp_path / "long.csv"
    path.write_text("n,text\n" + "".join(f"{n},{'x' * 200_000}\n" for n in range(3)))
    frame = read(path).frame
    assert frame["n"].to_list() == [0, 1, 2]
    assert frame["text"].str.len_chars().to_list() == [200_000] * 3


def test_bad_headers() -> None:
    with pytest.raises(DuplicateColumns):
        parse("a,b,a\n1,2,3\n")
    assert parse("a,,\n1,2,3\n").columns == ["a", "column_2", "column_3"]


@pytest.mark.parametrize("text", ["", "\n\n", "  \n", "a,b\n", "\ufeff"])
def test_nothing_to_read(text: str) -> None:
    with pytest.raises(EmptyTable):
        parse(text)


@pytest.mark.parametrize("text", ["<!DOCTYPE html>\n<html>", "<?xml version='1.0'?>", "%PDF-1.4", "PK\x03\x04 zip"])
def test_other_files_named_csv(text: str) -> None:
    with pytest.raises(NotThatFormat):
        parse(text)


def test_a_wrong_encoding_is_refused() -> None:
    with pytest.raises(NotThatFormat):
        parse("naïve,1\n".encode("latin-1"), encoding="utf-8")
    with pytest.raises(NotThatFormat):
        parse("a,1\n", encoding="klingon")


def test_standard_input_and_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"zip,n\n02141,1\n")))
    table = read("-")
    assert table.frame.rows() == [("02141", 1)]
    sent = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(sent))
    write(table, "-")
    assert sent.getvalue() == b"zip,n\n02141,1\n"


def test_writing_is_plain_and_repeatable(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"a": ["x", None, "", "NA"], "b": [1.5, float("nan"), None, 2.0], "c": [True, False, None, True]}
    )
    write(Table(frame=frame), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == 'a,b,c\nx,1.5,true\n,,false\n"",,\n"NA",2.0,true\n'
    for name in ("one.csv.gz", "two.csv.gz"):
        write(Table(frame=frame), tmp_path / name)
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()
    write(Table(frame=frame), tmp_path / "t.tsv")
    assert (tmp_path / "t.tsv").read_text().startswith("a\tb\tc\n")


def test_writing_for_a_european_spreadsheet(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1.5, 1234.25], "b": ["x", "y"]})
    write(Table(frame=frame), tmp_path / "t.csv", format=Csv(delimiter=";", decimal=","))
    assert (tmp_path / "t.csv").read_text().splitlines()[0] == "a;b"
    assert read(tmp_path / "t.csv", decimal=",").frame.equals(frame)


def test_lists_do_not_fit_into_a_cell(tmp_path: Path) -> None:
    with pytest.raises(WrongKind):
        write(Table(frame=pl.DataFrame({"a": [[1, 2]]})), tmp_path / "t.csv")
    assert not list(tmp_path.iterdir())
