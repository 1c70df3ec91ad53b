"""Figures in the documentation are those of the recorded benchmark results."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "benchmarks" / "results").glob("*.json"))


def test_tables_in_the_documentation_are_current() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "tables.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_says_where_its_figures_come_from(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["benchmark"] == path.stem
    for table in document["tables"].values():
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", table["date"])
        assert table["command"]
        assert table["machine"]["cores"] > 0
        assert table["versions"]["sfumato"]
        assert table["rows"]
        assert {len(row) for row in table["rows"]} == {len(table["columns"])} == {len(table["formats"])}


def test_every_record_is_shown_and_every_table_is_recorded() -> None:
    shown = set()
    for page in (ROOT / "docs").rglob("*.md"):
        shown |= set(re.findall(r"<!-- figures: (\S+) (\S+) -->", page.read_text(encoding="utf-8")))
    recorded = {(path.stem, table) for path in RECORDS for table in json.loads(path.read_text())["tables"]}
    assert len(recorded) >= 20
    assert shown == recorded
