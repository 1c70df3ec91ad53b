"""A line of totals is recognized, and rows of people are not."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from sfumato.cli import main
from sfumato.profiling.totals import total_in

PEOPLE = {"ward": ["east", "west", "west", "east"], "age": [30, 40, 50, 60], "visits": [1, 2, 3, 4]}


def below(*cells: object) -> pl.DataFrame:
    return pl.DataFrame(
        {name: [*values, cell] for (name, values), cell in zip(PEOPLE.items(), cells, strict=True)}, strict=False
    )


@pytest.mark.parametrize("word", ["Total", "TOTAL:", "Gesamt", " Summe ", "Total general", "Insgesamt"])
def test_a_word_for_a_total(word: str) -> None:
    assert total_in(below(word, None, 10)) == "`ward` holds a word for a total"


@pytest.mark.parametrize("row", [(None, None, 10), (None, 180, 10)])
def test_a_sum_in_an_empty_row(row: tuple[object, ...]) -> None:
    assert "sum of the rows above" in str(total_in(below(*row)))


@pytest.mark.parametrize("row", [("east", 70, 10), ("east", 180, 10), (None, 70, 10), (None, None, None), ("t", 1, 1)])
def test_a_person_is_no_total(row: tuple[object, ...]) -> None:
    assert total_in(below(*row)) is None


def test_a_value_that_other_rows_have_is_no_word_for_a_total() -> None:
    """Ratings such as `total` and `partial` end in either of them."""
    assert total_in(pl.DataFrame({"response": ["total", "partial", "none", "partial", "total"]})) is None


def test_nothing_is_said_about_few_rows_or_none() -> None:
    assert total_in(pl.DataFrame({"a": ["x", "Total"]})) is None
    assert total_in(pl.DataFrame({"a": []})) is None


def test_init_says_it_and_writes_it_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    below("Total", None, 10).write_csv(tmp_path / "people.csv")
    assert main(["init", str(tmp_path / "people.csv"), "--out", str(tmp_path / "r.yaml")]) == 0
    assert "looks like a total and no person" in capsys.readouterr().out
    assert "# The last row looks like a total" in (tmp_path / "r.yaml").read_text(encoding="utf-8")
