"""Text files in DuckDB: their rows are kept once a file is asked again, and never older than the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.engines.backends.duckdb import Duckdb, text_tables
from sfumato.engines.engine import Running
from sfumato.engines.statements import Select, Stored
from sfumato.errors import AnswerFailed
from sfumato.secret import Permit


def rows(running: Running) -> list[tuple[Any, ...]]:
    return running.run(Select((), Stored("people"), star=True)).open(Permit("a test"))


@pytest.mark.parametrize("most", [0, 64_000_000], ids=["in place", "kept"])
def test_a_changed_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(text_tables, "_MOST_BYTES", most)
    path = tmp_path / "people.csv"
    path.write_text("name,age\nada,36\n")
    running = Duckdb().start({"people": str(path)})
    for _ in range(3):
        assert rows(running) == [("ada", "36")]
    path.write_text('name,age\n"a, b",1\nada,NA\n')
    for _ in range(3):
        assert rows(running) == [("a, b", "1"), ("ada", None)]
    other = tmp_path / "other.csv"
    other.write_text('name,age\n"a, c",1\nada,NA\n')
    other.replace(path)  # of the same size
    assert rows(running) == [("a, c", "1"), ("ada", None)]
    running.close()


def test_a_file_that_grows_beyond_the_limit_is_read_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tables, "_MOST_BYTES", 20)
    path = tmp_path / "people.csv"
    path.write_text("name\nada\n")
    running = Duckdb().start({"people": str(path)})
    assert [rows(running), rows(running)] == [[("ada",)]] * 2
    for lines in (10, 12):
        path.write_text("name\n" + "ada\n" * lines)
        assert len(rows(running)) == len(rows(running)) == lines
    path.write_text("name\nbob\n")
    assert [rows(running), rows(running)] == [[("bob",)]] * 2
    running.close()


def test_a_file_that_is_gone_fails_without_an_old_answer(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("name\nada\n")
    running = Duckdb().start({"people": str(path)})
    assert [rows(running), rows(running)] == [[("ada",)]] * 2
    path.unlink()
    with pytest.raises(AnswerFailed):
        rows(running)
    running.close()
