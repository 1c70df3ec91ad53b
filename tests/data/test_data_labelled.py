"""SPSS, Stata, SAS and Excel: what these packages say about their columns survives."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from sfumato.data import ColumnLabels, Table, blank_missing, read, write
from sfumato.data.formats.excel import Excel
from sfumato.errors import DuplicateColumns, NotThatFormat, WriteFailed, WrongKind

pyreadstat = pytest.importorskip("pyreadstat")

TAG_A, TAG_R = 2_147_483_622, 2_147_483_622 + 17


def test_spss_ranges_and_codes_of_missing(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"q1": [1, 2, 97, 98, None], "q2": [0.5, -1.0, 2.0, 3.25, 4.0], "town": ["A", "B", "-", None, "C"]}
    )
    labels = {
        "q1": ColumnLabels(label="Do you smoke?", value_labels={1: "yes", 2: "no", 97: "refused"}, missing=((97, 99),)),
        "q2": ColumnLabels(missing=(-1,)),
        "town": ColumnLabels(label="Town", value_labels={"-": "none given"}, missing=("-",)),
    }
    path = tmp_path / "t.sav"
    write(Table(frame=frame, labels=labels), path)
    again = read(path)
    assert again.frame.equals(frame)
    for name, entry in labels.items():
        assert again.labels[name].label == entry.label
        assert dict(again.labels[name].value_labels) == dict(entry.value_labels)
        assert again.labels[name].missing == entry.missing
    blank = blank_missing(again)
    assert blank.frame["q1"].to_list() == [1, 2, None, None, None]
    assert blank.frame["q2"].to_list() == [0.5, None, 2.0, 3.25, 4.0]
    assert blank.frame["town"].to_list() == ["A", "B", None, None, "C"]
    assert blank.labels["q1"].label == "Do you smoke?"
    assert again.frame["q1"].to_list() == [1, 2, 97, 98, None]


def test_a_file_made_by_another_program(tmp_path: Path) -> None:
    """SPSS shows two decimals by default: labelled codes are whole numbers all the same, measurements are not."""
    path = tmp_path / "t.sav"
    pyreadstat.write_sav(
        pl.DataFrame({"sex": [1.0, 2.0], "height": [170.0, 180.0]}),
        str(path),
        variable_value_labels={"sex": {1.0: "m", 2.0: "f"}},
        variable_format={"sex": "F8.2", "height": "F8.2"},
    )
    table = read(path)
    assert table.frame.schema == {"sex": pl.Int64, "height": pl.Float64}
    assert dict(table.labels["sex"].value_labels) == {1: "m", 2: "f"}
    assert table.labels["height"].display == "F8.2"


def test_spss_takes_three_codes_or_a_range(tmp_path: Path) -> None:
    many = {"q": ColumnLabels(missing=(95, 96, 97, 98))}
    write(Table(frame=pl.DataFrame({"q": [1, 95, 98]}), labels=many), tmp_path / "fine.sav")
    assert read(tmp_path / "fine.sav").labels["q"].missing == ((95, 98),)
    apart = {"q": ColumnLabels(missing=(-9, 95, 97, 99))}
    with pytest.raises(WriteFailed):
        write(Table(frame=pl.DataFrame({"q": [1, 95, 98]}), labels=apart), tmp_path / "refused.sav")
    assert not (tmp_path / "refused.sav").exists()


def test_stata_keeps_its_extended_missing_values(tmp_path: Path) -> None:
    frame = pl.DataFrame({"q": [1, TAG_A, None, TAG_R, 5], "x": [0.5, 1.5, float(TAG_A), None, 2.5]})
    labels = {
        "q": ColumnLabels(label="Income class", value_labels={1: "low", TAG_A: "refused"}, missing=(TAG_A, TAG_R)),
        "x": ColumnLabels(missing=(TAG_A,)),
    }
    path = tmp_path / "t.dta"
    write(Table(frame=frame, labels=labels), path)
    raw, meta = pyreadstat.read_dta(str(path), user_missing=True, output_format="dict")
    assert list(raw["q"]) == [1.0, "a", None, "r", 5.0]
    assert meta.variable_value_labels["q"] == {1: "low", "a": "refused"}
    again = read(path)
    assert again.frame.equals(frame)
    assert again.labels["q"].missing == (TAG_A, TAG_R)
    assert again.labels["x"].missing == (TAG_A,)
    assert dict(again.labels["q"].value_labels) == {1: "low", TAG_A: "refused"}
    assert blank_missing(again).frame["q"].to_list() == [1, None, None, None, 5]


def test_stata_and_spss_translate_each_other(tmp_path: Path) -> None:
    frame = pl.DataFrame({"q": [1, TAG_A, None]})
    labels = {"q": ColumnLabels(label="Q", value_labels={1: "yes", TAG_A: "refused"}, missing=(TAG_A,))}
    write(Table(frame=frame, labels=labels), tmp_path / "a.dta")
    write(read(tmp_path / "a.dta"), tmp_path / "b.sav")
    write(read(tmp_path / "b.sav"), tmp_path / "c.dta")
    again = read(tmp_path / "c.dta")
    assert again.frame.equals(frame)
    assert again.labels["q"].missing == (TAG_A,)
    assert dict(again.labels["q"].value_labels) == {1: "yes", TAG_A: "refused"}


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".parquet"])
def test_labels_that_no_longer_fit_a_generalized_column_are_left_out(suffix: str, tmp_path: Path) -> None:
    labels = {"age": ColumnLabels(label="Age", value_labels={1: "one"}, missing=(99,), display="F8.0")}
    write(Table(frame=pl.DataFrame({"age": ["10-20", "20-30"]}), labels=labels), tmp_path / f"t{suffix}")
    again = read(tmp_path / f"t{suffix}")
    assert again.frame["age"].to_list() == ["10-20", "20-30"]
    assert again.labels["age"].label == "Age"


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xpt"])
def test_names_and_numbers_the_package_cannot_hold_are_refused(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(WriteFailed) as caught:
        write(Table(frame=pl.DataFrame({"marital-status": [1]})), tmp_path / f"t{suffix}")
    assert "marital-status" in str(caught.value)
    with pytest.raises(WrongKind):
        write(Table(frame=pl.DataFrame({"id": [2**53 + 1]})), tmp_path / f"t{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xpt"])
def test_booleans_gaps_and_an_all_missing_column(suffix: str, tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"b": [True, None, False], "none": pl.Series([None] * 3, dtype=pl.String), "f": [1.0, 2.5, None]}
    )
    write(Table(frame=frame), tmp_path / f"t{suffix}")
    again = read(tmp_path / f"t{suffix}").frame
    assert again["b"].to_list() == [1, None, 0]
    assert again["none"].null_count() == 3
    assert again["f"].to_list() == [1.0, 2.5, None]


def test_excel_sheets(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    frame = pl.DataFrame({"formula": ["=1+1", "http://example.org"], "n": [1, None], "x": [1.5, 2.0]})
    write(Table(frame=frame), path, format=Excel(sheet="people"))
    assert read(path, sheet="people").frame.equals(frame)
    with pytest.raises(NotThatFormat) as caught:
        read(path, sheet="poeple")
    assert "people" in str(caught.value)


def test_excel_with_lines_above_the_header_mixed_cells_and_double_names(tmp_path: Path) -> None:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate(
            [["Census of 2020"], ["zip", "n", "n2"], ["02141", 1, 1], [2142, 2, "x"], ["A", 3, 3]]
        ):
            sheet.write_row(number, 0, row)
    frame = read(path, skip=1).frame
    assert frame["zip"].to_list() == ["02141", "2142", "A"]
    assert frame["n"].to_list() == [1, 2, 3]
    assert frame.schema["n2"] == pl.String
    with xlsxwriter.Workbook(str(path)) as book:
        book.add_worksheet().write_row(0, 0, ["a", "a"])
    with pytest.raises(DuplicateColumns):
        read(path)


def test_excel_has_a_last_row(tmp_path: Path) -> None:
    with pytest.raises(WriteFailed) as caught:
        write(Table(frame=pl.DataFrame({"n": range(1_048_576)})), tmp_path / "t.xlsx")
    assert "1,048,575" in str(caught.value)
