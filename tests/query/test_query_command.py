"""`sfumato query` and `sfumato ledger`: from a metadata file to a private answer and a checked book."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sfumato.cli import main
from sfumato.dataset.document import Dataset
from sfumato.demos.private_hospital import patients
from sfumato.errors import InvalidRecipe
from sfumato.registry import registry

METADATA = """\
sfumato: 1
dataset: hospital
ledger: ledger.db
person: row
tables:
  patients:
    data: patients.csv
    columns:
      ward: {kind: category, domain: {values: [east, north, south, west]}}
      age:  {kind: integer, domain: {low: 0, high: 99}}
      flu:  {kind: boolean}
public:
  wards: {data: wards.csv, key: [ward]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    patients(300).write_csv(tmp_path / "patients.csv")
    (tmp_path / "wards.csv").write_text("ward,side\neast,sunny\nnorth,shady\nsouth,sunny\nwest,shady\n")
    (tmp_path / "query.yaml").write_text(METADATA)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    status = main([str(argument) for argument in arguments])
    out = capsys.readouterr()
    return status, out.out, out.err


def test_a_first_day(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meta, book = folder / "query.yaml", folder / "ledger.db"
    sql = "SELECT ward, COUNT(*) AS n FROM patients GROUP BY ward"
    status, _, err = run(capsys, "query", meta, sql, "--epsilon", "0.5", "--analyst", "ana")
    assert status == 2
    assert "SFU-705" in err
    assert run(capsys, "ledger", "cap", book, "--dataset", "hospital", "--epsilon", "1")[0] == 0
    status, out, _ = run(capsys, "query", meta, "EXPLAIN " + sql, "--epsilon", "0.5", "--json")
    assert status == 0
    assert json.loads(out)["explanation"]["noise"][0]["error"] == 6
    status, out, _ = run(capsys, "query", meta, sql, "--epsilon", "0.5", "--analyst", "ana", "--json")
    document = json.loads(out)
    assert status == 0
    assert [row["ward"]["value"] for row in document["rows"]] == ["east", "north", "south", "west"]
    assert document["remaining"]["epsilon"] == "1/2"
    assert document["cached"] is False
    status, out, err = run(capsys, "query", meta, sql, "--epsilon", "0.5", "--analyst", "ana")
    assert "Answered before" in err
    assert "east" in out
    status, _, err = run(capsys, "query", meta, "SELECT COUNT(*) FROM patients", "--epsilon", "0.6")
    assert status == 1
    assert "SFU-701" in err


def test_ledger_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = folder / "ledger.db"
    run(capsys, "ledger", "cap", book, "--dataset", "hospital", "--epsilon", "1", "--delta", "1e-6")
    run(
        capsys, "query", folder / "query.yaml", "SELECT AVG(age) FROM patients", "--epsilon", "0.25", "--analyst", "ana"
    )
    status, out, _ = run(capsys, "ledger", "show", book, "--json")
    accounts = {(a["dataset"], a["analyst"]): a for a in json.loads(out)["accounts"]}
    assert status == 0
    assert accounts[("hospital", "")]["left"]["epsilon"] == "3/4"
    assert accounts[("hospital", "ana")]["spent"]["epsilon"] == "1/4"
    assert accounts[("hospital", "ana")]["cap"] is None
    status, out, _ = run(capsys, "ledger", "verify", book, "--json")
    last = json.loads(out)["last"]
    assert status == 0
    assert run(capsys, "ledger", "verify", book, "--last", last)[0] == 0
    assert run(capsys, "ledger", "verify", book, "--last", "0" * 63 + "1")[0] == 3
    status, out, _ = run(capsys, "ledger", "export", book)
    entries = [json.loads(line) for line in out.splitlines()]
    assert [entry["kind"] for entry in entries] == ["cap", "spend"]
    assert "age" not in out
    assert run(capsys, "ledger", "show", book)[1].count("hospital") == 4  # two accounts, its delta, and the answers
    assert run(capsys, "ledger", "cap", book, "--dataset", "x")[0] == 2


def test_a_refusal_has_its_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "query", folder / "query.yaml", "SELECT COUNT(agee) FROM patients", "--epsilon", 1,
                           "--json")  # fmt: skip
    error = json.loads(out)["error"]
    assert status == 2
    assert (error["line"], error["column"]) == (1, 14)
    assert "Did you mean `age`?" in err


def test_metadata_problems_have_lines(folder: Path) -> None:
    path = folder / "bad.yaml"
    path.write_text(METADATA.replace("person: row", "persom: row").replace("kind: boolean", "kind: bool"))
    with pytest.raises(InvalidRecipe) as failure:
        Dataset.load(path)
    lines = {problem.line for problem in failure.value.problems}
    assert {4, 11} <= lines


def test_a_draft_never_holds_bounds(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    status, out, _ = run(capsys, "init", "patients.csv", "--unit", "row", "--out", "-")
    assert status == 0
    assert "kind: integer" in out
    assert "domain: {low" not in out.partition("columns:")[2]
    (folder / "draft.yaml").write_text(out)
    assert Dataset.load(folder / "draft.yaml").dataset == "patients"


def test_demo(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "demo", "query", "--out", folder / "demo", "--json")
    told = json.loads(out)
    assert status == 0
    assert told["exact"][0] - told["exact"][1] == 1
    assert told["again"] == told["private"][0]
    assert "left of" in told["over_budget"]
    assert (folder / "demo" / "query" / "histogram.svg").read_text().startswith("<svg")


ENGINES = [
    pytest.param(name, marks=[pytest.mark.slow] if name == "spark" else []) for name in registry("engine").names()
]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_answers_from_the_command_line_with_its_defaults(
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All paths are relative. The budget is so large that the noise rounds away."""
    monkeypatch.chdir(tmp_path)
    people = patients(300)
    if engine == "spark":
        request.getfixturevalue("java")
    if engine == "postgres":
        url = request.getfixturevalue("postgresql")
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS command_line")
            connection.execute("CREATE TABLE command_line (ward text, age bigint, flu boolean)")
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO command_line VALUES (%s, %s, %s)", people["ward", "age", "flu"].rows())
        data = f"{url}#command_line"
    else:
        people.write_parquet("patients.parquet")
        data = "patients.parquet"
    metadata = METADATA.partition("public:")[0].replace("patients.csv", f'"{data}"')
    Path("query.yaml").write_text(metadata)
    assert run(capsys, "ledger", "cap", "ledger.db", "--dataset", "hospital", "--epsilon", "1000")[0] == 0
    sql = "SELECT ward, COUNT(*) AS n, SUM(age) AS years FROM patients GROUP BY ward"
    chosen = () if engine in ("duckdb", "postgres") else ("--engine", engine)  # these two are chosen by the data
    status, out, err = run(capsys, "query", "query.yaml", sql, "--epsilon", "1000", *chosen, "--json")
    assert status == 0, err
    found = {row["ward"]["value"]: (row["n"]["value"], row["years"]["value"]) for row in json.loads(out)["rows"]}
    truth = people.group_by("ward").agg(n=pl.len(), years=pl.col("age").sum())
    assert found.keys() == set(truth["ward"])
    for ward, n, years in truth.iter_rows():
        assert abs(found[ward][0] - n) <= 1
        assert abs(found[ward][1] - years) <= 10
