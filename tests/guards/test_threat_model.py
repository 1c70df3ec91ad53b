"""Every promise of the threat models names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}


def test_every_promise_names_a_test() -> None:
    text = (ROOT / "docs" / "server-threats.md").read_text(encoding="utf-8")
    rows = [
        line
        for line in text.splitlines()
        if line.startswith("|") and not line.startswith(("|---", "| promise", "| how"))
    ]
    assert len(rows) > 25
    for row in rows:
        file, named = "", re.findall(r"`(test_\w+\.py|)::(test_\w+)`", row.rsplit(" | ", 1)[1])
        assert named, row
        for given, test in named:  # a test without a file is in that of the one before it
            file = given or file
            assert f"def {test}(" in SOURCES[file], row


def test_every_promise_about_parties_names_a_test() -> None:
    text = (ROOT / "docs" / "parties-threats.md").read_text(encoding="utf-8")
    named = re.findall(r"\| `(test_\w+\.py)::(test_\w+)` \|$", text, flags=re.MULTILINE)
    assert len(named) > 8
    for file, test in named:
        assert f"def {test}(" in SOURCES[file], test
