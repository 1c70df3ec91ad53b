"""Every promise of the threat models, and every client that is said to work, names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}


def check_rows(rows: list[str], least: int) -> None:
    """The last column of each row names tests."""
    assert len(rows) > least
    for row in rows:
        file, named = "", re.findall(r"`(test_\w+\.py|)::(test_\w+)`", row.rsplit(" | ", 1)[1])
        assert named, row
        for given, test in named:  # a test without a file is in that of the one before it
            file = given or file
            assert f"def {test}(" in SOURCES[file], row


def test_every_promise_names_a_test() -> None:
    text = (ROOT / "docs" / "server-threats.md").read_text(encoding="utf-8")
    heads = ("|---", "| promise", "| how")
    check_rows([line for line in text.splitlines() if line.startswith("|") and not line.startswith(heads)], 25)


def test_every_client_that_is_said_to_work_names_a_test() -> None:
    text = (ROOT / "docs" / "server-postgres.md").read_text(encoding="utf-8")
    _, table = text.split("| client | what is checked | test |\n|---|---|---|\n")
    check_rows(table.split("\n\n")[0].splitlines(), 8)


def test_every_promise_about_parties_names_a_test() -> None:
    text = (ROOT / "docs" / "parties-threats.md").read_text(encoding="utf-8")
    named = re.findall(r"\| `(test_\w+\.py)::(test_\w+)` \|$", text, flags=re.MULTILINE)
    assert len(named) > 8
    for file, test in named:
        assert f"def {test}(" in SOURCES[file], test
