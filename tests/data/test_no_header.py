"""A file without a header: the values of its first person are not shown, whoever opens it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import NotThatFormat, UnknownColumn

NAMES = ("name", "town", "ill")
SECRET = ("Zelda", "Quirk", "Boston", "hiv")
COLUMNS = {"name": {"role": "identifier"}, "town": {"role": "quasi"}, "ill": {"role": "sensitive"}}
PLAN = {
    "sfumato": 1,
    "unit": "row",
    "columns": COLUMNS,
    "models": [{"k-anonymity": 5}],
    "steps": ["generalize"],
}


def _file(folder: Path, first: str, *, recurs: bool) -> Path:
    rows = [f"Person N{row},Town{row % 3},{'hiv' if recurs and row % 4 == 0 else 'flu'}" for row in range(40)]
    file = folder / "people.csv"
    file.write_text("\n".join([first, *rows]) + "\n")
    return file


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("recurs", [False, True])
def test_the_first_person_is_not_shown(engine: str, recurs: bool, tmp_path: Path) -> None:
    file = _file(tmp_path, "Zelda Quirk,Boston,hiv", recurs=recurs)
    with pytest.raises(NotThatFormat if recurs else UnknownColumn, match="header") as refused:
        sfumato.protect(PLAN, file, engine=engine, seconds=0.001)
    assert not any(word in str(refused.value) for word in SECRET)


def test_init_asks_whether_the_first_line_is_a_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _file(tmp_path, "Zelda Quirk,Boston,hiv", recurs=True)
    assert main(["init", str(file), "--out", "-"]) != 0
    shown = "".join(capsys.readouterr())
    assert "?header=false" in shown
    assert not any(word in shown for word in SECRET)
    assert main(["init", f"{file}?header=false", "--out", "-"]) == 0
    assert "column_1" in capsys.readouterr().out


def test_both_answers_are_taken(tmp_path: Path) -> None:
    file = _file(tmp_path, "name,town,hiv", recurs=True)
    assert sfumato.read(file, header=True).columns == ("name", "town", "hiv")
    assert sfumato.read(f"{file}?header=false").rows == 41
    with pytest.raises(NotThatFormat):
        sfumato.read(file)


def test_a_header_over_numbers_and_one_that_is_repeated_are_headers(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("age,other\n" + "31,other\n44,none\n" * 5)
    assert sfumato.read(file).columns == ("age", "other")
    file.write_text("name,town\n" + "Ann,Rome\nname,town\nBob,Oslo\n" * 3)
    assert sfumato.read(file).columns == ("name", "town")


def test_a_known_table_still_says_what_it_has() -> None:
    frame = pl.DataFrame({"name": ["a"], "town": ["b"], "illness": ["c"]})
    with pytest.raises(UnknownColumn, match="Did you mean `illness`"):
        sfumato.protect(PLAN | {"columns": {**COLUMNS, "ilness": {"role": "plain", "reason": "x"}}}, frame)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_release_whose_label_is_a_name_of_a_column_is_read(engine: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"other": ["a", "b", "c", "d"] * 10 + [f"x{n}" for n in range(10)], "ill": ["p", "q"] * 25})
    file = tmp_path / "people.csv"
    frame.write_csv(file)
    plan = {
        "sfumato": 1,
        "unit": "row",
        "columns": {"other": {"role": "quasi"}, "ill": {"role": "sensitive"}},
        "models": [{"k-anonymity": 5}],
        "steps": [{"merge-rare": {"min_count": 10}}],
    }
    done = sfumato.protect(plan, file, engine=engine, suffix=".csv", n_targets=5, seconds=0.001, unmet=True)
    done.save(tmp_path / "release", unmet=True)
    assert "k-anonymity holds" in [v.words for v in sfumato.check(tmp_path / "release")]
