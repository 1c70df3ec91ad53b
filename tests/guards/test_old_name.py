"""The name of version 0.1 belongs to another project and is gone, except where files of 0.1 are read."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OLD_NAME = re.compile("tac" + "it", re.IGNORECASE)
READS_OLD_FILES = re.compile(
    r"src/sfumato/(data/yaml_documents\.py|dp/(stores|migrations)/.*|dp/[a-z_]*migrat[a-z_]*\.py)"
    r"|CHANGELOG\.md|docs/(.*/)?deprecation\.md"
    r"|tests/unit/test_(old_version_key|ledger\w*)\.py"
    r"|src/sfumato/profiling/words/english_words\.txt"
)
"""The version key of recipes and metadata files, the migration of ledgers, what users read about both, and a list of
English words."""


def uses_old_name(name: str, text: str) -> bool:
    return bool(OLD_NAME.search(name) or (OLD_NAME.search(text) and not READS_OLD_FILES.fullmatch(name)))


def test_the_old_name_is_gone() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in listed.splitlines() if (ROOT / name).is_file()]
    assert files
    texts = {str(path.relative_to(ROOT)): path.read_bytes().decode("utf-8", "replace") for path in files}
    assert not [name for name, text in texts.items() if uses_old_name(name, text)]


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("src/sfumato/cli/protect.py", "pip install ta" + "cit", True),
        ("src/ta" + "cit/x.py", "", True),
        ("src/sfumato/data/yaml_documents.py", "Ta" + "cit", False),
        ("docs/index.md", "tactic", False),
    ],
)
def test_the_guard_sees_the_old_name(name: str, text: str, wrong: bool) -> None:
    assert uses_old_name(name, text) is wrong
