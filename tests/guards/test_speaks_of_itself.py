"""The project's files carry no path or host of the machine they were written on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
FORBIDDEN = re.compile(
    r"/work/(main|shared)|/root/|/home/[a-z]+/|https?://(?:pypi|files\.pythonhosted|registry\.npmjs)"
)


def test_no_machine_paths_or_registry_hosts() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    wrong = []
    for name in filter(None, listed):
        path = ROOT / name
        if path.name == Path(__file__).name or not path.is_file() or path.stat().st_size > 2_000_000:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if FORBIDDEN.search(text):
            wrong.append(name)
    assert listed
    assert not wrong
