"""From a file to the first private answer, with the commands that are printed on the way."""

import json
import re
import shlex
from pathlib import Path

import polars as pl
import pytest

from sfumato.cli import main
from sfumato.dataset.document import sql_name
from sfumato.demos.private_hospital import flu
from sfumato.query.results.explain import digits

PEOPLE = pl.DataFrame({"city": ["Bonn", "Ely"] * 50, "age": list(range(20, 70)) * 2})


def test_the_printed_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    PEOPLE.write_parquet("people 2025.parquet")
    assert main(["init", "people 2025.parquet", "--unit", "row"]) == 0
    lines = [line.strip() for line in capsys.readouterr().err.splitlines() if line.startswith("  sfumato ")]
    assert len(lines) == 2
    for line in lines:
        words = shlex.split(line.replace("...", "1"), comments=True)[1:]
        assert main(words) == 0, line
        assert main([*words, "--explain"] if words[0] == "query" else words) == 0
    shown = capsys.readouterr()
    assert re.search(r"\d+  \(\d", shown.out)
    assert "New ledger: people_2025-ledger.db" in shown.err


def test_one_document_of_a_file_with_semicolons_serves_releases_and_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A German export: semicolons, Latin-1, decimal commas. `init` declares what every reader then obeys."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{20 + i % 50};{['Köln', 'Ely'][i % 2]};{i % 9},5;{i}" for i in range(200)]
    Path("leute.csv").write_bytes("\n".join(["alter;stadt;größe;name", *lines]).encode("latin-1"))
    assert main(["init", "leute.csv", "--unit", "row", "--k", "2", "--no-compare"]) == 0
    document = Path("sfumato.yaml").read_text(encoding="utf-8")
    assert 'data: {file: leute.csv, delimiter: ";", encoding: latin-1, decimal: ","}' in document
    roles = {"alter": "quasi", "stadt": "quasi", "größe": "sensitive", "name": "drop"}
    assert main(["decide", "sfumato.yaml", *(f"{n}={r}" for n, r in roles.items()), "--by", "Ann"]) == 0
    text = Path("sfumato.yaml").read_text(encoding="utf-8")
    text = re.sub(r'(größe": {role: sensitive)', r"\1, domain: {low: 0, high: 10}", text)
    text = re.sub(r"(stadt: {role: quasi)", r"\1, domain: {values: [Köln, Ely]}", text)
    Path("sfumato.yaml").write_text(text, encoding="utf-8")
    assert main(["protect", "sfumato.yaml", "--out", "release"]) == 0
    assert main(["ledger", "cap", "leute-ledger.db", "--dataset", "leute", "--epsilon", "1000000"]) == 0
    capsys.readouterr()
    sql = 'SELECT stadt, SUM("größe") AS s FROM leute GROUP BY stadt'
    assert main(["query", "sfumato.yaml", sql, "--epsilon", "100000", "--json"]) == 0
    rows = {row["stadt"]["value"]: row["s"]["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["Köln"] == pytest.approx(sum(i % 9 + 0.5 for i in range(0, 200, 2)), abs=1)
    assert main(["query", "sfumato.yaml", "SELECT COUNT(DISTINCT name) FROM leute", "--epsilon", "1"]) == 2
    assert "name" in capsys.readouterr().err  # dropped columns cannot be named


def test_whom_a_row_is_about_is_not_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    PEOPLE.write_parquet("people.parquet")
    question = ["query", "q.yaml", "SELECT COUNT(*) FROM people", "--epsilon", "1", "--explain"]
    assert main(["init", "people.parquet", "--out", "q.yaml"]) == 0
    assert main(question) == 2
    assert "whose privacy is kept" in capsys.readouterr().err
    assert main(["init", "people.parquet", "--out", "q.yaml", "--unit", "citty", "--force"]) == 2
    assert "Did you mean `city`" in capsys.readouterr().err
    assert main(["init", "people.parquet", "--out", "q.yaml", "--unit", "city", "--force"]) == 0
    assert main(question) == 2
    assert "rows" in capsys.readouterr().err


def test_a_table_of_a_server_has_a_name_in_sql() -> None:
    for url in ("postgresql://db.example/clinic?table=public.Visits", "postgresql://db.example/clinic#public.Visits"):
        assert sql_name(url) == "visits"


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
    assert [sql_name(text) for text in ("Orders 2025", "2025", "--", "Größe (m)")] == [
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
