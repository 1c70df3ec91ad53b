"""Options of a format behind the path, sheets of a workbook, and titles above a table."""

from pathlib import Path

import polars as pl
import pytest
import xlsxwriter

from sfumato import protect
from sfumato.cli import cli, main
from sfumato.data import preview, read, scan, size_hint, write
from sfumato.data.table import Table
from sfumato.data.url import file_and_options
from sfumato.errors import BadParameter, EmptyTable, NotThatFormat
from sfumato.recipe import Recipe
from sfumato.release.folder import release_suffix

LINES = "name;age;zip\nAda;36;02141\nBob;41;02142\nCleo;29;02143\n"


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    path = tmp_path / "book.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        book.add_worksheet("cover").write(0, 0, "Clinic")
        sheet = book.add_worksheet("people 2025")
        sheet.write(0, 0, "Export of 1 January")
        for number, line in enumerate(LINES.split("\n")):
            sheet.write_row(number + 2, 0, line.split(";"))
    return path


def test_options_follow_the_path(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x^y\n1^-9\n2^3\n")
    assert read(f"{tmp_path}/a.csv?delimiter=^&missing=-9").frame.to_dict(as_series=False) == {
        "x": [1, 2],
        "y": [None, 3],
    }
    assert scan(f"{tmp_path}/a.csv?delimiter=^").columns == {"x": "BIGINT", "y": "BIGINT"}
    assert size_hint(f"{tmp_path}/a.csv?delimiter=^").on_disk == 13
    assert preview(f"{tmp_path}/a.csv?delimiter=^", most=1, whole=False).table.columns == ("x", "y")
    assert release_suffix("a.tsv?skip=2") == ".tsv"


def test_a_file_may_have_a_question_mark_in_its_name(tmp_path: Path) -> None:
    write(Table(frame=pl.DataFrame({"a": [1]})), tmp_path / "who?.csv")
    assert read(tmp_path / "who?.csv").rows == 1
    assert file_and_options(tmp_path / "who?.csv") == (str(tmp_path / "who?.csv"), {})


def test_what_is_no_option_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(LINES)
    with pytest.raises(BadParameter, match="Did you mean `skip`"):
        read(f"{tmp_path}/a.csv?skipp=1")
    with pytest.raises(BadParameter, match=r"FILE\?option=value"):
        read(f"{tmp_path}/a.csv?3")


def test_a_sheet_without_a_table_names_the_others(workbook: Path) -> None:
    with pytest.raises(EmptyTable, match=r"book.xlsx\?sheet=people 2025"):
        read(workbook)


def test_a_title_in_a_sheet_is_no_header(workbook: Path) -> None:
    with pytest.raises(NotThatFormat, match=r"book.xlsx\?sheet=people 2025&skip=2"):
        read(f"{workbook}?sheet=people 2025")
    assert read(f"{workbook}?sheet=people 2025&skip=2").columns == ("name", "age", "zip")


def test_a_draft_states_the_lines_of_the_title(
    workbook: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `init` guesses once is written down, and readers obey it."""
    monkeypatch.chdir(workbook.parent)
    assert main(["init", "book.xlsx?sheet=people 2025", "--k", "2", "--no-compare", "--out", "r.yaml"]) == 0
    assert "the names of the columns stand in line 3, below a title; so `skip: 2`." in capsys.readouterr().err
    recipe = Recipe.load("r.yaml")
    assert recipe.source is not None
    assert recipe.source.options == {"sheet": "people 2025", "skip": 2}
    assert recipe.source.read().columns == ("name", "age", "zip")
    assert list(recipe.schema.columns) == ["name", "age", "zip"]


@pytest.mark.parametrize("title", ["Export\n", "Clinic, Boston\n\nas of today\n", "a;b\n\n"])
def test_a_title_in_a_text_file_is_no_header(tmp_path: Path, title: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(title + LINES.replace("zip", "zip;place;state").replace("\n", ";;\n").replace("state;;", "state"))
    above = title.count("\n")
    with pytest.raises(NotThatFormat, match=rf"people.csv\?skip={above}"):
        read(path)
    assert read(f"{path}?skip={above}").columns == ("name", "age", "zip", "place", "state")
    with pytest.raises(EmptyTable):
        read(f"{path}?skip=99")


def test_lines_that_only_look_like_titles(tmp_path: Path) -> None:
    for text in ("address\n1 High St, Ely\n2 Low St, Ely\n3 Far St, Ely\n", "x;y;z\n1;2;3\n", "x\n1\n2\n3\n4\n"):
        path = tmp_path / "a.csv"
        path.write_text(text)
        assert read(path).rows == text.count("\n") - 1


def test_a_recipe_keeps_the_options_for_the_next_file(tmp_path: Path) -> None:
    for name in ("january.csv", "february.csv"):
        (tmp_path / name).write_text("Export\n" + LINES)
    text = 'sfumato: 1\ndata: "january.csv?skip=1"\ncolumns: {name: identifier, age: plain, zip: plain}\n'
    recipe = Recipe.parse(text, base=tmp_path)
    assert recipe.source is not None
    assert recipe.source.options == {"skip": "1"}
    assert protect(recipe).release.table.rows == 3
    assert protect(recipe, tmp_path / "february.csv").release.table.rows == 3
    assert Recipe.parse(recipe.to_dict()).source == recipe.source


def test_init_writes_the_options_into_the_recipe(tmp_path: Path, workbook: Path) -> None:
    out = tmp_path / "sfumato.yaml"
    with pytest.raises(SystemExit) as ended:
        cli(["init", f"{workbook}?sheet=people 2025&skip=2", "--out", str(out), "--json"])
    assert ended.value.code == 0
    source = Recipe.load(out).source
    assert source is not None
    assert {name: str(value) for name, value in source.options.items()} == {"sheet": "people 2025", "skip": "2"}
