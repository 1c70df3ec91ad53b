"""From a file to the first private answer, with the commands that are printed on the way."""

import re
import shlex
from pathlib import Path

import polars as pl
import pytest

from sfumato.cli import main
from sfumato.cli.init import _name, _table_location
from sfumato.demos.private_hospital import flu
from sfumato.errors import UnknownFormat
from sfumato.query.results.explain import digits

PEOPLE = pl.DataFrame({"city": ["Bonn", "Ely"] * 50, "age": list(range(20, 70)) * 2})


def test_the_printed_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    PEOPLE.write_parquet("people 2025.parquet")
    assert main(["init", "people 2025.parquet", "--query", "--unit", "row"]) == 0
    lines = [line.strip() for line in capsys.readouterr().err.splitlines() if line.startswith("  sfumato ")]
    assert len(lines) == 2
    for line in lines:
        words = shlex.split(line.replace("...", "1"), comments=True)[1:]
        assert main(words) == 0, line
        assert main([*words, "--explain"] if words[0] == "query" else words) == 0
    shown = capsys.readouterr()
    assert re.search(r"\d+  \(\d", shown.out)
    assert "New ledger: people_2025-ledger.db" in shown.err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.csv", b"city;age\nBonn;3\nEly;4\n"),
        ("p.csv", "city,age\nKöln,3\nEly,4\n".encode("cp1252")),
        ("p.jsonl", b'{"city": "Bonn"}\n'),
    ],
)
def test_a_file_that_cannot_be_asked_is_refused_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    assert main(["init", str(tmp_path / name), "--query", "--out", str(tmp_path / "q.yaml")]) == 2
    said = capsys.readouterr().err
    assert not (tmp_path / "q.yaml").exists()
    copy = re.search(r'python -c "(.*)"', said)
    assert copy is not None
    exec(copy[1].replace("'p.parquet'", repr(str(tmp_path / "p.parquet"))))
    assert main(["init", str(tmp_path / "p.parquet"), "--query", "--out", str(tmp_path / "q.yaml")]) == 0


def test_whom_a_row_is_about_is_not_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    PEOPLE.write_parquet("people.parquet")
    question = ["query", "q.yaml", "SELECT COUNT(*) FROM people", "--epsilon", "1", "--explain"]
    assert main(["init", "people.parquet", "--query", "--out", "q.yaml"]) == 0
    assert main(question) == 2
    assert "column that identifies a person" in capsys.readouterr().err.splitlines()[-1]
    assert main(["init", "people.parquet", "--query", "--out", "q.yaml", "--unit", "citty", "--force"]) == 2
    assert "Did you mean `city`" in capsys.readouterr().err
    assert main(["init", "people.parquet", "--query", "--out", "q.yaml", "--unit", "city", "--force"]) == 0
    assert main(question) == 2
    assert "rows" in capsys.readouterr().err
    assert main(["init", "people.parquet", "--out", "r.yaml", "--unit", "city"]) == 2
    assert not Path("r.yaml").exists()


def test_a_table_of_a_server_is_named_as_metadata_name_it() -> None:
    found = _table_location("postgresql://me:secret@db.example/clinic?table=public.Visits", Path("q.yaml"))
    assert found == ("postgresql://me@db.example/clinic#public.Visits", "visits")
    with pytest.raises(UnknownFormat, match="table, not a query"):
        _table_location("postgresql://db.example/clinic?query=SELECT 1", Path("q.yaml"))


def test_an_answer_prints_as_its_numbers_and_what_they_cost() -> None:
    session = flu(people=50, budget=3)
    answer = session.ask("SELECT COUNT(*) AS n FROM patients", epsilon=1)
    text = str(answer)
    assert all(name in text for name in ("n_low", "n_high"))
    assert text.endswith("Cost ε = 1. Left: ε = 2.")
    assert "free" in str(session.ask("SELECT COUNT(*) AS n FROM patients", epsilon=1))


def test_an_answer_in_a_notebook() -> None:
    session = flu(people=50, budget=3)
    answer = session.ask('SELECT ward AS "<b>", COUNT(*) AS n FROM patients GROUP BY ward', epsilon=1)
    assert repr(answer) == "<Answer: 4 rows of <b>, n. Cost ε = 1. Left: ε = 2.>"
    html = answer._repr_html_()
    assert "<b>" not in html
    assert "<th>&lt;b&gt;</th><th>n</th><th>n_low</th><th>n_high</th>" in html
    assert html.count("<tr>") == 5
    assert "Cost ε = 1. Left: ε = 2." in html
    assert answer.to_frame().columns == ["<b>", "n", "n_low", "n_high"]
    single = session.ask("SELECT COUNT(*) AS n FROM patients", epsilon=1)
    assert repr(single).startswith(f"<Answer: n {single.value:,}  (")


def test_names_and_numbers() -> None:
    assert [_name(text) for text in ("Orders 2025", "2025", "--", "Größe (m)")] == [
        "orders_2025",
        "t_2025",
        "data",
        "größe_m",
    ]
    assert [digits(number, 4) for number in (13012.4, -99999.5, 0.0, 59.86, 1.5e20)] == [
        "13,012",
        "-100,000",
        "0",
        "59.86",
        "1.5e+20",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ledger", "show", "{}/none.db"], "There is no file"),
        (["ledger", "verify", "{}/none.db"], "There is no file"),
        (["ledger", "export", "{}/none.db"], "There is no file"),
        (["ledger", "cap", "{}/none.db", "--epsilon", "1"], "--dataset, --analyst, or both"),
        (["ledger", "cap", "{}/none.db", "--epsilon", "two", "--dataset", "d"], "--epsilon"),
        (["query", "{}/none.yaml", "SELECT 1", "--delta", "x"], "--delta"),
    ],
)
def test_wrong_words_make_no_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main([word.format(tmp_path) for word in words]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
