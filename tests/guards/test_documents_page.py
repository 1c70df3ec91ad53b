"""`docs/documents.md` names keys that the JSON documents have."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sfumato.cli import main
from sfumato.reports.report_schema import ReportDocument

PAGE = (Path(__file__).parents[2] / "docs" / "documents.md").read_text(encoding="utf-8")
DOCUMENT = """
sfumato: 1
dataset: people
data: people.csv
unit: row
ledger: ledger.db
columns:
  age: {role: quasi, kind: integer, hierarchy: {intervals: [10, 20]}, domain: {low: 0, high: 120}}
  town: {role: quasi, kind: category, domain: {values: [a, b]}}
  ill: {role: sensitive, kind: category}
models: [k-anonymity: 3]
steps: [generalize]
attacks: [linkage]
measures: [marginals]
limits: {risk: 0.9}
about: {purpose: a test}
"""


def documented(section: str) -> list[set[str]]:
    """The keys in the first column of each table of a section."""
    [text] = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    return [{key for row in table.splitlines()[2:] for key in re.findall(r"`(\w+)`", row.split("|")[1])}
            for table in tables]  # fmt: skip


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)
    rows = {"age": [20 + n % 40 for n in range(240)], "town": ["a", "b"] * 120, "ill": ["no", "no", "yes"] * 80}
    pl.DataFrame(rows).write_csv("people.csv")
    Path("people.yaml").write_text(DOCUMENT)

    def run(*words: str) -> Any:
        assert main([*words, "--json"]) in (0, 1), capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return run


def test_every_key_on_the_page_is_one_of_the_document(printed: Any) -> None:
    printed("ledger", "cap", "people.yaml", "--epsilon", "2")
    release = printed("protect", "people.yaml", "--out", "release", "--targets", "20", "--unmet")
    original = ("--original", "people.csv")
    attack = printed("attack", "release", *original, "--attack", "linkage", "--targets", "20")
    answer = printed("query", "people.yaml", "SELECT town, COUNT(*) AS n FROM people GROUP BY town", "--epsilon", "1")
    shown = printed("ledger", "show", "people.yaml")
    found: dict[str, list[dict[str, Any]]] = {
        "`sfumato protect RECIPE --json`": [release],
        "`sfumato check RELEASE --json`": [printed("check", "release", *original)],
        "`sfumato attack RELEASE --original FILE --json`": [attack, attack["attacks"][0]],
        "`sfumato measure RELEASE --original FILE --json`": [printed("measure", "release", *original)],
        "`sfumato query DATASET SQL --json`": [answer],
        "`sfumato ledger show LEDGER --json`": [shown, shown["register"][0]],
        "`release/release.json`": [json.loads(Path("release/release.json").read_text())],
        "`release/report.json` and `release-private/report.json`": [
            json.loads(Path("release/report.json").read_text())
        ],
    }
    for section, documents in found.items():
        tables = documented(section)
        assert len(tables) == len(documents), section
        for keys, document in zip(tables, documents, strict=True):
            assert keys, section
            assert keys <= set(document), (section, keys - set(document))
    assert set(json.loads(Path("release/release.json").read_text())) <= documented("`release/release.json`")[0]


def test_the_page_tells_the_owners_keys_of_a_report() -> None:
    [text] = re.findall(r"^The keys `recipe`.*", PAGE, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", text)) <= set(ReportDocument.model_fields)
